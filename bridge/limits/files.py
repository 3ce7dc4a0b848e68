"""Chats' files of limits: `groups/<channel>/<chat>.yaml` in the data folder, and beside it
`groups/<channel>/<chat>/<topic>.yaml` for what a topic has of its own.

A file is read when a message of its chat comes and it has changed: a look at its time and size is
some microseconds, so nobody has to watch a folder of thousands. One with a fault changes nothing: the
last good one holds, also after a restart, since the database keeps it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from bridge.limits.keys import KEYS, TOPIC_KEYS, Key
from bridge.limits.kinds import Known
from bridge.limits.on_disk import (
    SUFFIX,
    Signature,
    content,
    path_of,
    place_of,
    remove,
    replace,
    signature_of,
)
from bridge.limits.policy import Values
from bridge.limits.reading import Reading, read
from bridge.texts import wording
from bridge.yaml_source import Fault
from memory.errors import StoreError
from memory.policies import FILE, PolicyPlace, PolicyStore, StoredPolicy

log = logging.getLogger(__name__)

GROUPS = "groups"  # the folder in the data folder
MOST_KNOWN = 20_000  # chats and threads whose files are kept in mind, a few hundred bytes each


@dataclass(frozen=True, slots=True)
class Changed:
    """What holds at a place has changed. `told`: the chat hears of it from whoever changed it."""

    place: PolicyPlace
    before: Values
    after: Values
    told: bool


Listener = Callable[[Changed], None]
Beside = Callable[[Coroutine[Any, Any, None], str], object]


@dataclass(frozen=True, slots=True)
class FileState:
    """What holds of a file. `pending`: its faults, where an earlier text holds instead."""

    values: Values = field(default_factory=dict[str, Any])
    pending: tuple[Fault, ...] = ()


_NOTHING = FileState()
_ANEW = (-1, -1, -1)  # a time that no file has


@dataclass(frozen=True, slots=True)
class _Seen:
    signature: Signature | None
    state: FileState


class PolicyFiles:
    """`data`: the data folder. Texts that hold are kept in the database once `bind` was called."""

    def __init__(self, data: Path, store: PolicyStore, known: Known) -> None:
        self.folder = data / GROUPS
        self._store = store
        self.known = known
        self._beside: Beside | None = None
        self._listener: Listener | None = None
        self._seen: dict[PolicyPlace, _Seen] = {}
        self._order: WeakValueDictionary[PolicyPlace, asyncio.Lock] = WeakValueDictionary()

    def bind(self, beside: Beside) -> None:
        """`beside(work, name)` starts something that nobody waits for."""
        self._beside = beside

    def listen(self, listener: Listener) -> None:
        """`listener` is told of each change that is kept."""
        self._listener = listener

    def know(self, known: Known) -> None:
        """Other names may be used from now on: every file is read anew when it is needed."""
        self.known = known
        self._seen = {place: _Seen(_ANEW, seen.state) for place, seen in self._seen.items()}

    def place_of(self, path: Path) -> PolicyPlace | None:
        """The chat or topic of which this is the file; None for any other."""
        return place_of(self.folder, path)

    def path(self, place: PolicyPlace) -> Path:
        """Where the file of a chat or topic is, or would be."""
        return path_of(self.folder, place)

    def state(self, place: PolicyPlace) -> FileState:
        """What holds, as of the last `read`."""
        seen = self._seen.get(place)
        return _NOTHING if seen is None else seen.state

    async def read(self, place: PolicyPlace, former: Iterable[str] = ()) -> FileState:
        """What holds now. `former`: ids that the chat had before; its file follows it. Raises
        `StoreError`, where the last good text is needed and cannot be had."""
        path = self.path(place)
        signature = signature_of(path)
        if signature is None and self._moved(place, former):
            signature = signature_of(path)
        seen = self._seen.get(place)
        if seen is not None and seen.signature == signature:
            return seen.state
        state = await self._read_anew(place, path, signature, seen)
        if len(self._seen) >= MOST_KNOWN:
            for oldest in list(self._seen)[: MOST_KNOWN // 2]:
                del self._seen[oldest]
        self._seen[place] = _Seen(signature, state)
        return state

    async def text(self, place: PolicyPlace) -> str:
        """The file as it stands; what is stored where it cannot be read."""
        raw = content(self.path(place))
        if raw is not None:
            return raw.decode("utf-8", "replace")
        return "" if signature_of(self.path(place)) is None else (await self._store.get(place)).text

    def faulty(self) -> list[tuple[Path, Fault]]:
        """Faults of files instead of which an earlier text holds; of those that have been read."""
        return [
            (self.path(place), fault)
            for place, seen in self._seen.items()
            for fault in seen.state.pending
        ]

    async def read_faulty(self) -> None:
        """Read each file that has faults, whether anybody has written there or not. Raises
        `StoreError`."""
        for path, _ in await asyncio.to_thread(lambda: list(self._with_faults())):
            place = self.place_of(path)
            if place is not None:
                await self.read(place)

    async def stored(self, place: PolicyPlace) -> StoredPolicy:
        """The last good text with its revision."""
        await self._keep(place)
        return await self._store.get(place)

    async def write(
        self,
        place: PolicyPlace,
        text: str,
        actor: str,
        revision: int,
        *,
        told: bool = True,
        file: str | None = None,
    ) -> int | None:
        """A new text by `actor`, who tells the chat (`told`); the new revision, or None when another
        one than `revision` is there by now. `file`: what shall stand in the file, if that has faults
        and `text` holds instead. Raises `OSError` and `StoreError`: then what was before holds."""
        before = self.state(place).values
        async with self._one_at_a_time(place):
            stored = await self._store.put(place, text, actor, revision=revision)
            if stored is not None:
                await asyncio.to_thread(replace, self.path(place), text if file is None else file)
                values = read(text.encode(), Known(), _keys(place)).values
                self._seen[place] = _Seen(_ANEW, FileState(values))  # if the file has faults
                await self.read(place)
        if stored is not None:
            self._tell(place, before, self.state(place).values, told=told)
        return None if stored is None else stored.revision

    async def erase(self, channel: str, chat: str) -> None:
        """Remove what a chat and its topics have. Raises `OSError`."""
        path = self.path(PolicyPlace(channel, chat))
        await asyncio.to_thread(remove, path)
        for place in [seen for seen in self._seen if (seen.channel, seen.chat) == (channel, chat)]:
            del self._seen[place]

    # Reading --------------------------------------------------------------------------------------

    async def _read_anew(
        self,
        place: PolicyPlace,
        path: Path,
        signature: Signature | None,
        seen: _Seen | None,
    ) -> FileState:
        raw = b"" if signature is None else content(path)
        if raw is None:
            reading = Reading(faults=(Fault.of(0, 0, "", wording("fault_unreadable")),))
        else:
            reading = self._reading(raw, place)
        if not reading.faults:
            if self._beside is not None:
                self._beside(self._keep(place), "limits are kept")
            return FileState(reading.values)
        for line in located(path, reading.faults):
            log.warning("%s; the limits from before hold on", line)
        if seen is not None:
            return FileState(seen.state.values, reading.faults)
        stored = await self._store.get(place)
        if not stored.revision:
            log.warning("%s: was never without faults: the channel's limits hold", path)
        # It was good with the names of its time, of which the configuration may have some no more.
        before = read(stored.text.encode(), Known(), _keys(place))
        return FileState(before.values, reading.faults)

    def _reading(self, raw: bytes, place: PolicyPlace) -> Reading:
        """What may stand there."""
        return read(raw, self.known, _keys(place))

    async def _keep(self, place: PolicyPlace) -> None:
        """Let the database know the text that holds; the file's writer has changed it. Never while it
        is written from the chat: what stood there before is no change of the file's."""
        async with self._one_at_a_time(place):
            raw = content(self.path(place)) or b""
            if self._reading(raw, place).faults:
                return
            text = raw.decode("utf-8")
            try:
                stored = await self._store.get(place)
                if stored.text == text:
                    return
                await self._store.put(place, text, FILE)
            except StoreError as error:
                log.warning("the limits of %s are not kept: %s", place.target, error)
                return
        texts = (stored.text, text)
        old, new = (self._reading(one.encode(), place).values for one in texts)
        self._tell(place, old, new, told=False)

    def _one_at_a_time(self, place: PolicyPlace) -> asyncio.Lock:
        """Held while the stored text and the file become the same."""
        return self._order.setdefault(place, asyncio.Lock())

    def _tell(self, place: PolicyPlace, before: Values, after: Values, *, told: bool) -> None:
        if self._listener is not None and before != after:
            self._listener(Changed(place, before, after, told))

    def _moved(self, place: PolicyPlace, former: Iterable[str]) -> bool:
        """Whether a file of the chat's former id was there, and is its own now."""
        for chat in former:
            old = self.path(PolicyPlace(place.channel, chat, place.topic))
            if old == self.path(place) or signature_of(old) is None:
                continue
            try:
                self.path(place).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                old.rename(self.path(place))
            except OSError as error:
                log.error("%s cannot become %s: %s", old, self.path(place), error.strerror)
                return False
            log.warning("%s has become %s, as its chat has another id", old, self.path(place))
            return True
        return False

    # All of them ----------------------------------------------------------------------------------

    def check(self) -> list[str]:
        """The faults of all files, as `file:line:column key: problem`. Blocks."""
        return [line for found in self._with_faults() for line in located(*found)]

    def _with_faults(self) -> Iterator[tuple[Path, Sequence[Fault]]]:
        """The files that have any. Blocks."""
        for path in sorted(self.folder.glob(f"*/**/*{SUFFIX}")):
            keys = KEYS if path.parent.parent == self.folder else TOPIC_KEYS
            raw = content(path)
            faults = (
                (Fault.of(0, 0, "", wording("fault_unreadable")),)
                if raw is None
                else read(raw, self.known, keys).faults
            )
            if faults:
                yield path, faults


def located(path: Path, faults: Iterable[Fault]) -> list[str]:
    """The faults as `file:line:column key: problem`."""
    return [f"{path}:{f.line}:{f.column} {f.key}: {f.message}" for f in faults]


def _keys(place: PolicyPlace) -> tuple[Key[Any], ...]:
    return TOPIC_KEYS if place.topic else KEYS
