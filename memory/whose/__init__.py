"""Whose a line of a memory is, and about whom: by the platform's id, never by a name.

- `authors`: who had what written, and who may change it
- `speakers`: whether one person has said two of them
- `concerned`: whether a person may have a line forgotten
- `about`: all lines about a person
"""
