"""The bridge between channels and the agent core.

`receive` is what channels call for each inbound message; it returns once the message is stored, so
that the channel may acknowledge it. A message then goes one of three ways: a command or press is
carried out at once, outside the lane (`bridge.acts`); a question waits in the inbox for its
session's lane (`bridge.questions`, of which `bridge.turns` makes turns); somebody without access
meets the `bridge.access.door`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.access.door import Door
from bridge.access.invites import invite_in
from bridge.access.policy import Verdict
from bridge.acts import Acts
from bridge.backlog import DEFAULT_TIMING, Backlog, BacklogTiming
from bridge.beside import Beside
from bridge.budget_warnings import BudgetWarnings
from bridge.chat_models import ModelChoice
from bridge.chats import ChatKeeper
from bridge.command_parts import build_commands
from bridge.commands import ASKING, is_ours, owner_code
from bridge.delivery import Deliveries
from bridge.erasing import Eraser, quiet
from bridge.holds import Holds
from bridge.inbound import entry, readable
from bridge.lanes import Lanes
from bridge.limits.admission import Admission
from bridge.limits.caps import Reach
from bridge.limits.keys import BLOCKED, CONVERSATION, LANGUAGE, WHO_CAN_STOP
from bridge.limits.policies import is_quiet
from bridge.limits.policy import Policy
from bridge.notices import Notices
from bridge.outage import Changed, Outages
from bridge.overheard import Overheard, listens
from bridge.policy_changes import PolicyChanges
from bridge.private_talks import PrivateTalks
from bridge.questions import Questions, asks
from bridge.repeats import Repeats
from bridge.session import session_of
from bridge.stopping import Stopping
from bridge.store_trouble import StoreTrouble
from bridge.turn_plan import TurnServices
from bridge.turns import Turns
from channels.base import Address, Channel, InboundMessage
from channels.errors import FormRefused, NotStored, Unreachable
from memory.chats import ChatPlace
from memory.conversations import SessionPlace
from memory.errors import StoreError

NOTICES_GRACE_S = 3.0  # for commands and notices under way when the process is stopping


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What the bridge takes from the configuration beside the chats' policies. `queue_length`: messages
    that may wait in one session; `usage_names`: /usage tells admins who has used how much."""

    timezone: tzinfo
    queue_length: int
    usage_names: bool = False
    backlog: BacklogTiming = DEFAULT_TIMING


