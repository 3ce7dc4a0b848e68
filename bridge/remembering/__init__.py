"""The memory's work: what conversations leave, day by day and night by night.

- `flushing`: from conversations into day files; `consolidation`: from day files into `MEMORY.md`,
  `progress`: how far it is
- `jobs`: when; `calls`: the model calls for it; `parts`: all of it, as the configuration wants
- `switch`: whether a chat's memory is on
- `buttons`, `overnight`: what people see of it
"""
