"""What model calls used, beside the rows themselves (`memory.usage`).

- `days`: sums by chat, person and day, which limits are checked against
- `chat_usage`: for the people in a chat; `usage_report`: for operators
- `token_ratios`: how far estimates of tokens were off
"""
