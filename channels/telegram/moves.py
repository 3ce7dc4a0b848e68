"""Groups that have become supergroups, under a new id.

Telegram says so in both chats, and refuses every request that names the old id. A refused new message
goes to the new chat at once: it was not sent, for certain. What concerns a message of the old chat
by its number cannot follow: in the new chat that number is another message.
"""

from __future__ import annotations

import asyncio
from collections import deque
from datetime import UTC, datetime
from typing import Any, NoReturn

from channels.base import Address, InboundMessage, Receive, Sender

_BY_NUMBER = ("message_id", "message_ids")


class Moves:
    """The moves that one bot has run into since its start."""

    def __init__(self) -> None:
        self._new: dict[int, int] = {}
        self._sent: set[tuple[int, int]] = set()  # old chat, message that went to the new one
        self._untold: deque[tuple[int, int]] = deque()
        self._some = asyncio.Event()

    def learn(self, data: dict[str, Any], new: int) -> bool:
        """A request was refused since its chat is `new` now; whether it may be sent there."""
        old = int(data["chat_id"])
        if self._new.get(old) != new:
            self._new[old] = new
            self._untold.append((old, new))
            self._some.set()
        return self.redirect(data)

    def redirect(self, data: dict[str, Any]) -> bool:
        """Let a request to a chat that has moved go to its new id; false for one that stays as it
        is."""
        old = _number(data.get("chat_id"))
        new = self._new.get(old) if old is not None else None
        if old is None or new is None:
            return False
        named = [_number(data[key]) for key in _BY_NUMBER if key in data]
        if any(number is None or (old, number) not in self._sent for number in named):
            return False
        data["chat_id"] = new
        data.pop("reply_parameters", None)
        return True

    def sent(self, old: Any, answer: Any) -> None:
        """A redirected request was carried out: what was sent may be edited by its number."""
        match answer, _number(old):
            case {"message_id": int(number)}, int(chat):
                self._sent.add((chat, number))
            case _:
                pass

    async def tell(self, account: str, hand_on: Receive) -> NoReturn:
        """Hand on, until cancelled, each move that was learnt from a refusal."""
        while True:
            await self._some.wait()
            while self._untold:
                old, new = self._untold[0]
                await hand_on(moved(account, str(old), str(new), datetime.now(UTC)))
                self._untold.popleft()
            self._some.clear()


def moved(account: str, old: str, new: str, at: datetime) -> InboundMessage:
    """The message that tells of a move, the same wherever it was learnt from."""
    return InboundMessage(
        address=Address("telegram", account, new, None, private=False),
        event=f"moved:{old}",
        message_id="",
        sender=Sender(new, ""),
        sent_at=at,
        addressed=False,
        moved_from=old,
    )


def _number(value: Any) -> int | None:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None
