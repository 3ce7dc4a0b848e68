"""What a channel hands over: stored first, then carried out at once, or kept for its lane.

- `router`: which way a message goes
- `chat_rules`: what holds where it was written
- `acts`: commands and presses, at once; `repeats`: the same one again within seconds
- `questions`: what waits in the inbox for a lane; `backlog`: what was asked long before
- `store_trouble`: who was told that nothing can be stored
"""
