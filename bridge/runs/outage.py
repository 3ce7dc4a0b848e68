"""Providers that fail for everybody: one breaker each, and the questions that wait for them.

A key that is refused or credit that is used up opens a provider's breaker at once; calls without any
answer open it after four in a row. Until the time of the next try nobody asks the provider: a run
that meets an open breaker ends as postponed, its chat is told once, its message stays in the inbox.
At that time one waiting session tries; when it gets through, all others follow.

Calls without an answer may be the fault of one conversation. Until a second one fails as well, the
breaker is open for the first only.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from agent.errors import ProviderDown, Refusal, RefusalKind

log = logging.getLogger(__name__)

FAILURES = 4  # in a row: one run's call and its three retries
PAUSES_S = (60.0, 120.0, 300.0, 600.0, 1800.0)  # until the next try; the last one repeats
PROBE_S = 60.0  # that others wait for the one that tries
MOST_POSTPONED = 5  # times that one question waits for a provider that only does not answer
# A gateway's page, or a word about one model, is no sign that a provider is back.
_SAYS_NOTHING = frozenset({RefusalKind.UNKNOWN, RefusalKind.AUTH})
_UNAUTHORISED = 401  # 403 and 404 may be about one model only


@dataclass(frozen=True, slots=True)
class _Outage:
    """An open breaker. `until`: nobody asks before; `opened`: how often in a row it has opened;
    `probing`: one call was let through."""

    kind: RefusalKind
    until: datetime
    opened: int
    probing: bool = False


@dataclass(slots=True)
class _State:
    outage: _Outage | None = None
    failing: dict[str, int] = field(default_factory=dict[str, int])  # by session, in a row
    told: set[str] = field(default_factory=set[str])  # sessions that know of this outage

    def concerns(self, session: str) -> bool:
        """Whether the open breaker holds for this session."""
        outage = self.outage
        if outage is None:
            return False
        for_all = outage.kind is not RefusalKind.TRANSIENT or len(self.failing) > 1
        return for_all or session in self.failing


Changed = Callable[[str, RefusalKind | None], None]
"""A provider, and why its breaker has opened; None: it answers."""


class Outages:
    """The health of all providers, and who waits for them.

    `wake(session_key)` makes a session's lane look at its messages again.
    """

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._states: dict[str, _State] = {}
        self._waiting: dict[str, str] = {}  # session -> provider, the longest waiting first
        self._postponed: dict[str, int] = {}  # session -> times in a row
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._changed: Changed | None = None

    def watch(self, changed: Changed) -> None:
        """Call `changed` each time that a provider's breaker opens, and at each answer."""
        self._changed = changed

    def health_for(self, session: str) -> SessionHealth:
        """What one session's calls ask and tell."""
        return SessionHealth(self, session)

    def admit(self, provider: str, session: str) -> None:
        """Raises `ProviderDown` while the breaker is open; at the time of the next try one call
        passes, and the others wait for it."""
        state = self._state(provider)
        outage = state.outage
        if outage is None or not state.concerns(session):
            return
        now = datetime.now(UTC)
        if now < outage.until:
            raise ProviderDown(provider, outage.kind, outage.until)
        state.outage = replace(outage, until=now + timedelta(seconds=PROBE_S), probing=True)

    def note(self, provider: str, session: str, refusal: Refusal | None) -> None:
        """A call ended. An answer, and most refusals, show that the provider works."""
        state = self._state(provider)
        if refusal is not None and _for_everybody(refusal):
            self._open(provider, state, refusal.kind)
        elif refusal is not None and refusal.kind is RefusalKind.TRANSIENT:
            failures = state.failing.get(session, 0) + 1
            state.failing[session] = failures
            if state.outage is not None or failures >= FAILURES:
                self._open(provider, state, refusal.kind)
        elif refusal is not None and refusal.kind in _SAYS_NOTHING:
            pass
        elif state.outage is not None or state.failing:
            self._close(provider, was_down=state.outage is not None)
        if refusal is None:
            self._postponed.pop(session, None)
            self._tell(provider, None)

    def postpone(self, session: str, down: ProviderDown) -> bool:
        """The session's question waits for the provider; false when it has waited often enough."""
        times = self._postponed.get(session, 0) + 1
        if down.kind is RefusalKind.TRANSIENT and times > MOST_POSTPONED:
            self.forget(session)
            return False
        self._postponed[session] = times
        self._waiting[session] = down.provider
        outage = self._state(down.provider).outage
        if outage is None:  # it came back in the meantime
            self._wake(session)
        elif down.provider not in self._timers:  # the last try came to nothing, and nobody waited
            self._set_timer(down.provider, (outage.until - datetime.now(UTC)).total_seconds())
        return True

    def tell_once(self, session: str, provider: str) -> bool:
        """Whether the session's chat is still to be told of this outage."""
        told = self._state(provider).told
        first = session not in told
        told.add(session)
        return first

    def must_wait(self, session: str) -> bool:
        """Whether the session's question still waits for its provider's next try."""
        return self.next_try(session) is not None

    def next_try(self, session: str) -> datetime | None:
        """When the provider is asked next that the session's question waits for."""
        provider = self._waiting.get(session)
        outage = self._state(provider).outage if provider is not None else None
        return outage.until if outage is not None and datetime.now(UTC) < outage.until else None

    def forget(self, session: str) -> None:
        """Nothing of the session waits any more."""
        self._waiting.pop(session, None)
        self._postponed.pop(session, None)

    def close(self) -> None:
        """No more tries."""
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _state(self, provider: str) -> _State:
        return self._states.setdefault(provider, _State())

    def _open(self, provider: str, state: _State, kind: RefusalKind) -> None:
        now = datetime.now(UTC)
        before = state.outage
        if before is not None and not before.probing and now < before.until:
            return  # a call that was under way when it opened
        opened = 0 if before is None else before.opened
        pause = PAUSES_S[min(opened, len(PAUSES_S) - 1)]
        state.outage = _Outage(kind, now + timedelta(seconds=pause), opened + 1)
        log.error("provider %s is down (%s); next try in %g s", provider, kind, pause)
        self._tell(provider, kind)
        self._set_timer(provider, pause)

    def _tell(self, provider: str, kind: RefusalKind | None) -> None:
        if self._changed is not None:
            self._changed(provider, kind)

    def _close(self, provider: str, *, was_down: bool) -> None:
        self._states[provider] = _State()
        self._stop_timer(provider)
        if was_down:
            log.warning("provider %s is back", provider)
        for session in self._sessions(provider):
            del self._waiting[session]
            self._wake(session)

    def _set_timer(self, provider: str, pause_s: float) -> None:
        self._stop_timer(provider)
        loop = asyncio.get_running_loop()
        # A little later than the time that was told: clocks differ in their last digit.
        self._timers[provider] = loop.call_later(max(0.0, pause_s) + 0.05, self._try, provider)

    def _stop_timer(self, provider: str) -> None:
        timer = self._timers.pop(provider, None)
        if timer is not None:
            timer.cancel()

    def _try(self, provider: str) -> None:
        """The longest waiting session asks; should it not come to that, the next one after it."""
        del self._timers[provider]
        sessions = self._sessions(provider)
        if sessions:
            first = sessions[0]
            self._waiting[first] = self._waiting.pop(first)  # to the end
            self._wake(first)
            self._set_timer(provider, PROBE_S)

    def _sessions(self, provider: str) -> list[str]:
        return [session for session, waits_for in self._waiting.items() if waits_for == provider]


@dataclass(frozen=True, slots=True)
class SessionHealth:
    """The health of providers as one session's calls see it (`agent.calls.Health`)."""

    outages: Outages
    session: str

    def admit(self, provider: str) -> None:
        """See `Health.admit`."""
        self.outages.admit(provider, self.session)

    def note(self, provider: str, refusal: Refusal | None) -> None:
        """See `Health.note`."""
        self.outages.note(provider, self.session, refusal)


def _for_everybody(refusal: Refusal) -> bool:
    if refusal.kind is RefusalKind.QUOTA:
        return True
    return refusal.kind is RefusalKind.AUTH and refusal.status == _UNAUTHORISED
