"""What of a conversation goes into the day files, and how it stands there. Pure.

Only people's own words, and the assistant's as long as nothing foreign is in its context, go to the
model that takes the notes: what tools, pages, pictures, files, quotes and forwards said cannot be
laundered into a fact by a model that has never read it. It is listed under a heading of its own.

    ## 14:05–16:20 UTC+01:00 · conversation 3, messages 12–48

    ### Trip to Rome
    - **Ana** prefers aisle seats [12]

    ### Not said by people
    - assistant: The train leaves at nine [13]
    - assistant: The page says … [14]

The heading names the messages, so that an entry is known again when a crash came before its mark.
"""

from memory.markdown.headings import NOT_SAID
from memory.notes.conversation_lines import ASSISTANT, Batch, Line, Unflushed, batch, without
from memory.notes.entries import MOST_ITEM, Entry, Note, Span, entries, notes, spans
from memory.notes.items import DIGEST_CHARACTERS, NOTHING, Item, digest, read_items

__all__ = [
    "ASSISTANT",
    "DIGEST_CHARACTERS",
    "MOST_ITEM",
    "NOTHING",
    "NOT_SAID",
    "Batch",
    "Entry",
    "Item",
    "Line",
    "Note",
    "Span",
    "Unflushed",
    "batch",
    "digest",
    "entries",
    "notes",
    "read_items",
    "spans",
    "without",
]
