"""Field cases (d): a stop acts at once whatever runs, and nothing is lost, mixed up or said twice.

Asserted elsewhere already:

    53  e2e/test_stop_telegram.py and test_stop_slack.py: each way to stop, with its sentence;
        bridge/test_agent_bridge.py: commands_answer_while_a_run_is_under_way
    54  agent/test_children.py: a_cancel_kills_the_program_and_its_children
    57  bridge/test_agent_bridge.py: messages_of_one_sender_become_one_turn_and_wait_with_a_mark,
        a_full_queue_is_said
    61  agent/test_loop.py: cancel_at_every_await_leaves_a_legal_history_and_the_next_turn_works
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent.children import run_child
from agent.history import violations
from agent.messages import JsonObject, Message, assistant_text, user_text
from agent.provider import ModelRequest
from agent.testing import calls
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.lanes import ActiveRun
from bridge.runs.turn import Turn
from memory.conversations import Conversations
from tests.bridge.bed import Bed, bed
from tests.e2e.bed import config, llm_server, running, telegram_settings
from tests.field_cases.bed import KINDS, Called, Kind, chat, texts
from tests.servers.llm import tool
from tests.servers.telegram import TelegramServer


@pytest.mark.parametrize("place", ["private", "group", "topic"])
async def test_a_cancel_is_answered_while_the_run_that_it_stops_hangs(
    tmp_path: Path, place: str
) -> None:
    """Case 53: it never waits behind the run; in groups with the bot's name, also in a topic. The
    second one says that nothing is running."""
    async with TelegramServer() as telegram, llm_server() as llm:
        ana = telegram.user("Ana", language_code="en")
        where = telegram.private(ana)
        if place != "private":
            where = telegram.group("Team", members=[ana], forum=place == "topic", id=-100500)
        topic = where.open_topic("Boats") if place == "topic" else None
        ids = telegram_settings(telegram, owners=[str(ana.id)], allowed=["-100500"])
        async with running(config(llm, telegram=ids), tmp_path):
            await telegram.wait_for_poll()
            cancel = "/cancel" if place == "private" else f"/cancel@{telegram.bot.username}"
            hanging = llm.answer("never").hang()
            where.send(f"/ask@{telegram.bot.username} what?", sender=ana, topic=topic)
            await llm.wait_for(lambda: bool(llm.requests))
            where.send(cancel, sender=ana, topic=topic)
            stopped = await where.wait_for_text("Stopped.")
            assert topic is None or stopped.thread == topic
            assert not hanging.reached.is_set() or llm.requests[0].disconnected
            where.send(cancel, sender=ana, topic=topic)
            await where.wait_for_text("Nothing is running.")
            assert len(where.bot_messages) == 2
            llm.answer("fine")
            where.send(f"/ask@{telegram.bot.username} and now?", sender=ana, topic=topic)
            fine = await where.wait_for_text("fine")
            assert topic is None or fine.thread == topic


class Shell:
    """A tool that runs a program, as any tool of ours would."""

    spec = ToolSpec("shell", "Runs.", {"type": "object"}, side_effects=True, timeout_s=600)

    def __init__(self, folder: Path) -> None:
        self.pid = folder / "pid"
        self.done = folder / "SHOULD_NOT"
        self.begun = asyncio.Event()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        script = f"sleep 90 & echo $! > {self.pid}.new; mv {self.pid}.new {self.pid}; wait; "
        running = asyncio.create_task(run_child(["sh", "-c", f"{script} touch {self.done}"]))
        try:
            while not self.pid.exists():  # noqa: ASYNC110 - another process makes it
                await asyncio.sleep(0.01)
            self.begun.set()
            await running
        finally:
            running.cancel()
            await asyncio.wait({running})
        raise AssertionError("it never ends by itself")


async def test_a_stop_kills_what_a_tool_has_started_and_the_next_message_is_answered(
    tmp_path: Path,
) -> None:
    """Case 54: the program, and what that has started in its turn."""
    shell = Shell(tmp_path)
    async with bed(tmp_path, [calls(("a", "shell", {})), "fine"], more_tools=[shell]) as it:
        await it.send("run it")
        await shell.begun.wait()
        child = int(shell.pid.read_text())
        assert _is_alive(child)
        await it.send("/cancel")
        await it.bridge.idle()
        assert not _is_alive(child)
        assert not shell.done.exists()
        (said,) = it.channel.finals
        assert said.startswith("Stopped.")
        assert "unknown whether this took effect: `shell`" in said
        assert await it.ask("next") == "fine"


def _is_alive(pid: int) -> bool:
    """Whether it runs: a killed one may wait for its new parent to note its end."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Deaf:
    """A tool that swallows its cancel and goes on."""

    spec = ToolSpec("deaf", "Goes on.", {"type": "object"}, side_effects=True)

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.release = asyncio.Event()

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        self.begun.set()
        while not self.release.is_set():
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                continue
        return ToolOutput.of("too late")


