"""Chats as a whole: they move, end, keep things for a time.

- `reach`: chats that have moved or cannot be reached; `moving`: what names the old id follows
- `erasing`: everything of a chat, or of a person, goes
- `talks`: private conversations in which nothing is kept; `off`: memories that are switched off
- `chat_retention`: what one chat keeps for less time than all
"""
