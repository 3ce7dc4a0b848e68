"""Changes of a chat's limits: planned on a revision, checked as a whole, written only on that one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.access import Access
from bridge.answers import Answer
from bridge.limits.editing import differences, edited, of_everybody, too_wide
from bridge.limits.keys import BY_NAME, KEYS, TOPIC_KEYS
from bridge.limits.lines import mended
from bridge.limits.policies import ChatPolicies
from bridge.limits.reading import Reading, line_of, read
from bridge.limits.showing import plain
from bridge.texts import Say
from bridge.yaml_source import Fault
from channels.base import Address, Button, InboundMessage
from memory.policies import FILE, PolicyPlace, PolicyStore, StoredPolicy

UNDO: Final = "limits_undo"  # the action of the button
MOST_LOOKED_AT = 50  # changes, when a difference is told

log = logging.getLogger(__name__)


Difference = tuple[str, str, str]
"""A key, and what stands there before and after; empty where nothing does."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The text of a chat's limits before and after, and the revision of the one before. `changed`: the
    keys that differ, each with what stood and will stand there (empty: nothing). `file`: what the
    file will be, where that has faults and `after` holds instead of it."""

    place: PolicyPlace
    before: str
    after: str
    revision: int
    changed: tuple[Difference, ...]
    file: str | None = None

    def told(self, say: Say) -> str:
        """Before and after of each key, a line each."""
        return "\n".join(shown(self.changed, say))


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing is changed: `why` is a text of the catalogue, `faults` what is wrong in the lines,
    `since` what others have changed in the meantime."""

    why: str
    faults: tuple[Fault, ...] = ()
    since: tuple[Difference, ...] = ()

    def told(self, say: Say) -> str:
        """For the chat."""
        faults = (f"- {line_of(fault, say)}" for fault in self.faults)
        return "\n".join((say(self.why), *faults, *shown(self.since, say)))


