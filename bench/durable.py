"""What it costs that nothing is lost: taking messages in, whole turns, a start on what is stored, and
sessions that have nothing to do."""

from __future__ import annotations

import asyncio
import statistics
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.measures import Bench
from bench.processes import Child
from bench.report import Measure, Measures
from bench.stored import fill
from bridge.operation.data_folder import DATABASE
from memory.database import Database
from memory.inbox import Inbox
from memory.outbox import Outbox
from memory.runs import Runs
from memory.storage.integrity import set_aside_if_damaged

_CHANNELS = ("telegram", "slack")
_MANY_CHATS = 100


class Durable:
    """Measures with the servers and sizes of `bench`."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._size = bench.size
        token = bench.facts["configs"]["anthropic"]["channels"]["telegram"]["token"]
        self._account = str(token).partition(":")[0]

    def durable(self) -> Measures:
        """All of them."""
        return self._inbound() | self._turns() | self._restart() | self._known() | self._idle()

    def _inbound(self) -> Measures:
        """Messages that Telegram's poller takes in, each stored and then acknowledged, and the bot's
        CPU time for one."""
        bench, count = self._bench, self._size.burst
        with bench.bot("anthropic") as bot:
            bot.wait_ready()
            bench.steady_rss(bot)
            before = float(bot.ask()["cpu_s"])
            found = bench.servers.ask(120 + count / 50, do="burst", count=count)
            spent = float(bot.ask()["cpu_s"]) - before
        return {
            "inbound_per_s": Measure(found["per_second"], "msgs/s"),
            "inbound_cpu_ms": Measure(1000 * spent / count, "ms"),
        }

    def _turns(self) -> Measures:
        """Turns with everything stored (see `bench.turns`), when nobody shares a transaction and when
        many do."""
        found: Measures = {}
        for chats, turns in ((1, self._size.turns // 10), (_MANY_CHATS, self._size.turns)):
            least = max(turns, chats)
            with Child("bench.turns", [str(least), str(chats)]) as child:
                told = child.told(120)["per_second"]
            name = "chat" if chats == 1 else "chats"
            found[f"turns_{chats}_{name}_per_s"] = Measure(told, "turns/s")
        return found

    def _restart(self) -> Measures:
        """Until "ready" with much stored and nothing open, and of that the look at the file and the
        questions what is open. Where other programs keep it from a core, the time is theirs."""
        bench, size = self._bench, self._size
        data = bench.data()
        fill(data, self._account, size.sessions, size.stored)
        ready, spent, waited = [], [], []
        for _ in range(size.starts):
            with bench.cli("anthropic", data) as bot:
                ready.append(bot.wait_ready())
                spent.append(bot.cpu_s)
                waited.append(bot.waited_s)
                bot.terminate()
        check_s, questions_s = _opening(data / DATABASE)
        return {
            "restart_ready_s": Measure(statistics.median(ready), "s", 1.5),
            "restart_cpu_s": Measure(statistics.median(spent), "CPU s"),
            "restart_waited_for_core_s": Measure(statistics.median(waited), "s"),
            "restart_check_s": Measure(check_s, "s"),
            "restart_questions_s": Measure(questions_s, "s"),
        }

    def _known(self) -> Measures:
        """Memory after a start with many sessions in the database, beyond that with none."""
        bench, data = self._bench, self._bench.data()
        fill(data, self._account, self._size.known, self._size.known)
        used = []
        for folder in (bench.data(), data):
            with bench.cli("anthropic", folder) as bot:
                bot.wait_ready()
                used.append(bench.steady_rss(bot))
                bot.terminate()
        return {"known_sessions_mb": Measure(used[1] - used[0], "MB", 10)}

    def _idle(self) -> Measures:
        """What a process keeps of sessions that it has answered (see `bench.sessions`)."""
        with Child("bench.sessions", [str(self._size.known)]) as child:
            told = child.told(60 + self._size.known / 10)
        return {
            "idle_sessions_mb": Measure(told["mb"], "MB", 10),
            "idle_sessions_tasks": Measure(told["tasks"], "tasks", 0),
            "idle_sessions_files": Measure(told["files"], "files", 0),
            "idle_sessions_kept": Measure(sum(told["kept"].values()), "objects", 0),
        }


def _opening(path: Path) -> tuple[float, float]:
    """Seconds that the parts of a start take which look at what is stored."""
    began = time.monotonic()
    set_aside_if_damaged(path, datetime.now(UTC))
    checked = time.monotonic()
    return checked - began, asyncio.run(_questions(path))


async def _questions(path: Path) -> float:
    database = await Database.open(path)
    try:
        began = time.monotonic()
        await Outbox(database).open_replies(_CHANNELS)
        await Runs(database).lost(_CHANNELS)
        await Inbox(database).open_acts()
        await Inbox(database).open_sessions(_CHANNELS)
        return time.monotonic() - began
    finally:
        await database.close()
