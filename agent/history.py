"""Line 2: a history that every provider takes, made before every send.

`violations` is the oracle: what is wrong with a list of messages, one finding a line. `repair`
makes it legal; it is pure, deterministic, idempotent and linear, and gives the same object back
when nothing is wrong. The two share no code, so that each judges the other.

Legal means: the first message begins a turn; roles alternate; no empty message and no blank text;
each `tool_use` has a unique id and its one result in the directly following user message, where
results come first and in the order of the calls; no result stands anywhere else; the last message
is the user's. Thinking never stands alone. Each provider's own rules are its renderer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

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

# Placeholders have letters: providers refuse blank text as well as empty text (field case 14).
LOST_RESULT = "The result of this call was lost: it may or may not have taken effect."
NO_CONTENT = "(no content)"
CONTINUE = "(continue)"


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
            case ToolUseBlock() if message.role == "user":
                yield "a call in a user message"
            case ToolUseBlock() if block.id in seen or not block.id:
                yield f"call id {block.id!r} is not unique"
            case ToolUseBlock():
                seen.add(block.id)
            case ToolResultBlock() if message.role == "assistant":
                yield "a result in an assistant message"
            case ToolResultBlock() if _is_blank(block):
                yield "a result without content"
            case ThinkingBlock() if message.role == "user":
                yield "thinking in a user message"
            case ImageBlock() if message.role == "assistant":
                yield "an image in an assistant message"
            case _:
                pass


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


def _is_blank(result: ToolResultBlock) -> bool:
    return not result.content or any(
        isinstance(part, TextBlock) and not part.text.strip() for part in result.content
    )


def repair(messages: Sequence[Message]) -> Sequence[Message]:
    """A legal history with the same speakers and words; `messages` itself when it is legal.

    Never empty when there is a user message with text or an image, and never without the newest
    one. Text never moves between speakers. What is dropped: blank text, orphan and second results,
    calls and results on the wrong side, assistant messages before the first user message, thinking
    that stands alone. What is added: error results for calls without one, placeholders for empty
    results, and a short user message where the assistant would speak last.
    """
    if not violations(messages):
        return messages
    merged = _merge(_clean(message) for message in messages)
    started = _from_first_question(merged)
    answered = _answer_calls(_unique_ids(started))
    closed = _merge(answered)
    if closed and closed[-1].role == "assistant":
        closed.append(Message("user", (TextBlock(CONTINUE),)))
    return tuple(closed)


def _clean(message: Message) -> Message:
    """Without the blocks that may not stand in a message of this role, and without blank text."""
    kept: list[Block] = [
        _with_content(block) if isinstance(block, ToolResultBlock) else block
        for block in message.blocks
        if _belongs(block, message.role)
    ]
    if all(isinstance(block, ThinkingBlock) for block in kept):
        kept = []
    return message if tuple(kept) == message.blocks else Message(message.role, tuple(kept))


def _belongs(block: Block, role: Role) -> bool:
    match block:
        case TextBlock():
            return bool(block.text.strip())
        case ToolResultBlock() | ImageBlock():
            return role == "user"
        case ThinkingBlock() | ToolUseBlock():
            return role == "assistant"


def _with_content(result: ToolResultBlock) -> ToolResultBlock:
    if not _is_blank(result):
        return result
    parts = tuple(
        part for part in result.content if isinstance(part, ImageBlock) or part.text.strip()
    )
    return replace(result, content=parts or (TextBlock(NO_CONTENT),))


def _merge(messages: Iterable[Message]) -> list[Message]:
    """Without empty messages, and with neighbours of one role joined.

    Two assistant messages are joined only when the first calls nothing: otherwise its results
    belong between the two.
    """
    merged: list[list[Block]] = []
    roles: list[str] = []
    result: list[Message] = []
    for message in messages:
        if not message.blocks:
            continue
        if roles and roles[-1] == message.role and not _has_calls(merged[-1]):
            merged[-1].extend(message.blocks)
        else:
            merged.append(list(message.blocks))
            roles.append(message.role)
    for role, blocks in zip(roles, merged, strict=True):
        result.append(Message("user" if role == "user" else "assistant", tuple(blocks)))
    return result


def _has_calls(blocks: Iterable[Block]) -> bool:
    return any(isinstance(block, ToolUseBlock) for block in blocks)


def _from_first_question(messages: list[Message]) -> list[Message]:
    for index, message in enumerate(messages):
        if begins_turn(message):
            return messages[index:]
    return []


def _unique_ids(messages: list[Message]) -> list[Message]:
    """Calls with an id that was used before get a new one, and so do the results that follow."""
    seen: set[str] = set()
    result: list[Message] = []
    renamed: dict[str, list[str]] = {}
    for message in messages:
        blocks: list[Block] = []
        if message.role == "assistant":
            renamed = {}
        for block in message.blocks:
            if isinstance(block, ToolUseBlock):
                fresh = _fresh(block.id, seen)
                seen.add(fresh)
                renamed.setdefault(block.id, []).append(fresh)
                blocks.append(block if fresh == block.id else replace(block, id=fresh))
            elif isinstance(block, ToolResultBlock) and renamed.get(block.tool_use_id):
                fresh = renamed[block.tool_use_id].pop(0)
                same = fresh == block.tool_use_id
                blocks.append(block if same else replace(block, tool_use_id=fresh))
            elif not isinstance(block, ToolResultBlock):
                blocks.append(block)
        result.append(Message(message.role, tuple(blocks)))
    return result


def _fresh(wanted: str, seen: set[str]) -> str:
    base = wanted or "call"
    if base not in seen:
        return base
    number = len(seen)
    while f"{base}_{number}" in seen:
        number += 1
    return f"{base}_{number}"


def _answer_calls(messages: list[Message]) -> list[Message]:
    """Each assistant message with calls is followed by one user message with all results first."""
    result: list[Message] = []
    open_calls: tuple[ToolUseBlock, ...] = ()
    for message in messages:
        if message.role == "user":
            blocks = (*_results(open_calls, message), *_other(message))
            result.append(Message("user", blocks))
            open_calls = ()
            continue
        if open_calls:
            result.append(Message("user", _results(open_calls, None)))
        result.append(message)
        open_calls = message.tool_uses
    if open_calls:
        result.append(Message("user", _results(open_calls, None)))
    return result


def _results(
    calls: tuple[ToolUseBlock, ...], message: Message | None
) -> tuple[ToolResultBlock, ...]:
    given: dict[str, ToolResultBlock] = {}
    for result in message.tool_results if message else ():
        given.setdefault(result.tool_use_id, result)
    return tuple(given.get(call.id) or lost_result(call.id) for call in calls)


def lost_result(call_id: str, text: str = LOST_RESULT) -> ToolResultBlock:
    """The error result that stands in for a lost one."""
    return ToolResultBlock(call_id, (TextBlock(text),), is_error=True)


def _other(message: Message) -> tuple[Block, ...]:
    return tuple(block for block in message.blocks if not isinstance(block, ToolResultBlock))
