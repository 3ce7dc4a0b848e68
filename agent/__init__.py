"""The agent core: messages, providers, tools, and the loop that turns a question into an answer.

Imports nothing of `bridge`, `channels` or `memory`.

    messages  events  errors          what is said, shown and raised
    provider  providers/  model       the seam to a model, the APIs behind it, a model as it is used
    settings  windows  testing        its configuration, what it takes, and one that is scripted
    loop                              model call, tools, again, until an answer or a cap
    calls  mending  images  retry     one model call that gets through
    working  context  overflow        what goes into it: trimmed once, smaller when it must be
    history  legality                 and always legal
    estimate  estimate_*              how many tokens that is
    summary                           what stands for what left
    tools  tool_args  tool_runner     what the model may call, and how it runs
    lenient_json  children            its arguments with slips of syntax; programs that a tool starts
    breaker                           what ends a run that goes in circles
    cancel  deadlines                 what ends it at once, and what ends a silent stream
    prompt                            the system prompt
"""
