"""Nights: what people said becomes durable; whatever the model does, nothing durable is lost and what
was forgotten stays so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from agent.errors import ProviderError, Refusal, RefusalKind
from agent.messages import assistant_text, user_text
from agent.provider import Completed, ModelRequest, Usage
from bridge.inbound import entry
from bridge.remembering.calls import WAIT_S, Ask, MemoryCalls
from bridge.remembering.jobs import CONSOLIDATION
from bridge.session import memory_scope, session_of
from channels.base import InboundMessage, Sender
from memory.inbox import Inbox
from memory.markdown.fact_files import FactFiles
from memory.markdown.facts import FactsRefused
from memory.markdown.lines import Ref, lines_of
from memory.markdown.versions import versions
from memory.night.proposal import MOST_NOTES
from memory.notebook import Notebook
from memory.notes.flush import Entry
from memory.scopes import CHANGES, FACTS, ChatScope, scope_path
from memory.text.words import normalised, words
from memory.tombstones import bury
from memory.whose.authors import Member
from tests.bridge.memory_bed import SCOPE, TEAM, MemoryBed, memory_bed
from tests.bridge.memory_models import Misbehaving, asked_about, faithful, notes, propose

DAY = date(2026, 11, 30)


async def write(it: MemoryBed, day: date, *said: str, first: int = 1) -> None:
    """A day's entry, as a flush writes it."""
    heading = f"## 10:00–11:00 · conversation 1, messages {first}–{first + len(said)}"
    rows = [f"- **Ana** {text} [{first + n}]" for n, text in enumerate(said)]
    await it.daily.keep(SCOPE, Entry(day, heading, "\n".join(("", heading, "", *rows, ""))))


async def forget(it: MemoryBed, saying: str) -> None:
    await it.database.write(lambda connection: bury(connection, SCOPE, [normalised(saying)]))


def changes_of(it: MemoryBed, day: date) -> str:
    path = scope_path(it.folder, SCOPE, f"{CHANGES}/{day}.md")
    return path.read_text() if path.exists() else ""


# A night --------------------------------------------------------------------------------------------


async def test_a_night_adds_what_is_new_says_why_and_keeps_the_version_before(
    tmp_path: Path,
) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await it.files.add(SCOPE, DAY, "Bo", "Has a dog")
        await write(it, DAY, "prefers metric units")
        night = await it.night(session, DAY)
        assert (night.outcome, night.added) == ("changed", 1)
        assert await it.known() == ["Has a dog", "prefers metric units"]
        text = scope_path(it.folder, SCOPE, FACTS).read_text()
        assert "- **2** (2026-11-30, Ana) prefers metric units\n" in text
        assert "- add: **2** prefers metric units · from: 2026-11-30" in changes_of(it, DAY)
        assert len(versions(scope_path(it.folder, SCOPE))) == 2
        assert it.changed == [SCOPE]
        rows = await it.database.read("SELECT purpose, session_id, person FROM usage")
        assert [tuple(row) for row in rows] == [("consolidation", session, "")]


async def test_an_empty_day_costs_no_call_and_what_was_read_is_not_read_again(
    tmp_path: Path,
) -> None:
    """Field case 129: twice in one night, then the next night without and with new messages."""
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        assert (await it.night(session, DAY)).outcome == "same"
        assert it.asked == []
        await write(it, DAY, "likes tea")
        for day in (DAY, DAY, DAY + timedelta(days=1)):
            await it.night(session, day)
        assert len(it.asked) == 1
        await write(it, DAY, "likes chess", first=10)
        await it.night(session, DAY)
        assert (len(it.asked), asked_about(it.provider.requests[-1])) == (2, [("1", "likes chess")])
        assert await it.known() == ["likes tea", "likes chess"]


