"""What lasts: the database, conversations, the inbox, usage, and the memory files.

Of `agent` it imports the message, provider and tool types only (and how its models write JSON).

What is sent, said and paid
    database        one writer with group commit, one reader; under it `storage`; `errors`, `clock`
    inbox           every message of a person; `backlog`, `unread`, `connected`: what an outage left
    conversations   sessions and messages; `stored_messages`, `rendering`: as they are read
    runs            begun with their question, settled with all that they leave
    outbox          replies, stored with their parts before the first is sent
    usage           a row for each model call; `costs`: sums of them
    jobs            what is due when; `policies`, `dialogues`: limits, and the buttons that set them
    chats           chats that move or end; `access`: who may talk; `operators`, `audit`
    retention       what is deleted when; `settings`; `refused_images`: what no model takes
The memory of a chat
    scopes          whose it is and where it lies; `together`: groups that share one
    markdown        its files; `text`: what words say
    daily           a day's file; `notes`: what of a conversation goes there
    consolidate     what a night makes of it; `night`
    snapshots       as it stands in a prompt
    search          found again; `indexing`
    notebook        what people have written there; `memory_tools`: what models do; `whose` it is
What goes again
    tombstones      what was forgotten; `forgotten`: what stands on it
    removal         what people take out
Of what left a context
    transcripts     snapshots as files; `tools`: by which a model looks them up
"""
