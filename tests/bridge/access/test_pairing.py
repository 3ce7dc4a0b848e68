"""Strangers ask in private; an owner lets them in, by a button or by the code that they were told."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bridge.access import ChannelAccess
from channels.testing import FakeReply
from memory.access import codes, pairings
from memory.clock import stamp
from tests.bridge.bed import Bed, bed

EVE = {"person": "eve", "chat": "9"}


async def ask_to_be_let_in(it: Bed, person: str = "eve") -> str:
    """The code."""
    await it.send("let me in", person=person, chat=f"{person}-chat")
    await it.bridge.idle()
    return code_in(it.channel.said_in(f"{person}-chat")[-1])


def code_in(text: str) -> str:
    found = re.search(rf"`([{codes.ALPHABET}]{{8}})`", text)
    assert found, text
    return found[1]


def asked(it: Bed) -> list[FakeReply]:
    """What the owner was asked."""
    return [one for one in it.channel.replies if one.to.chat == "owner" and one.buttons]


async def press(it: Bed, button: int, reply: FakeReply, person: str = "owner") -> None:
    await it.bridge.receive(it.channel.press(reply, button=button, person=person))
    await it.bridge.idle()


async def test_an_owners_button_lets_a_stranger_in_who_hears_of_it(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Hello Eve."]) as it:
        await ask_to_be_let_in(it)
        (question,) = asked(it)
        assert "(`fake:eve`) would like to talk to me" in (question.final or "")
        assert [one.label for one in question.buttons] == ["Allow", "Refuse"]
        await press(it, 0, question)
        assert question.final == (
            "Eve (`fake:eve`) may talk to me in private now. /revoke `fake:eve` takes that back."
        )
        assert question.buttons == ()
        assert it.channel.said_in("eve")[-1].startswith("You may talk to me now.")
        assert await it.ask("hi", **EVE) == "Hello Eve."


async def test_a_refusal_is_kept_and_the_person_is_not_asked_about_again(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await ask_to_be_let_in(it)
        await press(it, 1, asked(it)[0])
        assert "add your id" in await it.ask("please", **EVE)
        await it.send("please!", person="eve", chat="9")
        await it.bridge.idle()
        assert len(it.channel.said_in("9")) == 1
        assert len(asked(it)) == 0
        assert "has refused Eve" in await it.ask(f"/approve {code}", person="owner", chat="owner")


async def test_the_code_lets_in_as_an_owner_types_it(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Hello."]) as it:
        code = await ask_to_be_let_in(it)
        typed = f"/approve {code[:4].lower()}-{code[4:]}"
        assert "Only owners" in await it.ask(typed)
        assert "may talk to me" in await it.ask(typed, person="owner", chat="owner")
        assert await it.ask("hi", **EVE) == "Hello."
        rows = await it.database.read("SELECT actor, action, target FROM audit")
        assert [tuple(row) for row in rows] == [("fake:owner", "person.let_in", "fake:eve")]


async def test_a_right_in_private_opens_no_group(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        await ask_to_be_let_in(it)
        await press(it, 0, asked(it)[0])
        await it.ask("hi", person="eve", chat="other", private=False)
        assert it.channel.said_in("other")[0].startswith("I do not know this group")
        assert it.provider.requests == []


async def test_names_and_texts_prove_nothing(tmp_path: Path) -> None:
    """Somebody named like the owner, with the owner's words, is a stranger, and cannot press."""
    async with bed(tmp_path) as it:
        code = await ask_to_be_let_in(it)
        await it.send(f"I am the owner. /approve {code}", person="Owner", chat="5")
        await it.bridge.idle()
        assert it.channel.said_in("5")[0].startswith("I do not know you")
        await press(it, 0, asked(it)[0], person="ana")
        assert it.channel.notices == ["Only owners of this bot can do that."]
        rows = await it.database.read("SELECT DISTINCT state FROM pairings")
        assert [row[0] for row in rows] == ["open"]


async def test_the_newest_request_replaces_the_oldest_of_three(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        found = [await ask_to_be_let_in(it, f"p{number}") for number in range(4)]
        assert "is over" in await it.ask(f"/approve {found[0]}", person="owner", chat="owner")
        assert "may talk" in await it.ask(f"/approve {found[1]}", person="owner", chat="owner")
        assert "may talk" in await it.ask(f"/approve {found[3]}", person="owner", chat="owner")


async def test_a_code_is_good_for_an_hour_and_then_another_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed(tmp_path) as it:
        code = await ask_to_be_let_in(it)
        await it.send("hello?", person="eve", chat="eve-chat")
        await it.bridge.idle()
        assert "has not answered yet" in it.channel.said_in("eve-chat")[-1]
        past = stamp(datetime.now(UTC) - timedelta(seconds=1))
        await it.database.write(lambda c: c.execute("UPDATE pairings SET expires_at = ?", (past,)))
        assert "is over" in await it.ask(f"/approve {code}", person="owner", chat="owner")
        assert await ask_to_be_let_in(it) != code


async def test_the_attempts_are_bounded_on_both_sides(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        right = await ask_to_be_let_in(it)
        for _ in range(codes.MOST_WRONG):
            assert "no request" in await it.ask("/approve WRONG", person="owner", chat="owner")
        assert "Too many" in await it.ask(f"/approve {right}", person="owner", chat="owner")
        for _ in range(pairings.MOST_A_DAY):
            await it.database.write(lambda c: c.execute("UPDATE pairings SET state = 'replaced'"))
            await it.send("please", person="eve", chat="eve-chat")
            await it.bridge.idle()
        assert "add your id" in it.channel.said_in("eve-chat")[-1]


async def test_an_owner_who_cannot_be_reached_is_asked_when_they_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with bed(tmp_path, ["Hello."]) as it:
        it.channel.membership.unreachable = {"owner"}
        await it.bridge.resume()
        await it.bridge.idle()
        assert "owner owner on fake cannot be told anything" in caplog.text
        await ask_to_be_let_in(it)
        status = await it.ask("/status", person="owner", chat="elsewhere")
        assert "have blocked me: `fake:owner`" in status
        it.channel.membership.unreachable = set()
        await it.send("hi", person="owner", chat="owner")
        await it.bridge.idle()
        assert len([one for one in asked(it) if one.final]) == 1
        assert "blocked" not in await it.ask("/status", person="owner", chat="owner")


async def test_whoever_becomes_the_owner_is_asked_about_those_who_came_before(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        it.bridge.door.change({"fake": ChannelAccess()})
        await ask_to_be_let_in(it)
        assert not asked(it)
        code = await it.services.people.create_owner_link("fake")
        await it.send(f"/start {code}", person="owner", chat="owner")
        await it.bridge.idle()
        (question,) = asked(it)
        assert "(`fake:eve`) would like to talk to me" in (question.final or "")


async def test_who_was_let_in_on_the_command_line_is_greeted_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path) as it:
        code = await ask_to_be_let_in(it)
        await it.access.stores.pairings.approve(code, "operator")
    async with bed(tmp_path) as it:
        await it.bridge.resume()
        await it.bridge.idle()
        assert it.channel.said_in("eve") == [
            "You may talk to me now. Write to me and I will answer; /help says what else I can do."
        ]
        await it.bridge.resume()
        await it.bridge.idle()
        assert len(it.channel.said_in("eve")) == 1
