"""`/limits`: what holds in a chat and what is used of it, and its admins' changes."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bridge.access import Access
from bridge.answers import Handlers
from bridge.limits.caps import MINUTE, windows_of
from bridge.limits.editing import differences, edited, too_wide
from bridge.limits.files import PolicyFiles
from bridge.limits.keys import BY_NAME, KEYS, QUESTIONS_PER_DAY, TOPIC_KEYS
from bridge.limits.policies import ChatPolicies, places_of, zone_of
from bridge.limits.policy import BUILT_IN
from bridge.limits.reading import Reading, line_of, plain_key, read
from bridge.limits.showing import use_of, value_of
from bridge.texts import Say
from channels.base import Channel, InboundMessage
from memory.conversations import SessionPlace
from memory.inbox import Inbox
from memory.people import People
from memory.policies import FILE, Change, PolicyPlace, PolicyStore
from memory.usage import UsageStore

log = logging.getLogger(__name__)

NO_EVERY = timedelta(hours=1)  # somebody who may not is told so
MOST_CHANGES = 5  # that /limits log tells
_LINES = re.compile(r"\s*[A-Za-z][\w \t-]*[:：]")
_ASKS = frozenset(("set", "undo", "log"))  # what admins only may do


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
        usage: UsageStore,
        inbox: Inbox,
        people: People,
        access: Access,
        channels: Mapping[str, Channel],
    ) -> None:
        self._policies = policies
        self._files: PolicyFiles = policies.files
        self._store = store
        self._usage = usage
        self._inbox = inbox
        self._people = people
        self._access = access
        self._channels = channels

    @property
    def commands(self) -> Handlers:
        """`/limits`."""
        return {"limits": self.carry_out}

    async def carry_out(
        self, message: InboundMessage, _place: SessionPlace, say: Say
    ) -> str | None:
        """The answer; None for somebody who may not and was told so within the hour."""
        wish = _wish(message.command.args if message.command else "")
        if wish.here and message.address.thread is None:
            return say("limits_no_topic")
        place = places_of(message.address)[-1 if wish.here else 0]
        if wish.verb in _ASKS:
            may = await self._may_change(message)
            if may is None:
                return say("limits_unknown_admin")
            if not may:
                return await self._no(message, say)
        match wish.verb:
            case "set":
                return await self._set(message, place, wish.words, say)
            case "undo":
                return await self._undo(message, place, say)
            case "log":
                return await self._log(message, place, say)
            case "text":
                return await self._text(place, say)
            case "":
                return await self._show(message, say)
            case _:
                return say("limits_how")

    # Who ------------------------------------------------------------------------------------------

    async def _may_change(self, message: InboundMessage) -> bool | None:
        """Owners everywhere, and a group's admins there; None when the platform does not say."""
        address, person = message.address, message.sender.id
        if self._access.is_owner(address.channel, person):
            return True
        if address.private:
            return False
        channel = self._channels[address.channel]
        return await channel.is_admin(address, person, managing=True)

    async def _no(self, message: InboundMessage, say: Say) -> str | None:
        address = message.address
        key = f"limits_no:{address.channel}:{address.account}:{address.chat}:{message.sender.id}"
        if not await self._people.tell_once(key, NO_EVERY):
            return None
        return say("limits_no_private" if address.private else "limits_no")

    # Changes --------------------------------------------------------------------------------------

    async def _set(self, message: InboundMessage, place: PolicyPlace, words: str, say: Say) -> str:
        reading = self._read(_as_lines(words), place)
        faults = reading.faults or tuple(too_wide(reading.values, self._policies.layers.ceilings))
        if faults:
            return _joined(say("limits_faults"), *(f"- {line_of(fault)}" for fault in faults))
        if not reading.values and not reading.removed:
            return say("limits_how")
        before = await self._files.stored(place)
        pending = self._read(await self._files.text(place), place).faults
        if pending:
            return _joined(say("limits_pending"), *(f"- {line_of(fault)}" for fault in pending))
        text = edited(before.text, reading.values, reading.removed)
        return await self._write(message, place, (before.text, text, before.revision), say)

    async def _undo(self, message: InboundMessage, place: PolicyPlace, say: Say) -> str:
        before = await self._files.stored(place)
        changes = await self._store.changes(place, 1)
        if not changes or changes[0].after != before.text or changes[0].actor == FILE:
            return say("limits_nothing_to_undo")
        wished = (before.text, changes[0].before, before.revision)
        return await self._write(message, place, wished, say)

    async def _write(
        self,
        message: InboundMessage,
        place: PolicyPlace,
        change: tuple[str, str, int],
        say: Say,
    ) -> str:
        """`change`: the text before, the text after, and the revision that it was made on."""
        before, after, revision = change
        new = self._read(after, place)
        if new.faults:
            return _joined(say("limits_faults"), *(f"- {line_of(fault)}" for fault in new.faults))
        changed = _told(self._read(before, place), new, say)
        if not changed:
            return say("limits_same")
        actor = f"{message.address.channel}:{message.sender.id}"
        try:
            done = await self._files.write(place, after, actor, revision)
        except OSError as error:
            log.error("%s cannot be written: %s", self._files.path(place), error.strerror)
            return say("limits_not_written")
        if done is None:
            return say("limits_older")
        return _joined(say("limits_done", revision=done), *changed)

    def _read(self, text: str, place: PolicyPlace) -> Reading:
        return read(text.encode(), self._files.known, TOPIC_KEYS if place.topic else KEYS)

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
        before, after = self._read(change.before, place), self._read(change.after, place)
        lines = _told(before, after, say)
        return [line.removeprefix("- ") for line in lines] or [say("limits_same")]

    async def _text(self, place: PolicyPlace, say: Say) -> str:
        stored, text = await self._files.stored(place), await self._files.text(place)
        shown = f"```yaml\n{text.strip() or '# -'}\n```"
        faults = self._read(text, place).faults
        pending = [say("limits_pending"), *(f"- {line_of(fault)}" for fault in faults)]
        return _joined(
            say("limits_text", revision=stored.revision), shown, *(pending if faults else [])
        )

    async def _show(self, message: InboundMessage, say: Say) -> str:
        address, person = message.address, message.sender.id
        policy = self._policies.of(address, person)
        place = (address.channel, address.account, address.chat)
        used = await self._usage.used(place, person, zone_of(policy))
        lines = use_of(policy, used, say, private=address.private)
        per_day = policy[QUESTIONS_PER_DAY]
        if per_day is not None:
            now = datetime.now(UTC) + MINUTE
            window = windows_of(policy, now, used.day)[-1]
            asked = await self._inbox.questions(place, person, window)
            lines.append(say("limits_questions", used=asked, limit=per_day))
        values = [value_of(key, policy, say) for key in KEYS if policy.origin(key) != BUILT_IN]
        faults = [
            f"- {line_of(fault)}"
            for one in places_of(address)
            for fault in self._files.state(one).pending
        ]
        return _joined(
            say("limits"),
            *lines,
            "",
            *values,
            *(["", say("limits_pending"), *faults] if faults else []),
            "",
            say("limits_how"),
        )


def _wish(args: str) -> _Wish:
    words = args.strip()
    here = re.match(r"here\b\s*", words, re.IGNORECASE)
    if here is not None:
        words = words[here.end() :]
    verb, _, rest = words.partition(" ") if " " in words.split("\n")[0] else words.partition("\n")
    if verb.lower() not in (*_ASKS, "text", "") and _LINES.match(words):
        return _Wish("set", words, here is not None)
    asked = verb.strip().lower()
    return _Wish("text" if here and not asked else asked, rest.strip(), here is not None)


def _as_lines(words: str) -> str:
    """`key value` as a line; lines as they are."""
    first, _, rest = words.strip().partition(" ")
    in_lines = any(map(_LINES.match, words.splitlines()))
    if (in_lines and plain_key(first) not in BY_NAME) or first.endswith((":", "：")):
        return words
    return f"{first}: {rest}"


def _told(before: Reading, after: Reading, say: Say) -> list[str]:
    """Before and after of each key that differs."""
    none = say("limits_none")
    return [
        f"- `{name}`: {old or none} → {new or none}"
        for name, old, new in differences(before.values, after.values)
    ]


def _joined(*lines: str) -> str:
    return "\n".join(lines)
