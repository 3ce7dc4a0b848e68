"""Stopping a run: by command, word or button; at once, whatever hangs.

A stop acts before it is stored: `act` is synchronous. It reaches the active run of the session and
that person's waiting messages; other people's stay. Rights: the person who asked, and owners. A stop
whose platform message is older than the question it would hit does nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.commands import Say
from bridge.lanes import ActiveRun, Lanes
from channels.base import InboundMessage
from memory.conversations import SessionPlace
from memory.inbox import Inbox

STOP_WORDS: Final = frozenset({"cancel", "stop", "!cancel"})
STOP_COMMANDS: Final = frozenset({"cancel", "stop"})


class Stopping:
    """Finds what a stop means and does it."""

    def __init__(
        self,
        access: Access,
        lanes: Lanes,
        tokens: CancelTokenRegistry,
        inbox: Inbox,
    ) -> None:
        self._access = access
        self._lanes = lanes
        self._tokens = tokens
        self._inbox = inbox

    def is_stop_word(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether the text is a bare stop word, and its sender has a run in this conversation."""
        if message.text.strip().lower() not in STOP_WORDS or message.command is not None:
            return False
        run = self._lanes.active(place.key)
        return run is not None and run.person == message.sender.id

    def is_stop(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether the message asks to stop something."""
        if message.press is not None:
            return message.press.action == "stop"
        if message.command is not None:
            return message.command.name in STOP_COMMANDS
        return self.is_stop_word(message, place)

    def act(self, message: InboundMessage, place: SessionPlace) -> ActiveRun | None:
        """Stop now what the message may stop; the run that was stopped, or None."""
        if not self.is_stop(message, place):
            return None
        run = self._target(message, place)
        if run is None or not self._may_stop(message, run):
            return None
        if message.sent_at < run.asked_at and message.press is None:
            return None
        run.token.cancel()
        return run

    async def finish(
        self, message: InboundMessage, place: SessionPlace, stopped: ActiveRun | None, say: Say
    ) -> str:
        """Drop the person's waiting messages and tell what happened; empty when the stopped answer
        itself tells it. Until this has run, the lane must not take a message: it might be one of
        those."""
        dropped = await self._drop_waiting(message, place)
        if dropped:
            return say("dropped_waiting", count=dropped)
        if stopped is not None:
            return say("stopped") if message.press is not None else ""
        if message.press is not None:
            registered = self._tokens.get(message.press.value)
            return say("already_over" if registered is None else "not_yours")
        run = self._lanes.active(place.key)
        if run is not None and not self._may_stop(message, run):
            return say("not_yours")
        return say("nothing_running")

    def _target(self, message: InboundMessage, place: SessionPlace) -> ActiveRun | None:
        """A button names its run; a command or word means the conversation's, or, where commands
        cannot be given in threads, the person's run in any thread of the chat."""
        if message.press is None:
            return self._lanes.active(place.key) or self._in_a_thread(message)
        registered = self._tokens.get(message.press.value)
        run = self._lanes.active(registered.session) if registered else None
        return run if run is not None and run.run_id == message.press.value else None

    def _in_a_thread(self, message: InboundMessage) -> ActiveRun | None:
        here, person = message.address, message.sender.id
        if here.private or here.thread is not None:
            return None
        for run in self._lanes.all_active():
            if run.person == person and replace(run.address, thread=None) == here:
                return run
        return None

    def _may_stop(self, message: InboundMessage, run: ActiveRun) -> bool:
        person = message.sender.id
        return person == run.person or self._access.is_owner(message.address.channel, person)

    async def _drop_waiting(self, message: InboundMessage, place: SessionPlace) -> int:
        """Only a command or word reaches waiting messages: a button belongs to its own answer."""
        if message.press is not None:
            return 0
        rows = await self._inbox.open_turns(place.key)
        run = self._lanes.active(place.key)
        under_way = run.inbox_ids if run is not None else frozenset[int]()
        ids = [
            row.id
            for row in rows
            if row.person == message.sender.id and row.run_id is None and row.id not in under_way
        ]
        if ids:
            await self._inbox.close(ids, "cancelled")
        return len(ids)