async def test_what_somebody_has_taken_back_is_added_by_no_night(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await it.database.write(lambda c: bury(c, SCOPE, ["likes tea"], undone=True))
        await write(it, DAY, "I like tea", "I like green tea", "I like chess")
        await it.night(session, DAY)
        assert await it.known() == ["I like green tea", "I like chess"]
        await it.database.write(lambda c: bury(c, SCOPE, ["likes jazz"], ["Bo"], undone=True))
        await write(it, DAY, "I like jazz", first=20)
        await it.night(session, DAY)
        assert "I like jazz" in await it.known(), "who says it is Ana"


async def test_what_was_forgotten_for_good_stays_so_when_it_is_taken_back_again(
    tmp_path: Path,
) -> None:
    """What was only taken back may be said within more; that not."""
    async with memory_bed(tmp_path, faithful) as it:
        for undone in (False, True):
            await it.database.write(lambda c, u=undone: bury(c, SCOPE, ["likes tea"], undone=u))  # type: ignore[misc]
        await write(it, DAY, "I like green tea")
        await it.night(await it.session(), DAY)
        assert await it.known() == []


async def test_who_does_it_to_whom_is_told_apart(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "I trust Bo", "Bo trusts me", "I like tea", "I don't like tea")
        await it.night(session, DAY)
        assert await it.known() == ["I trust Bo", "Bo trusts me", "I like tea", "I don't like tea"]


async def test_what_is_said_each_day_is_kept_once(tmp_path: Path) -> None:
    """Field case 130, with a model that adds it each time."""

    def eager(request: ModelRequest) -> str:
        changes = [
            {"do": "add", "text": said, "sources": [int(n)]} for n, said in asked_about(request)
        ]
        return propose(*changes)

    async with memory_bed(tmp_path, eager) as it:
        session = await it.session()
        ways = ("I speak Chinese", "I do speak Chinese", "Chinese is what I speak")
        for number in range(9):
            day = DAY + timedelta(days=number)
            await write(it, day, ways[number % 3])
            assert (await it.night(session, day)).outcome in ("changed", "same")
        assert await it.known() == ["I speak Chinese"]


async def test_a_day_file_that_a_hand_edited_is_read_again(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "likes tea")
        await it.night(session, DAY)
        path = scope_path(it.folder, SCOPE, f"{DAY}.md")
        path.write_text("We met Bo.\n" + path.read_text())
        await it.night(session, DAY)
        assert await it.known() == ["likes tea", "We met Bo."]


@pytest.mark.parametrize(
    "answer",
    ["# Memory\n\nLikes tea.", '{"memory_update":{"facts":["a"]}}', "<html>404</html>", "null"],
)
async def test_what_is_no_proposal_leaves_the_file_and_the_notes(
    tmp_path: Path, answer: str
) -> None:
    """Field cases 123 to 125: the reason is kept, the notes come again, and after three nights they
    are passed over, so that they do not stop all that follows."""
    async with memory_bed(tmp_path, lambda request: answer) as it:
        session = await it.session()
        await it.files.add(SCOPE, DAY, "Bo", "Has a dog")
        await write(it, DAY, "likes tea")
        before = scope_path(it.folder, SCOPE, FACTS).read_bytes()
        for number, failures in enumerate((1, 2, 0)):
            night = await it.night(session, DAY + timedelta(days=number))
            assert (night.outcome, night.reason, night.failures) == ("refused", "prose", failures)
        assert night.passed == 1
        assert scope_path(it.folder, SCOPE, FACTS).read_bytes() == before
        assert "- refused: prose" in changes_of(it, DAY)
        passed = "- passed over: 1 of the notes of 2026-11-30, which stay there"
        assert passed in changes_of(it, DAY + timedelta(days=2))
        assert (await it.night(session, DAY + timedelta(days=2))).outcome == "same"
        assert len(it.asked) == 3
        assert [await it.nights.passed_to_tell(SCOPE) for _ in range(2)] == [1, 0]


async def test_tries_by_hand_of_one_day_pass_nothing_over(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, lambda request: "I have thought about it.") as it:
        session = await it.session()
        await write(it, DAY, "allergic to penicillin")
        for day in (DAY, DAY, DAY, DAY + timedelta(days=1), DAY + timedelta(days=1)):
            night = await it.night(session, day)
        assert night.failures == 2
        it.provider.answer = faithful
        assert (await it.night(session, DAY + timedelta(days=1))).added == 1


async def test_what_is_passed_over_takes_nothing_along_that_was_not_asked_about(
    tmp_path: Path,
) -> None:
    def rough(request: ModelRequest) -> str:
        return "prose" if "fact0 " in request.messages[-1].text else faithful(request)

    async with memory_bed(tmp_path, rough) as it:
        session = await it.session()
        await write(it, DAY, *(f"fact{n} and so on" for n in range(MOST_NOTES + 5)))
        nights = [await it.night(session, DAY + timedelta(days=n)) for n in range(3)]
        assert [night.outcome for night in nights] == ["refused", "refused", "changed"]
        assert (nights[-1].passed, nights[-1].added) == (MOST_NOTES, 5)
        it.provider.answer = lambda request: "prose"
        await write(it, DAY, *(f"topic{n} and so on" for n in range(MOST_NOTES + 5)), first=900)
        nights = [await it.night(session, DAY + timedelta(days=n)) for n in (3, 4, 5)]
        assert (nights[-1].passed, nights[-1].failures) == (MOST_NOTES, 1), "nor in the same night"


@pytest.mark.parametrize("by", ["/remember", "a night"])
@pytest.mark.parametrize("person", ["Bob", "Eve as Bob", "nobody that is stored"])
async def test_who_takes_the_name_of_another_in_a_group_changes_no_entry_of_theirs(
    tmp_path: Path, person: str, by: str
) -> None:
    """By a correction or by what goes on with the entry: it stands beside it."""

    def answer(request: ModelRequest) -> str:
        ((_, moved), (_, more)) = asked_about(request)
        return propose(
            {"do": "correct", "number": 1, "text": moved, "sources": [1]},
            {"do": "add", "text": more, "sources": [2]},
        )

    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session(TEAM)
        scope = memory_scope(TEAM)
        first = await said_in_group(it, session, "2", "Bob", "Bob lives in Berlin", "Bob likes tea")
        if by == "/remember":
            book, who = Notebook(it.database, it.folder), Member("2", "Bob", may_change_all)
            for text in ("Bob lives in Berlin", "Bob likes tea"):
                await book.remember(ChatScope(scope, "fake", "1", "-5"), who, text, TODAY)
            await it.days.read(
                scope, [(u, len(u.data)) for u in await it.days.unread(scope, TODAY)]
            )
        else:
            await it.night(session, TODAY, scope)
        assert await it.known(scope) == ["Bob lives in Berlin", "Bob likes tea"]
        id_ = "2" if person == "Bob" else "3"
        now = ("Bob lives in Munich", "Bob likes tea with milk")
        run = await said_in_group(it, session, id_, "Bob", *now)
        assert run != first
        if person.startswith("nobody"):
            await it.database.write(
                lambda c: c.execute("DELETE FROM messages WHERE run_id = ?", (run,))
            )
        it.provider.answer = answer
        night = await it.night(session, TODAY, scope)
        if person == "Bob":
            assert (night.corrected, night.merged) == (1, 1)
        else:
            assert await it.known(scope) == ["Bob lives in Berlin", "Bob likes tea", *now]


async def test_whoever_is_known_to_have_said_an_entry_corrects_it(tmp_path: Path) -> None:
    """In private, by hand, and by their id also where another one has their name."""

    def moves(request: ModelRequest) -> str:
        ((_, text),) = asked_about(request)
        return propose({"do": "correct", "number": 1, "text": text, "sources": [1]})

    async with memory_bed(tmp_path, moves) as it:
        session = await it.session()
        await it.files.add(SCOPE, DAY, "Ana", "Ana lives in Berlin")
        await write(it, DAY, "Ana lives in Rome")
        assert (await it.night(session, DAY)).corrected == 1, "in private"
        session, scope = await it.session(TEAM), memory_scope(TEAM)
        who = Member("2", "Bob", may_change_all)
        book = Notebook(it.database, it.folder)
        await book.remember(ChatScope(scope, "fake", "1", "-5"), who, "Bob lives in Berlin", TODAY)
        await said_in_group(it, session, "2", "Bob", "Bob lives in Rome")
        other = InboundMessage(TEAM, "e", "1", Sender("3", "Bob"), it.now, "I am Bob, too")
        await Inbox(it.database).put(entry(other, session_of(TEAM, "3", "shared"), "turn"))
        assert (await it.night(session, TODAY, scope)).corrected == 1, "by their id"
        path = scope_path(it.folder, scope, f"{TODAY}.md")
        path.write_text(f"{path.read_text()}- **Bob** Bob lives in Oslo\n")
        assert (await it.night(session, TODAY, scope)).corrected == 1, "by hand"


TODAY = datetime.now(UTC).date()  # names prove something for the time since they are stored


async def said_in_group(it: MemoryBed, session: int, person: str, name: str, *texts: str) -> str:
    """Somebody asks, and it is noted; the run."""
    message = InboundMessage(TEAM, f"m{person}{texts}", "1", Sender(person, name), it.now, texts[0])
    id_ = await Inbox(it.database).put(entry(message, session_of(TEAM, person, "shared"), "turn"))
    run = f"r{id_}"
    await it.database.write(
        lambda c: c.execute("UPDATE inbox SET run_id = ? WHERE id = ?", (run, id_))
    )
    await it.say(session, user_text("; ".join(texts)), assistant_text("ok"), run=run)
    rows = await it.database.read("SELECT MIN(id) FROM messages WHERE run_id = ?", (run,))
    number = int(rows[0][0])
    heading = f"## 10:00–11:00 · conversation {session}, messages {number}–{number + 1}"
    notes = [f"- **{name}** {text} [{number}]" for text in texts]
    await it.daily.keep(
        memory_scope(TEAM), Entry(TODAY, heading, "\n".join(("", heading, *notes, "")))
    )
    return run


async def test_a_model_that_fails_is_asked_again_the_next_night(tmp_path: Path) -> None:
    def down(request: ModelRequest) -> str:
        raise ProviderError("no", Refusal(RefusalKind.TRANSIENT, 500))

    async with memory_bed(tmp_path, down) as it:
        session = await it.session()
        await write(it, DAY, "likes tea")
        for _ in range(4):
            assert (await it.night(session, DAY)).outcome == "failed"
        it.provider.answer = faithful
        assert (await it.night(session, DAY)).added == 1


async def test_an_answer_that_was_cut_off_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 123: ten kilobytes became 171 bytes."""
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "likes tea")

        async def cut(request: ModelRequest) -> Completed:
            return Completed(assistant_text(faithful(request)), "length", Usage(1, 1))

        monkeypatch.setattr(it.calls, "_stream", cut)
        night = await it.night(session, DAY)
        assert (night.outcome, night.reason) == ("failed", "the answer was cut off")
        assert await it.known() == []


async def test_beyond_its_share_a_night_is_put_off(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful, limit_usd=5) as it:
        session = await it.session()
        await write(it, DAY, "likes tea")
        await it.night(session, DAY)
        await write(it, DAY, "likes chess", first=9)
        assert (await it.night(session, DAY)).outcome == "put_off"
        it.calls._share = 1.0  # another month
        assert (await it.night(session, DAY)).outcome == "changed"
        assert await it.known() == ["likes tea", "likes chess"]


async def test_a_change_made_meanwhile_is_never_overwritten(tmp_path: Path) -> None:
    """By hand, while the model thinks: that entry stays as the hand wrote it, the rest is done."""
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await it.files.add(SCOPE, DAY, "Ana", "Lives in Berlin")
        await write(it, DAY, "moved to Rome", "plays chess")
        path = scope_path(it.folder, SCOPE, FACTS)

        def slow(request: ModelRequest) -> str:
            path.write_text("- **1** (2026-11-30, Ana) Lives in Bonn\n\nA line of mine.\n")
            return propose(
                {"do": "correct", "number": 1, "text": "Lives in Rome", "sources": ["s1"]},
                {"do": "add", "text": "plays chess", "sources": ["s2"]},
            )

        it.provider.answer = slow
        night = await it.night(session, DAY)
        assert (night.added, night.corrected) == (1, 0)
        assert await it.known() == ["Lives in Bonn", "plays chess"]
        assert "A line of mine." in path.read_text()


async def test_notes_that_do_not_fit_are_read_in_pieces(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        said = [f"fact{n} {'and so on ' * 20}ends" for n in range(150)]
        for number in range(10):
            day = DAY + timedelta(days=number)
            await write(
                it, day, *(f"{text} on day{number}" for text in said), first=500 * number + 1
            )
        it.provider.answer = lambda request: propose()
        await it.night(session, DAY)
        assert len(it.asked) > 1
        read = [text for request in it.provider.requests for _, text in asked_about(request)]
        assert len(read) == len(set(read)) == 1500


async def test_a_day_too_full_for_one_answer_is_noted_and_tidied_in_pieces_and_undone_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: ModelRequest) -> str:
        return (faithful if "<notes>" in request.messages[-1].text else notes)(request)

    async with memory_bed(tmp_path, answer) as it:
        session, book = await it.session(), Notebook(it.database, it.folder)

        async def capped(request: ModelRequest) -> Completed:
            text = answer(request)
            return Completed(
                assistant_text(text), "length" if len(text) > 400 else "end", Usage(1, 1)
            )

        monkeypatch.setattr(it.calls, "_stream", capped)
        chat, by = ChatScope(SCOPE, "fake", "1", "7"), Member("7", "Ana", may_change_all)
        await book.remember(chat, by, "has a cat", DAY)
        for number in range(20):
            said = user_text(f"I own book{number} of the series"), assistant_text("ok")
            await it.say(session, *said, run=f"r{number}")
        await it.flush(session)
        night = await it.night(session, DAY)
        assert (night.outcome, night.added) == ("changed", 20)
        traces = await it.nights.traces(SCOPE, DAY)
        gone, back = await book.undo_night(chat, traces)
        assert (len(gone), back) == (20, [])
        with pytest.raises(FactsRefused, match="changed_since"):
            await book.undo_night(chat, traces)
        assert await it.known() == ["has a cat"], "another press takes nothing else back"


async def test_a_note_whose_answer_is_cut_off_each_night_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory_bed(tmp_path, notes) as it:
        session = await it.session()
        for number in range(8):
            said = user_text(f"I own book{number} of the series"), assistant_text("ok")
            await it.say(session, *said, run=f"r{number}")
        await it.flush(session)

        async def capped(request: ModelRequest) -> Completed:
            about = request.messages[-1].text.partition("<notes>")[2]
            reason = "length" if "book3" in about else "end"
            return Completed(assistant_text(faithful(request)), reason, Usage(1, 1))

        monkeypatch.setattr(it.calls, "_stream", capped)
        nights = [await it.night(session, DAY + timedelta(days=n)) for n in range(4)]
        assert [night.outcome for night in nights] == ["failed", "failed", "changed", "same"]
        known = await it.known()
        assert len(known) == 7
        assert not any("book3" in text for text in known)


async def test_a_night_that_dies_between_two_pieces_goes_on_where_it_was(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        said = [f"fact{n} {'and so on ' * 20}ends" for n in range(1500)]
        await write(it, DAY, *said)

        def dies(request: ModelRequest) -> str:
            if len(it.asked) == 2:
                raise ProviderError("no", Refusal(RefusalKind.TRANSIENT, 500))
            return propose()

        it.provider.answer = dies
        assert (await it.night(session, DAY)).outcome == "failed"
        it.provider.answer = lambda request: propose()
        await it.night(session, DAY)
        first, again = (asked_about(it.provider.requests[n]) for n in (0, 2))
        assert again[0][1] == said[len(first)]


@pytest.mark.parametrize("by", ["tombstone", "line"])
async def test_what_is_forgotten_while_the_model_thinks_does_not_come_back(
    tmp_path: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "collects rare blue stamps of old", "likes tea")
        path, ask = scope_path(it.folder, SCOPE, f"{DAY}.md"), MemoryCalls.ask

        async def slow(self: MemoryCalls, asked: Ask, wait_s: float = WAIT_S) -> str:
            answer = await ask(self, asked, wait_s)
            if by == "tombstone":
                await forget(it, "collects rare blue stamps")
            else:
                lines = path.read_text().splitlines(keepends=True)
                path.write_text("".join(line for line in lines if "stamps" not in line))
            return answer

        monkeypatch.setattr(MemoryCalls, "ask", slow)
        await it.night(session, DAY)
        assert await it.known() == ["likes tea"]
        assert ["stamps" in question for question in it.asked] == [True, False]


async def test_what_is_forgotten_at_the_very_last_does_not_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the last look at what is forgotten and the file."""
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "collects rare blue stamps", "likes tea")
        change = FactFiles.change

        async def late(self: FactFiles, scope: str, changes: Callable[..., Any]) -> object:
            await forget(it, "collects rare blue stamps")
            return await change(self, scope, changes)

        monkeypatch.setattr(FactFiles, "change", late)
        await it.night(session, DAY)
        assert await it.known() == ["likes tea"]


