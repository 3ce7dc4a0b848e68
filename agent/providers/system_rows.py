"""System and developer rows of a Chat Completions list, read and put back in their place.

The API takes them anywhere but between calls and their results, and with some text in them. Many
servers want the user's or a tool's row last. A repaired list has them between the same words as before,
behind the results that they stood in front of, and before the last question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, chain

from agent.messages import ImageBlock, JsonObject, Message, ToolResultBlock
from agent.providers.history_rows import (
    ReadHistory,
    SystemRow,
    list_at,
    object_at,
    text_at,
)


def keep(history: ReadHistory, number: int, found: JsonObject) -> None:
    """Read one; blank text is left out. Raises `HistoryFormatError`."""
    where, role = f"messages.{number}", str(found["role"])
    history.known(where, found, "role", "content", "name")
    texts = list(_texts(history, f"{where}.content", found.get("content")))
    said = [text for text in texts if text.strip()]
    if said != texts or not texts:
        history.faults.append(f"message {number}: blank text in a {role} message")
    if not said:
        return
    row: JsonObject = {"role": role, "content": said[0]}
    if isinstance(found["content"], list):
        row["content"] = [{"type": "text", "text": text} for text in said]
    if found.get("name") is not None:
        row["name"] = text_at(f"{where}.name", found["name"])
    before = sum(len(message.blocks) for message in history.messages)
    history.system.append(SystemRow(row, before))


def check_place(history: ReadHistory, newest: Mapping[int, str], follower: str | None) -> None:
    """Whether these rows, by number and role, may stand before a row of the role `follower`; None: at
    the end of the list."""
    for number, role in newest.items():
        if follower == "tool":
            history.faults.append(f"message {number}: a {role} message before the results")
        elif follower is None and history.messages:
            history.faults.append(f"message {number}: a {role} message may not be the last")


def put_back(
    history: ReadHistory, rows: Sequence[JsonObject], messages: Sequence[Message]
) -> list[JsonObject]:
    """The rows that were made of repaired `messages`, with the system's."""
    places = _Places(history.messages, messages)
    placed: dict[int, list[JsonObject]] = {}
    at = 0
    for kept in history.system:  # in their order, also where what stood between them is gone
        at = max(at, _allowed(rows, places.of(kept.blocks_before)))
        placed.setdefault(at, []).append(kept.row)
    return [
        row
        for number, own in enumerate([*([row] for row in rows), []])
        for row in (*placed.get(number, ()), *own)
    ]


class _Places:
    """Where in the rows of repaired messages something stood."""

    def __init__(self, read: Sequence[Message], messages: Sequence[Message]) -> None:
        self._messages = messages
        self._blocks = list(chain.from_iterable(message.blocks for message in read))
        self._holder = {id(block): n for n, m in enumerate(messages) for block in m.blocks}
        self._starts = [0, *accumulate(map(_rows_of, messages))]

    def of(self, blocks_before: int) -> int:
        """The number of rows before it: by the nearest block that is still there."""
        if blocks_before == 0:
            return 0
        for distance in range(len(self._blocks)):
            follower = self._held(blocks_before + distance)
            if follower is not None:
                return self._before(follower)
            leader = self._held(blocks_before - 1 - distance)
            if leader is not None:
                return self._before(leader + 1)
        return 0

    def _held(self, place: int) -> int | None:
        if not 0 <= place < len(self._blocks):
            return None
        return self._holder.get(id(self._blocks[place]))

    def _before(self, message: int) -> int:
        """Rows before a message, and its results, which nothing may part from their calls."""
        if message == len(self._messages):
            return self._starts[-1]
        return self._starts[message] + len(self._messages[message].tool_results)


def _rows_of(message: Message) -> int:
    """How many rows `openai_body` makes of a message."""
    if message.role == "assistant":
        return 1
    results = message.tool_results
    said = any(not isinstance(block, ToolResultBlock) for block in message.blocks)
    shown = any(isinstance(part, ImageBlock) for result in results for part in result.content)
    return len(results) + (1 if said or shown or not results else 0)


def _allowed(rows: Sequence[JsonObject], at: int) -> int:
    """The same place, or before the last question or call where it is the end."""
    if at < len(rows) or not rows:
        return at
    at -= 1
    while at and rows[at]["role"] == "tool":
        at -= 1
    return at


def _texts(history: ReadHistory, where: str, content: object) -> Iterator[str]:
    if content is None or isinstance(content, str):
        yield content or ""
        return
    for number, item in enumerate(list_at(where, content)):
        part = object_at(f"{where}.{number}", item)
        if part.get("type") != "text":
            history.refused(f"{where}.{number}", part.get("type"), "text")
            continue
        yield text_at(f"{where}.{number}.text", part.get("text"))
