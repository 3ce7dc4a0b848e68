"""What lasts: the database, conversations, the inbox, usage, and the memory files.

Of `agent` it imports the message, provider and tool types only (and how its models write JSON).

The database
    database  migrate  errors  clock  one writer, one reader, numbered migrations
    integrity  frozen  copying  trial whether it is whole; read beside a bot; copied; tried
    inbox  backlog  unread  connected what people sent, what waited, what may have been missed
    conversations  runs  outbox       what was said, by which run, and on its way
    usage  days  usage_report  chat_usage  token_ratios   what it cost
    chats  moving  talks  off         chats that move or end, private ones, memories switched off
    people  admissions  pairings  invites  known_groups  codes   who may talk
    policies  dialogues               limits, and the buttons that set them
    jobs  nights  flushed             what is done by the clock, and how far it got
    alerts  errorlog  audit  overview what operators are told
    refused_images                    what no model takes
    retention  chat_retention  settings   what is kept, and for how long
The memory of a chat
    scopes  together  folders  files  whose it is, where it lies, how its files are written
    daily  flush  flush_*  note_taking    day files, and the notes of conversations in them
    facts  fact_files  versions       `MEMORY.md`, and its earlier versions
    consolidate  proposal  provenance  alike  relative   what a night may do to it
    notebook  memory_tools  snapshots people and models write and read it
    lines  authors  concerned  about  own_names   whose a line is, and about whom
    search  indexing  pieces  words  prefixes  telling   finding
What is forgotten or erased
    forgetting  tombstones  said_before  withdrawn  resting  repeated  copies  copied_talks  leftovers
    erasing  person_traces            of a chat, of a person
Reading
    stored_messages  rendering  quoting  transcripts  tools   as text, and the tool that looks them up
"""
