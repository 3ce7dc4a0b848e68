"""Line 1: what of a history goes into a run. Whole turns only, and the newest turn always.

`trim` is asked once, before the loop, and takes the lightest step that is enough: shorter tool
results in old turns, fewer turns, old turns as question and answer only. What leaves the context is
given back, so that the caller keeps it in memory; the stored history is never touched.

All functions are pure. A working copy is a tuple of turns, so that nothing is ever cut in the middle
of one; its last turn is the one that is being answered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from typing import Protocol

from agent.messages import (
    Block,
    ImageBlock,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    begins_turn,
)

Turn = tuple[Message, ...]

OLD_RESULT_CHARACTERS = 20_000  # a tool result in an old turn (issue 3, line 1)
FEW_TURNS = 5  # with fewer, old turns are made brief instead of dropped
# The sizes to which results of the newest turn are shortened, oldest first, until it fits.
NEWEST_RESULT_CHARACTERS = (20_000, 10_000, 2_000)

NOTE = "[Earlier conversation] {note}"
LEFT_OUT = "Older messages were left out here."
# Of the note that stands for what has left: a summary (`agent.summary.SUMMARY_TOKENS`) with its frame,
# and no more than a third of what all messages may take, so that the turns have the rest.
NOTE_TOKENS = 1_000
NOTE_SHARE = 3
SHORTENED = "\n[… {count} characters were left out here; {how} …]\n"
READ_AGAIN = "read_transcript shows the whole of it"
CALL_AGAIN = "call the tool again for a part of them"


class Sizes(Protocol):
    """Sizes in estimated tokens (`agent.estimate.Estimator`)."""

    def message(self, message: Message, /) -> int:
        """The size of one message."""
        ...

    def text(self, text: str, /) -> int:
        """The size of a text alone."""
        ...


class _Measured:
    """Sizes that are asked for again and again, each message once; by identity, so each is kept."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._known: dict[int, tuple[Message, int]] = {}

    def message(self, message: Message) -> int:
        """The size of one message."""
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, self._sizes.message(message))
        return known[1]

    def text(self, text: str) -> int:
        """The size of a text alone."""
        return self._sizes.text(text)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may send. `tokens`: for messages, that is without the system prompt, the tools and
    the reserved reply; `max_turns`: turns, the newest among them."""

    tokens: int
    max_turns: int


@dataclass(frozen=True, slots=True)
class Working:
    """The working copy of a run, oldest turn first, the turn that is being answered last.

    `note` stands before the first words: what the turns that left were about. `left` counts the turns
    of the loaded history that have left, `brief` the leading turns that are question and answer
    only, so that the store can be told where the context starts.
    """

    turns: tuple[Turn, ...]
    note: str | None = None
    left: int = 0
    brief: int = 0

    @property
    def newest(self) -> Turn:
        """The turn that is being answered."""
        return self.turns[-1] if self.turns else ()

    def messages(self) -> tuple[Message, ...]:
        """All messages in order, the note in the first of them."""
        return with_note(tuple(chain.from_iterable(self.turns)), self.note)

    def plus(self, message: Message) -> Working:
        """With one more message in the newest turn."""
        return replace(self, turns=(*self.turns[:-1], (*self.newest, message)))


@dataclass(frozen=True, slots=True)
class Trimmed:
    """A smaller working copy, and what left it, in order."""

    working: Working
    dropped: tuple[Message, ...] = ()


def turns(messages: Sequence[Message]) -> list[Turn]:
    """The messages cut at turn boundaries, so that each turn but the first begins with its question;
    what precedes the first question is a turn of its own."""
    starts = [index for index, message in enumerate(messages) if begins_turn(message)]
    bounds = sorted({0, *starts, len(messages)})
    return [tuple(messages[start:end]) for start, end in pairwise(bounds)]


def size(working: Working, sizes: Sizes) -> int:
    """Estimated tokens of all messages, the note among them."""
    turns = sum(sizes.message(m) for turn in working.turns for m in turn)
    return note_tokens(working.note, sizes) + turns


def fits(working: Working, tokens: int, sizes: Sizes) -> bool:
    """Whether `size` is at most `tokens`; what is far too long is not measured to its end."""
    left = tokens - note_tokens(working.note, sizes)
    for turn in reversed(working.turns):
        for message in turn:
            left -= sizes.message(message)
        if left < 0:
            return False
    return left >= 0


def note_room(tokens: int) -> int:
    """Tokens of the largest note where messages may take `tokens`."""
    return max(0, min(NOTE_TOKENS, tokens // NOTE_SHARE))


def note_tokens(note: str | None, sizes: Sizes) -> int:
    """The size of a note as `size` counts it."""
    return sizes.message(Message("user", (TextBlock(note),))) if note else 0


def turns_room(trimmed: Trimmed, tokens: int, sizes: Sizes) -> int:
    """Tokens that the turns may take beside their note: where some have left, one that is still to be
    made, and else the one that stands, which can be cut."""
    note = note_room(tokens)
    if not trimmed.dropped:
        note = min(note, note_tokens(trimmed.working.note, sizes))
    return tokens - note


def trim(working: Working, budget: Budget, sizes: Sizes) -> Trimmed:
    """Within the budget, by the lightest steps that are enough. The note is still that of `working`; a
    new one of `note_room` has room.

    A newest turn that alone is larger than the budget stays, with its tool results shortened.
    """
    sizes = _Measured(sizes)
    working = shorten_results(working, OLD_RESULT_CHARACTERS, newest=False)
    trimmed = Trimmed(working)
    if len(working.turns) > budget.max_turns:
        trimmed = drop_turns(trimmed, len(working.turns) - max(1, budget.max_turns // 2))
    while len(trimmed.working.turns) > 1 and not _fits_noted(trimmed, budget.tokens, sizes):
        old = len(trimmed.working.turns) - 1
        if old + 1 < FEW_TURNS and trimmed.working.brief < old:
            trimmed = make_brief(trimmed, old)
        else:
            trimmed = drop_turns(trimmed, (old + 1) // 2)
    return with_newest_shortened(trimmed, budget.tokens, sizes)


def with_newest_shortened(
    trimmed: Trimmed, tokens: int, sizes: Sizes, *, spared: int = 0
) -> Trimmed:
    """With results of the newest turn shortened, the oldest first, where the turns are too large beside
    their note; not those of its last `spared` messages."""
    for most in NEWEST_RESULT_CHARACTERS:
        if _fits_noted(trimmed, tokens, sizes):
            break
        room = turns_room(trimmed, tokens, sizes)
        shorter = _shorten_newest(trimmed.working, room, sizes, most, spared)
        trimmed = replace(trimmed, working=shorter)
    return trimmed


def _fits_noted(trimmed: Trimmed, tokens: int, sizes: Sizes) -> bool:
    bare = replace(trimmed.working, note=None)
    return fits(bare, turns_room(trimmed, tokens, sizes), sizes)


def drop_turns(trimmed: Trimmed, count: int) -> Trimmed:
    """Without the oldest `count` turns; the newest always stays."""
    working = trimmed.working
    count = min(count, len(working.turns) - 1)
    if count <= 0:
        return trimmed
    dropped = tuple(chain.from_iterable(working.turns[:count]))
    smaller = replace(
        working,
        turns=working.turns[count:],
        left=working.left + count,
        brief=max(0, working.brief - count),
    )
    return Trimmed(smaller, (*trimmed.dropped, *dropped))


def make_brief(trimmed: Trimmed, count: int) -> Trimmed:
    """The oldest `count` turns as question and final answer."""
    working = trimmed.working
    old = working.turns[working.brief : count]
    kept = tuple(brief(turn) for turn in old)
    dropped = tuple(
        m for turn, short in zip(old, kept, strict=True) for m in turn[len(short) - 1 : -1]
    )
    smaller = replace(
        working,
        turns=(*working.turns[: working.brief], *kept, *working.turns[count:]),
        brief=max(count, working.brief),
    )
    return Trimmed(smaller, (*trimmed.dropped, *dropped))


def brief(turn: Turn) -> Turn:
    """A turn's question and its final answer, without what lay between; the turn itself when there
    is nothing between."""
    if len(turn) <= 2 or not begins_turn(turn[0]):
        return turn
    final = turn[-1]
    if final.role != "assistant" or final.tool_uses:
        return turn
    return (turn[0], final)


def shorten_results(working: Working, most: int, *, newest: bool) -> Working:
    """Tool results of old turns, and of the newest where asked, cut to `most` characters each."""
    cut = len(working.turns) if newest else len(working.turns) - 1
    shorter = tuple(
        tuple(shorten(message, most, READ_AGAIN) for message in turn)
        for turn in working.turns[:cut]
    )
    if shorter == working.turns[:cut]:
        return working
    return replace(working, turns=(*shorter, *working.turns[cut:]))


def _shorten_newest(working: Working, room: int, sizes: Sizes, most: int, spared: int) -> Working:
    """Results of the newest turn, oldest first, until all turns fit into `room` tokens."""
    over = size(replace(working, note=None), sizes) - room
    newest = list(working.newest)
    for index, message in enumerate(newest[: len(newest) - spared]):
        if over <= 0:
            break
        newest[index] = shorten(message, most, READ_AGAIN)
        over -= sizes.message(message) - sizes.message(newest[index])
    if tuple(newest) == working.newest:
        return working
    return replace(working, turns=(*working.turns[:-1], tuple(newest)))


def shorten(message: Message, most: int, how: str) -> Message:
    """The message with tool results of at most about `most` characters; itself if they are."""
    if not any(_is_long(block, most) for block in message.blocks):
        return message  # nearly all of a long history
    return map_blocks(
        message,
        lambda block: (
            _shorten_result(block, most, how) if isinstance(block, ToolResultBlock) else block
        ),
    )


def without_seals(turn: Sequence[Message]) -> tuple[Message, ...]:
    """A turn with such reasoning alone as may be sent when what stood before it is not sent any more,
    as many messages as before (`repair` drops empty ones).

    Reasoning with a seal (Anthropic) is bound to all that came before it: system prompt, tools and
    messages. It is of use only within the run that made it. Reasoning that is plain text is bound to
    nothing: DeepSeek wants that of a turn with calls back in every later request, the answer's too, and
    ignores that of other turns (api-docs.deepseek.com, guides/thinking_mode). Whether a model gets it
    is its renderer's affair.
    """
    if any(message.tool_uses for message in turn):
        return _without(turn, lambda block: block.signature is None and block.redacted is None)
    return without_thinking(turn)


def without_thinking(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages without any model's reasoning, as many as before."""
    return _without(messages, lambda _: False)


