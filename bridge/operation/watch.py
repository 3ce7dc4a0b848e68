"""What is known of each channel: whether it receives, since when, and if not, why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Final

from channels.base import Channel

HEARD_AFTER: Final = timedelta(minutes=10)
_STARTING = "it has not connected yet"
_SILENT = "the platform is silent, or what it sends cannot be stored"


@dataclass(frozen=True, slots=True)
class ChannelState:
    """`since`: when it began to receive, or ceased to. `reason`: why it does not, one line that names
    the key of the configuration where one is at fault. `gave_up`: nothing tries again."""

    name: str
    receiving: bool
    since: datetime
    reason: str | None = None
    gave_up: bool = False


class ChannelWatch:
    """The states of all channels. `channels` may grow."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._channels = channels
        self._now = now
        self._states: dict[str, ChannelState] = {}
        self._ended: set[str] = set()

    def failing(self, name: str, reason: str) -> None:
        """The channel cannot listen, and is tried again."""
        self._states[name] = replace(self._look(name), reason=reason)

    def gave_up(self, name: str, reason: str) -> None:
        """The channel does not listen any more."""
        self._states[name] = replace(self._look(name), reason=reason, gave_up=True)

    def ended(self, name: str) -> None:
        """The channel's input is over (the terminal): nothing is missed there."""
        self._ended.add(name)

    def look(self) -> list[ChannelState]:
        """The states as they are now."""
        return [self._look(name) for name in self._channels if name not in self._ended]

    def has_heard(self, name: str) -> bool:
        """Whether the channel has received for so long that what its platform had kept is in."""
        state = self._look(name) if name in self._channels else None
        return state is not None and state.receiving and self._now() - state.since >= HEARD_AFTER

    def _look(self, name: str) -> ChannelState:
        receiving = self._channels[name].receiving
        known = self._states.get(name)
        if known is None:
            reason = None if receiving else _STARTING
            known = ChannelState(name, receiving, self._now(), reason)
        elif known.receiving is not receiving:
            known = ChannelState(name, receiving, self._now(), None if receiving else _SILENT)
        self._states[name] = known
        return known
