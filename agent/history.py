"""Line 2: a history that every provider takes, made before every send.

`repair` makes any list of messages legal, in the sense of `agent.legality`; it is pure,
deterministic, idempotent and linear, and gives the same object back when nothing is wrong. Each
provider's own rules are its renderer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agent.legality import is_legal, is_said, violations
from agent.messages import (
    Block,
    ImageBlock,
    Message,
    Outcome,
    Role,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

__all__ = [  # and what a legal history is
    "BEGINNING",
    "CONTINUE",
    "LOST_RESULT",
    "NO_CONTENT",
    "is_legal",
    "lost_result",
    "repair",
    "violations",
]

# Placeholders have letters: providers refuse blank text as well as empty text (field case 14).
LOST_RESULT = "The result of this call was lost: it may or may not have taken effect."
NO_CONTENT = "(no content)"
BEGINNING = "(the conversation begins here)"
CONTINUE = "(continue)"
_LOST = (TextBlock(LOST_RESULT),)


def repair(messages: Sequence[Message]) -> Sequence[Message]:
    """A legal history with the same speakers and words; `messages` itself when it is legal.

    No words are lost and none change their speaker. What is dropped: blank text, orphan and second
    results, calls, results, images and thinking on the wrong side, half-made calls that nothing
    answers, thinking that stands alone. What is added: error results for calls without one, and
    short placeholders for empty results and questions, before an assistant that speaks first and
    after one that speaks last. What was sent stays a prefix of what is sent next, so that prompt
    caching and the seals of thinking hold, unless a late result comes in between.

    A result that came too late, after other messages, is moved to its call: it is the truth about
    what was executed, and an invented error in its place might make the model do it again. It
    belongs to the newest message before it that used its id, for some providers use `call_0` in
    each answer; an older call gets an error rather than perhaps another call's result.
    """
    if is_legal(messages):
        return messages
    results = _Results()
    kept = [results.settle(message) for message in messages]
    return tuple(_assembled(kept, results))


# A message, the blocks that stay in it but for results, and the ids of its calls.
_Kept = tuple[Message, Sequence[Block], Sequence[str]]


class _Results:
    """Which result belongs to which call; ids are made unique on the way, on both halves.

    No container is made for a call, and none for a message where nothing changes: this is most of
    the time that a repair takes.
    """

    def __init__(self) -> None:
        self.answers: dict[str, ToolResultBlock] = {}  # by the call's new id
        self.half_made: set[str] = set()  # new ids of calls whose arguments are no object
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}  # the last suffix of an id that was used again
        # By old id, the new id of the next call that waits for a result; and from there on, by new
        # id, the next call with the same old id in the same message.
        self._waiting: dict[str, str] = {}
        self._after: dict[str, str] = {}

    def settle(self, message: Message) -> _Kept:
        """What stays in a message. They are given in order."""
        if message.role == "assistant":
            return self._reply(message)
        if is_said(message.blocks):
            return message, message.blocks, ()
        return self._answer(message)

    def _reply(self, message: Message) -> _Kept:
        kept: list[Block] = []
        ids: list[str] = []
        speaks = False
        newest: dict[str, str] = {}  # by old id, the new id of the call before
        for block in message.blocks:
            if isinstance(block, TextBlock):
                text = block.text
                if text and not text.isspace():
                    kept.append(block)
                    speaks = True
            elif isinstance(block, ToolUseBlock):
                id_ = self._take_call(block, newest)
                ids.append(id_)
                kept.append(block if id_ == block.id else _renamed(block, id_, block.raw))
            elif isinstance(block, ThinkingBlock):
                kept.append(block)
        return message, kept if speaks or ids else (), ids

    def _take_call(self, call: ToolUseBlock, newest: dict[str, str]) -> str:
        """The call's new id."""
        old = id_ = call.id
        if not old or old in self._used:
            id_ = self._unused(old or "call")
        self._used.add(id_)
        if call.raw is not None:
            self.half_made.add(id_)
        if old in newest:
            self._after[newest[old]] = id_
        else:
            self._waiting[old] = id_
        newest[old] = id_
        return id_

    def _unused(self, base: str) -> str:
        id_ = base
        while id_ in self._used:
            number = self._numbers[base] = self._numbers.get(base, 1) + 1
            id_ = f"{base}_{number}"
        return id_

    def _answer(self, message: Message) -> _Kept:
        kept: list[Block] = []
        for block in message.blocks:
            if isinstance(block, ToolResultBlock):
                old = block.tool_use_id
                id_ = self._waiting.pop(old, None)
                if id_ is not None:
                    self.answers[id_] = _with_content(block, id_)
                    if id_ in self._after:
                        self._waiting[old] = self._after[id_]
            elif isinstance(block, ImageBlock) or (
                isinstance(block, TextBlock) and block.text and not block.text.isspace()
            ):
                kept.append(block)
        return message, kept, ()