class Changes:
    """The only way in which a chat changes its limits."""

    def __init__(self, policies: ChatPolicies, store: PolicyStore, access: Access) -> None:
        self._access = access
        self._policies = policies
        self._files = policies.files
        self._store = store

    def read(self, text: str, place: PolicyPlace) -> Reading:
        """The lines, as they would stand in the file."""
        return read(text.encode(), self._files.known, TOPIC_KEYS if place.topic else KEYS)

    def faults(self, reading: Reading, place: PolicyPlace) -> tuple[Fault, ...]:
        """All that is wrong in lines that somebody wants to set here: a file may stand above a ceiling,
        which then holds, but nobody is let set it."""
        wide = too_wide(reading, self._policies.layers.ceilings)
        return tuple(sorted((*reading.faults, *wide, *of_everybody(reading, place.chat))))

    async def stored(self, place: PolicyPlace) -> StoredPolicy:
        """What holds, with its revision."""
        return await self._files.stored(place)

    async def current(self, place: PolicyPlace, account: str) -> PolicyPlace:
        """The same place under the id that its chat has by now, with its files, which follow the chat,
        as they are now."""
        here = replace(place, chat=self._access.current(place.channel, place.chat))
        await self._policies.read(Address(here.channel, account, here.chat, here.topic or None))
        return here

    async def plan(
        self,
        place: PolicyPlace,
        lines: str,
        *,
        revision: int | None = None,
        whole: bool = False,
        now: bool = False,
    ) -> Plan | Refused:
        """Lines change only the keys that they name; `whole`: they are all that will stand there.
        `revision`: the one that whoever wrote them had seen. `now`: a pause or a block does not wait
        until somebody has mended the file; it joins the file's lines, and what holds instead."""
        reading = self.read(lines, place)
        if faults := self.faults(reading, place):
            return Refused("limits_faults", faults)
        if not (reading.values or reading.removed):  # never: away with all of them
            return Refused("limits_empty" if whole else "limits_how")
        pending = () if whole else await self._pending(place)
        if pending and not now:
            return Refused("limits_pending", pending)
        before = await self._files.stored(place)
        if revision is not None and revision != before.revision:
            return await self._older(place, before, revision)
        after = _lines(lines) if whole else self._edited(place, before.text, reading)
        plan = self._planned(place, before, after, pending)
        if not pending or isinstance(plan, Refused):
            return plan
        text = await self._files.text(place)
        return replace(plan, file=edited(text, reading.values, reading.removed))

    async def _pending(self, place: PolicyPlace) -> tuple[Fault, ...]:
        """What is wrong in the file as it stands: whoever wrote it has to mend it, and only
        `/limits replace`, which names every line, may write over it."""
        return self.read(await self._files.text(place), place).faults

    def _edited(self, place: PolicyPlace, before: str, wished: Reading) -> str:
        """Line by line, so that comments stay; a text whose lines are not one for each key is written
        anew with what it says."""
        stood = self.read(before, place).values
        values = {key: value for key, value in stood.items() if key not in wished.removed}
        values |= wished.values
        after = edited(_lines(before), wished.values, wished.removed)
        return after if self.read(after, place).values == values else edited("", values, ())

    async def plan_undo(self, place: PolicyPlace, revision: int | None = None) -> Plan | Refused:
        """Take the newest change back, if a chat has made it. `revision`: the one that it has led
        to."""
        if pending := await self._pending(place):
            return Refused("limits_pending", pending)
        before = await self._files.stored(place)
        changes = await self._store.changes(place, 1)
        if revision is not None and revision != before.revision:
            return await self._older(place, before, revision)
        if not changes or changes[0].after != before.text or changes[0].actor == FILE:
            return Refused("limits_nothing_to_undo")
        return self._planned(place, before, changes[0].before)

    async def write(self, plan: Plan, actor: str, *, told: bool = True) -> int | Refused:
        """The new revision. What has become wrong in the meantime is refused, and what `actor`
        (`channel:id`) may not change though they may set limits. `told`: the chat hears of it from
        whoever calls this."""
        if any(BY_NAME[key].owners_only for key, _, _ in plan.changed) and not (
            self._access.is_owner(*actor.split(":", 1))
        ):
            return Refused("limits_owners_only")
        try:
            done = await self._files.write(
                plan.place, plan.after, actor, plan.revision, told=told, file=plan.file
            )
        except OSError as error:
            log.error("%s cannot be written: %s", self._files.path(plan.place), error.strerror)
            return Refused("limits_not_written")
        if done is None:
            return await self._older(plan.place, await self.stored(plan.place), plan.revision)
        return done

    async def apply(self, plan: Plan, message: InboundMessage, say: Say) -> Answer:
        """Write it for the sender of a message, who may; one line that tells it, with Undo."""
        told = message.address.chat == plan.place.chat and not message.whispered
        actor = f"{message.address.channel}:{message.sender.id}"
        done = await self.write(plan, actor, told=told)
        if isinstance(done, Refused):
            return Answer(done.told(say), in_place=True)
        text = f"{say(_done(plan.place, message.address), revision=done)}\n{plan.told(say)}"
        return Answer(text, (_undo(plan.place, done, say),), silent=True, in_place=True)

    async def _older(self, place: PolicyPlace, now: StoredPolicy, revision: int) -> Refused:
        """With what has changed since that revision: each change has raised it by one."""
        newer = min(now.revision - revision, MOST_LOOKED_AT)
        changes = await self._store.changes(place, newer) if newer > 0 else []
        if not changes:
            return Refused("limits_older")
        old, new = self.read(changes[-1].before, place), self.read(now.text, place)
        return Refused("limits_older", since=tuple(differences(old.values, new.values)))

    def _planned(
        self,
        place: PolicyPlace,
        before: StoredPolicy,
        after: str,
        pending: tuple[Fault, ...] = (),
    ) -> Plan | Refused:
        """`pending`: faults that are there already, maybe in what holds too."""
        old, new = self.read(before.text, place), self.read(after, place)
        if new.faults and not pending:
            return Refused("limits_faults", new.faults)
        changed = tuple(differences(old.values, new.values))
        if not changed:
            return Refused("limits_same")
        return Plan(place, before.text, after, before.revision, changed)


def shown(changed: Sequence[Difference], say: Say) -> list[str]:
    """A line for each."""
    none = say("limits_none")
    return [f"- `{key}`: {plain(old) or none} → {plain(new) or none}" for key, old, new in changed]


def _done(place: PolicyPlace, asked_in: Address) -> str:
    """The text that tells a change; where there are topics also of what it is one."""
    if place.topic:
        return "limits_done_topic"
    return "limits_done" if asked_in.thread is None else "limits_done_chat"


def _undo(place: PolicyPlace, revision: int, say: Say) -> Button:
    return Button(say("limits_undo"), UNDO, "|".join((place.chat, place.topic, str(revision))))


def undone(value: str, channel: str) -> tuple[PolicyPlace, int]:
    """The place and revision of an Undo button. Raises `ValueError`: it is none of ours."""
    chat, topic, revision = value.split("|")
    return PolicyPlace(channel, chat, topic), int(revision)


def _lines(text: str) -> str:
    """As a file has them, with slips put right; an empty one is no file."""
    lines = "\n".join(mended(text)).strip()
    return f"{lines}\n" if lines else ""