# By the clock ---------------------------------------------------------------------------------------


async def test_one_run_a_night_also_across_restarts_and_missed_nights_once(tmp_path: Path) -> None:
    """Field case 133, in the scope's own zone."""
    zone = ZoneInfo("Asia/Shanghai")
    async with memory_bed(tmp_path, faithful, zone=zone) as it:
        session = await it.session()
        await write(it, DAY, "likes tea")
        it.now = datetime(2026, 12, 1, 10, tzinfo=zone).astimezone(UTC)
        owner = await it.flushing.owner(session)
        assert owner is not None
        await it.jobs._plan(owner)
        (row,) = [row for row in await it.rows.all() if row.kind == CONSOLIDATION]
        assert row.due_at is not None
        assert row.due_at.astimezone(zone).date() == date(2026, 12, 2)
        assert row.due_at.astimezone(zone).hour == 3

        async def tick(now: datetime) -> None:
            it.now = now
            await it.scheduler.tick(now)
            await it.scheduler.idle()

        await tick(row.due_at + timedelta(hours=49))  # asleep for two nights
        nights = await it.nights.newest(SCOPE)
        assert nights is not None
        assert (nights.outcome, nights.added) == ("changed", 1)
        await write(it, date(2026, 12, 4), "likes chess")
        for _ in range(3):
            await it.jobs._plan(owner)
            await tick(it.now + timedelta(minutes=1))
        assert len(it.asked) == 1, "the next one comes with the next night"
        assert it.reported == []


