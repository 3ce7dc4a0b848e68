"""The agent core: messages, providers, tools, and the loop that turns a question into an answer.

Imports nothing of `bridge`, `channels` or `memory`.
"""
