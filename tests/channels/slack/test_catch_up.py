"""What was written while the bot was away is read from the history, once and in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from channels.errors import NotStored
from channels.slack import catch_up
from channels.slack.catch_up import KnownPlace
from channels.slack.manifest import SCOPES
from channels.slack.parse import time_of
from tests.channels.slack.conftest import WATCHFUL, Inbox, make_channel
from tests.servers.slack import Conversation, Message, SlackServer


def place(conversation: Conversation, message: Message, *, thread: bool = False) -> KnownPlace:
    root = message.thread_ts or message.ts
    return KnownPlace(conversation.id, root if thread else None, time_of(message.ts))


def at_once(_: Exception) -> float:
    """For `wait_asked_for`."""
    return 0.0


@dataclass
class Known:
    """A store's places. `left`, `until`: what it was told last of them, and of the connection."""

    places: list[KnownPlace]
    restored: datetime | None = None
    left: Sequence[KnownPlace] = ()
    until: datetime | None = None
    noted: asyncio.Event = field(default_factory=asyncio.Event)

    async def known(self, team: str, most: int) -> Sequence[KnownPlace]:
        assert team.startswith("T0")
        return self.places[:most]

    async def leave(self, team: str, unread: Sequence[KnownPlace]) -> None:
        self.left = unread

    async def connected(self, team: str, at: datetime) -> None:
        self.until = at
        self.noted.set()

    async def restored_at(self) -> datetime | None:
        return self.restored


@asynccontextmanager
async def listening(
    server: SlackServer, inbox: Inbox, known: list[KnownPlace] | Known
) -> AsyncGenerator[asyncio.Task[None]]:
    places = known if isinstance(known, Known) else Known(known)
    channel = make_channel(server, connecting=WATCHFUL, places=places)
    channel.overhear(inbox.wants)
    task = asyncio.create_task(channel.listen(inbox.receive))
    await server.wait_for_connection()
    yield task
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await channel.aclose()


def texts(inbox: Inbox) -> list[str]:
    return [message.text for message in inbox.messages]


async def test_missed_direct_messages_come_oldest_first(server: SlackServer, inbox: Inbox) -> None:
    dm = server.dm(server.user("Ana"))
    stored = dm.send("stored", deliver=False)
    for number in range(3):
        dm.send(f"missed {number}", deliver=False)
    async with listening(server, inbox, [place(dm, stored)]):
        await inbox.wait_for(4)
    # The stored one comes again, and its key makes that harmless.
    assert texts(inbox) == ["stored", "missed 0", "missed 1", "missed 2"]
    assert inbox.messages[1].sender.name == "Ana"
    assert inbox.messages[1].event == f"m:{dm.messages[1].ts}"


async def test_what_came_before_the_overlap_is_not_read_again(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "OVERLAP", timedelta(0))
    dm = server.dm(server.user("Ana"))
    stored = dm.send("stored", deliver=False)
    dm.send("missed", deliver=False)
    async with listening(server, inbox, [place(dm, stored)]):
        await inbox.wait_for(1)
    assert texts(inbox) == ["missed"]


async def test_in_a_thread_what_is_meant_for_the_bot_comes_and_all_else_does_not(
    server: SlackServer, inbox: Inbox
) -> None:
    ana, bob = server.user("Ana"), server.user("Bob")
    general = server.channel("general", members=[ana, bob])
    root = general.send("<@BOT> first", sender=ana, deliver=False)
    general.send("just talking", sender=bob, thread=root, deliver=False)
    general.send("<@BOT> missed", sender=bob, thread=root, deliver=False)
    general.send("<@BOT> in another thread, that nobody knows of", sender=ana, deliver=False)
    async with listening(server, inbox, [place(general, root, thread=True)]):
        await inbox.wait_for(2)
    assert texts(inbox) == ["first", "missed"]
    assert {message.address.thread for message in inbox.messages} == {root.ts}


async def test_where_all_is_wanted_what_was_said_since_it_was_connected_comes_and_nothing_before(
    server: SlackServer, inbox: Inbox
) -> None:
    inbox.listens = True
    ana = server.user("Ana")
    team = server.channel("team", members=[ana])
    root = team.send("<@BOT> hi", deliver=False)
    team.send("judged by then", thread=root, deliver=False)
    team.send("this, too", deliver=False)
    missed = team.send("missed", deliver=False)
    team.send("so is this", thread=root, deliver=False)
    since = time_of(missed.ts)
    known = Known(
        [
            replace(place(team, root, thread=True), every=since),
            KnownPlace(team.id, None, since, since),
        ]
    )
    async with listening(server, inbox, known):
        await inbox.wait_for(4)
        await server.wait_for(lambda: not known.left)
    assert set(texts(inbox)) == {"hi", "missed", "so is this"}


