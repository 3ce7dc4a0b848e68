"""`/people` and `/revoke`: a right that is taken back is gone at once, running answers included."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bridge.access.verbs import approve_alone, people_alone, revoke_alone
from memory.access.admissions import Someone
from tests.bridge.access.test_pairing import ask_to_be_let_in
from tests.bridge.bed import Bed, bed

OWNER = {"person": "owner", "chat": "owner"}
TEAM = {"chat": "team", "private": False}


async def run_of(it: Bed, **where: object) -> None:
    """A question whose answer stalls, and one that waits for it."""
    await it.send("slow one", **where)  # type: ignore[arg-type]
    await it.until(lambda: it.channel.replies and it.channel.replies[-1].preview)
    await it.send("and then?", **where)  # type: ignore[arg-type]


async def test_a_revoked_person_is_silenced_at_once_and_stays_so(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["A long answer."], stall=stall) as it:
        await run_of(it, person="bo", chat="2")
        told = await it.ask("/revoke bo", **OWNER)
        assert told == (
            "`fake:bo` may not talk to me any more, although the configuration lists that id: "
            "take it out there too."
        )
        assert any("Stopped." in text for text in it.channel.said_in("2"))
        assert len(it.provider.requests) == 1
        await it.send("still there?", person="bo", chat="team", private=False)
        await it.bridge.idle()
        assert it.channel.said_in("team") == []
        open_rows = await it.database.read("SELECT * FROM inbox WHERE state = 'open'")
        assert open_rows == []
        assert "Shut out:\n- `fake:bo`" in await it.ask("/people", **OWNER)
    async with bed(tmp_path, ["no"]) as it:
        await it.ask("again", person="bo", chat="2")
        assert "I do not know you yet" in it.channel.said_in("2")[0]


async def test_a_revoked_group_ends_what_runs_in_it_and_is_left(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["A long answer."], stall=stall) as it:
        await run_of(it, person="ana", **TEAM)
        assert "leave it" in await it.ask("/revoke fake:team", **OWNER)
        assert it.channel.membership.left == ["team"]
        assert len(it.provider.requests) == 1
        await it.send("hello?", person="ana", chat="team", private=False)
        await it.bridge.idle()
        assert len(it.provider.requests) == 1


async def test_somebody_without_access_can_stop_their_own_run(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["A long answer."], stall=stall) as it:
        await it.send("slow one", person="bo", chat="2")
        await it.until(lambda: it.channel.replies and it.channel.replies[-1].preview)
        it.access.note(Someone("fake", "bo"), "out")
        await it.send("/cancel", person="eve", chat="2")
        await it.send("/cancel", person="bo", chat="2")
        await it.until(lambda: any("Stopped." in text for text in it.channel.said_in("2")))


async def test_only_owners_are_told_who_is_there(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        for command in ("/people", "/invite", "/revoke bo", "/approve X"):
            assert await it.ask(command) == "Only owners of this bot can do that."
        code = await ask_to_be_let_in(it)
        await it.ask(f"/approve {code}", **OWNER)
        told = await it.ask("/people", **OWNER)
        assert "Owners:\n- `fake:owner`" in told
        assert "By the configuration:\n- `fake:ana`" in told
        assert "Let in, in private:\n- `fake:eve` Eve, by a code, by `fake:owner` on 20" in told


async def test_what_cannot_be_revoked_is_said(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        assert "by the configuration" in await it.ask("/revoke owner", **OWNER)
        assert "I know nobody" in await it.ask("/revoke fake:nobody", **OWNER)
        assert "Write after /revoke" in await it.ask("/revoke", **OWNER)
        assert "I know nobody" in await it.ask("/revoke invite:7", **OWNER)


async def test_an_owner_by_a_link_is_none_any_more(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code = await it.services.people.create_owner_link("fake")
        await it.ask(f"/start {code}", person="eve", chat="9")
        await it.ask("/revoke eve", **OWNER)
        assert not it.access.is_owner("fake", "eve")
        assert await it.services.people.owners() == set()


async def test_an_operator_does_the_same_without_a_bot_that_runs(tmp_path: Path) -> None:
    async with bed(tmp_path) as it:
        code, stores = await ask_to_be_let_in(it), it.access.stores
        assert "no request" in (await approve_alone(stores, "XXXXXXXX")).text
        assert "may talk to me" in (await approve_alone(stores, code)).text
        assert "has let Eve" in (await approve_alone(stores, code)).text
        rules = dict(it.access.all_rules)
        assert "`fake:eve` Eve" in (await people_alone(stores, rules)).text
        assert "may not talk" in (await revoke_alone(stores, rules, "fake:eve")).text
        rows = await it.database.read("SELECT actor, action FROM audit ORDER BY id")
        assert [tuple(row) for row in rows] == [
            ("operator", "person.let_in"),
            ("operator", "person.revoked"),
        ]


async def test_the_running_process_does_it_when_it_is_asked(tmp_path: Path) -> None:
    async with bed(tmp_path, ["Hello."]) as it:
        code, verbs = await ask_to_be_let_in(it), it.bridge.door.verbs
        assert "may talk to me" in (await verbs["approve"]({"code": code}))["text"]
        await it.bridge.idle()
        assert it.channel.said_in("eve")[0].startswith("You may talk to me now.")
        assert "`fake:eve`" in (await verbs["people"]({}))["text"]
        assert "may not talk" in (await verbs["revoke"]({"target": "fake:eve"}))["text"]
        await it.ask("hi", person="eve", chat="9")
        assert "I do not know you yet" in it.channel.said_in("9")[0]


async def test_what_a_revoked_person_had_asked_is_not_answered_at_the_next_start(
    tmp_path: Path,
) -> None:
    async with bed(tmp_path, ["never"], stall=asyncio.Event()) as it:
        await run_of(it, person="bo", chat="2")
        await it.bridge.close(0)
        assert len(await it.database.read("SELECT * FROM inbox WHERE state = 'open'")) == 2
        await revoke_alone(it.access.stores, dict(it.access.all_rules), "fake:bo")
    async with bed(tmp_path, ["no"]) as it:
        await it.bridge.resume()
        await it.bridge.idle()
        assert it.provider.requests == []


async def test_a_question_that_passes_the_door_in_that_instant_is_not_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with bed(tmp_path, ["never"], stall=asyncio.Event()) as it:
        inbox = it.services.inbox
        put = inbox.put_question

        async def late(*args: Any) -> Any:
            await it.access.stores.admissions.shut_out("fake", "bo", "operator")
            it.access.note(Someone("fake", "bo"), "out")
            return await put(*args)

        monkeypatch.setattr(inbox, "put_question", late)
        await it.send("quick", person="bo", chat="2")
        await it.bridge.idle()
        assert await it.database.read("SELECT * FROM inbox WHERE state = 'open'") == []
        assert it.channel.said_in("2") in ([], ["Stopped."])
