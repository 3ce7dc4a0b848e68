"""What a night may do to `MEMORY.md` (`memory.consolidate` decides).

- `proposal`: what the model is asked, and what it proposes
- `gate`: whether a change is made, and what the entries are then; `judged`: what it
  is given, and what it says
- `alike`: whether two entries say the same; `against`: whether one takes the other's place
- `read_days`: what has been read of the day files; `nights`: how the newest night went
"""
