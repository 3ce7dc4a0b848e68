"""What stands on something that was forgotten (`memory.tombstones`), and goes with it.

- `resting`: notes and summaries of messages that are forgotten
- `withdrawn`: answers and commands that say it
- `copies`: what tools gave back and were given; `copied_talks`: the same in transcripts
- `repeated`: what the bot has said again of an erased person's words
"""
