"""What a chat may cost and do there: the policy's keys, their files, and their enforcement.

Declared, and how values are written:
- `keys`: each key once; `kinds`, `numbers`, `names`, `lists`, `times`: kinds of values
- `documents`, `sections`: docs/limits.md, config.example.yaml and the configuration's models
- `checks`: what the configuration says about its models

Read:
- `lines`: slips of a phone or a chat put right; `reading`: lines become values, or faults
- `on_disk`, `files`: the chats' files, and what holds of them
- `policy`, `policies`: what holds for a chat, topic and person, and where it comes from

Changed in a chat:
- `rights`: who may; `editing`, `changes`: a plan on a revision, written or refused
- `command`: `/limits`; `dialogue`, `steps`, `menu`: by buttons; `form`: in Slack; `overview`,
  `showing`: what they show; `chat_commands`: `/pause`, `/block`, `/model` and their like

Kept to:
- `admission`: before a question is taken; `budget`: before each model call of a run; `gate`: for all
  chats together; `caps`: which limit is reached, and the sentence that tells it
- `prompt`: what the model is told
"""
