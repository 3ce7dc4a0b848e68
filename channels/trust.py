"""When a platform's refusal of a token is believed."""

from __future__ import annotations

from channels.errors import ChannelError, ChannelFailed, ChannelUnavailable

# Waits in seconds while a token that has worked is refused; after the last it is given up.
REFUSED_AGAIN_S = (5.0, 60.0, 180.0, 300.0)


class Trust:
    """In the tokens of one channel. Those that have worked are given up only when they are refused
    each time for minutes: one such answer may be an accident of the platform's."""

    def __init__(self) -> None:
        self._worked = False
        self._refused = 0  # times in a row

    def works(self) -> None:
        """The tokens are taken."""
        self._worked = True
        self._refused = 0

    def after(self, refusal: ChannelFailed) -> ChannelError:
        """What to raise: the refusal itself, or that it is to be tried again, and after how long."""
        if not self._worked or self._refused == len(REFUSED_AGAIN_S):
            return refusal
        wait_s = REFUSED_AGAIN_S[self._refused]
        self._refused += 1
        return ChannelUnavailable(f"{refusal}, but it has worked before", wait_s)
