"""Who was told that nothing can be stored. Kept in memory: the store cannot keep it."""

from __future__ import annotations

from channels.base import Address, InboundMessage

_Chat = tuple[str, str, str, str | None]


class StoreTrouble:
    """Each chat is told once for each time that it happens, however often its messages come again."""

    def __init__(self) -> None:
        self._told: set[_Chat] = set()

    def first_in(self, message: InboundMessage) -> bool:
        """A message could not be stored; whether its chat has to be told now."""
        chat = _chat(message.address)
        if chat in self._told:
            return False
        self._told.add(chat)
        return True

    def over(self) -> None:
        """A message was stored."""
        self._told.clear()


def _chat(address: Address) -> _Chat:
    return (address.channel, address.account, address.chat, address.thread)
