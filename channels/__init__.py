"""Chat platforms: each folder turns one platform's updates into messages, and replies into calls.

Imports nothing of `agent`, `memory` or `bridge`.

    base                              the contract with the bridge, made of:
    messages  inputs  replies         what people send, fill in, and are sent
    membership                        who belongs where
    errors                            what can go wrong, by the reaction wanted
    supervise  trust                  listens again after a failure; when a refused token is believed
    chunking  parts  preview          long answers in parts; the preview of one that is streamed
    errands  media  forms  text       work beside a reply; what a file is; settings; whole characters
    telegram/  slack/  console        the platforms, and the terminal
    testing                           a channel without a platform
"""
