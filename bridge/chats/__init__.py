"""What concerns a chat as such, beside its turns.

- `keeper`: chats that move, are gone, and come back; `holds`: where no turn begins for a while
- `rights`: who may decide for a whole chat
- `private_talks`: conversations of which nothing is kept
- `erasing`, `erase_verb`: what goes for good; `keep_days`: chats that keep less
"""
