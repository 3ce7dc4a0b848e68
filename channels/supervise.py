"""Keeps a channel listening: reconnects with backoff and jitter, and gives up when that is useless."""

from __future__ import annotations

import asyncio
import logging
import random
from asyncio import sleep
from collections.abc import Callable

from channels.base import Channel, Receive
from channels.errors import ChannelFailed, ChannelUnavailable

log = logging.getLogger(__name__)

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0
HEALTHY_AFTER_S = 60.0  # a connection that lasted this long starts the backoff anew


def _untold(_: str) -> None:
    """Nobody asked."""


async def supervise(
    channel: Channel, receive: Receive, *, failing: Callable[[str], None] = _untold
) -> None:
    """Listen until cancelled, or until the channel's input ends (the terminal). `failing` is told why,
    each time that it cannot listen.

    Raises `ChannelFailed` when trying again is useless; everything else is tried again after 1, 2, 4
    … 30 seconds (with up to a quarter more, so that many bots do not come back at once), or after
    what the platform asked for.
    """
    wait_s = FIRST_WAIT_S
    while True:
        began = asyncio.get_running_loop().time()
        try:
            await channel.listen(receive)
        except ChannelFailed:
            raise
        except ChannelUnavailable as error:
            reason, asked_s = str(error), error.retry_after_s
        except Exception:
            log.exception("channel %s failed", channel.name)
            reason, asked_s = "an error of our own", None
        else:
            return
        if asyncio.get_running_loop().time() - began > HEALTHY_AFTER_S:
            wait_s = FIRST_WAIT_S
        pause_s = asked_s if asked_s is not None else wait_s * random.uniform(1, 1.25)  # noqa: S311
        failing(reason)
        log.warning("channel %s: %s; next try in %.0f s", channel.name, reason, pause_s)
        await sleep(pause_s)
        wait_s = min(wait_s * 2, LONGEST_WAIT_S)
