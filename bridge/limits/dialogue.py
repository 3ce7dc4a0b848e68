"""`/limits` by buttons: groups, keys, values; before and after with Apply and Discard; a reply where a
value has to be typed.

A dialogue belongs to who began it, to one chat (or its topic), and to the revision that was there then;
it is stored, so that it outlives a restart, and ends ten minutes after its last step. Looking needs no
rights; each press that writes asks the platform anew.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from bridge.answers import Answer, Handlers
from bridge.limits.changes import UNDO, Changes, Refused, undone
from bridge.limits.keys import BY_NAME
from bridge.limits.lines import plain_key, typed
from bridge.limits.menu import ACTION, Menu
from bridge.limits.overview import Overview
from bridge.limits.rights import LimitRights
from bridge.limits.steps import Body, Do, Step, Steps, dump, expired, load, mark_of, shown
from bridge.texts import Say
from channels.base import Address, Button, Channel, InboundMessage, OutboundReply
from channels.errors import ChannelError, FileRefused
from memory.conversations import SessionPlace
from memory.dialogues import Dialogue, Dialogues
from memory.policies import PolicyPlace


class LimitsDialogue:
    """What begins, writes and ends; the steps between are `bridge.limits.steps`."""

    def __init__(
        self,
        steps: Steps,
        changes: Changes,
        rights: LimitRights,
        overview: Overview,
        dialogues: Dialogues,
        channels: Mapping[str, Channel],
    ) -> None:
        self._looking = steps
        self._changes = changes
        self._rights = rights
        self._overview = overview
        self._dialogues = dialogues
        self._channels = channels
        self._steps: Mapping[str, Do] = {
            **steps.by_name,
            "private": self._private,
            "apply": self._apply,
            "discard": self._discard,
        }

    @property
    def presses(self) -> Handlers:
        """Those of its buttons."""
        return {ACTION: self.press, UNDO: self.undo}

    async def begin(
        self, message: InboundMessage, say: Say, *, topic: str = ""
    ) -> tuple[Button, ...]:
        """The buttons under `/limits`; none for who speaks for the whole group, whose presses are
        those of a person."""
        address, person = message.address, message.sender.id
        if person == address.chat or not self._channels[address.channel].capabilities.buttons:
            return ()
        place = PolicyPlace(address.channel, address.chat, topic)
        revision = (await self._changes.stored(place)).revision
        id_ = await self._begin(address, person, Body(address.chat, topic, revision))
        return Menu(id_, say).home(topic=bool(topic), private=not address.private)

    async def press(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """A button of a dialogue."""
        assert message.press is not None  # noqa: S101 - what a press is
        id_, *words = message.press.value.split(":")
        dialogue = await self._dialogues.get(int(id_)) if id_.isdecimal() else None
        step = self._steps.get(words[0]) if words else None
        if dialogue is None or step is None:
            return Answer(say("limits_expired"), spent=True)
        if dialogue.person != message.sender.id:
            return Answer(say("limits_not_yours"))
        return await step(Step(message, dialogue, await self._body(dialogue), words[1:], say))

    async def awaits(self, message: InboundMessage) -> bool:
        """Whether this message answers one of ours in a dialogue: whoever began it says anything,
        others what is no question, but lines of limits."""
        dialogue = await self._awaiting(message)
        if dialogue is None:
            return False
        return dialogue.person == message.sender.id or _key_of(message.text) in BY_NAME

    async def reply(self, message: InboundMessage, say: Say) -> Answer:
        """A typed value, or lines, also as a file: shown as understood, with Apply and Discard."""
        dialogue = await self._awaiting(message)
        if dialogue is None:
            return Answer(say("limits_expired"))
        if dialogue.person != message.sender.id:
            return Answer(say("limits_not_yours"))
        step = Step(message, dialogue, await self._body(dialogue), (), say)
        try:
            written = await self._file(message) or message.text.strip()
        except FileRefused as error:
            return Answer(say(f"file_{error.reason}", limit=error.limit))
        if step.body.key and _key_of(written) != step.body.key:
            written = typed(step.body.key, written)
        return replace(await self._looking.propose(step, written), in_place=False)

    async def undo(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """The Undo under a change."""
        assert message.press is not None  # noqa: S101
        try:
            place, revision = undone(message.press.value, message.address.channel)
        except ValueError:
            return Answer(say("limits_expired"), spent=True)
        target = message.address
        place = await self._changes.current(place, target.account)
        if place.chat != target.chat:
            target = replace(target, chat=place.chat, thread=None, private=False)
        no = await self._no(message, target, say)
        if no is not None:
            return no
        plan = await self._changes.plan_undo(place, revision)
        if isinstance(plan, Refused):
            # A file that was faulty for a while may be what it was again. A notice would be cut.
            apart = bool(plan.faults or plan.since)
            spent = plan.why != "limits_pending"
            return Answer(plan.told(say), silent=True, spent=spent, apart=apart)
        return await self._changes.apply(plan, message, say)

    # Steps ----------------------------------------------------------------------------------------

    async def _private(self, step: Step) -> Answer:
        """Go on where only this person sees it."""
        address = step.message.address
        there = Address(address.channel, address.account, step.message.sender.id)
        id_ = await self._begin(there, step.message.sender.id, step.body)
        text = await self._overview.of(step.target, step.message.sender.id, step.say)
        menu = Menu(id_, step.say).home(topic=bool(step.body.topic), private=False)
        sink = self._channels[address.channel].open_reply(there, reply_to=None)
        try:
            await sink.finish(OutboundReply(text, buttons=menu))
        except ChannelError:
            return Answer(step.say("limits_open_private"))
        await self._dialogues.end(step.dialogue.id)
        return shown(step.say("limits_in_private"), ())

    async def _apply(self, step: Step) -> Answer:
        """What the message above the button says, unless a later one says something else."""
        if [*step.words] != [mark_of(step.body.lines)]:
            return expired(step)
        no = await self._no(step.message, step.target, step.say)
        if no is not None:
            return no
        plan = await self._changes.plan(step.place, step.body.lines, revision=step.body.revision)
        if isinstance(plan, Refused):
            await self._looking.rebase(step)
            return shown(plan.told(step.say), step.menu.back())
        if not await self._dialogues.end(step.dialogue.id):
            return expired(step)
        return await self._changes.apply(plan, step.message, step.say)

    async def _discard(self, step: Step) -> Answer:
        await self._dialogues.end(step.dialogue.id)
        return shown(step.say("limits_discarded"), ())

    # ----------------------------------------------------------------------------------------------

    async def _no(self, message: InboundMessage, target: Address, say: Say) -> Answer | None:
        """What somebody is told who may not, by now."""
        person = message.sender.id
        may = await self._rights.may_change(target, person)
        if may:
            return None
        return Answer(await self._rights.no(target, person, may, say, always=True))

    async def _begin(self, address: Address, person: str, body: Body) -> int:
        place = (address.channel, address.account, address.chat)
        return await self._dialogues.begin(place, person, dump(body))

    async def _body(self, dialogue: Dialogue) -> Body:
        """What was chosen, about the chat under the id that it has by now."""
        body = load(dialogue.body)
        place = PolicyPlace(dialogue.channel, body.chat, body.topic)
        return replace(body, chat=(await self._changes.current(place, dialogue.account)).chat)

    async def _file(self, message: InboundMessage) -> str:
        """The lines of a `.yaml` file; blank without one. Raises `FileRefused`."""
        for attachment in message.attachments:
            if attachment.name.lower().endswith((".yaml", ".yml")):
                data = await self._channels[message.address.channel].fetch(attachment)
                try:
                    return data.decode("utf-8-sig").strip()
                except UnicodeDecodeError:
                    raise FileRefused("no_text") from None
        return ""

    async def _awaiting(self, message: InboundMessage) -> Dialogue | None:
        address = message.address
        if message.reply_to_id is None or not message.own_words:
            return None
        place = (address.channel, address.account, address.chat)
        return await self._dialogues.awaiting(place, message.reply_to_id)


def _key_of(text: str) -> str:
    """The key with which a line begins, if it is one."""
    return plain_key(re.split("[:：]", text.strip(), maxsplit=1)[0])