def _assembled(kept: Iterable[_Kept], results: _Results) -> Iterator[Message]:
    """The legal history of what stays: each message with calls is followed by all its results."""
    answers, half_made = results.answers, results.half_made
    role: Role = "user"
    blocks: Sequence[Block] = ()
    source: Message | None = None  # given back when nothing in it changed
    nothing = BEGINNING
    for message, said, ids in kept:
        if half_made and not half_made.isdisjoint(ids):
            said, ids = _whole(said, results)
        if message.role == role:
            blocks = _joined(blocks, said)
            source = message
        elif said or _is_silent(message):
            yield _made(role, blocks or (TextBlock(nothing),), source)
            role, blocks, source, nothing = message.role, said, message, NO_CONTENT
        if ids:
            yield _made(role, blocks, source)
            role, source = "user", None
            blocks = [answers.get(id_) or lost_result(id_) for id_ in ids]
    yield _made(role, blocks or (TextBlock(nothing),), source)
    if role == "assistant":
        yield Message("user", (TextBlock(CONTINUE),))


def _renamed(call: ToolUseBlock, id_: str, raw: str | None) -> ToolUseBlock:
    return ToolUseBlock(id_, call.name, call.arguments, raw)


def _joined(blocks: Sequence[Block], more: Sequence[Block]) -> Sequence[Block]:
    """Both, in one list that grows."""
    if not more:
        return blocks
    if isinstance(blocks, list):
        blocks += more
        return blocks
    return [*blocks, *more]


def _is_silent(message: Message) -> bool:
    """A message of the user's with nothing in it, which keeps two answers apart: joined, they would
    not be the prefix any more that the second was the answer to."""
    return message.role == "user" and not message.tool_results


def _made(role: Role, blocks: Sequence[Block], source: Message | None) -> Message:
    made = tuple(blocks)
    return source if source is not None and source.blocks == made else Message(role, made)


def _whole(blocks: Sequence[Block], results: _Results) -> tuple[list[Block], list[str]]:
    """An assistant message without half-made calls, and the ids of its calls; nothing at all when
    only thinking stays. A half-made call that was answered counts as made, without the arguments
    that nobody could read."""
    whole: list[Block] = []
    ids: list[str] = []
    speaks = False
    for block in blocks:
        if not isinstance(block, ToolUseBlock):
            whole.append(block)
            speaks = speaks or isinstance(block, TextBlock)
        elif block.raw is None or block.id in results.answers:
            whole.append(block if block.raw is None else _renamed(block, block.id, None))
            ids.append(block.id)
    return (whole if speaks or ids else []), ids


def _with_content(result: ToolResultBlock, id_: str) -> ToolResultBlock:
    """The result under the call's new id, with something in it."""
    content = result.content
    if not content or not is_said(content):
        parts = tuple(part for part in content if isinstance(part, ImageBlock) or part.text.strip())
        content = parts or (TextBlock(NO_CONTENT),)
    if content is result.content and id_ == result.tool_use_id:
        return result
    return replace(result, tool_use_id=id_, content=content)


def lost_result(
    call_id: str, text: str = LOST_RESULT, outcome: Outcome = "unknown"
) -> ToolResultBlock:
    """The error result that stands in for a lost one."""
    content = _LOST if text == LOST_RESULT else (TextBlock(text),)
    return ToolResultBlock(call_id, content, is_error=True, outcome=outcome)
