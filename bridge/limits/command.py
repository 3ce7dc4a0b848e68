"""`/limits`: what holds in a chat and what is used of it, and its admins' changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from bridge.answers import Answer, FormHandlers, Handlers, Replies
from bridge.limits.changes import Changes, Plan, Refused, shown
from bridge.limits.dialogue import LimitsDialogue
from bridge.limits.editing import differences
from bridge.limits.files import PolicyFiles
from bridge.limits.form import ACTION as FORM
from bridge.limits.form import LimitsForm
from bridge.limits.keys import TIMEZONE
from bridge.limits.lines import as_lines, is_lines, named
from bridge.limits.overview import Overview
from bridge.limits.policies import ChatPolicies, places_of, zone_of
from bridge.limits.reading import line_of
from bridge.limits.rights import LimitRights
from bridge.limits.steps import Steps
from bridge.texts import Say
from channels.base import Channel, InboundMessage
from memory.conversations import SessionPlace
from memory.dialogues import Dialogues
from memory.inbox import Inbox
from memory.policies import Change, PolicyPlace, PolicyStore
from memory.usage import UsageStore

MOST_CHANGES = 5  # that /limits log tells
_ASKS = frozenset(("set", "replace", "undo", "log"))  # what admins only may do


@dataclass(frozen=True, slots=True)
class _Wish:
    """What somebody asks for: `verb` with its `words`, for the chat or (`here`) its topic."""

    verb: str
    words: str
    here: bool


class LimitsCommand:
    """Rights are asked of the platform anew at each change."""

    def __init__(
        self,
        policies: ChatPolicies,
        store: PolicyStore,
        overview: Overview,
        rights: LimitRights,
        changes: Changes,
        dialogue: LimitsDialogue,
        form: LimitsForm,
    ) -> None:
        self._policies = policies
        self._files: PolicyFiles = policies.files
        self._store = store
        self._overview = overview
        self._rights = rights
        self._changes = changes
        self._dialogue = dialogue
        self._form = form

    @property
    def commands(self) -> Handlers:
        """`/limits`."""
        return {"limits": self.carry_out}

    @property
    def presses(self) -> Handlers:
        """The buttons under it."""
        return {**self._dialogue.presses, **self._form.presses}

    @property
    def forms(self) -> FormHandlers:
        """Its form."""
        return {FORM: self._form}

    @property
    def replies(self) -> Replies:
        """What answers its messages."""
        return self._dialogue

    async def carry_out(self, message: InboundMessage, _place: SessionPlace, say: Say) -> Answer:
        """The answer; blank for somebody who may not and was told so within the hour."""
        wish = _wish(message.command.args if message.command else "")
        if wish.here and message.address.thread is None:
            return Answer(_with_threads(say("limits_no_topic"), say))
        place = places_of(message.address)[-1 if wish.here else 0]
        if wish.verb in _ASKS:
            may = await self._rights.may_change(message.address, message.sender.id)
            if not may and not self._is_own_clock(message, wish):
                no = await self._rights.no(message.address, message.sender.id, may, say)
                return Answer(no)
        match wish.verb:
            case "set" | "replace" | "undo":
                return await self._change(message, place, wish, say)
            case "log":
                return Answer(await self._log(message, place, say))
            case "text":
                return Answer(await self._text(place, say))
            case "":
                return await self._show(message, place.topic, say)
            case _:
                return Answer(_how(say))

    def _is_own_clock(self, message: InboundMessage, wish: _Wish) -> bool:
        """In their private chat everybody says where they are."""
        if not message.address.private or wish.verb != "set":
            return False
        place = places_of(message.address)[0]
        reading = self._changes.read(as_lines(wish.words), place)
        return {TIMEZONE.name} == {*reading.values, *reading.removed} and not reading.faults

    async def _change(
        self, message: InboundMessage, place: PolicyPlace, wish: _Wish, say: Say
    ) -> Answer:
        if wish.verb == "undo":
            return await self._write(message, await self._changes.plan_undo(place), say)
        if not wish.words:
            return Answer(_how(say))
        if wish.verb == "set":
            return await self._write(message, await self._plan(place, wish.words), say)
        plan = await self._changes.plan(place, wish.words, whole=True)
        return await self._write(message, plan, say)

    async def _plan(self, place: PolicyPlace, words: str) -> Plan | Refused:
        return await self._changes.plan(place, as_lines(words))

    async def _write(self, message: InboundMessage, plan: Plan | Refused, say: Say) -> Answer:
        if isinstance(plan, Refused):
            return Answer(plan.told(say))
        return await self._changes.apply(plan, message, say)

    # What is ---------------------------------------------------------------------------------------

    async def _log(self, message: InboundMessage, place: PolicyPlace, say: Say) -> str:
        changes = await self._store.changes(place, MOST_CHANGES)
        if not changes:
            return say("limits_no_changes")
        zone = zone_of(self._policies.of(message.address, message.sender.id))
        return _joined(
            say("limits_log"),
            *(
                f"- {datetime.fromisoformat(change.at).astimezone(zone):%Y-%m-%d %H:%M}, "
                f"`{change.actor}`: {'; '.join(self._changed(change, place, say))}"
                for change in changes
            ),
        )

    def _changed(self, change: Change, place: PolicyPlace, say: Say) -> list[str]:
        read = self._changes.read
        before, after = read(change.before, place), read(change.after, place)
        lines = shown(differences(before.values, after.values), say)
        return [line.removeprefix("- ") for line in lines] or [say("limits_same")]

    async def _text(self, place: PolicyPlace, say: Say) -> str:
        stored, text = await self._files.stored(place), await self._files.text(place)
        faults = self._changes.read(text, place).faults
        pending = [say("limits_pending"), *(f"- {line_of(fault, say)}" for fault in faults)]
        return _joined(
            say("limits_text", revision=stored.revision),
            f"```yaml\n{text.strip() or '# -'}\n```",
            *(pending if faults else []),
        )

    async def _show(self, message: InboundMessage, topic: str, say: Say) -> Answer:
        """For everybody; for those who may change it with a form, or with buttons."""
        address, person = message.address, message.sender.id
        text = _joined(await self._overview.of(address, person, say), "", _how(say))
        if not await self._rights.may_change(address, person):
            return Answer(text, silent=True)
        if not self._form.has_forms(message):
            return Answer(text, await self._dialogue.begin(message, say, topic=topic), silent=True)
        if await self._form.open(message, say, here=bool(topic)):
            return Answer("")
        return Answer(text, self._form.button(say, here=bool(topic)), silent=True)


def limits_command(
    policies: ChatPolicies,
    store: PolicyStore,
    usage: UsageStore,
    inbox: Inbox,
    dialogues: Dialogues,
    rights: LimitRights,
    changes: Changes,
    channels: Mapping[str, Channel],
) -> LimitsCommand:
    """The command with its buttons and its form."""
    overview = Overview(policies, usage, inbox)
    return LimitsCommand(
        policies,
        store,
        overview,
        rights,
        changes,
        LimitsDialogue(
            Steps(policies, changes, overview, dialogues),
            changes,
            rights,
            overview,
            dialogues,
            channels,
        ),
        LimitsForm(policies, changes, rights, overview, channels),
    )


def _wish(args: str) -> _Wish:
    words = args.strip()
    here = re.match(r"here\b\s*", words, re.IGNORECASE)
    if here is not None:
        words = words[here.end() :]
    verb, _, rest = words.partition(" ") if " " in words.split("\n")[0] else words.partition("\n")
    if verb.lower() not in (*_ASKS, "text", "") and (is_lines(words) or named(words)):
        return _Wish("set", words, here is not None)
    asked = verb.strip().lower()
    return _Wish(asked, rest.strip(), here is not None)


def _how(say: Say) -> str:
    return _with_threads(say("limits_how"), say)


def _with_threads(told: str, say: Say) -> str:
    """With how it is done where commands do not work."""
    return told if say.capabilities.commands_in_threads else f"{told}\n{say('limits_in_threads')}"


def _joined(*lines: str) -> str:
    return "\n".join(lines)
