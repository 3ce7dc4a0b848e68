"""The memory files as people read and edit them.

- `files`: how they are written: under one lock, atomically, never over somebody's change
- `folders`: which of them are named after a chat
- `facts`: `MEMORY.md`, one entry a line; `fact_files`: read and changed; `versions`: a step back
- `lines`: the lines of all files by name; `pieces`: what is found by itself
- `leftovers`: files in the making that a dead process has left
"""
