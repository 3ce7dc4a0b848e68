"""Stopping: by command, word or button; at once, whatever hangs.

A stop acts before it is stored: `act` is synchronous. It reaches that person's waiting messages, then
the active run of the session; other people's messages stay. Rights: the person who asked, owners, and
where the configuration says so everybody; a chat's admins too, which the platform has to be asked. A
stop whose platform message is older than what it would hit does nothing to it. A group that has just
got another id has its run under the former one until that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Final

from agent.cancel import CancelTokenRegistry, Registration
from bridge.access import Access
from bridge.lanes import ActiveRun, Lanes
from bridge.session import chat_key, rekeyed
from bridge.texts import Say
from channels.base import Address, Button, Channel, InboundMessage
from channels.messages import asks_to_stop, is_stop_word
from memory.chats.reach import ChatPlace, Chats
from memory.conversations import SessionPlace
from memory.inbox import Inbox, InboxKey

ASK_NOW: Final = "ask"  # the action of the button that brings dropped messages back


@dataclass(frozen=True, slots=True)
class Stopped:
    """What a stop has done. `again`: the run was being stopped already; `waiting`: messages that
    are dropped; `works`: the commands that were at work with a model; `postponed`: a run that waited
    to go on was ended."""

    run: ActiveRun | None = None
    again: bool = False
    waiting: tuple[InboxKey, ...] = ()
    works: tuple[InboxKey, ...] = ()
    postponed: bool = False

    @property
    def running(self) -> tuple[InboxKey, ...]:
        """The messages that were being answered."""
        return (*(self.run.requests if self.run is not None else ()), *self.works)


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """What the chat is told; an empty sentence where the stopped answer itself tells it. `spent`: the
    pressed button is of no more use."""

    sentence: str
    buttons: tuple[Button, ...] = ()
    spent: bool = False


def work_of(message: InboundMessage) -> tuple[str, ...]:
    """The request of a command that asks a model: unlike a question, it does not wait to be asked."""
    return ("work", *key_of(message))


def was_stop(act: InboundMessage) -> bool:
    """Whether an act that is stored asked to stop something: a bare word is one only then."""
    bare = all(part is None for part in (act.press, act.command, act.form))
    return asks_to_stop(act) or (bare and is_stop_word(act.text))


def key_of(message: InboundMessage) -> InboxKey:
    """The message's key in the inbox; its request while it waits."""
    address = message.address
    return (address.channel, address.account, address.chat, message.event)


