"""Which histories every provider takes: an oracle that says what is wrong, and a fast check.

Legal means: the first message begins a turn; roles alternate; no empty message and no blank text;
each `tool_use` has a unique id and its one result in the directly following user message, where
results come first and in the order of the calls; no result stands anywhere else; no call is half
made; the last message is the user's. Thinking never stands alone. Each provider's own rules are
its renderer's.

The two share no code, and neither does the oracle with `agent.history.repair`, so that each judges
the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agent.messages import (
    Block,
    ImageBlock,
    Message,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    begins_turn,
)


def violations(messages: Sequence[Message]) -> list[str]:
    """Everything that a strict provider would refuse, as `message N: what`; empty when legal."""
    found: list[str] = []
    if not messages:
        return ["no messages"]
    if not begins_turn(messages[0]):
        found.append("message 0: the first message must be the user's, with text or an image")
    if messages[-1].role != "user":
        found.append(f"message {len(messages) - 1}: the last message must be the user's")
    seen: set[str] = set()
    for index, message in enumerate(messages):
        previous = messages[index - 1] if index else None
        findings = [
            *_bad_order(message, previous),
            *_bad_blocks(message, seen),
            *_bad_results(message, previous),
        ]
        found += [f"message {index}: {finding}" for finding in findings]
    if messages[-1].tool_uses:
        found.append(f"message {len(messages) - 1}: calls without results")
    return found


def _bad_order(message: Message, previous: Message | None) -> Iterator[str]:
    if previous is not None and previous.role == message.role:
        yield f"two {message.role} messages in a row"
    if not message.blocks:
        yield "empty"
    elif all(isinstance(block, ThinkingBlock) for block in message.blocks):
        yield "nothing but thinking"


def _bad_blocks(message: Message, seen: set[str]) -> Iterator[str]:
    for block in message.blocks:
        match block:
            case TextBlock() if not block.text.strip():
                yield "blank text"
            case ToolUseBlock():
                yield from _bad_call(message.role, block, seen)
            case ToolResultBlock() if message.role == "assistant":
                yield "a result in an assistant message"
            case ToolResultBlock() if not block.content or any(
                isinstance(part, TextBlock) and not part.text.strip() for part in block.content
            ):
                yield "a result without content"
            case ThinkingBlock() if message.role == "user":
                yield "thinking in a user message"
            case ImageBlock() if message.role == "assistant":
                yield "an image in an assistant message"
            case _:
                pass


def _bad_call(role: Role, call: ToolUseBlock, seen: set[str]) -> Iterator[str]:
    if role == "user":
        yield "a call in a user message"
        return
    if call.id in seen or not call.id:
        yield f"call id {call.id!r} is not unique"
    seen.add(call.id)
    if call.raw is not None:
        yield f"call {call.id!r} is half made"


def _bad_results(message: Message, previous: Message | None) -> Iterator[str]:
    if message.role != "user":
        return
    calls = [call.id for call in previous.tool_uses] if previous else []
    results = [result.tool_use_id for result in message.tool_results]
    if calls != results:
        yield f"calls {calls} are answered by results {results}"
    heads = message.blocks[: len(results)]
    if not all(isinstance(block, ToolResultBlock) for block in heads):
        yield "results must come first"


# The fast check --------------------------------------------------------------------------------


def is_legal(messages: Sequence[Message]) -> bool:
    """Whether `violations` finds nothing; 10,000 messages take about 2 ms."""
    if len(messages) % 2 == 0:
        return False
    walk = iter(messages)
    first = next(walk)
    if first.role != "user" or not first.blocks or not is_said(first.blocks):
        return False
    used: set[str] = set()
    for reply, answer in zip(walk, walk, strict=True):
        if reply.role != "assistant" or answer.role != "user":
            return False
        if not _legal_pair(reply.blocks, answer.blocks, used):
            return False
    return True


def _legal_pair(reply: tuple[Block, ...], answer: tuple[Block, ...], used: set[str]) -> bool:
    """Whether an assistant message is legal, and the user's after it answers its calls."""
    calls, speaks = 0, False
    for block in reply:
        if isinstance(block, TextBlock):
            text = block.text
            if not text or text.isspace():
                return False
            speaks = True
        elif isinstance(block, ToolUseBlock):
            id_ = block.id
            if block.raw is not None or not id_ or id_ in used or calls == len(answer):
                return False
            if not _answers(answer[calls], id_):
                return False
            used.add(id_)
            calls += 1
        elif not isinstance(block, ThinkingBlock):
            return False
    rest = answer[calls:] if calls else answer
    return bool((speaks or calls) and (rest or calls)) and is_said(rest)


def _answers(block: Block, id_: str) -> bool:
    return (
        isinstance(block, ToolResultBlock)
        and block.tool_use_id == id_
        and len(block.content) > 0
        and is_said(block.content)
    )


def is_said(blocks: tuple[Block, ...]) -> bool:
    """Whether these are texts that are not blank, and images."""
    for block in blocks:
        if isinstance(block, TextBlock):
            text = block.text
            if not text or text.isspace():
                return False
        elif not isinstance(block, ImageBlock):
            return False
    return True
