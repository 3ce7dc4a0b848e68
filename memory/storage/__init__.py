"""What lies under `memory.database`: the schema, and files that are broken, read-only or copied.

- `migrate`: numbered migrations, forward only
- `integrity`: whether a file is whole, and what is done with one that is not
- `frozen`: a database that is read where nothing can be written beside it
- `copying`: a copy of a whole database while others use it
"""
