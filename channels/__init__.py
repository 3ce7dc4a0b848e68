"""Chat platforms: each folder turns one platform's updates into messages, and replies into calls.

Imports nothing of `agent`, `memory` or `bridge`.
"""