async def test_what_the_night_changed_is_told_once(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        long_ago = datetime(2000, 1, 1, tzinfo=UTC)
        await write(it, DAY, "likes tea")
        await it.night(session, DAY)
        told = [await it.nights.to_tell(SCOPE, long_ago) for _ in range(2)]
        assert [night and night.added for night in told] == [1, None]
        await it.night(session, DAY)
        assert await it.nights.to_tell(SCOPE, long_ago) is None


async def test_two_at_once_ask_once(tmp_path: Path) -> None:
    """`/memory tidy` while the night works."""
    async with memory_bed(tmp_path, faithful) as it:
        await it.session()
        await write(it, DAY, "likes tea")
        await asyncio.gather(*(it.jobs.tidy(SCOPE, it.now) for _ in range(3)))
        assert len(it.asked) == 1
        assert await it.known() == ["likes tea"]


# A model that misbehaves ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
async def test_a_misbehaving_model_loses_nothing_and_revives_nothing(
    tmp_path: Path, seed: int
) -> None:
    durable = [f"Durable fact {n} is about thing{n} and colour{n}" for n in range(40)]
    revoked = [f"Revoked fact {n} was about item{n}" for n in range(10)]
    async with memory_bed(tmp_path, Misbehaving(seed, revoked)) as it:
        session = await it.session()
        for text in durable:
            await it.files.add(SCOPE, DAY, "Ana", text)
        for text in revoked:
            await forget(it, text)
        outcomes: set[str] = set()
        for number in range(20):
            day = DAY + timedelta(days=number)
            said = [f"New fact {number} about word{number}", revoked[number % 10]]
            await write(it, day, *said)
            outcomes.add((await it.night(session, day)).outcome)
        assert outcomes >= {"changed", "refused"}
        entries = await it.known()
        for text in durable:
            assert any(_says(entry, text) for entry in entries), text
        assert not any("item" in entry for entry in entries)
        assert not any("item" in changes_of(it, DAY + timedelta(days=n)) for n in range(20))


def _says(text: str, fact: str) -> bool:
    left = iter(words(text))
    return all(word in left for word in words(fact))


async def test_what_is_forgotten_goes_from_what_the_nights_have_told(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await write(it, DAY, "likes tea", "has a cat")
        await it.night(session, DAY)
        chat = ChatScope(SCOPE, "fake", "1", "7")
        by = Member("7", "Ana", may_change_all)
        notebook = Notebook(it.database, it.folder)
        await notebook.forgetting.forget(chat, by, [Ref(FACTS, 1)])
        assert "tea" not in changes_of(it, DAY)
        assert "has a cat" in changes_of(it, DAY)
        await write(it, DAY, "likes tea", first=20)
        await it.night(session, DAY)
        assert await it.known() == ["has a cat"]


async def may_change_all() -> bool:
    return True


async def test_what_a_night_made_of_a_saying_is_forgotten_with_the_saying(tmp_path: Path) -> None:
    """Notes and entries are in the third person; and a corrected entry is two sayings."""
    chat, by = ChatScope(SCOPE, "fake", "1", "7"), Member("7", "Ana", may_change_all)
    async with memory_bed(tmp_path, lambda _: "## Talk\n- [1] Ana lives in Berlin") as it:
        session, book = await it.session(), Notebook(it.database, it.folder)
        at = datetime(2026, 11, 30, 12, tzinfo=UTC)
        await it.say(session, user_text("I live in Berlin"), assistant_text("ok"), run="r1", at=at)
        await it.flush(session)
        it.provider.answer = faithful
        await it.night(session, DAY)
        assert await it.known() == ["Ana lives in Berlin"]
        await it.say(session, user_text("hi"), assistant_text("hey"), run="r2", at=at)
        now = f"Ana lives in Lisbon (before {DAY}: Ana lives in Berlin)"
        await it.files.correct(SCOPE, 1, DAY, "Ana", now)
        receipt = await book.forgetting.forget(chat, by, [Ref(FACTS, 1)])
        assert receipt.number == 1
        context = await it.conversations.context(session)
        assert [m.message.text for m in context.messages] == ["hi", "hey"]
        texts = [path.read_text() for path in it.folder.rglob("*.md")]
        assert not any("Berlin" in text for text in texts), "nor in a version to go back to"
        told = await book.said_before.said(
            chat, receipt.changes[0], receipt.changes[-1], person=None
        )
        assert [run for run, _ in told.runs] == ["r1"], "asked about, as its notes led there"


async def test_forgetting_one_line_of_a_day_brings_none_back_that_a_hand_has_taken_out(
    tmp_path: Path,
) -> None:
    """What the nights have read of the day stays read."""
    async with memory_bed(tmp_path, faithful) as it:
        session, book = await it.session(), Notebook(it.database, it.folder)
        await write(it, DAY, "likes tea", "the secret word is plover")
        await it.night(session, DAY)
        path = scope_path(it.folder, SCOPE, FACTS)
        path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))
        (ref,) = [ref for ref, text in lines_of(path) if "plover" in text]
        (noted,) = [
            ref
            for ref, text in lines_of(scope_path(it.folder, SCOPE, f"{DAY}.md"))
            if "plover" in text
        ]
        chat, by = ChatScope(SCOPE, "fake", "1", "7"), Member("7", "Ana", may_change_all)
        await book.forgetting.forget(chat, by, [ref, noted])
        await write(it, DAY, "has a cat", first=30)
        await it.night(session, DAY)
        assert await it.known() == ["has a cat"]


