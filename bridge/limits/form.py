"""`/limits` as a form, where the platform has them: a field for each key, or the whole text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridge.answers import Answer, Handlers
from bridge.limits.changes import Changes, Plan, Refused
from bridge.limits.keys import DEFAULT, KEYS, TOPIC_KEYS, Key
from bridge.limits.kinds import Choice, YesNo
from bridge.limits.lines import typed
from bridge.limits.overview import Overview
from bridge.limits.policies import ChatPolicies
from bridge.limits.reading import MOST_BYTES, line_of
from bridge.limits.rights import LimitRights
from bridge.limits.times import Pause
from bridge.texts import Say
from channels.base import Button, Channel, InboundMessage
from channels.inputs import Form, FormField, Submission
from memory.conversations import SessionPlace
from memory.policies import PolicyPlace

ACTION: Final = "limits_form"  # of the form
OPEN: Final = "limits_open"  # of the button that opens it
AS_TEXT: Final = "limits_as_text"  # of the button in it
TEXT: Final = "text"  # the field of the whole text
_HERE: Final = "here"  # the value of a button of the topic's form
_CHAT: Final = "form"  # of the chat's
_PLAIN = frozenset(("instructions",))  # keys whose values may hold anything


@dataclass(frozen=True, slots=True)
class _Sent:
    """Which form, the revision on which it was opened, and whether it is the topic's (`here`)."""

    whole: bool
    revision: int
    here: bool


