"""Stopping everything of a person or a chat, when a right is taken back. What is stored of it is closed
by the write that takes the right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import quote

from agent.cancel import CancelTokenRegistry, Registration
from bridge.session import chat_key, chat_of
from memory.chats.reach import ChatPlace
from memory.inbox import InboxKey


class Silence:
    """`dropped(session_key, keys)` hears which waiting messages are closed."""

    def __init__(
        self,
        tokens: CancelTokenRegistry,
        dropped: Callable[[str, Iterable[InboxKey]], None],
    ) -> None:
        self._tokens = tokens
        self._dropped = dropped

    def person(self, channel: str, person: str) -> None:
        """Everything that this person has asked."""
        begin = f"{quote(channel, safe='-_')}:"
        self._stop(lambda known: known.person == person and known.session.startswith(begin))

    def person_in(self, session_key: str, person: str) -> None:
        """What this person has asked in one session."""
        self._stop(lambda known: known.person == person and known.session == session_key)

    def chat(self, place: ChatPlace) -> None:
        """Everything that was asked in this chat."""
        key = chat_key(place.channel, place.account, place.chat)
        self._stop(lambda known: chat_of(known.session) == key)

    def _stop(self, hit: Callable[[Registration], bool]) -> None:
        for known in self._tokens.all():
            if not hit(known) or not known.token.cancel():
                continue
            match known.request_id:
                case (channel, account, chat, event):
                    self._dropped(known.session, [(channel, account, chat, event)])
                case _:
                    pass