class Stopping:
    """Finds what a stop means and does it."""

    def __init__(
        self,
        access: Access,
        lanes: Lanes,
        tokens: CancelTokenRegistry,
        inbox: Inbox,
        chats: Chats,
        channels: Mapping[str, Channel],
        who_can_stop: Callable[[InboundMessage], str],
        is_tidying: Callable[[Address], bool],
        timezone: tzinfo,
    ) -> None:
        """`is_tidying`: whether the memory of that chat is being tidied by the clock or for somebody
        else, which goes on."""
        self._access = access
        self._lanes = lanes
        self._tokens = tokens
        self._inbox = inbox
        self._chats = chats
        self._channels = channels
        self._who_can_stop = who_can_stop
        self._is_tidying = is_tidying
        self._timezone = timezone

    def is_stop_word(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether the text is a bare stop word in the sender's own words, and they have a question in
        this conversation that is not answered yet, or was so just now: the word then came too late, and
        is no question either."""
        if not is_stop_word(message.text) or not message.own_words:
            return False
        if message.command is not None:
            return False
        person = message.sender.id
        if any(known.person == person for known in self._registered(message, place)):
            return True
        return any(self._lanes.ended_lately(key, person) for key in self._keys(message, place))

    def is_stop(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether the message asks to stop something."""
        asked = message.press is not None or message.command is not None
        return was_stop(message) if asked else self.is_stop_word(message, place)

    def is_own_stop(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Whether it asks to stop what its sender has asked: that is allowed also to somebody who has
        no access any more."""
        if not self.is_stop(message, place):
            return False
        person, run = message.sender.id, self._target(message, place)
        if run is not None:
            return run.person == person
        mine = (known.person == person for known in self._tokens.of_session(place.key))
        return message.press is None and any(mine)

    def act(
        self, message: InboundMessage, place: SessionPlace, *, as_admin: bool = False
    ) -> Stopped:
        """Stop now what the message may stop."""
        waiting = self._drop_waiting(message, place)
        works = self._stop_works(message, place)
        run = self._target(message, place)
        if run is None or not (as_admin or self._may_stop(message, run.person)):
            return Stopped(waiting=waiting, works=works)
        if _is_older(message, run):
            return Stopped(waiting=waiting, works=works)
        again = not run.token.cancel()
        return Stopped(run, again, waiting, works)

    async def finish(
        self, message: InboundMessage, place: SessionPlace, stopped: Stopped, say: Say
    ) -> StopAnswer:
        """What to say of a stop that has acted. For somebody who may not stop by themselves the
        platform is asked whether they are an admin of the chat, and then it acts."""
        if stopped.run is None and await self._is_admin(message, place):
            done = self.act(message, place, as_admin=True)
            stopped = replace(stopped, run=done.run, again=done.again)
        if stopped.waiting:
            button = Button(say("ask_now"), ASK_NOW, message.event)
            return StopAnswer(say("dropped_waiting", count=len(stopped.waiting)), (button,))
        if stopped.again:
            return StopAnswer(say("already_stopping"))
        if stopped.run is not None:
            return StopAnswer(say("stopped") if message.press is not None else "")
        if stopped.works:
            return StopAnswer(say("stopped"))
        if stopped.postponed:
            return StopAnswer("")
        return await self._nothing_stopped(message, place, say)

    async def _nothing_stopped(
        self, message: InboundMessage, place: SessionPlace, say: Say
    ) -> StopAnswer:
        run = self._target(message, place)
        if run is not None:
            return StopAnswer(say("stop_is_older" if _is_older(message, run) else "not_yours"))
        if message.press is not None:
            # a list of several runs keeps its buttons for the others
            return StopAnswer(say("already_over"), spent=not self._in_other_threads(message))
        elsewhere = self._in_other_threads(message)
        if elsewhere:
            asked = self._local([run.asked_at for run in elsewhere])
            buttons = tuple(
                Button(say("stop_that", asked=at), "stop", run.run_id)
                for at, run in zip(asked, elsewhere, strict=True)
            )
            return StopAnswer(say("running_elsewhere"), buttons)
        if self._is_tidying(message.address):
            return StopAnswer(say("nothing_running_but_tidying"))
        ended_as = self._lanes.just_ended(place.key)
        if (ended_as or await self._inbox.last_outcome(place.key)) == "answered":
            return StopAnswer(say("nothing_running_complete"))
        return StopAnswer(say("nothing_running"))

    def _target(self, message: InboundMessage, place: SessionPlace) -> ActiveRun | None:
        """A button names its run; a command or word means the conversation's."""
        if message.press is None:
            active = map(self._lanes.active, self._keys(message, place))
            return next((run for run in active if run is not None), None)
        registered = self._tokens.get(message.press.value)
        run = self._lanes.active(registered.session) if registered else None
        return run if run is not None and run.run_id == message.press.value else None

    def _registered(self, message: InboundMessage, place: SessionPlace) -> list[Registration]:
        """The conversation's requests."""
        keys = self._keys(message, place)
        return [known for key in keys for known in self._tokens.of_session(key)]

    def _keys(self, message: InboundMessage, place: SessionPlace) -> list[str]:
        """The conversation's key, and those that it had while its chat had other ids."""
        address = message.address
        here = ChatPlace(address.channel, address.account, address.chat)
        former = self._chats.names(here) - {here.chat}
        chats = [chat_key(here.channel, here.account, chat) for chat in sorted(former)]
        return [place.key, *(rekeyed(place.key, chat) for chat in chats)]

    def _local(self, moments: Sequence[datetime]) -> list[str]:
        """On the clock; with seconds where minutes do not tell them apart."""
        local = [moment.astimezone(self._timezone) for moment in moments]
        short = [f"{moment:%H:%M}" for moment in local]
        if len(set(short)) == len(short):
            return short
        return [f"{moment:%H:%M:%S}" for moment in local]

    def _in_other_threads(self, message: InboundMessage) -> list[ActiveRun]:
        """The person's runs in other threads or topics of the same chat."""
        here, person = replace(message.address, thread=None), message.sender.id
        return [
            run
            for run in self._lanes.all_active()
            if run.person == person and replace(run.address, thread=None) == here
        ]

    def _may_stop(self, message: InboundMessage, asker: str) -> bool:
        person = message.sender.id
        if person == asker or self._access.is_owner(message.address.channel, person):
            return True
        return self._who_can_stop(message) == "anyone"

    async def _is_admin(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Asked only where it decides something."""
        run = self._target(message, place)
        if run is None or message.address.private or self._may_stop(message, run.person):
            return False
        channel = self._channels[message.address.channel]
        return bool(await channel.is_admin(message.address, message.sender.id))

    def _drop_waiting(self, message: InboundMessage, place: SessionPlace) -> tuple[InboxKey, ...]:
        """Only a command or word reaches waiting messages: a button belongs to its own answer."""
        if message.press is not None:
            return ()
        dropped: list[InboxKey] = []
        for known in self._registered(message, place):
            mine = known.person == message.sender.id and known.asked_at <= message.sent_at
            match known.request_id:
                case (channel, account, chat, event) if mine and known.token.cancel():
                    dropped.append((channel, account, chat, event))
                case _:
                    pass
        return tuple(dropped)

    def _stop_works(self, message: InboundMessage, place: SessionPlace) -> tuple[InboxKey, ...]:
        if message.press is not None:
            return ()
        stopped: list[InboxKey] = []
        for known in self._registered(message, place):
            mine = self._may_stop(message, known.person) and known.asked_at <= message.sent_at
            match known.request_id:
                case ("work", channel, account, chat, event) if mine and known.token.cancel():
                    stopped.append((channel, account, chat, event))
                case _:
                    pass
        return tuple(stopped)


def _is_older(message: InboundMessage, run: ActiveRun) -> bool:
    """Whether a command or word was sent before the question that it would stop."""
    return message.sent_at < run.asked_at and message.press is None
