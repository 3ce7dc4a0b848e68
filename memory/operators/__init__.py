"""What operators are told.

- `overview`: who waits, what failed, when the last message came
- `alerts`: causes of trouble that owners know of; `errorlog`: what stands behind an error id
- `trial`: whether the database can store something now
"""
