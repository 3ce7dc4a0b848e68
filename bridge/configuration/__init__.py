"""What `bridge.config` reads, and what it says about it.

- `settings`: every key; `schema`: what the models say about one
- `references`, `environment`: secrets, and what is used without a file; `known_models`: prices
- `cross_checks`, `faults`: what is wrong, in plain words
- `limit_layers`: the configuration's part of every chat's policy
- `storing`: what is stored, for how long, and who reads it
"""