def _without(
    messages: Sequence[Message], keep: Callable[[ThinkingBlock], bool]
) -> tuple[Message, ...]:
    return tuple(
        replace(message, blocks=kept) if kept != message.blocks else message
        for message in messages
        for kept in [
            tuple(b for b in message.blocks if not isinstance(b, ThinkingBlock) or keep(b))
        ]
    )


def with_note(messages: tuple[Message, ...], note: str | None) -> tuple[Message, ...]:
    """With the note before the first words, behind any tool results."""
    if note is None or not messages:
        return messages
    first, *rest = messages
    if first.role == "assistant":  # a cut: the note is not put into its mouth
        return (Message("user", (TextBlock(note),)), *messages)
    results = [block for block in first.blocks if isinstance(block, ToolResultBlock)]
    others = [block for block in first.blocks if not isinstance(block, ToolResultBlock)]
    return (Message(first.role, (*results, TextBlock(note), *others)), *rest)


def map_blocks(message: Message, change: Callable[[Block], Block]) -> Message:
    """The message with each block changed; itself when none was."""
    blocks = tuple(change(block) for block in message.blocks)
    return message if blocks == message.blocks else replace(message, blocks=blocks)


def _is_long(block: Block, most: int) -> bool:
    if not isinstance(block, ToolResultBlock):
        return False
    share = share_of_text(block.content, most)
    return any(isinstance(part, TextBlock) and len(part.text) > share for part in block.content)


def _shorten_result(result: ToolResultBlock, most: int, how: str) -> ToolResultBlock:
    share = share_of_text(result.content, most)
    content: tuple[TextBlock | ImageBlock, ...] = tuple(
        TextBlock(cut_middle(part.text, share, how)) if isinstance(part, TextBlock) else part
        for part in result.content
    )
    return result if content == result.content else replace(result, content=content)


def share_of_text(content: Sequence[TextBlock | ImageBlock], most: int) -> int:
    """How many of a result's `most` characters each of its texts may have: nearly always all."""
    return most // max(1, sum(isinstance(part, TextBlock) for part in content))


def cut_middle(text: str, limit: int, how: str = CALL_AGAIN) -> str:
    """`text` within about `limit` characters: head, tail, and a marker that says how much is gone and
    how to get it. Idempotent: what was cut to `limit` is not cut again."""
    if len(text) <= limit + len(SHORTENED) + len(how):
        return text
    half = limit // 2
    return text[:half] + SHORTENED.format(count=len(text) - 2 * half, how=how) + text[-half:]
