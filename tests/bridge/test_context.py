"""What the model sees of a conversation: loaded from the newest boundary, legal after a crash,
compacted with a summary, and changed by commands that delete nothing."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.errors import ProviderError, Refusal, RefusalKind
from agent.history import repair, violations
from agent.messages import JsonObject, Message, ToolUseBlock, assistant_text, user_text
from agent.testing import ScriptedProvider, calls, refusal
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.commands.context import ContextCommands
from bridge.models.chat_models import ModelChoice
from bridge.runs.compaction import Compaction
from bridge.runs.loading import INTERRUPTED_MARK, Asked, load
from bridge.runs.outage import Outages
from bridge.session import session_of
from bridge.texts import Say
from channels.base import Attachment
from memory.conversations import Boundary, Context, StoredMessage
from memory.markdown.lines import Ref
from memory.scopes import FACTS
from memory.whose.authors import Member
from tests.bridge.bed import Bed, bed, chat_model


class Silent:
    """A tool that says "done"."""

    def __init__(self, name: str, *, side_effects: bool) -> None:
        self.spec = ToolSpec(name, name, {"type": "object"}, side_effects=side_effects)

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        return ToolOutput.of("done")


class Hanging(Silent):
    """A tool with side effects that does not end."""

    def __init__(self, name: str) -> None:
        super().__init__(name, side_effects=True)
        self.begun = asyncio.Event()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.begun.set()
        await asyncio.Event().wait()
        raise AssertionError


def stored(run: str, *messages: Message, first: int = 1) -> list[StoredMessage]:
    return [
        StoredMessage(first + index, run, index, message, "2026-11-30T10:00:00")
        for index, message in enumerate(messages)
    ]


def test_a_run_whose_end_was_lost_gets_one_in_memory() -> None:
    call = Message("assistant", (ToolUseBlock("a", "pay", {}),))
    rows = [*stored("r1", user_text("pay"), call), *stored("r2", user_text("and?"), first=5)]
    loaded = load(Context(tuple(rows), None), Asked("r2", user_text("and?"), 5))
    messages = loaded.working.messages()
    assert violations(messages) == []
    assert messages[2].tool_results[0].is_error
    assert messages[3] == assistant_text(INTERRUPTED_MARK)
    assert loaded.starts == (1, 5)


def test_what_was_stored_of_the_run_itself_is_resumed_not_history() -> None:
    rows = stored("r1", user_text("q"), assistant_text("half"))
    loaded = load(Context(tuple(rows), None), Asked("r1", user_text("q"), 1))
    assert loaded.working.turns == ((user_text("q"),),)
    assert loaded.resumed == (assistant_text("half"),)


def test_the_rows_of_a_run_are_one_turn_wherever_they_are() -> None:
    """Two questions became one message, and an answer stood under another question."""
    first = stored("r1", user_text("q1"), assistant_text("a1"))
    between = stored("r2", user_text("q2"), assistant_text("a2"), first=2)
    late = replace(first[1], id=9)
    context = Context((first[0], *between, late), None)
    texts = [[m.text for m in turn] for turn in load(context, None).working.turns]
    assert texts == [["q1", "a1"], ["q2", "a2"]]
    again = load(context, Asked("r1", user_text("q1"), 1))
    assert [[m.text for m in turn] for turn in again.working.turns] == [["q2", "a2"], ["q1"]]
    assert again.resumed == (assistant_text("a1"),)


def test_the_question_stands_even_where_the_context_does_not_hold_it() -> None:
    """A boundary at its turn starts at the question's own row: a guess took parts of the turn before
    along, and after /new the whole conversation."""
    old, asked = stored("r1", user_text("old"), assistant_text("x")), Asked("r2", user_text("q"), 7)
    loaded = load(Context(tuple(old), None), asked)
    assert loaded.working.newest == (user_text("q"),)
    assert loaded.starts == (1, 7)
    alone = load(Context((), None), asked)
    assert alone.working.turns == ((user_text("q"),),)
    assert alone.starts == (7,)


def test_turns_before_the_brief_mark_are_question_and_answer() -> None:
    first = stored("r1", user_text("q1"), calls(("a", "t", {})), assistant_text("x"), first=1)
    second = stored("r2", user_text("q2"), assistant_text("y"), first=10)
    boundary = Boundary("trim", 1, brief_id=10, note="[Earlier conversation] n")
    loaded = load(Context((*first, *second), boundary), None)
    assert [len(turn) for turn in loaded.working.turns] == [2, 2]
    assert loaded.working.brief == 1
    assert loaded.working.messages()[0].text.startswith("[Earlier conversation] n")
    assert violations(repair(loaded.working.messages())) == []


async def talk(it: Bed, count: int) -> None:
    for i in range(count):
        await it.ask(f"q{i}")


async def test_what_leaves_is_summarised_once_for_the_context_and_noted_in_the_day_file(
    tmp_path: Path,
) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, "They spoke of tides.", "last"], max_turns=4) as it:
        await talk(it, 4)
        assert await it.ask("and now?") == "last"
        summary, question = it.provider.requests[-2:]
        assert "minutes" in summary.system
        assert "a0 a0" in summary.messages[0].text
        assert question.messages[0].text.startswith("[Earlier conversation] They spoke of tides.")
        rows = await it.database.read("SELECT person FROM usage WHERE purpose = 'summary'")
        assert [row[0] for row in rows] == [""], "the chat pays for it, and nobody in it"
        assert await it.ask("again") == "done"
        assert it.said()[0][1].startswith("[Earlier conversation] They spoke of tides.")
    (day,) = (tmp_path / "memory").glob("*/*.md")
    kept = day.read_text()
    assert [kept.count(f"** q{i} [") for i in range(4)] == [1, 1, 1, 1]
    assert "They spoke of tides." not in kept, "the file's notes are made of people's words alone"


def held(it: Bed, text: str = "too late") -> Message:
    it.provider.stall = asyncio.Event()
    return assistant_text(text)


def released(it: Bed) -> Message:
    it.provider.stall = None
    return assistant_text("last")


@pytest.mark.parametrize("kind", ["refused", "longer", "empty", "slow"])
async def test_a_digest_stands_in_for_a_summary_that_fails(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    summaries = {
        "refused": refusal(RefusalKind.AUTH),
        "longer": "word " * 5_000,
        "empty": "",
        "slow": "too late",
    }
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, summaries[kind], "last"], max_turns=4) as it:
        await talk(it, 4)
        if kind == "slow":
            defaults = {"focus": "", "wait_s": 0.05}
            monkeypatch.setattr(Compaction.__init__, "__kwdefaults__", defaults)
            it.provider.steps[:] = [lambda _: held(it), lambda _: released(it)]
        assert await it.ask("and now?") == "last"
        first = it.said()[0][1]
        assert first.startswith("[Earlier conversation] Older messages were left out here.")
        assert "user: q0" in first
    (day,) = (tmp_path / "memory").glob("*/*.md")
    assert "** q0 [" in day.read_text()


async def test_an_emergency_writes_a_transcript_that_the_model_can_read(tmp_path: Path) -> None:
    overflow = refusal(RefusalKind.OVERFLOW)
    many = [calls((f"c{i}", "read_transcript", {"offset": i % 3})) for i in range(4)]
    ladder = [overflow, "a summary", overflow]
    async with bed(tmp_path, ["first " * 900, *many[:3], *ladder, many[3], "ok"]) as it:
        await it.ask("remember the tides")
        assert await it.ask("go on") == "ok"
        last = it.provider.requests[-1].messages
        assert last[0].text.startswith("[COMPACT_BOUNDARY]")
        assert "remember the tides" in str(last[-1].tool_results)
        assert "fake" not in last[0].text, "the model never sees a session's key"
        kinds = await it.database.read("SELECT kind FROM boundaries ORDER BY id")
        assert [row[0] for row in kinds][-1] == "emergency"
        assert await it.ask("and now?") == "done"
        assert it.said()[0][1].startswith("[COMPACT_BOUNDARY]")
    (snapshot,) = (tmp_path / "transcripts").glob("*/2*.jsonl")
    assert (snapshot.parent / "latest").resolve() == snapshot.resolve()


async def test_what_cannot_be_kept_does_not_leave_and_the_person_is_told(tmp_path: Path) -> None:
    (tmp_path / "memory").write_text("a file where a folder should be")
    async with bed(tmp_path, ["a"] * 9, max_turns=4) as it:
        await talk(it, 4)
        assert "cannot store anything" in await it.ask("and now?")
        context = await it.services.conversations.context(1)
        assert context.boundary is None, "nothing has left"


async def test_emergencies_are_rare(tmp_path: Path) -> None:
    overflow = refusal(RefusalKind.OVERFLOW)
    many = [calls((f"c{i}", "read_transcript", {"offset": i})) for i in range(3)]
    run = [*many, overflow, "a summary", overflow]
    async with bed(tmp_path, ["first " * 900, *run, "one", *run, "two"]) as it:
        await it.ask("remember the tides")
        assert await it.ask("a") == "one"
        ago = (datetime.now(UTC) - timedelta(seconds=40)).isoformat()
        aged = "UPDATE boundaries SET created_at = ?"
        await it.database.write(lambda c: c.execute(aged, (ago,)))
        assert "I went on with your newest message only" in await it.ask("b"), "60 s between them"
        kinds = await it.database.read("SELECT kind FROM boundaries ORDER BY id")
        assert [row[0] for row in kinds] == ["emergency", "reset"], "those that a model has taken"


async def test_compact_makes_older_turns_a_summary_with_what_to_keep(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, "The boat is blue.", "last"]) as it:
        assert "short enough" in await it.ask("/compact")
        await talk(it, 4)
        said = await it.ask("/compact the boat")
        assert said.startswith("A summary now stands for 2 of the older questions")
        assert "Above all keep: the boat" in it.provider.requests[-1].messages[0].text
        assert await it.ask("and?") == "last"
        assert it.said()[0][1].startswith("[Earlier conversation] The boat is blue.\n\nq2")
        assert (await it.database.read("SELECT COUNT(*) FROM messages"))[0][0] == 10


async def test_beyond_the_memorys_share_a_digest_makes_room_and_is_told(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, "and on"], memory_share=0) as it:
        await talk(it, 4)
        said = await it.ask("/compact")
        assert said.startswith("The model no longer sees 2 of the older questions")
        assert "No summary could be made" in said
        assert len(it.provider.requests) == 4
        assert await it.ask("and now?") == "and on"
        assert "user: q0" in it.said()[0][1]


async def test_the_notes_model_makes_summaries_if_there_is_one(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, answers) as it:
        await talk(it, 4)
        cheap = ScriptedProvider(["The boat is blue."])
        memory, say = it.services.memory, Say(it.services.texts, "en")
        assert memory.calls is not None
        notes = replace(memory, calls=memory.calls.by(chat_model(cheap, "cheap")), own_model=True)
        services = replace(it.services, memory=notes)
        models = ModelChoice((chat_model(it.provider),))
        commands = ContextCommands(services, models, Outages(lambda _: None))
        message = it.channel.message("/compact")
        place = session_of(message.address, "ana", "shared")
        assert "A summary now stands for" in await commands.compact(message, place, "", say)
        rows = await it.database.read("SELECT model FROM usage WHERE purpose = 'summary'")
        assert [row[0] for row in rows] == ["cheap"]


async def test_compact_keeps_short_turns_that_a_summary_would_not_shorten(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a0", "a1", "a2", "a3", "last"]) as it:
        await talk(it, 4)
        assert "no shorter" in await it.ask("/compact")
        assert await it.ask("and?") == "last"
        assert it.said()[:2] == [("user", "q0"), ("assistant", "a0")]
        assert await it.database.read("SELECT kind FROM boundaries") == []


async def test_context_shows_what_the_model_sees(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a"]) as it:
        await talk(it, 1)
        said = await it.ask("/context")
        assert "Questions in view: 1 (at most 20)" in said
        assert "no longer in view: 0" in said


async def test_context_counts_the_tools_as_a_run_does(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a"]) as it:
        await talk(it, 1)
        shown = re.search(r"Estimated tokens: (\d+) of", await it.ask("/context"))
        (request,) = it.provider.requests
        sizes = it.services.ratios.corrected(chat_model(it.provider)).sizes
        assert shown is not None
        assert request.tools
        sent_and_answered = sizes.request(request) + sizes.message(assistant_text("a"))
        assert int(shown[1]) == pytest.approx(sent_and_answered, abs=2)  # rounded apart


async def test_undo_takes_the_last_exchange_out_and_keeps_it_stored(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a0", "a1", "a2"]) as it:
        assert "nothing here to undo" in await it.ask("/undo")
        await talk(it, 2)
        assert "It was: q1" in await it.ask("/undo")
        await it.ask("q2")
        assert it.said() == [("user", "q0"), ("assistant", "a0"), ("user", "q2")]
        assert "It was: q2" in await it.ask("/undo")
        assert "It was: q0" in await it.ask("/undo")
        assert (await it.database.read("SELECT COUNT(*) FROM messages"))[0][0] == 6


async def test_undo_takes_every_try_of_a_question_out(tmp_path: Path) -> None:
    """The first one stood on, since it had had effects. The same question of before stays."""
    steps = [
        "early",
        calls(("a", "pay", {})),
        "paid",
        "paid already",
        calls(("b", "pay", {})),
        "paid twice",
        "fine",
    ]
    async with bed(tmp_path, steps, more_tools=[Silent("pay", side_effects=True)]) as it:
        for said in ("go on", "go on", "/retry", "/retry"):
            await it.ask(said)
        assert len((await it.services.conversations.context(1)).messages) == 2 + 4 + 2 + 4
        assert "It was: go on" in await it.ask("/undo")
        assert await it.ask("and?") == "fine"
        assert it.said() == [("user", "go on"), ("assistant", "early"), ("user", "and?")]


async def test_retry_answers_the_last_question_again(tmp_path: Path) -> None:
    async with bed(tmp_path, ["bad", "better", "best"]) as it:
        assert "no question here" in await it.ask("/retry")
        await it.ask("q0")
        assert await it.ask("/retry") == "better"
        assert it.said() == [("user", "q0")]
        assert await it.ask("/retry") == "best"
        await it.ask("q1")
        assert it.said() == [("user", "q0"), ("assistant", "best"), ("user", "q1")]
        rows = await it.database.read("SELECT COUNT(*) FROM messages WHERE role = 'user'")
        assert rows[0][0] == 4, "every attempt stays stored"


async def test_nothing_of_the_context_changes_while_a_run_is_under_way(tmp_path: Path) -> None:
    stall = asyncio.Event()
    async with bed(tmp_path, ["An answer."], stall=stall) as it:
        await it.send("hi")
        await it.provider.streaming.wait()
        for command in ("/undo", "/compact"):
            await it.send(command)
        await it.until(lambda: len(it.channel.finals) == 2)
        assert set(it.channel.finals) == {"Stop the running answer first (/cancel)."}
        stall.set()
        await it.bridge.idle()


async def test_a_compaction_does_not_bring_an_old_conversation_back(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, lambda _: held(it), lambda _: released(it)]) as it:
        await talk(it, 4)
        it.provider.streaming.clear()
        await it.send("/compact")
        await it.provider.streaming.wait()
        await it.send("/new")
        await it.until(lambda: any("new conversation begins" in t for t in it.channel.finals))
        assert it.provider.stall is not None
        it.provider.stall.set()
        await it.until(lambda: any("changed while" in text for text in it.channel.finals))
        it.provider.stall = None
        await it.ask("hello")
        assert it.said() == [("user", "hello")]


async def test_a_compaction_does_not_bring_back_what_was_undone_meanwhile(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    async with bed(tmp_path, [*answers, lambda _: held(it), lambda _: released(it)]) as it:
        await talk(it, 4)
        it.provider.streaming.clear()
        await it.send("/compact")
        await it.provider.streaming.wait()
        for left in (3, 2, 1):  # the two newest are in no summary, the third is
            await it.send("/undo")
            await it.until(
                lambda left=left: any(f"It was: q{left}" in t for t in it.channel.finals)
            )
        assert it.provider.stall is not None
        it.provider.stall.set()
        await it.until(lambda: any("changed while" in text for text in it.channel.finals))
        it.provider.stall = None
        await it.ask("hello")
        assert [text[:2] for _, text in it.said()] == ["q0", "a0", "he"]


@pytest.mark.parametrize("summary", ["My locker code is 4711.", "Ana told her four digits."])
async def test_what_is_forgotten_while_a_run_makes_room_comes_back_by_no_summary(
    tmp_path: Path, summary: str
) -> None:
    """Nor by one that says it in words of its own."""
    answers = [f"a{i} " * 200 for i in range(3)]
    async with bed(
        tmp_path, ["noted", *answers, lambda _: held(it, summary), "on"], max_turns=4
    ) as it:
        message = it.channel.message("/remember my locker code is 4711")
        chat = it.services.memory.sharing.chat(message.address)
        await it.ask("My locker code is 4711.")
        await it.ask("/remember my locker code is 4711")
        await talk(it, 3)
        it.provider.streaming.clear()
        await it.send("q3")
        await it.provider.streaming.wait()
        by = Member("ana", "Ana", lambda: asyncio.sleep(0, result=True))
        await it.services.notebook.forgetting.forget(chat, by, [Ref(FACTS, 1)])
        assert it.provider.stall is not None
        it.provider.stall.set()
        it.provider.stall = None
        await it.bridge.idle()
        assert "on" in it.channel.finals
        notes = [row[0] for row in await it.database.read("SELECT note FROM boundaries")]
        assert len(notes) == 1
        assert "q0" in notes[0]
        assert "4711" not in notes[0]
        assert summary not in notes[0]


async def test_a_refusal_of_form_is_met_by_a_plainer_history_before_a_reset(tmp_path: Path) -> None:
    step = calls(("a", "current_time", {}))
    async with bed(tmp_path, [step, "one", refusal(RefusalKind.FORMAT), "two"]) as it:
        await it.ask("q1")
        assert await it.ask("q2") == "two"
        assert [role for role, _ in it.said()] == ["user", "assistant", "user"]
        assert it.said()[0][1].endswith("q1")
        assert it.provider.requests[-1].messages[1].tool_uses == ()


@pytest.mark.parametrize("kind", [RefusalKind.FORMAT, RefusalKind.OVERFLOW])
async def test_what_no_model_has_taken_makes_nothing_leave(
    tmp_path: Path, kind: RefusalKind
) -> None:
    """A server that refuses everything for a while, or a parameter of ours, empties no conversation."""
    async with bed(tmp_path, ["one " * 500, *[refusal(kind)] * 8, "well again"]) as it:
        await it.ask("q1")
        assert "your newest message only" not in await it.ask("q2")
        it.provider.steps = ["well again"]
        assert await it.ask("q3") == "well again"
        said = [text for _, text in it.said()]
        assert (said[0], said[-1]) == ("q1", "q3")
        assert (await it.database.read("SELECT COUNT(*) FROM boundaries"))[0][0] == 0


async def test_a_question_that_is_taken_up_needs_its_file_no_more(tmp_path: Path) -> None:
    async with bed(tmp_path, ["never"], stall=asyncio.Event()) as it:
        it.channel.files = {"f": b"the file's words"}
        attachment = Attachment("document", "f", "a.txt", "text/plain")
        await it.bridge.receive(replace(it.channel.message("read"), attachments=(attachment,)))
        await it.provider.streaming.wait()
    async with bed(tmp_path, ["read it"]) as it:
        await it.bridge.resume()
        await it.until(lambda: it.channel.finals)
        assert it.channel.finals == ["read it"]
        assert "the file's words" in it.said()[0][1]


async def test_a_retry_tells_the_model_what_has_taken_effect_already(tmp_path: Path) -> None:
    pay, look = Silent("pay", side_effects=True), Silent("look", side_effects=False)
    steps = [calls(("a", "pay", {}), ("b", "look", {})), "Paid.", "Paid before."]
    async with bed(tmp_path, steps, more_tools=[pay, look]) as it:
        await it.ask("pay it")
        assert await it.ask("/retry") == "Paid before."
        (asked,) = it.provider.requests[-1].messages
        assert "executed for this question already" in asked.text
        assert "pay(" in asked.text
        assert "look(" not in asked.text
        assert asked.text.endswith("pay it")
        stored = await it.database.read("SELECT body FROM messages")
        assert not any("executed for this question" in str(row[0]) for row in stored)


async def test_what_has_taken_effect_stays_known_after_retries(tmp_path: Path) -> None:
    pay = Silent("pay", side_effects=True)
    steps = [calls(("a", "pay", {})), "Paid.", "Paid before.", "Still paid.", "Once."]
    async with bed(tmp_path, steps, more_tools=[pay]) as it:
        await it.ask("pay it")
        for answer in ("Paid before.", "Still paid."):
            assert await it.ask("/retry") == answer
            last = it.provider.requests[-1].messages[-1]
            assert "executed for this question already" in last.text
        await it.ask("how often?")
        called = [c.name for m in it.provider.requests[-1].messages for c in m.tool_uses]
        assert called == ["pay"]


async def test_a_retry_tells_what_is_unknown_and_forbids_nothing_that_never_ran(
    tmp_path: Path,
) -> None:
    mail, post = Hanging("mail"), Silent("post", side_effects=True)
    step = calls(("a", "mail", {}), ("b", "post", {}))
    async with bed(tmp_path, [step, "Never mind."], more_tools=[mail, post]) as it:
        await it.send("mail it")
        await mail.begun.wait()
        await it.send("/cancel")
        await it.bridge.idle()
        assert await it.ask("/retry") == "Never mind."
        (asked,) = it.provider.requests[-1].messages
        assert "- mail({}): outcome unknown" in asked.text
        assert "post(" not in asked.text


async def test_a_retry_that_had_effects_and_no_answer_stays_known(tmp_path: Path) -> None:
    pay = Silent("pay", side_effects=True)
    filtered = refusal(RefusalKind.CONTENT_FILTER)
    async with bed(
        tmp_path, ["No.", calls(("a", "pay", {})), filtered, "Yes."], more_tools=[pay]
    ) as it:
        await it.ask("pay it")
        await it.ask("/retry")
        await it.ask("did you?")
        messages = it.provider.requests[-1].messages
        assert [c.name for m in messages for c in m.tool_uses] == ["pay"]


async def test_a_retry_without_an_answer_leaves_the_earlier_one_in_place(tmp_path: Path) -> None:
    async with bed(tmp_path, ["good", refusal(RefusalKind.CONTENT_FILTER), "next"]) as it:
        await it.ask("q0")
        assert "refuses this content" in await it.ask("/retry")
        await it.ask("q1")
        assert it.said() == [("user", "q0"), ("assistant", "good"), ("user", "q1")]


async def test_a_retry_that_made_room_and_failed_keeps_the_question_and_its_answer(
    tmp_path: Path,
) -> None:
    """The boundary would lie behind the run that was to be replaced; but no model has taken it."""
    overflow, filtered = refusal(RefusalKind.OVERFLOW), refusal(RefusalKind.CONTENT_FILTER)
    async with bed(tmp_path, ["a0 " * 400, "a1 " * 400, "good"]) as it:
        for question in ("q0", "q1", "q2"):
            await it.ask(question)
        it.provider.steps = [overflow, "SUM", filtered, "next"]
        assert "refuses this content" in await it.ask("/retry")
        await it.ask("q3")
        assert [text for _, text in it.said()[-3:]] == ["q2", "good", "q3"]
        assert it.said()[0] == ("user", "q0")
        await it.ask("/undo")
        it.provider.steps = ["better", "last"]
        assert await it.ask("/retry") == "better"
        await it.ask("q4")
        said = [text for _, text in it.said()]
        assert said[-2:] == ["better", "q4"]
        assert "good" not in said, "the replaced one is out"


async def test_an_undo_whose_answer_hangs_is_not_carried_out_again(tmp_path: Path) -> None:
    async with bed(tmp_path, ["a0", "a1"]) as it:
        await talk(it, 2)
        it.channel.hold_after = 0
        await it.send("/undo")
        await it.until(lambda: len(it.channel.replies) == 3)
    async with bed(tmp_path, ["a2"]) as it:
        await it.bridge.resume()
        await it.bridge.idle()
        await it.ask("q2")
        assert it.said() == [("user", "q0"), ("assistant", "a0"), ("user", "q2")]


async def test_a_provider_that_is_down_is_not_asked_for_a_summary(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(4)]
    other = ScriptedProvider([*answers, "last"])
    other.name = "other"
    down = ProviderError("scripted", Refusal(RefusalKind.AUTH, 401))
    async with bed(tmp_path, [down], max_turns=4, fallbacks=[other]) as it:
        await talk(it, 4)
        assert await it.ask("and now?") == "last"
        assert len(it.provider.requests) == 1
        assert other.requests[-1].messages[0].text.startswith("[Earlier conversation] Older")


async def test_a_command_that_fails_is_answered_and_not_carried_out_again(tmp_path: Path) -> None:
    async with bed(tmp_path, [f"a{i} " * 200 for i in range(4)]) as it:
        await talk(it, 4)
        (tmp_path / "memory").write_text("a file where a folder should be")
        assert "cannot store anything" in await it.ask("/compact")
        assert await it.services.inbox.open_acts() == []


async def test_digests_of_digests_do_not_nest(tmp_path: Path) -> None:
    answers = [f"a{i} " * 200 for i in range(6)]
    async with bed(tmp_path, answers, max_turns=2, memory_share=0) as it:
        await talk(it, 6)
        assert it.said()[0][1].count("Older messages were left out here.") == 1
        assert "user: q0" in it.said()[0][1]