async def test_a_tool_that_ignores_its_cancel_does_not_lock_the_chat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 54."""
    monkeypatch.setattr("bridge.lanes.CANCEL_GRACE_S", 0.01)
    deaf = Deaf()
    async with bed(tmp_path, [calls(("a", "deaf", {})), "fine"], more_tools=[deaf]) as it:
        await it.send("go")
        await deaf.begun.wait()
        await it.send("/cancel")
        await it.until(lambda: it.channel.finals)
        assert it.channel.finals[0].startswith("Stopped.")
        assert await it.ask("next") == "fine"
        deaf.release.set()
        for _ in range(20):
            await asyncio.sleep(0)
        rows = await it.database.read("SELECT body FROM messages")
        assert not any("too late" in row[0] for row in rows), "a late result is not taken in"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_that_is_stopped_before_its_first_word_does_not_repeat_an_older_answer(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 55."""
    async with chat(tmp_path, kind) as it:
        it.server.answer("The first answer.")
        await it.ask("A")
        it.server.answer("never").hang()
        await it.send("B")
        await it.server.wait_for(lambda: len(it.server.requests) == 2)
        await it.send("/cancel")
        await it.bridge.idle()
        assert it.channel.finals == ["The first answer.", "Stopped."]
        assert [reply.preview for reply in it.channel.replies] == ["The first answer.", ""]
        it.server.answer("The third answer.")
        assert await it.ask("C") == "The third answer."


@pytest.mark.parametrize("kind", KINDS)
async def test_messages_that_come_during_a_run_are_stored_at_once_and_answered_in_order(
    tmp_path: Path, kind: Kind
) -> None:
    """Case 57: the run goes on, nothing is dropped; one person's become one question, two people's
    two."""
    async with chat(tmp_path, kind) as it:
        where = {"chat": "team", "private": False}
        slow = it.server.answer("For m1.").stall_after(0)
        await it.send("m1", **where)  # type: ignore[arg-type]
        await slow.reached.wait()
        for text, person in (("m2", "ana"), ("m3", "ana"), ("b1", "bo")):
            await it.send(text, person=person, **where)  # type: ignore[arg-type]
        rows = await it.database.read("SELECT body FROM inbox WHERE kind = 'turn' ORDER BY id")
        assert len(rows) == 4
        assert all(text in row[0] for text, row in zip(("m1", "m2", "m3", "b1"), rows, strict=True))
        it.server.answer("For m2 and m3.")
        it.server.answer("For b1.")
        slow.release()
        await it.until(lambda: len(it.channel.finals) == 3)
        await it.bridge.idle()
        assert it.channel.finals == ["For m1.", "For m2 and m3.", "For b1."]
        asked = [request.last_user_text for request in it.server.requests]
        assert asked == ["[Ana#1] m1", "[Ana#1] m2\n\nm3", "[Bo#2] b1"]


async def test_a_result_goes_to_the_chat_that_asked_whoever_writes_meanwhile(
    tmp_path: Path,
) -> None:
    """Case 59: the target is fixed when a run starts."""
    deaf, release = asyncio.Event(), asyncio.Event()

    class Slow(Called):
        async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
            deaf.set()
            await release.wait()
            return await super().run(arguments, context)

    slow = Slow("slow", lambda _: "the result for A")
    async with chat(tmp_path, tools=[slow]) as it:
        it.server.answer(tool("slow", {}))
        await it.send("from A", person="ana", chat="A")
        await deaf.wait()
        for n in range(3):
            it.server.answer(f"Answer {n} for B.")
            await it.send(f"from B {n}", person="bo", chat="B")
            await it.until(lambda n=n: len(it.channel.finals) == n + 1)  # type: ignore[misc]
        it.server.answer("Here is the result for A.")
        release.set()
        await it.bridge.idle()
        said = [(reply.to.chat, reply.final) for reply in it.channel.replies]
        assert sorted(said) == [
            ("A", "Here is the result for A."),
            *[("B", f"Answer {n} for B.") for n in range(3)],
        ]
        assert "from B" not in texts(it.server.requests[-1])