class AgentBridge:
    """Takes messages in, and gives each session's questions to the agent one turn at a time."""

    def __init__(
        self,
        settings: BridgeSettings,
        services: TurnServices,
        access: Access,
        models: ModelChoice,
        channels: Mapping[str, Channel],
        group: asyncio.TaskGroup,
    ) -> None:
        self._settings = settings
        self._services = services
        self._access = access
        self._channels = channels
        self._beside = Beside(group, services.errors)
        self._store_trouble = StoreTrouble()
        self._policies = services.policies
        self._policies.files.bind(self._beside.start)
        self._admission = Admission(
            services.usage, services.people, access, channels, services.gate
        )
        self._notices = Notices(
            channels, services.texts, self._language, self._is_quiet, services.inbox
        )
        self._overheard = Overheard(access)
        self._repeats = Repeats()
        for channel in channels.values():
            channel.overhear(self._is_wanted)
        tokens = CancelTokenRegistry()
        self._deliveries = Deliveries(
            services.outbox,
            services.runs,
            channels,
            services.texts,
            self._notices.language,
            services.errors,
            self._gone,
            self._beside.start,
        )
        self._turns = Turns(
            services,
            models,
            channels,
            self._notices,
            tokens,
            self._deliveries,
            self._overheard,
            self._beside.start,
        )
        holds = Holds()
        self._lanes = Lanes(group, holds.guard(self._turns.next_turn))
        holds.bind(self._lanes.wake)
        self.chats = ChatKeeper(
            services.chats,
            services.folders,
            holds,
            self._beside.start,
            self._take_up,
            self._forget_chat,
            self._deliveries.tidy_up,
        )
        in_quiet = quiet(holds, services.chats, services.memory)
        self.talks = PrivateTalks(services.talks, services.folders, services.jobs, in_quiet)
        self.eraser = Eraser(
            services.traces,
            services.chats,
            services.folders,
            in_quiet,
            self._erased,
            self._overheard.forget,
        )
        backlog = self._backlog = Backlog(
            services.backlog,
            services.people,
            holds,
            self._notices.tell,
            self._notices.say,
            self._turns.dropped,
            self._beside.start,
            settings.timezone,
            settings.backlog,
        )
        self._outages = Outages(self._lanes.wake)
        warnings = BudgetWarnings(
            services.usage,
            services.inbox,
            services.people,
            services.policies,
            services.gate,
            access,
            services.texts,
            channels,
        )
        self._turns.bind(self._lanes, self._outages, warnings.look)
        self._stopping = Stopping(
            access,
            self._lanes,
            tokens,
            services.inbox,
            services.chats,
            channels,
            lambda message: self._policy(message)[WHO_CAN_STOP],
            services.memory.at_work,
            settings.timezone,
        )
        self.policy_changes = PolicyChanges(
            services.policies,
            services.limits,
            services.chats,
            services.inbox,
            self._lanes,
            self._turns,
            self._notices,
            channels,
            self._beside.start,
        )
        services.policies.files.listen(self.policy_changes.changed)
        language = self._policies.layers.top.get("language")
        self.door = Door(
            access,
            channels,
            services.texts,
            None if language == "auto" else language,
            tokens,
            services.inbox,
            self._turns.dropped,
            self._beside,
        )
        self._commands = build_commands(
            settings.timezone,
            services,
            access,
            models,
            channels,
            self._lanes,
            self._outages,
            tokens,
            self.talks,
            self.eraser,
            self.door,
            usage_names=settings.usage_names,
        )
        self._questions = Questions(
            services.inbox,
            self._lanes,
            self._turns,
            self._outages,
            backlog,
            self._notices,
            self._beside,
            self._admission,
            self._policies,
            settings.queue_length,
        )
        self._acts = Acts(
            services,
            self._commands,
            self._stopping,
            self._turns,
            backlog,
            self._deliveries,
            self._notices,
            self._beside,
            self._place,
            self._lanes.wake,
        )

    # Messages in ----------------------------------------------------------------------------------

    async def receive(self, message: InboundMessage) -> None:
        """Take a message in; returns once it is stored. Raises `NotStored` when it cannot be: the
        channel then does not acknowledge it, and it comes again. A message that we fail on for
        another reason is answered with an error id instead, and does not come again."""
        try:
            await self._take_in(message)
            self._store_trouble.over()
        except (NotStored, FormRefused):
            raise
        except StoreError as error:
            self._beside.start(self._tell_of_the_store(message), "store is down")
            raise NotStored(str(error)) from error
        except Exception as error:  # noqa: BLE001 - a border: reported, and the sender is told
            error_id = await self._services.errors.report(error, f"message {message.event}")
            told = self._notices.answer(message, self._notices.say(message)("error", id=error_id))
            self._beside.start(told, "error")

    async def _take_in(self, received: InboundMessage) -> None:
        message = await self.chats.take(received)
        if message is None:
            return
        self._policies.learn(message.address, message.sender.timezone)
        await self._policies.read(message.address)
        if message.joined:
            await self.door.joined(message)
            return
        place = self._place(message)
        if not (message.addressed or self._concerns_us(message, place)) and (
            not self._overheard.is_asked(message, self._policy(message))
        ):
            return
        changes = self._access.changes
        verdict = await self._access.verdict(message.address, message.sender)
        if verdict == "yes" and not _has_code(message):
            self.door.see(message)
            await self._take(message, place, changes)
        elif self._stopping.is_own_stop(message, place):
            await self._acts.take_stop(message)
        else:
            await self._meet_stranger(message, place, verdict)

    async def _take(self, message: InboundMessage, place: SessionPlace, changes: int) -> None:
        """What somebody has sent who had access when its rules had changed so often."""
        if message.edited_command:
            if is_ours(message):
                say = self._notices.say(message)
                await self._questions.refuse(message, place, say("edited_command"))
        elif self._stopping.is_stop(message, place):
            await self._acts.take_stop(message)
        elif asks(message) and not await self._commands.awaits(message):
            self._repeats.is_one(message)  # what is asked again is asked
            await self._questions.take(message, place)
            await self.door.taken(message, place.key, changes)
        elif (reach := await self._kept_out(message)) is not None:
            await self._questions.turn_away(message, place, reach)
        elif self._repeats.is_one(message):
            await self._services.inbox.put(entry(message, place, "refused"))
        else:
            await self._acts.take(message)

    async def _kept_out(self, message: InboundMessage) -> Reach | None:
        """Why a command or press is not carried out. One that asks a model is admitted as questions
        are."""
        policy = self._policy(message)
        if message.command is not None and message.command.name in ASKING:
            admitted = await self._admission.admit(message, policy)
            return admitted if isinstance(admitted, Reach) else None
        return Reach(BLOCKED.name) if self._admission.is_blocked(message, policy) else None

    async def _is_wanted(self, message: InboundMessage) -> bool:
        """Whether the chat wants group text that is not addressed to the bot."""
        try:
            await self._policies.read(message.address)
        except StoreError as error:
            raise NotStored(str(error)) from error
        return listens(self._policy(message))

    def _concerns_us(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Group text without a mention: a bare stop word, or the rest of a text that was cut."""
        rest_of_a_text = self._questions.is_rest_of_a_text(message, place)
        return rest_of_a_text or self._stopping.is_stop_word(message, place)

    async def _tell_of_the_store(self, message: InboundMessage) -> None:
        """Each chat once; strangers are not told."""
        verdict = await self._access.verdict(message.address, message.sender)
        if verdict == "yes" and self._store_trouble.first_in(message):
            await self._notices.answer(message, self._notices.say(message)("store_down"))

    async def _meet_stranger(
        self, message: InboundMessage, place: SessionPlace, verdict: Verdict
    ) -> None:
        """Codes work, what is for everybody, and what has rights of its own; else `Door.answer`."""
        if await self._commands.goes_on(message):
            await self._acts.take(message)
        elif await self._services.inbox.put(entry(message, place, "refused")) is not None:
            self._beside.start(self._answer_stranger(message, verdict), "stranger")

    async def _answer_stranger(self, message: InboundMessage, verdict: Verdict) -> None:
        say = self._notices.say(message)
        if message.press is not None:
            await self._notices.answer(message, say("not_yours"))
            return
        sentence = await self._commands.for_stranger(message, say)
        if sentence is None:
            sentence = await self.door.answer(message, verdict, say)
        if sentence is not None:
            await self._notices.reply(message, sentence)

    # Start and end --------------------------------------------------------------------------------

    async def resume(self) -> None:
        """After a start: deliver what is in the outbox, carry out stored commands, then take up every
        open message."""
        services, here = self._services, tuple(self._channels)
        await self.talks.load()
        await self.chats.settle()
        for reply in await services.outbox.open_replies(here):
            self._beside.start(self._deliveries.resume(reply), "resumed delivery")
        for lost in await services.runs.lost(here):
            if (asked := readable(lost.body)) is not None:
                self._beside.start(self._deliveries.end_lost(lost, asked), "lost run")
        for row in await services.inbox.open_acts():
            message = readable(row.body)
            if message is not None and message.address.channel in self._channels:
                await self._policies.read(message.address)
                self._acts.resume(message, row.id)
        bodies = map(readable, await services.inbox.marked(here))
        marked = [message for message in bodies if message is not None]
        for message in marked:
            self._turns.mark(message)
        for session_key in await services.inbox.open_sessions(here):
            await self._take_up(session_key, session_key)
        self._turns.unmark_dealt_with(marked)
        self._beside.start(self.door.resume(), "access")

    def _erased(self, place: ChatPlace) -> None:
        """What is kept of a chat in this process goes with what is stored."""
        self.talks.forget(place)
        for name in self._services.chats.names(place):
            self._overheard.forget_chat(place.channel, place.account, name)

    async def _forget_chat(self, channel: str, chat: str) -> None:
        """Its limits and what an owner has decided about it."""
        await self._policies.files.erase(channel, chat)
        self._access.forget_chat(channel, chat)

    async def _take_up(self, former_key: str, session_key: str) -> None:
        """Take up every open message of a session, which had another key before."""
        if former_key != session_key:
            self._turns.forget_session(former_key)
        for row in await self._services.inbox.open_turns(session_key):
            message = readable(row.body)
            if message is not None:
                self._turns.expect(message, session_key)
                self._backlog.note(message)
        self._lanes.wake(session_key)

    async def close(self, patience_s: float) -> None:
        """Start nothing more; running answers and commands get `patience_s` seconds, then they are
        interrupted and taken up at the next start."""
        self._outages.close()
        await self._lanes.close(patience_s)
        await self._beside.close(min(patience_s, NOTICES_GRACE_S))

    async def idle(self) -> None:
        """Return when no lane has work and every command is carried out."""
        while len(self._beside) or len(self._lanes):
            await self._beside.idle()
            await self._lanes.idle()

    def watch_providers(self, changed: Changed) -> None:
        """`changed` hears when a provider fails for everybody, and when it is back."""
        self._outages.watch(changed)

    async def _gone(self, address: Address, error: Unreachable) -> None:
        await self.chats.gone(address, removed=error.removed)

    def _place(self, message: InboundMessage) -> SessionPlace:
        scope = self._policy(message)[CONVERSATION]
        usual = session_of(message.address, message.sender.id, scope)
        return self.talks.place(message.address, usual)

    def _policy(self, message: InboundMessage) -> Policy:
        return self._policies.of(message.address, message.sender.id)

    def _is_quiet(self, message: InboundMessage) -> bool:
        return is_quiet(self._policy(message))

    def _language(self, message: InboundMessage) -> str | None:
        language = self._policy(message)[LANGUAGE]
        return None if language == "auto" else language


def _has_code(message: InboundMessage) -> bool:
    """A code must not become part of a history."""
    return (owner_code(message) or invite_in(message)) is not None
