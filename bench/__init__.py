"""How fast and how small the bot is, measured on the real SDKs: `python -m bench`.

The platforms and the models are the local servers of `tests.servers`, in a process of their own.
"""