class LimitsForm:
    """Sending it is the confirmation."""

    def __init__(
        self,
        policies: ChatPolicies,
        changes: Changes,
        rights: LimitRights,
        overview: Overview,
        channels: Mapping[str, Channel],
    ) -> None:
        self._policies = policies
        self._changes = changes
        self._rights = rights
        self._overview = overview
        self._channels = channels

    @property
    def presses(self) -> Handlers:
        """Its buttons."""
        return {OPEN: self._press, AS_TEXT: self._press_text}

    def has_forms(self, message: InboundMessage) -> bool:
        """Whether the platform has any."""
        return self._channels[message.address.channel].capabilities.forms

    async def open(self, message: InboundMessage, say: Say, *, here: bool) -> bool:
        """Whether it could be opened. `here`: for the topic alone."""
        if not self.has_forms(message):
            return False
        place = _place_of(message, here)
        stored = await self._changes.stored(place)
        values = self._changes.read(stored.text, place).values
        overview = await self._overview.of(message.address, message.sender.id, say)
        form = Form(
            ACTION,
            f"keys:{stored.revision}:{_value_of(here)}",
            _title(here, say),
            tuple(self._field(key, values, say) for key in _keys(here)),
            say("limits_apply"),
            say("limits_discard"),
            overview.replace("**", "*"),
            (Button(say("limits_as_text"), AS_TEXT, _value_of(here)),),
        )
        return await self._channels[message.address.channel].open_form(message, form)

    def button(self, say: Say, *, here: bool) -> tuple[Button, ...]:
        """Opens it for whoever may change something."""
        return (Button(say("limits_change"), OPEN, _value_of(here)),)

    async def check(self, message: InboundMessage, say: Say) -> dict[str, str]:
        """What is wrong in a form that was sent, by field: empty where it can be done."""
        sent = message.form
        assert sent is not None  # noqa: S101 - what a form is
        address, person = message.address, message.sender.id
        first = TEXT if _sent(sent).whole else KEYS[0].name
        may = await self._rights.may_change(address, person)
        if not may:
            return {first: await self._rights.no(address, person, may, say, always=True)}
        plan = await self._plan(message, sent)
        if isinstance(plan, Plan) or plan.why == "limits_same":
            return {}
        if plan.why != "limits_faults":
            return {first: plan.told(say)}
        if _sent(sent).whole:
            return {first: "\n".join(line_of(fault, say) for fault in plan.faults)}
        return await self._at_fields(message, sent, plan, say) or {first: plan.told(say)}

    async def _at_fields(
        self, message: InboundMessage, sent: Submission, plan: Refused, say: Say
    ) -> dict[str, str]:
        """Each fault at its field. A text that is no YAML spoils what comes after it, so each line is
        read by itself."""
        here = _sent(sent).here
        place, names = _place_of(message, here), {key.name for key in _keys(here)}
        faults: dict[str, str] = {}
        for line in await self._lines(place, sent.texts, here):
            name = line.partition(":")[0]
            for fault in self._changes.faults(self._changes.read(line, place), place):
                faults.setdefault(name, fault.said(say))
        if faults:
            return faults
        return {fault.key: fault.said(say) for fault in plan.faults if fault.key in names}

    async def carry_out(self, message: InboundMessage, say: Say) -> Answer:
        """Write what was sent; one line in the chat tells it. Somebody may have been faster."""
        assert message.form is not None  # noqa: S101
        plan = await self._plan(message, message.form)
        if isinstance(plan, Refused):
            return Answer("" if plan.why == "limits_same" else plan.told(say))
        done = await self._changes.apply(plan, message, say)
        return Answer(f"{message.sender.name}: {done.text}", done.buttons, silent=True)

    async def _plan(self, message: InboundMessage, sent: Submission) -> Plan | Refused:
        how = _sent(sent)
        place = _place_of(message, how.here)
        if how.whole:
            return await self._changes.plan(
                place, sent.texts.get(TEXT, ""), revision=how.revision, whole=True
            )
        lines = await self._lines(place, sent.texts, how.here)
        if not lines:
            return Refused("limits_same")
        return await self._changes.plan(place, "\n".join(lines), revision=how.revision)

    async def _lines(self, place: PolicyPlace, texts: Mapping[str, str], here: bool) -> list[str]:
        """What differs from what is stored; an empty field removes its key."""
        stored = await self._changes.stored(place)
        values = self._changes.read(stored.text, place).values
        found: list[str] = []
        for key in _keys(here):
            text, before = texts.get(key.name, "").strip(), _value(key, values)
            if text == before:
                continue
            found.append(typed(key.name, text or DEFAULT))
        return found

    async def _press(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """The button that opens it, of whoever presses."""
        address, person = message.address, message.sender.id
        may = await self._rights.may_change(address, person)
        if not may:
            return Answer(await self._rights.no(address, person, may, say, always=True))
        opened = await self.open(message, say, here=_is_here(message))
        return Answer("" if opened else say("limits_not_opened"))

    async def _press_text(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        here = _is_here(message)
        stored = await self._changes.stored(_place_of(message, here))
        field = FormField(
            TEXT,
            say("limits_text", revision=stored.revision),
            say("limits_text_hint", bytes=f"{MOST_BYTES:,}"),
            stored.text,
            lines=True,
        )
        form = Form(
            ACTION,
            f"text:{stored.revision}:{_value_of(here)}",
            _title(here, say),
            (field,),
            say("limits_apply"),
            say("limits_discard"),
        )
        opened = await self._channels[message.address.channel].open_form(message, form)
        return Answer("" if opened else say("limits_text_not_opened"))

    def _field(self, key: Key[Any], values: Mapping[str, Any], say: Say) -> FormField:
        hint = say.word(key.sentence)
        ceilings = self._policies.layers.ceilings
        if key.name in ceilings:
            hint += f" {say('limits_ceiling')}: {key.show(ceilings[key.name])}"
        choices: tuple[tuple[str, str], ...] = ()
        if isinstance(key.kind, YesNo | Pause | Choice):
            words = key.kind.words_in_order if isinstance(key.kind, Choice) else ("no", "yes")
            known = dict.fromkeys((*words, *filter(None, (_value(key, values),))))
            choices = (("", say("limits_none")), *((word, word) for word in known))
        else:
            hint += f" ({say.word(key.kind.words)})"
        value = _value(key, values)
        return FormField(key.name, key.name, hint, value, choices, lines=key.name in _PLAIN)


def _value(key: Key[Any], values: Mapping[str, Any]) -> str:
    """As the field has it: texts without their quotes."""
    if key.name not in values:
        return ""
    return str(values[key.name]) if key.name in _PLAIN else key.show(values[key.name])


def _sent(sent: Submission) -> _Sent:
    """Raises `ValueError`: it is none of ours."""
    # Forms that were opened by an earlier version have no third part: they are of the chat.
    kind, revision, *of = sent.value.split(":")
    return _Sent(kind == "text", int(revision), of == [_HERE])


def _value_of(here: bool) -> str:
    return _HERE if here else _CHAT


def _is_here(message: InboundMessage) -> bool:
    """Whether a press means the topic."""
    return message.press is not None and message.press.value == _HERE


def _keys(here: bool) -> tuple[Key[Any], ...]:
    return TOPIC_KEYS if here else KEYS


def _title(here: bool, say: Say) -> str:
    return say("limits_title_here" if here else "limits_title")


def _place_of(message: InboundMessage, here: bool) -> PolicyPlace:
    """A form remembers the topic in which it was opened."""
    address = message.address
    return PolicyPlace(address.channel, address.chat, (address.thread or "") if here else "")
