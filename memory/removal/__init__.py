"""What people take out of their memory, at once and everywhere.

- `forgetting`: facts, with all that says them; `said_before`: the messages that said them
- `person_traces`: what a person has left in the chats that others share
"""
