"""Which way a message goes that a channel hands over: a command or press is carried out at once,
outside the lane (`bridge.intake.acts`); a question waits in the inbox for its session's lane
(`bridge.intake.questions`); somebody without access meets the `bridge.access.door`."""

from __future__ import annotations

from bridge.access import Access
from bridge.access.door import Door
from bridge.access.invites import invite_in
from bridge.access.policy import Verdict
from bridge.beside import Beside
from bridge.chats.keeper import ChatKeeper
from bridge.chats.private_talks import PrivateTalks
from bridge.commands.dispatch import ASKING, Commands, is_ours, owner_code
from bridge.errors import ErrorReporter
from bridge.inbound import entry
from bridge.intake.acts import Acts
from bridge.intake.chat_rules import ChatRules
from bridge.intake.questions import Questions, asks
from bridge.intake.repeats import Repeats
from bridge.intake.store_trouble import StoreTrouble
from bridge.lanes import Lanes
from bridge.limits.admission import Admission
from bridge.limits.caps import Reach
from bridge.limits.keys import BLOCKED
from bridge.limits.policies import ChatPolicies
from bridge.runs.notices import Notices
from bridge.runs.overheard import Overheard, listens
from bridge.runs.stopping import Stopping
from channels.base import InboundMessage
from channels.errors import FormRefused, NotStored
from memory.conversations import SessionPlace
from memory.errors import StoreDamaged, StoreError
from memory.inbox import Inbox


class Router:
    """Takes messages in, one after the other of a chat."""

    def __init__(
        self,
        access: Access,
        policies: ChatPolicies,
        rules: ChatRules,
        chats: ChatKeeper,
        talks: PrivateTalks,
        door: Door,
        stopping: Stopping,
        commands: Commands,
        acts: Acts,
        questions: Questions,
        lanes: Lanes,
        overheard: Overheard,
        admission: Admission,
        notices: Notices,
        inbox: Inbox,
        errors: ErrorReporter,
        beside: Beside,
    ) -> None:
        self._access = access
        self._policies = policies
        self._rules = rules
        self._chats = chats
        self._talks = talks
        self._door = door
        self._stopping = stopping
        self._commands = commands
        self._acts = acts
        self._questions = questions
        self._lanes = lanes
        self._overheard = overheard
        self._admission = admission
        self._notices = notices
        self._inbox = inbox
        self._errors = errors
        self._beside = beside
        self._repeats = Repeats()
        self._store_trouble = StoreTrouble()

    async def receive(self, message: InboundMessage) -> None:
        """Take a message in; returns once it is stored. Raises `NotStored` when it cannot be: the
        channel then does not acknowledge it, and it comes again. A message that we fail on for
        another reason is answered with an error id instead, and does not come again."""
        if message.behind:
            if message.addressed and not (message.joined or message.left):
                self._beside.start(self._tell_of_the_store(message), "store is down")
            raise NotStored("what came before it is not stored")
        try:
            await self._take_in(message)
            self._store_trouble.over()
        except (NotStored, FormRefused):
            raise
        except StoreError as error:
            damaged = isinstance(error, StoreDamaged)
            told = self._tell_of_the_store(message, damaged=damaged)
            self._beside.start(told, "store is down")
            raise NotStored(str(error)) from error
        except Exception as error:  # noqa: BLE001 - a border: reported, and the sender is told
            error_id = await self._errors.report(error, f"message {message.event}")
            told = self._notices.answer(message, self._notices.say(message)("error", id=error_id))
            self._beside.start(told, "error")

    async def _take_in(self, received: InboundMessage) -> None:
        message = await self._chats.take(received)
        if message is None:
            return
        self._policies.learn(message.address, message.sender.timezone)
        await self._policies.read(message.address)
        if message.joined:
            await self._door.joined(message)
            return
        place = self._rules.place(message, self._talks)
        if not (message.addressed or self._concerns_us(message, place)) and (
            not self._overheard.is_asked(message, self._rules.of(message))
        ):
            return
        run = self._lanes.active(place.key)
        repeated = self._repeats.is_one(message, "" if run is None else run.run_id)
        changes = self._access.changes
        verdict = await self._access.verdict(message.address, message.sender)
        if verdict == "yes" and not _has_code(message):
            self._door.see(message)
            await self._take(message, place, changes, repeated=repeated)
        elif self._stopping.is_own_stop(message, place):
            await self._acts.take_stop(message)
        else:
            await self._meet_stranger(message, place, verdict)

    async def _take(
        self, message: InboundMessage, place: SessionPlace, changes: int, *, repeated: bool
    ) -> None:
        """What somebody has sent who had access when its rules had changed so often."""
        if message.edited_command:
            if is_ours(message):
                say = self._notices.say(message)
                await self._questions.refuse(message, place, say("edited_command"))
        elif self._stopping.is_stop(message, place):
            await self._acts.take_stop(message)
        elif asks(message) and not await self._commands.awaits(message):
            await self._questions.take(message, place)
            await self._door.taken(message, place.key, changes)
        elif (reach := await self._kept_out(message)) is not None:
            await self._questions.turn_away(message, place, reach)
        elif repeated:
            await self._inbox.put(entry(message, place, "refused"))
        else:
            await self._acts.take(message)

    async def _kept_out(self, message: InboundMessage) -> Reach | None:
        """Why a command or press is not carried out. One that asks a model is admitted as questions
        are."""
        policy = self._rules.of(message)
        if message.command is not None and message.command.name in ASKING:
            admitted = await self._admission.admit(message, policy)
            return admitted if isinstance(admitted, Reach) else None
        return Reach(BLOCKED.name) if self._admission.is_blocked(message, policy) else None

    async def is_wanted(self, message: InboundMessage) -> bool:
        """Whether the chat wants group text that is not addressed to the bot."""
        try:
            await self._policies.read(message.address)
        except StoreError as error:
            raise NotStored(str(error)) from error
        return listens(self._rules.of(message))

    def _concerns_us(self, message: InboundMessage, place: SessionPlace) -> bool:
        """Group text without a mention: a bare stop word, or the rest of a text that was cut."""
        rest_of_a_text = self._questions.is_rest_of_a_text(message, place)
        return rest_of_a_text or self._stopping.is_stop_word(message, place)

    async def _tell_of_the_store(self, message: InboundMessage, *, damaged: bool = False) -> None:
        """Each chat once; strangers are not told."""
        verdict = await self._access.verdict(message.address, message.sender)
        if verdict == "yes" and self._store_trouble.first_in(message):
            say = self._notices.say(message)
            why = "store_down" if say.capabilities.comes_again else "store_down_for_now"
            await self._notices.answer(message, say("store_damaged" if damaged else why))

    async def _meet_stranger(
        self, message: InboundMessage, place: SessionPlace, verdict: Verdict
    ) -> None:
        """Codes work, what is for everybody, and what has rights of its own; else `Door.answer`."""
        if await self._commands.goes_on(message):
            await self._acts.take(message)
        elif await self._inbox.put(entry(message, place, "refused")) is not None:
            self._beside.start(self._answer_stranger(message, verdict), "stranger")

    async def _answer_stranger(self, message: InboundMessage, verdict: Verdict) -> None:
        say = self._notices.say(message)
        if message.press is not None:
            await self._notices.answer(message, say("not_yours"))
            return
        sentence = await self._commands.for_stranger(message, say)
        if sentence is None:
            sentence = await self._door.answer(message, verdict, say)
        if sentence is not None:
            await self._notices.reply(message, sentence)


def _has_code(message: InboundMessage) -> bool:
    """A code must not become part of a history."""
    return (owner_code(message) or invite_in(message)) is not None
