"""Copies of what people said and of memory files in stored conversations: what tools gave back, and
what they were given. Where they hold what is forgotten, or what an erased person said, their text goes;
each call and each result stays, so that they stand in pairs as a provider wants them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from agent.messages import (
    Block,
    JsonValue,
    Message,
    MessageFormatError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    decode,
    encode,
)
from memory.rendering import READ_TOOL as TRANSCRIPT_TOOL
from memory.scopes import ChatScope
from memory.text.quoting import QUOTE, QUOTED
from memory.text.telling import telling
from memory.tombstones import Forgotten

SEARCH_TOOL: Final = "memory_search"
READ_TOOL: Final = "memory_read"
REMEMBER_TOOL: Final = "remember"
FORGET_TOOL: Final = "forget"
COPYING: Final = frozenset({SEARCH_TOOL, READ_TOOL, REMEMBER_TOOL, FORGET_TOOL, TRANSCRIPT_TOOL})
"""Tools that show what is remembered and what was said."""
TAKEN_OUT: Final = "[taken out: it held what was to be forgotten]"


@dataclass(frozen=True, slots=True)
class Taken:
    """What is taken out: every text that says what is `forgotten`, and of the tools that copy each one
    that has all telling words of a saying somewhere, and the words by which it was looked for."""

    forgotten: Forgotten
    about: Sequence[frozenset[str]] = field(init=False)

    def __post_init__(self) -> None:
        stems = [told for told in map(telling, self.forgotten.sayings) if told]
        object.__setattr__(self, "about", stems)

    def result(self, text: str, tool: str) -> bool:
        """Whether it goes from a result."""
        told = telling(text) if tool in COPYING else frozenset[str]()
        return any(said <= told for said in self.about) or any(
            map(self.forgotten.covers, text.split("\n"))
        )

    def argument(self, text: str, tool: str) -> bool:
        """Whether it goes from a call."""
        told = telling(text)
        asked_for = tool in COPYING and any(told & said for said in self.about)
        return asked_for or any(map(self.forgotten.covers, text.split("\n")))


@dataclass(frozen=True, slots=True)
class AllCopies:
    """All texts of the tools that copy go: whose words are in them is not told apart."""

    def result(self, text: str, tool: str) -> bool:
        """As `Taken.result`."""
        return bool(text) and tool in COPYING

    def argument(self, text: str, tool: str) -> bool:
        """As `Taken.argument`."""
        return self.result(text, tool)


Which = Taken | AllCopies
Bodies = list[tuple[int, str]]  # messages by row id, and what they are now


def copies_of(
    connection: sqlite3.Connection, chat: ChatScope, which: Which, after: int = 0
) -> tuple[Bodies, int]:
    """The chat's messages beyond row `after` of which something goes, without it; the newest row looked
    at."""
    rows = connection.execute(
        "SELECT m.id, m.body FROM messages m JOIN sessions s ON s.id = m.session_id"
        " WHERE m.id > :after AND s.channel = :channel AND s.account = :account AND s.chat = :chat"
        " AND (instr(m.body, :tool) OR instr(m.body, :thought)) ORDER BY m.id",
        {
            "after": after,
            "channel": chat.channel,
            "account": chat.account,
            "chat": chat.chat,
            "tool": '"type":"tool_',
            "thought": '"type":"thinking"',
        },
    )
    found, newest, tools = Bodies(), after, dict[str, str]()
    for id_, body in rows:
        newest = int(id_)
        try:
            message = decode(str(body))
        except MessageFormatError:
            continue
        tools |= {call.id: call.name for call in message.tool_uses}
        kept = without_copies(message, tools, which)
        if kept != message:
            found.append((newest, encode(kept)))
    return found, newest


def take_out(
    connection: sqlite3.Connection, chat: ChatScope, which: Which, known: Bodies, after: int
) -> None:
    """Store what `copies_of` has found up to row `after`, and the same of what came later. For use
    inside a write."""
    later, _ = copies_of(connection, chat, which, after)
    connection.executemany(
        "UPDATE messages SET body = ? WHERE id = ?", [(body, id_) for id_, body in (*known, *later)]
    )


def take_out_quotes(connection: sqlite3.Connection, chat: ChatScope) -> None:
    """No question of the chat quotes anybody any more: whose words they are is not told apart. For use
    inside a write."""
    place = (chat.channel, chat.account, chat.chat)
    rows = connection.execute(
        "SELECT m.id, m.body FROM messages m JOIN sessions s ON s.id = m.session_id"
        " WHERE s.channel = ? AND s.account = ? AND s.chat = ? AND instr(m.body, ?)",
        (*place, QUOTED),
    ).fetchall()
    for id_, body in rows:
        try:
            message = decode(str(body))
        except MessageFormatError:
            continue
        if message.role != "user":
            continue
        blocks = tuple(_unquoted(block) for block in message.blocks)
        connection.execute(
            "UPDATE messages SET body = ? WHERE id = ?",
            (encode(replace(message, blocks=blocks)), id_),
        )
    connection.execute(
        "UPDATE inbox SET body = json_set(body, '$.quote', NULL) WHERE channel = ? AND account = ?"
        " AND chat = ? AND json_valid(body) AND json_extract(body, '$.quote') IS NOT NULL",
        place,
    )


def _unquoted(block: Block) -> Block:
    if not isinstance(block, TextBlock):
        return block
    return replace(block, text=QUOTE.sub(f"{QUOTED}\n> {TAKEN_OUT}\n", block.text))


def without_copies(message: Message, tools: dict[str, str], which: Which) -> Message:
    """The message without what goes. `tools`: names of tools by the ids of calls."""
    blocks = tuple(_block(block, tools, which) for block in message.blocks)
    changed = blocks != message.blocks
    # What was thought is sealed: it stays as it is or goes as a whole.
    kept = tuple(
        block
        for block in blocks
        if not isinstance(block, ThinkingBlock)
        or not (changed or which.result(block.text, SEARCH_TOOL))
    )
    return replace(message, blocks=kept or (TextBlock(TAKEN_OUT),))


def cleaned(turn: Sequence[Message], forgotten: Forgotten) -> tuple[Message, ...]:
    """The messages of a turn, as many as before, without what says something `forgotten`."""
    tools = {call.id: call.name for message in turn for call in message.tool_uses}
    taken = Taken(forgotten)
    return tuple(_without_lines(without_copies(one, tools, taken), forgotten) for one in turn)


def _without_lines(message: Message, forgotten: Forgotten) -> Message:
    blocks: list[Block] = []
    for block in message.blocks:
        if isinstance(block, TextBlock):
            kept = "\n".join(forgotten.without(block.text.split("\n")))
            block = replace(block, text=kept if kept.strip() else TAKEN_OUT)
        blocks.append(block)
    return replace(message, blocks=tuple(blocks))


def _block(block: Block, tools: dict[str, str], which: Which) -> Block:
    match block:
        case ToolUseBlock():
            arguments = {
                key: _argument(value, block.name, which) for key, value in block.arguments.items()
            }
            return block if arguments == block.arguments else replace(block, arguments=arguments)
        case ToolResultBlock():
            tool = tools.get(block.tool_use_id, "")
            texts = (part.text for part in block.content if isinstance(part, TextBlock))
            if which.result("\n".join(texts), tool):
                return replace(block, content=(TextBlock(TAKEN_OUT),))
            return block
        case _:
            return block


def _argument(value: JsonValue, tool: str, which: Which) -> JsonValue:
    match value:
        case str():
            return TAKEN_OUT if which.argument(value, tool) else value
        case list():
            return [_argument(item, tool, which) for item in value]
        case dict():
            return {key: _argument(item, tool, which) for key, item in value.items()}
        case _:
            return value


def nameless(saying: str, names: Iterable[str]) -> str:
    """A normalised saying without the names of those who may have said it of themselves."""
    called = {word for name in names for word in name.split()}
    kept = " ".join(word for word in saying.split() if word not in called)
    return kept if telling(kept) else saying
