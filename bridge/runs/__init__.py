"""From a session's open messages to an answer that has been delivered.

- `turns`: a lane's work; `turn_plan`: what a turn is given; `turn`: one turn; `settling`: its end
- `question`, `pictures`, `picture_file`, `sparing`, `overheard`: what the model is asked
- `loading`, `compaction`, `run_memory`: what it sees of the conversation and of the memory
- `slots`, `outage`: when a model may be asked
- `display`, `last_word`, `notices`, `delivery`: what the chat reads
- `stopping`: `/cancel`; `lost_runs`: runs that were stopped while nobody carried them out
- `zone_question`: asks for a time zone when it first matters
"""
