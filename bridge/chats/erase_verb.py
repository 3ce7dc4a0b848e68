"""`galata erase`, as the running process carries it out, or the command itself where none runs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from agent.messages import JsonObject, JsonValue
from bridge.chats.erasing import Busy, Eraser, Found
from bridge.configuration.storing import Storing
from bridge.control import ControlRefused
from memory.chats.reach import ChatPlace
from memory.errors import StoreError

ERASE: Final = "erase"


class EraseVerb:
    """Arguments: `person` or `chat` as `channel:id`, `really` (false: only what there is is told),
    `actor` for the audit table. The result: `lines` for the operator."""

    def __init__(self, eraser: Eraser, storing: Storing) -> None:
        self._eraser = eraser
        self._storing = storing

    async def __call__(self, arguments: JsonObject) -> JsonObject:
        """Raises `ControlRefused`."""
        really, actor = arguments.get("really") is True, str(arguments.get("actor") or "?")
        try:
            if person := _named(arguments.get("person")):
                lines = await self._person(*person, actor if really else None)
            elif chat := _named(arguments.get("chat")):
                lines = await self._chat(*chat, actor if really else None)
            else:
                raise ControlRefused("a person or chat is a channel and an id, as telegram:42")
        except Busy:
            raise ControlRefused(
                "something is being answered or noted there right now: try again in a minute"
            ) from None
        except (StoreError, OSError) as error:
            raise ControlRefused(f"not everything is erased, do it again: {error}") from error
        return {"lines": list[JsonValue](lines)}

    async def _person(self, channel: str, person: str, actor: str | None) -> Sequence[str]:
        found = await self._eraser.find(channel, person)
        if actor is None:
            return _told(found)
        until = self._until()
        await self._eraser.person(found, actor)
        return [f"{channel}:{person} is erased", *until]

    async def _chat(self, channel: str, chat: str, actor: str | None) -> Sequence[str]:
        places = await self._eraser.places(channel, chat)
        if actor is None:
            return [_chat_line(place) for place in places]
        until = self._until()
        for place in places:
            await self._eraser.chat(place, actor)
        return [f"{channel}:{chat} is erased", *until]

    def _until(self) -> list[str]:
        until = self._eraser.until(self._storing, datetime.now(UTC))
        hold = "backups that were made by hand may hold it longer"
        if until is None:
            return [hold]
        return [f"backups by the clock and kept databases hold it until {until:%Y-%m-%d}; {hold}"]


def _told(found: Found) -> list[str]:
    lines = [_chat_line(place) for place in found.private]
    for trace in found.shared:
        lines.append(
            f"in chat {trace.place.chat}: {trace.questions} questions with their answers,"
            f" summaries of older messages, {len(trace.lines)} lines of memory files"
        )
        lines += [f"  {line}" for line in trace.lines]
    if found.together:
        lines.append(f"in the memory that groups share: {len(found.together)} lines")
        lines += [f"  {line}" for line in found.together]
    return lines


def _chat_line(place: ChatPlace) -> str:
    return f"chat {place.chat} ({place.channel} {place.account}): everything"


def _named(value: JsonValue) -> tuple[str, str] | None:
    channel, _, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return (channel, name) if channel and name else None
