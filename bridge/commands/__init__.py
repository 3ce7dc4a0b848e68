"""The bot's commands: they never wait behind a run.

- `table`: every command, declared once; `dispatch`: from a command to what carries it out
- `parts`: the commands with all that they need
- `context`, `usage`, `why`: about a conversation, what it costs, and what the model saw
- `memory`, `memory_presses`: what a memory holds
- `privacy`, `exporting`, `erase`: what is stored, handed over, and gone
"""
