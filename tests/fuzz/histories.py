"""Histories for the laws of repair and of the renderers: any list of messages, and conversations as
they come from use, undamaged or damaged."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from agent.messages import (
    Block,
    ImageBlock,
    JsonObject,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

PNG = b"\x89PNG\r\n\x1a\n" + bytes(8)
MODEL, OTHER = "p/model", "p/other"

words = st.sampled_from(
    ["hello", "done", "你好", "", " ", "\n\n", "\ud83d", "a\ude00b", "\x00", "\u200b"]
) | st.text(max_size=8)
ids = st.sampled_from(
    ["a", "b", "call_0", "a_2", "functions.exec:0", "x" * 90, "call_x|fc_y", "", "é", "\ud800"]
)
names = st.sampled_from(["now", "functions.exec", "a b", "", "n" * 300])
values = st.none() | st.booleans() | st.integers(-5, 5) | st.floats() | words
arguments: st.SearchStrategy[JsonObject] = st.dictionaries(words, values, max_size=2)
images = st.just(ImageBlock("image/png", PNG))
parts = words.map(TextBlock) | images
contents = st.lists(parts, max_size=3).map(tuple)
results = st.builds(ToolResultBlock, ids, contents, is_error=st.booleans())
thoughts = st.builds(
    ThinkingBlock,
    words,
    st.sampled_from([MODEL, OTHER]),
    signature=st.sampled_from([None, "seal"]),
    redacted=st.sampled_from([None, "opaque"]),
)
calls = st.builds(
    ToolUseBlock, ids, names, arguments, raw=st.sampled_from([None, None, None, '{"a": '])
)
blocks: st.SearchStrategy[Block] = parts | results | thoughts | calls
messages = st.builds(
    Message, st.sampled_from(["user", "assistant"]), st.lists(blocks, max_size=4).map(tuple)
)
any_histories = st.lists(messages, max_size=10)


@st.composite
def _steps(draw: st.DrawFn, number: int) -> list[Message]:
    """A turn: a question, steps of parallel calls with their results, and mostly an answer."""
    turn = [Message("user", (TextBlock(f"q{number}"), *draw(st.lists(images, max_size=1))))]
    for step in range(draw(st.integers(0, 3))):
        used = [f"call_{number}_{step}_{place}" for place in range(draw(st.integers(1, 3)))]
        text = draw(st.sampled_from([(), (TextBlock("let me see"),)]))
        made = tuple(ToolUseBlock(id_, "now", draw(arguments)) for id_ in used)
        turn.append(Message("assistant", (*draw(st.sampled_from([(), _THOUGHT])), *text, *made)))
        answers = (ToolResultBlock(id_, (TextBlock(f"result of {id_}"),)) for id_ in used)
        turn.append(Message("user", tuple(answers)))
    return [*turn, Message("assistant", (TextBlock(f"a{number}"),))]


_THOUGHT = (ThinkingBlock("hm", MODEL, signature="seal"),)


@st.composite
def sound_histories(draw: st.DrawFn, most_turns: int = 4) -> list[Message]:
    """Legal conversations that end with a question or with results."""
    history = [m for n in range(draw(st.integers(0, most_turns))) for m in draw(_steps(n))]
    last = draw(_steps(99))
    return [*history, *last[: 1 + 2 * draw(st.integers(0, (len(last) - 2) // 2))]]


Damage = Callable[[list[Message], int, int], None]


def _lose(history: list[Message], place: int, _: int) -> None:
    del history[place]


def _repeat(history: list[Message], place: int, by: int) -> None:
    history.insert((place + by) % (len(history) + 1), history[place])


def _move(history: list[Message], place: int, by: int) -> None:
    history.insert((place + by) % len(history), history.pop(place))


def _speak_for_the_other(history: list[Message], place: int, _: int) -> None:
    message = history[place]
    history[place] = Message("user" if message.role == "assistant" else "assistant", message.blocks)


def _lose_block(history: list[Message], place: int, by: int) -> None:
    kept = list(history[place].blocks)
    if kept:
        del kept[by % len(kept)]
    history[place] = Message(history[place].role, tuple(kept))


def _turn_blocks(history: list[Message], place: int, by: int) -> None:
    kept = history[place].blocks
    by %= len(kept) or 1
    history[place] = Message(history[place].role, (*kept[by:], *kept[:by]))


DAMAGES: list[Damage] = [_lose, _repeat, _move, _speak_for_the_other, _lose_block, _turn_blocks]


@st.composite
def damaged_histories(draw: st.DrawFn, most_turns: int = 4) -> list[Message]:
    """Conversations of which messages and blocks were lost, doubled, moved or mixed up."""
    history = draw(sound_histories(most_turns))
    for _ in range(draw(st.integers(0, 4))):
        if history:
            damage = draw(st.sampled_from(DAMAGES))
            damage(history, draw(st.integers(0, len(history) - 1)), draw(st.integers(0, 5)))
    return history


histories = any_histories | damaged_histories()
