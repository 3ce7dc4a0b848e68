"""What lasts: the database, conversations, the inbox, usage, and the memory files.

Of `agent` it imports the message, provider and tool types only.
"""
