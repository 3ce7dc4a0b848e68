"""What a chat may cost and do there: the policy's keys, their files, and their enforcement."""
