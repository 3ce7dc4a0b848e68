"""What a night may do to `MEMORY.md` (`memory.consolidate` decides).

- `proposal`: what the model is asked, and what it proposes
- `alike`: whether two entries say the same
- `nights`: what has been read of the day files, and how the newest night went
"""