async def test_what_is_forgotten_while_it_is_written_down_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a run's tool, and by a night that is about to tell what it did."""
    chat, by = ChatScope(SCOPE, "fake", "1", "7"), Member("7", "Ana", may_change_all)
    async with memory_bed(tmp_path, faithful) as it:
        session, book = await it.session(), Notebook(it.database, it.folder)
        add, told = FactFiles.add, it.daily.note_changes

        async def forget_first(*args: Any) -> Any:
            monkeypatch.undo()
            await book.forgetting.forget(chat, by, [Ref(FACTS, 1)])
            return await (add if isinstance(args[0], FactFiles) else told)(*args)

        await book.remember(chat, by, "the secret word is plover", DAY)
        monkeypatch.setattr(FactFiles, "add", forget_first)
        with pytest.raises(FactsRefused, match="forgotten"):
            await book.remember(
                chat, replace(by, run_id="r1"), "plover, the secret word is plover", DAY
            )
        assert await it.known() == []
        await write(it, DAY, "collects rare blue stamps")
        monkeypatch.setattr(it.daily, "note_changes", forget_first)
        await it.night(session, DAY)
        assert await it.known() == []
        assert "stamps" not in changes_of(it, DAY)


async def test_forgotten_words_are_not_shown_to_the_model(tmp_path: Path) -> None:
    async with memory_bed(tmp_path, faithful) as it:
        session = await it.session()
        await it.say(session, user_text("my locker code is 4711"), run="a")
        await write(it, DAY, "my locker code is 4711", "likes tea")
        await forget(it, "my locker code is 4711")
        await it.night(session, DAY)
        assert not any("4711" in question for question in it.asked)
        assert await it.known() == ["likes tea"]