async def test_until_when_it_was_connected_is_noted_when_nothing_is_left_to_be_read(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_NOTE_EACH_S", 0.01)
    dm = server.dm(server.user("Ana"))
    known = Known([place(dm, dm.send("stored", deliver=False))])
    inbox.open.clear()
    async with listening(server, inbox, known):
        await server.wait_for(lambda: inbox.attempts)
        assert known.until is None, "the history is not stored yet"
        inbox.open.set()
        await known.noted.wait()
        noted = known.until
    assert noted is not None
    assert known.until is not None
    assert known.until >= noted, "at its end again"


async def test_all_pages_are_read_and_the_newest_are_kept(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_PAGE", 2)
    monkeypatch.setattr(catch_up, "MOST_MESSAGES", 4)
    dm = server.dm(server.user("Ana"))
    stored = dm.send("stored", deliver=False)
    for number in range(6):
        dm.send(f"missed {number}", deliver=False)
    async with listening(server, inbox, [place(dm, stored)]):
        await inbox.wait_for(4)
    assert texts(inbox) == [f"missed {number}" for number in range(2, 6)]


async def test_messages_that_are_too_old_are_left_alone(server: SlackServer, inbox: Inbox) -> None:
    dm = server.dm(server.user("Ana"))
    long_ago = datetime.now(UTC) - timedelta(days=30)
    async with listening(server, inbox, [KnownPlace(dm.id, None, long_ago)]):
        await server.wait_for_call("conversations.history")
    oldest = float(server.calls_to("conversations.history")[0].params["oldest"])
    assert oldest >= (datetime.now(UTC) - timedelta(days=7, minutes=1)).timestamp()


async def test_after_a_lost_connection_it_reads_again_from_before_the_loss(
    server: SlackServer, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    known = [place(dm, dm.send("stored", deliver=False))]
    async with listening(server, inbox, known):
        await inbox.wait_for(1)
        dm.send("missed", deliver=False)
        later = dm.send("heard", deliver=False)
        # It came by an event at once, and much more since then.
        known[:] = [KnownPlace(dm.id, None, time_of(later.ts) + timedelta(hours=1))]
        server.socket.cut()
        await server.wait_for(lambda: "heard" in texts(inbox))
    assert texts(inbox)[-2:] == ["missed", "heard"]


async def test_a_rate_limit_is_waited_for_and_a_place_out_of_reach_is_passed_over(
    server: SlackServer, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    stored = dm.send("stored", deliver=False)
    gone = KnownPlace("D0GONE0001", None, time_of(stored.ts))
    server.rate_limit("conversations.history", 0)
    async with listening(server, inbox, [gone, place(dm, stored)]):
        await inbox.wait_for(1)
    assert len(server.calls_to("conversations.history")) == 3


async def test_a_place_that_cannot_be_read_for_long_is_read_in_the_end_and_the_others_once(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_AGAIN_S", 0.01)
    monkeypatch.setattr(catch_up, "wait_asked_for", at_once)
    ana, bob = server.dm(server.user("Ana")), server.dm(server.user("Bob"))
    known = [place(one, one.send("stored", deliver=False)) for one in (ana, bob)]
    ana.send("missed by Ana", deliver=False)
    bob.send("missed by Bob", deliver=False)
    server.fail_next("conversations.history", status=503, count=7)
    async with listening(server, inbox, known):
        await inbox.wait_for(4)
    assert texts(inbox).count("missed by Ana") == texts(inbox).count("missed by Bob") == 1
    assert len(server.calls_to("conversations.history")) == 9


async def test_a_place_left_unread_is_read_from_as_far_back_after_the_next_connection(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "OVERLAP", timedelta(0))
    monkeypatch.setattr(catch_up, "wait_asked_for", at_once)
    dm = server.dm(server.user("Ana"))
    known = [place(dm, dm.send("stored", deliver=False))]
    dm.send("missed", deliver=False)
    fault = server.fail_next("conversations.history", status=503, count=1_000)
    async with listening(server, inbox, known):
        await server.wait_for(lambda: len(server.calls_to("conversations.history")) >= 3)
        heard = dm.send("heard")
        await inbox.wait_for(1)
        known[:] = [place(dm, heard)]
        fault.left = 0
        server.socket.cut()
        await server.wait_for(lambda: "missed" in texts(inbox))
    assert "stored" not in texts(inbox)


async def test_what_is_still_to_be_read_is_kept_until_it_is_read(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "wait_asked_for", at_once)
    dm = server.dm(server.user("Ana"))
    known = Known([place(dm, dm.send("stored", deliver=False))])
    fault = server.fail_next("conversations.history", status=503, count=1_000)
    async with listening(server, inbox, known):
        await server.wait_for(lambda: len(server.calls_to("conversations.history")) >= 3)
        dm.send("heard")
        await inbox.wait_for(1)
        assert known.left == known.places
    assert known.left == known.places
    fault.left = 0
    async with listening(server, inbox, known):
        await server.wait_for(lambda: not known.left)
    assert "stored" in texts(inbox)


async def test_after_a_restore_only_what_stands_after_the_last_answer_is_asked(
    server: SlackServer, inbox: Inbox
) -> None:
    dm = server.dm(server.user("Ana"))
    stored = dm.send("in the backup", deliver=False)
    dm.send("answered since", deliver=False)
    dm.send("the answer", sender=server.bot, deliver=False)
    dm.send("asked when it was down", deliver=False)
    known = Known([place(dm, stored)], restored=datetime.now(UTC) + timedelta(days=1))
    async with listening(server, inbox, known):
        await inbox.wait_for(1)
        await server.wait_for(lambda: not known.left)
    assert texts(inbox) == ["asked when it was down"]


async def test_what_cannot_be_stored_now_keeps_its_place(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_STORE_AGAIN_S", 0.01)
    dm = server.dm(server.user("Ana"))
    stored = dm.send("one", deliver=False)
    dm.send("two", deliver=False)
    dm.send("three", deliver=False)
    inbox.faults += [NotStored("full"), NotStored("full"), ValueError("a fault of ours")]
    async with listening(server, inbox, [place(dm, stored)]):
        await inbox.wait_for(2)
    assert texts(inbox) == ["two", "three"]


async def test_what_could_not_be_stored_is_read_when_slack_has_given_up(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what stands before a message that was stored since, and in a place that nobody knew."""
    monkeypatch.setattr(catch_up, "_STORE_AGAIN_S", 0.01)
    server.socket.max_retries = 0
    ana = server.user("Ana")
    dm, team = server.dm(ana), server.channel("team", members=[ana])
    async with listening(server, inbox, []):
        inbox.faults += [NotStored("full")] * 6
        dm.send("lost?")
        team.send(f"{server.bot.mention} and this?")
        await inbox.wait_for(2)
    assert sorted(texts(inbox)) == ["and this?", "lost?"]


async def test_what_is_missed_while_an_earlier_one_waits_for_the_store_comes_too(
    server: SlackServer, inbox: Inbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catch_up, "_STORE_AGAIN_S", 0.01)
    server.socket.max_retries = 0
    dm = server.dm(server.user("Ana"))
    async with listening(server, inbox, []):
        inbox.faults += [NotStored("full")] * 10_000
        dm.send("one")
        await server.wait_for(
            lambda: inbox.attempts > 3
        )  # it is being handed over from the history
        later = dm.send("two")
        await server.wait_for(lambda: later.events[0].attempts)
        before = inbox.attempts
        await server.wait_for(lambda: inbox.attempts > before + 3)
        inbox.faults.clear()
        await inbox.wait_for(3)
    assert set(texts(inbox)) == {"one", "two"}


async def test_a_message_that_was_edited_is_read_as_it_is_now_unless_it_is_a_command(
    server: SlackServer, inbox: Inbox
) -> None:
    ana = server.user("Ana")
    dm = server.dm(ana)
    stored = dm.send("stored", deliver=False)
    server.subscriptions.clear()
    dm.edit(dm.send("frist", deliver=False), "first", ana)
    dm.edit(dm.send("hello", deliver=False), "/new", ana)
    team = server.channel("team", members=[ana])
    root = team.send("<@BOT> hi", deliver=False)
    team.edit(
        team.send("<@BOT> well", thread=root, deliver=False), "<@BOT> limits set paused no", ana
    )
    async with listening(server, inbox, [place(dm, stored), place(team, root, thread=True)]):
        await inbox.wait_for(3)
    assert texts(inbox) == ["stored", "first", "hi"]


async def test_the_manifests_scopes_are_enough(server: SlackServer, inbox: Inbox) -> None:
    server.scopes[:] = SCOPES
    ana, bob = server.user("Ana"), server.user("Bob")
    conversations = [server.dm(ana), server.channel("general", members=[ana])]
    conversations.append(server.group_dm([ana, bob]))
    known: list[KnownPlace] = []
    for one in conversations:
        sent = one.send("<@BOT> hi", sender=ana, deliver=False)
        known.append(place(one, sent, thread=one is not conversations[0]))
    async with listening(server, inbox, known):
        assert len(await inbox.wait_for(3)) == 3


async def test_a_removal_and_a_return_are_told(server: SlackServer, inbox: Inbox) -> None:
    general = server.channel("general", members=[server.user("Ana")])
    async with listening(server, inbox, []):
        for event in (
            {"type": "channel_left", "channel": general.id, "event_ts": "1732950001.000100"},
            {"type": "member_joined_channel", "user": "U0OTHER001", "channel": general.id},
            {"type": "tokens_revoked", "tokens": {"oauth": ["U0OTHER001"], "bot": []}},
            {
                "type": "member_joined_channel",
                "user": server.bot.id,
                "channel": general.id,
                "channel_type": "C",
            },
            {"type": "tokens_revoked", "tokens": {"oauth": [], "bot": [server.bot.id]}},
            {"type": "app_uninstalled"},
        ):
            server.deliver(server.event(event))
        await inbox.wait_for(4)
    assert [(m.address.chat, m.left, m.joined) for m in inbox.messages] == [
        (general.id, True, False),
        (general.id, False, True),
        ("", True, False),
        ("", True, False),
    ]
    assert not any(message.addressed for message in inbox.messages)
