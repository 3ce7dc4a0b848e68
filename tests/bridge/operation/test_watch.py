"""What is known of each channel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from bridge.operation.watch import ChannelState, ChannelWatch
from channels.testing import FakeChannel

START = datetime(2026, 11, 30, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        self.now += timedelta(minutes=1)
        return self.now


def test_a_channel_is_down_until_it_receives_and_says_why() -> None:
    channel, clock = FakeChannel(), Clock()
    watch = ChannelWatch({"fake": channel}, clock)
    (first,) = watch.look()
    assert (first.receiving, first.since) == (False, START + timedelta(minutes=1))
    assert first.reason == "it has not connected yet"
    watch.failing("fake", "no route")
    assert watch.look() == [ChannelState("fake", False, first.since, "no route")]
    channel.receiving = True
    assert watch.look() == [ChannelState("fake", True, START + timedelta(minutes=2))]
    channel.receiving = False
    (silent,) = watch.look()
    assert (silent.since, silent.reason) == (
        START + timedelta(minutes=3),
        "the platform is silent, or what it sends cannot be stored",
    )
    watch.failing("fake", "cut")
    assert watch.look() == [ChannelState("fake", False, silent.since, "cut")]


def test_a_channel_that_gave_up_stays_so() -> None:
    watch = ChannelWatch({"fake": FakeChannel()}, Clock())
    watch.gave_up("fake", "channels.fake.token: refused")
    (state,) = watch.look()
    assert (state.gave_up, state.reason) == (True, "channels.fake.token: refused")


def test_a_channel_that_joins_later_is_watched_too() -> None:
    channels = {"fake": FakeChannel(receiving=True)}
    watch = ChannelWatch(channels, Clock())
    channels["other"] = FakeChannel("other")
    assert [state.name for state in watch.look()] == ["fake", "other"]


def test_a_channel_whose_input_is_over_is_no_fault() -> None:
    channels = {"fake": FakeChannel(receiving=True), "console": FakeChannel("console")}
    watch = ChannelWatch(channels, Clock())
    watch.ended("console")
    assert [state.name for state in watch.look()] == ["fake"]


def test_a_channel_has_heard_what_was_kept_for_it_once_it_has_received_for_a_while() -> None:
    channel = FakeChannel(receiving=True)
    watch = ChannelWatch({"fake": channel}, Clock())  # a minute later at each look
    assert not watch.has_heard("fake")
    assert any(watch.has_heard("fake") for _ in range(10))
    channel.receiving = False
    assert not watch.has_heard("fake")
    assert not watch.has_heard("other")
