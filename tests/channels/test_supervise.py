"""Reconnecting with backoff, and giving up when it is useless."""

from __future__ import annotations

import pytest

from channels.base import InboundMessage, Receive
from channels.errors import ChannelFailed, ChannelUnavailable
from channels.supervise import LONGEST_WAIT_S, supervise
from channels.testing import FakeChannel


class Flaky(FakeChannel):
    def __init__(self, endings: list[Exception | None]) -> None:
        super().__init__()
        self.endings = endings

    async def listen(self, receive: Receive) -> None:
        ending = self.endings.pop(0)
        if ending is not None:
            raise ending


async def receive(message: InboundMessage) -> None:
    raise AssertionError("nothing is received here")


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr("channels.supervise.sleep", sleep)
    return slept


async def test_an_outage_is_waited_out_longer_each_time(waits: list[float]) -> None:
    await supervise(Flaky([*[ChannelUnavailable("down")] * 10, None]), receive)
    assert len(waits) == 10
    for number, wait in enumerate(waits):
        least = min(2**number, LONGEST_WAIT_S)
        assert least <= wait <= least * 1.25


async def test_the_platforms_own_wait_is_kept(waits: list[float]) -> None:
    await supervise(Flaky([ChannelUnavailable("slow down", 17), None]), receive)
    assert waits == [17]


async def test_an_error_of_our_own_does_not_end_the_channel(waits: list[float]) -> None:
    await supervise(Flaky([KeyError("oops"), None]), receive)
    assert len(waits) == 1


async def test_what_is_useless_to_try_again_is_given_up(waits: list[float]) -> None:
    with pytest.raises(ChannelFailed, match="refused"):
        await supervise(Flaky([ChannelFailed("channels.telegram.token: refused")]), receive)
    assert waits == []


async def test_whoever_watches_is_told_why_each_time(waits: list[float]) -> None:
    reasons: list[str] = []
    channel = Flaky([ChannelUnavailable("down"), KeyError("a name"), None])
    await supervise(channel, receive, failing=reasons.append)
    assert reasons == ["down", "an error of our own"]