# Case 61 ----------------------------------------------------------------------------------------


class Stepped:
    """Runs a coroutine, and does something at its k-th await."""

    def __init__(self, inner: Coroutine[Any, Any, None], k: int, act: Callable[[], object]) -> None:
        self._inner = inner
        self._k = k
        self._act = act
        self.acted = False

    def __await__(self) -> Generator[Any, Any, None]:
        resume: Callable[[], Any] = lambda: self._inner.send(None)  # noqa: E731
        awaits = 0
        while True:
            try:
                waits_for = resume()
            except StopIteration:
                return
            awaits += 1
            if awaits == self._k:
                self.acted = True
                self._act()
            try:
                sent = yield waits_for
                resume = lambda value=sent: self._inner.send(value)  # type: ignore[misc]  # noqa: E731
            except BaseException as error:  # noqa: BLE001 - thrown into the coroutine
                resume = lambda thrown=error: self._inner.throw(thrown)  # type: ignore[misc]  # noqa: E731


def _fine(request: ModelRequest) -> Message:
    return assistant_text("a summary" if "minutes" in request.system else "fine")


async def stopped_at_every_await(
    it: Bed,
    monkeypatch: pytest.MonkeyPatch,
    prepare: Callable[[str], Any],
    tool: Called | None = None,
) -> int:
    """In a chat of its own for each k: a run that is stopped at its k-th await, and talking on. How
    many awaits there were."""
    real = Turn.run
    for k in range(1, 400):
        steps: list[Stepped] = []

        async def stepping(
            self: Turn, run: ActiveRun, k: int = k, steps: list[Stepped] = steps
        ) -> None:
            steps.append(Stepped(real(self, run), k, run.token.cancel))
            await steps[0]

        await prepare(str(k))
        before, ran = len(it.channel.finals), len(tool.ran) if tool is not None else 0
        with monkeypatch.context() as patched:
            patched.setattr(Turn, "run", stepping)
            await it.send("do it", chat=str(k))
            await it.bridge.idle()
        said = it.channel.finals[before:]
        if not steps[0].acted:
            assert said == ["All done."] or said == ["Let me see.\n\nAll done."]
            return k - 1
        assert len(said) == 1, (k, said)
        assert "Stopped." in said[0], (k, said)
        done = "`book`" in said[0]
        assert done is bool(tool is not None and len(tool.ran) > ran), "what took effect is told"
        it.provider.steps[:] = [_fine, _fine]
        assert await it.ask("hi", chat=str(k)) == "fine", k
        assert violations(it.provider.requests[-1].messages) == []
        assert it.said()[-1][1].endswith("hi")
    pytest.fail("the run never finished")


async def test_a_stop_at_every_await_of_a_turn_leaves_a_conversation_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 61: also between a tool's end and its result in the store."""
    book = Called("book", lambda _: "booked", side_effects=True)
    async with bed(tmp_path, more_tools=[book]) as it:

        async def prepare(_: str) -> None:
            it.provider.steps[:] = [calls(("a", "book", {}), text="Let me see."), "All done."]

        assert await stopped_at_every_await(it, monkeypatch, prepare, book) > 7


async def test_a_stop_at_every_await_of_a_compaction_leaves_a_conversation_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 61: the store is as before or has its boundary; nothing that was said is lost."""
    long = "The tide comes in. " * 100
    async with bed(tmp_path, max_turns=2) as it:

        async def prepare(where: str) -> None:
            it.provider.steps[:] = [f"a0 {long}"]
            await it.ask("q0", chat=where)
            session = (await it.database.read("SELECT MAX(id) FROM sessions"))[0][0]
            store: Conversations = it.services.conversations
            await store.append(session, f"more {where}", [(0, user_text("q1"))])
            it.provider.steps[:] = ["They spoke of tides.", "All done."]

        assert await stopped_at_every_await(it, monkeypatch, prepare) > 6
        kinds = await it.database.read("SELECT DISTINCT kind FROM boundaries")
        assert [row[0] for row in kinds] == ["trim"]
        chats = (await it.database.read("SELECT COUNT(*) FROM sessions"))[0][0]
        for words in ("q0", "q1", "a0 The tide"):
            rows = await it.database.read(
                "SELECT COUNT(*) FROM messages WHERE body LIKE ?", (f'%"{words}%',)
            )
            assert rows[0][0] == chats, "what was said stays stored"
