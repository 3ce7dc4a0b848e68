"""What a dialogue about limits shows at each step; nothing here writes a limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from pydantic import TypeAdapter

from bridge.answers import Answer
from bridge.limits.changes import Changes, Refused
from bridge.limits.keys import BY_NAME, Key
from bridge.limits.kinds import Known
from bridge.limits.menu import PRESETS, Menu, group_of, offers, preset
from bridge.limits.overview import Overview
from bridge.limits.policies import ChatPolicies
from bridge.limits.policy import Values
from bridge.limits.showing import code
from bridge.texts import Say
from channels.base import Address, Button, InboundMessage
from memory.dialogues import Dialogue, Dialogues
from memory.policies import PolicyPlace

MOST_IN_PLACE = 3_500  # characters of a file; the one message that is edited takes some 4,000


@dataclass(frozen=True, slots=True)
class Body:
    """`chat`, `topic`: whose limits; `revision`: of what was there when it began. `lines`: what Apply
    would set. `key`: the one whose value is to be typed; `text`: lines are awaited."""

    chat: str
    topic: str
    revision: int
    lines: str = ""
    key: str = ""
    text: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A press or reply within a dialogue. `words` are those of the button after its id."""

    message: InboundMessage
    dialogue: Dialogue
    body: Body
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


_bodies = TypeAdapter(Body)

Do = Callable[[Step], Awaitable[Answer]]


class Steps:
    """The looking and choosing; each step keeps the dialogue alive."""

    def __init__(
        self,
        policies: ChatPolicies,
        changes: Changes,
        overview: Overview,
        dialogues: Dialogues,
    ) -> None:
        self._policies = policies
        self._changes = changes
        self._overview = overview
        self._dialogues = dialogues

    @property
    def by_name(self) -> Mapping[str, Do]:
        """Each by the word in its button."""
        return {
            "home": self._home,
            "group": self._group,
            "key": self._key,
            "value": self._value,
            "default": self._default,
            "other": self._other,
            "presets": self._presets,
            "preset": self._preset,
            "text": self._text,
        }

    async def _home(self, step: Step) -> Answer:
        text = await self._overview.of(step.target, step.message.sender.id, step.say)
        held_elsewhere = step.target.chat != step.message.address.chat
        topic = bool(step.body.topic)
        buttons = step.menu.home(topic=topic, private=not (held_elsewhere or step.target.private))
        await self._go_on(step, replace(step.body, lines="", key="", text=False))
        return shown(text, buttons)

    async def _group(self, step: Step) -> Answer:
        name = step.words[0] if step.words else ""
        buttons = step.menu.group(name, topic=bool(step.body.topic))
        await self._go_on(step, step.body)
        return shown(step.say("limits_which"), buttons)

    async def _key(self, step: Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        if key is None:
            return expired(step)
        policy = self._policies.of(step.target, step.message.sender.id)
        value = key.show(policy[key]) or step.say("limits_none")
        text = f"{code(f'{key.name}: {value}')}\n{step.say.word(key.sentence)}"
        if key.name in self._ceilings:
            most = key.show(self._ceilings[key.name])
            text += f"\n{step.say('limits_ceiling')}: {most}"
        group = group_of(key, topic=bool(step.body.topic))
        await self._go_on(step, replace(step.body, key=""))
        return shown(text, step.menu.key(key, self._offers(key), group))

    async def _value(self, step: Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        values = [] if key is None else self._offers(key)
        number = int(step.words[1])
        if key is None or number >= len(values):
            return expired(step)
        return await self.propose(step, f"{key.name}: {values[number]}")

    async def _default(self, step: Step) -> Answer:
        return await self.propose(step, f"{step.words[0]}: default")

    async def _other(self, step: Step) -> Answer:
        key = BY_NAME.get(step.words[0])
        if key is None:
            return expired(step)
        await self._await_reply(step, replace(step.body, key=key.name, text=False))
        text = step.say("limits_type_value", key=key.name, words=key.kind.words)
        return shown(text, step.menu.back())

    async def _presets(self, step: Step) -> Answer:
        """Each with its lines."""
        lines = [step.say("limits_which_preset")]
        for name in PRESETS:
            set_ = preset(name, self._known, self._ceilings)
            lines.append(f"**{step.say(f'limits_preset_{name}')}**\n```yaml\n{set_}\n```")
        await self._go_on(step, step.body)
        return shown("\n".join(lines), step.menu.presets())

    async def _preset(self, step: Step) -> Answer:
        return await self.propose(step, preset(step.words[0], self._known, self._ceilings))

    async def _text(self, step: Step) -> Answer:
        """The file, to be answered with the lines that shall change."""
        stored = await self._changes.stored(step.place)
        body = replace(step.body, key="", text=True, revision=stored.revision)
        await self._await_reply(step, body)
        lines = f"```yaml\n{stored.text.strip() or '# -'}\n```"
        if len(lines) > MOST_IN_PLACE:
            lines = step.say("limits_text_long")
        told = (step.say("limits_text", revision=stored.revision), lines)
        return shown("\n".join((*told, step.say("limits_type_lines"))), step.menu.back())

    async def propose(self, step: Step, lines: str) -> Answer:
        """Before and after; or what is wrong, with a way back."""
        plan = await self._changes.plan(step.place, lines, revision=step.body.revision)
        if isinstance(plan, Refused):
            await self.rebase(step)
            return shown(plan.told(step.say), step.menu.back())
        typed = step.message.reply_to_id  # another reply to the same message is another value
        body = replace(step.body, lines=lines)
        if typed is None:
            body = replace(body, key="", text=False)
        await self._dialogues.go_on(step.dialogue.id, dump(body), typed)
        told = f"{step.say('limits_confirm')}\n{plan.told(step.say)}"
        return shown(told, step.menu.confirm(mark_of(lines)))

    async def rebase(self, step: Step) -> None:
        """From the difference on, it is about what is there now; a reply is still awaited."""
        stored = await self._changes.stored(step.place)
        body = replace(step.body, lines="", revision=stored.revision)
        await self._dialogues.go_on(step.dialogue.id, dump(body), step.message.reply_to_id)

    async def _go_on(self, step: Step, body: Body) -> None:
        await self._dialogues.go_on(step.dialogue.id, dump(body))

    async def _await_reply(self, step: Step, body: Body) -> None:
        """A reply to the message with the button is awaited."""
        press = step.message.press
        awaits = press.message_id if press is not None else None
        await self._dialogues.go_on(step.dialogue.id, dump(body), awaits)

    def _offers(self, key: Key[Any]) -> list[str]:
        return offers(key, self._known, self._ceilings)

    @property
    def _known(self) -> Known:
        return self._policies.files.known

    @property
    def _ceilings(self) -> Values:
        return self._policies.layers.ceilings


def shown(text: str, buttons: tuple[Button, ...]) -> Answer:
    return Answer(text, buttons, silent=True, in_place=True)


def expired(step: Step) -> Answer:
    return Answer(step.say("limits_expired"), spent=True)


def mark_of(lines: str) -> str:
    """Of the lines that a button applies, lest it apply those of a later message."""
    return f"{crc32(lines.encode()):08x}"


def load(body: str) -> Body:
    """What `dump` has made of it."""
    return _bodies.validate_json(body)


def dump(body: Body) -> str:
    return _bodies.dump_json(body).decode()
