"""Who may talk to the bot, as rows. Each change leaves a row in the audit table.

- `people`: owners, and what somebody was told already
- `pairings`: strangers who ask; `invites`: codes that let in several; `codes`: how codes are kept
- `admissions`: who was let in or shut out; `known_groups`: groups that the bot was added to
"""
