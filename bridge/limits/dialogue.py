"""`/limits` by buttons: groups, keys, values; before and after with Apply and Discard; a reply where a
value has to be typed.

A dialogue belongs to who began it, to one chat (or its topic), and to the revision that was there then;
it is stored, so that it outlives a restart, and ends ten minutes after its last step. Looking needs no
rights; each press that writes asks the platform anew.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from bridge.answers import Answer, Handlers
from bridge.limits.changes import UNDO, Changes, Refused, undone
from bridge.limits.keys import BY_NAME, Key
from bridge.limits.kinds import Known
from bridge.limits.menu import ACTION, PRESETS, Menu, group_of, offers, preset
from bridge.limits.overview import Overview
from bridge.limits.policies import ChatPolicies
from bridge.limits.policy import Values
from bridge.limits.reading import plain_key
from bridge.limits.rights import LimitRights
from bridge.texts import Say
from channels.base import Address, Button, Channel, InboundMessage, OutboundReply
from channels.errors import ChannelError
from memory.conversations import SessionPlace
from memory.dialogues import Dialogue, Dialogues
from memory.policies import PolicyPlace


@dataclass(frozen=True, slots=True)
class _Body:
    """`chat`, `topic`: whose limits; `revision`: of what was there when it began. `lines`: what Apply
    would set. `key`: the one whose value is to be typed; `text`: lines are awaited."""

    chat: str
    topic: str
    revision: int
    lines: str = ""
    key: str = ""
    text: bool = False


@dataclass(frozen=True, slots=True)
class _Step:
    """A press or reply within a dialogue. `words` are those of the button after its id."""

    message: InboundMessage
    dialogue: Dialogue
    body: _Body
    words: Sequence[str]
    say: Say

    @property
    def menu(self) -> Menu:
        return Menu(self.dialogue.id, self.say)

    @property
    def place(self) -> PolicyPlace:
        return PolicyPlace(self.message.address.channel, self.body.chat, self.body.topic)

    @property
    def target(self) -> Address:
        """The chat whose limits these are, in which the dialogue may not be held."""
        address, body = self.message.address, self.body
        if address.chat == body.chat:
            return replace(address, thread=body.topic or address.thread)
        return replace(address, chat=body.chat, thread=body.topic or None, private=False)


_bodies = TypeAdapter(_Body)


class LimitsDialogue:
    """`private_chat(address, person)`: where the bot can write to a person alone, or None."""

    def __init__(
        self,
        policies: ChatPolicies,
        changes: Changes,
        rights: LimitRights,
        overview: Overview,
        dialogues: Dialogues,
        channels: Mapping[str, Channel],
    ) -> None:
        self._policies = policies
        self._changes = changes
        self._rights = rights
        self._overview = overview
        self._dialogues = dialogues
        self._channels = channels
        self._steps: Mapping[str, Callable[[_Step], Awaitable[Answer]]] = {
            "home": self._home,
            "group": self._group,
            "key": self._key,
            "value": self._value,
            "default": self._default,
            "other": self._other,
            "presets": self._presets,
            "preset": self._preset,
            "text": self._text,
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
        id_ = await self._begin(address, person, _Body(address.chat, topic, revision))
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
        return await step(
            _Step(message, dialogue, _bodies.validate_json(dialogue.body), words[1:], say)
        )

    async def awaits(self, message: InboundMessage) -> bool:
        """Whether this message answers one of ours in a dialogue."""
        return await self._awaiting(message) is not None

    async def reply(self, message: InboundMessage, say: Say) -> Answer:
        """A typed value, or lines: shown as understood, with Apply and Discard."""
        dialogue = await self._awaiting(message)
        if dialogue is None:
            return Answer(say("limits_expired"))
        step = _Step(message, dialogue, _bodies.validate_json(dialogue.body), (), say)
        written = message.text.strip()
        if step.body.key and plain_key(written.split(":")[0]) != step.body.key:
            written = f"{step.body.key}: {written}"
        return replace(await self._propose(step, written), in_place=False)

    async def undo(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """The Undo under a change."""
        assert message.press is not None  # noqa: S101
        try:
            place, revision = undone(message.press.value, message.address.channel)
        except ValueError:
            return Answer(say("limits_expired"), spent=True)
        target = message.address
        if target.chat != place.chat:
            target = replace(target, chat=place.chat, thread=None, private=False)
        no = await self._no(message, target, say)
        if no is not None:
            return no
        plan = await self._changes.plan_undo(place, revision)
        if isinstance(plan, Refused):
            return Answer(plan.told(say), spent=True)
        return await self._changes.apply(plan, message, say)

    # Steps ----------------------------------------------------------------------------------------

    async def _home(self, step: _Step) -> Answer:
        text = await self._overview.of(step.target, step.message.sender.id, step.say)
        held_elsewhere = step.target.chat != step.message.address.chat
        topic = bool(step.body.topic)
        buttons = step.menu.home(topic=topic, private=not (held_elsewhere or step.target.private))
        await self._go_on(step, replace(step.body, lines="", key="", text=False))
        return _shown(text, buttons)

    async def _group(self, step: _Step) -> Answer:
        name = step.words[0] if step.words else ""
        buttons = step.menu.group(name, topic=bool(step.body.topic))
        await self._go_on(step, step.body)
        return _shown(step.say("limits_which"), buttons)

    async def _key(self, step: _Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        if key is None:
            return _expired(step)
        policy = self._policies.of(step.target, step.message.sender.id)
        text = f"`{key.name}: {key.show(policy[key]) or step.say('limits_none')}`\n{key.sentence}"
        if key.name in self._ceilings:
            most = key.show(self._ceilings[key.name])
            text += f"\n{step.say('limits_ceiling')}: {most}"
        group = group_of(key, topic=bool(step.body.topic))
        await self._go_on(step, replace(step.body, key=""))
        return _shown(text, step.menu.key(key, self._offers(key), group))

    async def _value(self, step: _Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        values = [] if key is None else self._offers(key)
        number = int(step.words[1])
        if key is None or number >= len(values):
            return _expired(step)
        return await self._propose(step, f"{key.name}: {values[number]}")

    async def _default(self, step: _Step) -> Answer:
        return await self._propose(step, f"{step.words[0]}: default")

    async def _other(self, step: _Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        if key is None:
            return _expired(step)
        await self._await_reply(step, replace(step.body, key=key.name, text=False))
        text = step.say("limits_type_value", key=key.name, words=key.kind.words)
        return _shown(text, step.menu.back())

    async def _presets(self, step: _Step) -> Answer:
        """Each with its lines."""
        lines = [step.say("limits_which_preset")]
        for name in PRESETS:
            shown = preset(name, self._known, self._ceilings)
            lines.append(f"**{step.say(f'limits_preset_{name}')}**\n```yaml\n{shown}\n```")
        await self._go_on(step, step.body)
        return _shown("\n".join(lines), step.menu.presets())

    async def _preset(self, step: _Step) -> Answer:
        return await self._propose(step, preset(step.words[0], self._known, self._ceilings))

    async def _text(self, step: _Step) -> Answer:
        """The file, to be answered with the lines that shall change."""
        stored = await self._changes.stored(step.place)
        body = replace(step.body, key="", text=True, revision=stored.revision)
        await self._await_reply(step, body)
        return _shown(
            "\n".join(
                (
                    step.say("limits_text", revision=stored.revision),
                    f"```yaml\n{stored.text.strip() or '# -'}\n```",
                    step.say("limits_type_lines"),
                )
            ),
            step.menu.back(),
        )

    async def _private(self, step: _Step) -> Answer:
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
        return _shown(step.say("limits_in_private"), ())

    async def _propose(self, step: _Step, lines: str) -> Answer:
        """Before and after; or what is wrong, with a way back."""
        plan = await self._changes.plan(step.place, lines, revision=step.body.revision)
        if isinstance(plan, Refused):
            await self._rebase(step)
            return _shown(plan.told(step.say), step.menu.back())
        await self._go_on(step, replace(step.body, lines=lines, key="", text=False))
        return _shown(f"{step.say('limits_confirm')}\n{plan.told(step.say)}", step.menu.confirm())

    async def _rebase(self, step: _Step) -> None:
        """From the difference on, it is about what is there now; a reply is still awaited."""
        stored = await self._changes.stored(step.place)
        body = replace(step.body, lines="", revision=stored.revision)
        await self._dialogues.go_on(step.dialogue.id, _dump(body), step.message.reply_to_id)

    async def _apply(self, step: _Step) -> Answer:
        no = await self._no(step.message, step.target, step.say)
        if no is not None:
            return no
        plan = await self._changes.plan(step.place, step.body.lines, revision=step.body.revision)
        if isinstance(plan, Refused):
            await self._rebase(step)
            return _shown(plan.told(step.say), step.menu.back())
        if not await self._dialogues.end(step.dialogue.id):
            return _expired(step)
        return await self._changes.apply(plan, step.message, step.say)

    async def _discard(self, step: _Step) -> Answer:
        await self._dialogues.end(step.dialogue.id)
        return _shown(step.say("limits_discarded"), ())

    # ----------------------------------------------------------------------------------------------

    async def _no(self, message: InboundMessage, target: Address, say: Say) -> Answer | None:
        """What somebody is told who may not, by now."""
        person = message.sender.id
        may = await self._rights.may_change(target, person)
        if may:
            return None
        return Answer(await self._rights.no(target, person, may, say, always=True))

    async def _begin(self, address: Address, person: str, body: _Body) -> int:
        place = (address.channel, address.account, address.chat)
        return await self._dialogues.begin(place, person, _dump(body))

    async def _go_on(self, step: _Step, body: _Body) -> None:
        await self._dialogues.go_on(step.dialogue.id, _dump(body))

    async def _await_reply(self, step: _Step, body: _Body) -> None:
        """A reply to the message with the button is awaited."""
        press = step.message.press
        awaits = press.message_id if press is not None else None
        await self._dialogues.go_on(step.dialogue.id, _dump(body), awaits)

    async def _awaiting(self, message: InboundMessage) -> Dialogue | None:
        address = message.address
        if message.reply_to_id is None or not message.own_words:
            return None
        place = (address.channel, address.account, address.chat)
        return await self._dialogues.awaiting(place, message.sender.id, message.reply_to_id)

    def _offers(self, key: Key[Any]) -> list[str]:
        return offers(key, self._known, self._ceilings)

    @property
    def _known(self) -> Known:
        return self._policies.files.known

    @property
    def _ceilings(self) -> Values:
        return self._policies.layers.ceilings


def _shown(text: str, buttons: tuple[Button, ...]) -> Answer:
    return Answer(text, buttons, silent=True, in_place=True)


def _expired(step: _Step) -> Answer:
    return Answer(step.say("limits_expired"), spent=True)


def _dump(body: _Body) -> str:
    return _bodies.dump_json(body).decode()
