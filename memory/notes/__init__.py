"""What of a conversation goes into the day files (`memory.daily`).

- `flush`: from messages to notes; `flushed`: how far each session has got
- `conversation_lines`: messages as the lines that notes are taken of
- `note_taking`: what the model is asked; `items`: what it gives back
- `entries`: notes as they stand in a day file, written and read
"""
