"""The bridge: it ties channels, memory and the agent together, and is the command line.

    app  agent_bridge                 the process from its first line to its last; messages in, runs on
    parts  services  registry         what these are made of
    reloading                         what changes of the configuration while it runs
    lanes  scheduler                  one turn at a time per session; what is done by the clock
    operation/                        one process, its health, its store and its copies
    intake/                           what a channel hands over: stored, then carried out or queued
    commands/                         what people do besides asking
    runs/                             from a session's questions to a delivered answer
    chats/                            chats that move, end, come back, or are erased
    remembering/                      when and by which calls a memory is written
    models/                           the models that answer
    config  configuration/            the file that is read, and what it may say
    limits/  access/                  what a chat may cost and do there; who may talk at all
    cli/                              `galata`: one module for each command
    texts/                            everything that the bot itself says

Each stands on those below it; import-linter checks that. What all of it uses: `inbound` (a message as
it is stored), `session` and `sharing` (whose conversation and memory it is), `speakers`, `answers`,
`errors`, `beside` (work that nobody waits for), `control` (the socket of a running bot), `log`,
`timezones`, `tools`, `suggestions`, `yaml_source`.
"""
