"""Owners' alerts: once an hour for each cause, once when it is over, wherever they can be reached."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.errors import RefusalKind
from bridge.limits.files import PolicyFiles
from bridge.limits.kinds import Known
from bridge.limits.reading import read
from bridge.operation.alerts import EVERY, Alerts, Cause, Owner, Reach
from bridge.operation.guard import LOW_BYTES, ROOM_BYTES, Guard
from bridge.operation.watch import ChannelWatch
from bridge.texts import Texts
from bridge.yaml_source import Fault
from channels.base import Address
from channels.errors import ChannelUnavailable, Uncertain, Unreachable
from channels.testing import FakeChannel
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.operators.alerts import AlertStore
from memory.operators.overview import LastRun
from memory.policies import NothingStored, PolicyPlace

DISK, BACKUP = Cause("disk"), Cause("backup")
TELEGRAM = Cause("channel", "telegram")


class World:
    """Two channels with an owner on each, whose clock stands still until it is moved."""

    def __init__(self, store: AlertStore) -> None:
        self.store = store
        self.channels = {name: FakeChannel(name) for name in ("telegram", "slack")}
        self.owners: set[Owner] = {("telegram", "1"), ("slack", "U1"), ("console", "local")}
        self.languages: dict[Owner, str] = {}
        self.now = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self.alerts = self.fresh()

    def fresh(self) -> Alerts:
        def owners() -> set[Owner]:
            return self.owners

        async def language(owner: Owner) -> str | None:
            return self.languages.get(owner)

        reach = Reach(owners, language, self.channels)
        return Alerts(self.store, reach, Texts.load(), lambda: self.now)

    def raise_disk(self) -> None:
        self.alerts.raise_(DISK, "alert_disk", free=3)

    async def told(self, channel: str = "slack") -> list[str]:
        """Everything that the channel's owner was told, once nothing is left to be told."""
        task = asyncio.create_task(self.alerts.run())
        idle = asyncio.create_task(self.alerts.idle())
        await asyncio.wait({task, idle}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        assert idle.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return self.channels[channel].finals


@asynccontextmanager
async def stored(folder: Path) -> AsyncGenerator[AlertStore]:
    database = await Database.open(folder / "galata.db")
    yield AlertStore(database)
    await database.close()


@pytest.fixture
async def world(tmp_path: Path) -> AsyncGenerator[World]:
    async with stored(tmp_path) as store:
        made = World(store)
        await made.alerts.load()
        yield made


async def test_a_cause_is_told_once_an_hour_and_once_when_it_is_over(world: World) -> None:
    for _ in range(3):
        world.raise_disk()
        assert len(await world.told()) == 1
    assert world.channels["slack"].replies[0].to == Address("slack", "", "U1")
    assert "3 MB" in world.channels["telegram"].finals[0]
    world.now += EVERY
    world.raise_disk()
    assert len(await world.told()) == 2
    for _ in range(2):
        world.alerts.clear(DISK, free=900)
        assert len(await world.told()) == 3
    assert "has room again: 900 MB" in (await world.told())[-1]


async def test_a_clock_that_was_set_back_silences_no_alert(world: World) -> None:
    world.raise_disk()
    assert len(await world.told()) == 1
    world.now -= timedelta(days=300)
    world.raise_disk()
    assert len(await world.told()) == 2
    world.now += EVERY - timedelta(seconds=1)
    world.raise_disk()
    assert len(await world.told()) == 2
    world.now -= timedelta(days=300)
    world.alerts = world.fresh()
    await world.alerts.load()
    world.raise_disk()
    assert len(await world.told()) == 3


async def test_what_comes_and_goes_is_told_again_only_after_an_hour(world: World) -> None:
    for _ in range(5):
        world.raise_disk()
        world.alerts.clear(DISK, free=900)
        world.now += timedelta(minutes=10)
    assert len(await world.told()) == 2
    world.now += EVERY
    world.raise_disk()
    assert len(await world.told()) == 3


async def test_causes_do_not_silence_each_other(world: World) -> None:
    world.raise_disk()
    world.alerts.raise_(BACKUP, "alert_backup", reason="no space")
    world.alerts.clear(Cause("provider", "p"), name="p")  # was never raised
    assert len(await world.told()) == 2


async def test_a_restart_neither_repeats_an_alert_nor_forgets_its_end(
    world: World,
) -> None:
    world.raise_disk()
    await world.told()
    world.alerts = world.fresh()
    await world.alerts.load()
    world.now += EVERY - timedelta(seconds=1)
    world.raise_disk()
    assert len(await world.told()) == 1
    world.alerts.clear(DISK, free=900)
    assert len(await world.told()) == 2
    world.alerts = world.fresh()
    await world.alerts.load()
    world.alerts.clear(DISK, free=900)
    assert len(await world.told()) == 2


async def test_a_channel_at_fault_is_told_of_through_another_one(world: World) -> None:
    values = {"name": "telegram", "since": "then", "reason": "no route"}
    world.alerts.raise_(TELEGRAM, "alert_channel", **values)
    assert len(await world.told("slack")) == 1
    assert await world.told("telegram") == []
    world.alerts.clear(TELEGRAM, name="telegram")
    assert (await world.told("telegram"))[-1] == "telegram receives messages again."
    assert len(await world.told("slack")) == 2


async def test_without_another_channel_it_is_tried_there_and_again_until_somebody_is_reached(
    world: World,
) -> None:
    world.owners = {("telegram", "1")}
    values = {"name": "telegram", "since": "then", "reason": "no route"}
    for failures in (ChannelUnavailable("down"), Unreachable("blocked")):
        world.channels["telegram"].failures = [failures]
        world.alerts.raise_(TELEGRAM, "alert_channel", **values)
        world.alerts.raise_(TELEGRAM, "alert_channel", **values)  # not twice within the minute
        assert await world.told("telegram") == []
        assert world.channels["telegram"].failures == []
        world.now += timedelta(minutes=1)
    world.alerts.raise_(TELEGRAM, "alert_channel", **values)
    assert len(await world.told("telegram")) == 1
    world.now += timedelta(minutes=1)
    world.alerts.raise_(TELEGRAM, "alert_channel", **values)
    assert len(await world.told("telegram")) == 1


async def test_an_owner_who_is_out_of_reach_elsewhere_is_told_through_the_channel_at_fault(
    world: World,
) -> None:
    world.channels["slack"].failures = [ChannelUnavailable("down too")]
    world.alerts.raise_(TELEGRAM, "alert_channel", name="telegram", since="then", reason="409")
    assert len(await world.told("telegram")) == 1
    assert await world.told("slack") == []


async def test_an_alert_that_may_have_arrived_is_not_sent_again(world: World) -> None:
    world.owners = {("telegram", "1")}
    world.channels["telegram"].failures = [Uncertain("cut")]
    world.raise_disk()
    await world.told()
    world.now += timedelta(minutes=2)
    world.raise_disk()
    assert await world.told("telegram") == []


async def test_each_owner_is_told_in_their_own_language(world: World) -> None:
    world.languages = {("telegram", "1"): "zh-Hans", ("slack", "U1"): "xx"}
    world.raise_disk()
    assert "nearly full" in (await world.told("slack"))[0]
    assert "磁盘快满了" in (await world.told("telegram"))[0]


async def test_a_disk_that_is_full_does_not_keep_the_alert_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(alert: object) -> None:
        raise StoreUnavailable("database or disk is full")

    monkeypatch.setattr(world.store, "save", full)
    for _ in range(3):
        world.raise_disk()
        world.now += timedelta(minutes=5)
    assert len(await world.told()) == 1


# ---- what raises them --------------------------------------------------------------------------------


async def no_backup() -> LastRun | None:
    return None


async def nothing() -> None:
    pass


def guard_of(
    world: World,
    faults: Callable[[], list[tuple[Path, Fault]]] = list,
    read_faulty: Callable[[], Awaitable[None]] = nothing,
) -> Guard:
    watch = ChannelWatch(world.channels)
    return Guard(watch, world.alerts, UTC, lambda: 0, no_backup, faults, read_faulty)


@pytest.fixture
def guard(world: World) -> Guard:
    return guard_of(world)


async def test_a_channel_is_told_of_after_a_minute_and_at_once_when_it_gave_up(
    world: World, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.channels["slack"].receiving = True
    guard.look_at_channels()
    assert await world.told() == []
    monkeypatch.setattr("bridge.operation.guard.DOWN_AFTER", timedelta(0))
    guard.look_at_channels()
    (told,) = await world.told()
    assert told.startswith("telegram receives no messages since 2")
    assert told.endswith(": it has not connected yet. I keep trying.")
    world.channels["telegram"].receiving = True
    guard.look_at_channels()
    assert (await world.told())[-1] == "telegram receives messages again."


async def test_a_channel_that_gave_up_is_told_of_at_once(world: World) -> None:
    watch = ChannelWatch(world.channels)
    watch.gave_up("telegram", "channels.telegram.token: unknown")
    Guard(watch, world.alerts, UTC, lambda: 0, no_backup, list, nothing).look_at_channels()
    (told,) = await world.told()
    assert "I have given up: channels.telegram.token: unknown. Mend it" in told


async def test_the_disk_is_told_of_under_500_mb_and_over_with_some_room(
    world: World, guard: Guard
) -> None:
    for free, told in (
        (LOW_BYTES, 0),
        (LOW_BYTES - 1, 1),
        (LOW_BYTES, 1),
        (ROOM_BYTES - 1, 1),
        (ROOM_BYTES, 2),
    ):
        guard.look_at_disk(free)
        assert len(await world.told()) == told


async def test_a_refused_key_and_used_up_credit_are_told_and_silence_is_not(
    world: World, guard: Guard
) -> None:
    guard.provider_changed("p", RefusalKind.TRANSIENT)
    guard.provider_changed("p", None)
    assert await world.told() == []
    guard.provider_changed("p", RefusalKind.AUTH)
    assert "`providers.p.api_key`" in (await world.told())[0]
    guard.provider_changed("q", RefusalKind.QUOTA)
    assert "q refuses: credit" in (await world.told())[1]
    guard.provider_changed("p", None)
    assert (await world.told())[2:] == ["p answers again."]


async def test_each_backup_that_failed_is_told_once_and_the_next_good_one(
    world: World, guard: Guard
) -> None:
    for outcome, at, told in (
        ("interrupted", "1", 0),
        ("done", "2", 0),
        ("failed", "3", 1),
        ("failed", "3", 1),
        ("too_long", "4", 2),
        ("interrupted", "5", 2),
        ("done", "6", 3),
        ("done", "7", 3),
    ):
        guard.look_at_backup(LastRun(outcome, "error ABCD" if at == "3" else "", at))
        assert len(await world.told()) == told
        world.now += EVERY
    assert await world.told() == [
        "The backup failed: error ABCD.",
        "The backup failed: too_long.",
        "The backup worked again.",
    ]


async def test_a_disk_that_cannot_be_measured_ends_nothing(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.operation.guard.LOOK_S", 0.0)
    measured = asyncio.Event()
    looks: list[int] = []

    def free() -> int:
        looks.append(1)
        if len(looks) == 1:
            raise FileNotFoundError(2, "No such file or directory")
        loop.call_soon_threadsafe(measured.set)
        return LOW_BYTES - 1

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(
        Guard(ChannelWatch({}), world.alerts, UTC, free, no_backup, list, nothing).run()
    )
    async with asyncio.timeout(10):
        await measured.wait()
        while not await world.told():
            pass
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert "what is free on the disk cannot be known" in caplog.text


async def test_owners_hear_of_a_file_of_limits_with_faults_and_when_it_is_mended(
    world: World,
) -> None:
    """Each in their own language."""
    world.languages[("telegram", "1")] = "zh"
    path, known = Path("groups/telegram/-1.yaml"), Known()
    faults = [(path, one) for one in read(b"keep_days: many", known).faults * 7]
    guard = guard_of(world, lambda: faults)
    await guard.look_at_limits()
    told, in_chinese = (await world.told())[-1], (await world.told("telegram"))[-1]
    assert "`groups/telegram/-1.yaml:1:1` `keep_days`: must be a number" in told
    assert told.endswith("… (+2)")
    assert "groups/telegram/-1.yaml" in in_chinese
    assert not re.search(r"\b(must|number|such)\b", in_chinese)
    faults.clear()
    await guard.look_at_limits()
    assert "no faults any more" in (await world.told())[-1]


async def test_a_file_that_nobody_has_read_since_the_start_is_not_taken_for_mended(
    world: World, tmp_path: Path
) -> None:
    def started() -> tuple[PolicyFiles, Guard]:
        files = PolicyFiles(tmp_path, NothingStored(), Known())
        return files, guard_of(world, files.faulty, files.read_faulty)

    files, guard = started()
    place = PolicyPlace("telegram", "-1", "7")
    path = files.path(place)
    path.parent.mkdir(parents=True)
    path.write_text("model: \t\npaused: 12\n")
    await files.read(place)
    await guard.look_at_limits()
    assert len(await world.told()) == 1
    world.alerts = world.fresh()
    await world.alerts.load()
    files, guard = started()
    await guard.look_at_limits()
    assert len(await world.told()) == 1
    world.now += EVERY
    await guard.look_at_limits()
    assert "7.yaml:" in (await world.told())[1]
    path.write_text("paused: no\n")
    await files.read(place)  # as whoever watches the folder does
    await guard.look_at_limits()
    assert "no faults any more" in (await world.told())[2]
