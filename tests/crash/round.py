"""One round: a bot that dies again and again while people write, then a last one that settles all."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGTERM

from tests.crash.audit import DATABASE, OPEN_RUN, Asked, Findings, audit
from tests.crash.nursery import Bot, Nursery
from tests.crash.plan import Act, Life
from tests.crash.trouble import make_trouble
from tests.crash.world import KINDS, QUESTION, STOP_WORD, Place, World

MOST_S = 2.5  # for a process to come to its point; then it is killed wherever it is
STUCK_S = 40.0  # without any progress; how long all of it takes depends on the machine
EXIT_S = 15.0


@dataclass(slots=True)
class Result:
    """What a round has found. `deaths`: at which points, or at an instant; `ended`: processes that
    came to a graceful end before they could be killed."""

    findings: Findings = field(default_factory=Findings)
    deaths: Counter[str] = field(default_factory=Counter)
    ended: int = 0
    asked: int = 0
    last: str = ""


class Round:
    """To be run once."""

    def __init__(
        self, nursery: Nursery, folder: Path, *, private: int, outage_s: float | None = None
    ) -> None:
        """`private`: chats on each platform; `outage_s`: what the bots take for a long outage."""
        self._nursery = nursery
        self._folder = folder
        self._data = folder / "data"
        self._world = World(private, self._data / DATABASE)
        self._asked: list[Asked] = []
        self._result = Result()
        self._starts = 0
        self._outage_s = outage_s

    async def run(self, lives: Iterable[Life]) -> Result:
        """All lives, one after the other, then one that is let live until all is settled."""
        await self._world.start()
        (self._folder / "config.yaml").write_text(json.dumps(self._world.config()))
        try:
            async with asyncio.TaskGroup() as beside:  # what is begun comes to its end
                await self._warm_up()
                for life in lives:
                    await self._live(life, beside)
            await self._settle()
        finally:
            await self._world.stop()
        self._result.asked = len(self._asked)
        audit(self._world, self._asked, self._data, self._result.findings)
        return self._result

    async def _start(self, point: str | None = None, nth: int = 1, arm_s: float = 0.0) -> Bot:
        self._starts += 1
        return await self._nursery.start(
            self._folder / f"{self._starts:03}.log",
            config=str(self._folder / "config.yaml"),
            data=str(self._data),
            point=point,
            nth=nth,
            arm_s=arm_s,
            outage_s=self._outage_s,
        )

    async def _warm_up(self) -> None:
        """Each place in Slack has an answer. What is said to a bot for the first time while it is down
        for long is lost there (README says so), and a thread into which it comes later is quoted, so
        that a question in it could not be told from one that came twice."""
        bot = await self._start()
        for place in self._world.places:
            if place.name.startswith("slack"):
                self._ask_in(place, "short", 0)
        words = self._asked[-1].kind_words
        for one in self._asked:
            await self._world.slack.wait_for(partial(self._shows, one, words), 60)
        bot.kill()
        await bot.ended.wait()
        self._note_death(bot, in_order=False)

    async def _live(self, life: Life, beside: asyncio.TaskGroup) -> None:
        acting = asyncio.create_task(self._act_on(life.acts, beside))
        try:
            bot = await self._start(life.point, life.nth, life.after_s)
            if life.stop_s is not None and not await bot.ends_within(life.stop_s):
                bot.kill(SIGTERM)
            if not await bot.ends_within(MOST_S if life.point else life.after_s):
                bot.kill()
                await bot.ended.wait()
            self._note_death(bot, in_order=life.stop_s is not None)
            await asyncio.sleep(life.down_s)
        finally:
            acting.cancel()
            await asyncio.wait([acting])

    def _note_death(self, bot: Bot, *, in_order: bool) -> None:
        point = bot.point if bot.was_killed else None
        self._result.last = point or "an instant"
        if bot.was_killed:
            self._result.deaths[self._result.last] += 1
        elif in_order and bot.ended_in_order:
            self._result.ended += 1
        else:
            self._unexpected(bot)
        for line in bot.lines():
            if "Traceback" in line or " ERROR " in line:
                self._result.findings.counted["errors in logs"] += 1

    def _unexpected(self, bot: Bot) -> None:
        tail = "\n".join(bot.lines()[-25:])
        self._result.findings.add(f"a process ended by itself ({bot.status}):\n{tail}")

    # ---- what happens meanwhile ---------------------------------------------------------------

    async def _act_on(self, acts: Iterable[Act], beside: asyncio.TaskGroup) -> None:
        for act in acts:
            self._act(act, beside)
            await asyncio.sleep(act.gap_s)

    def _act(self, act: Act, beside: asyncio.TaskGroup) -> None:
        asked = self._asked
        match act.what:
            case "ask":
                self._ask(act)
            case "ask twice":
                self._ask(act)
                self._ask(act)
            case "ask and cancel":
                self._ask(act)
                beside.create_task(self._cancel_soon(asked[-1]))
            case "command":
                place = self._place(act, "telegram")
                place.say(act.person % place.size, "status")
            case "again" if asked:
                one = asked[-1 - act.choice % min(len(asked), 8)]
                one.place.again(one.message)
            case "cancel" if asked:
                self._cancel(asked[-1 - act.choice % min(len(asked), 3)])
            case "press":
                self._press_stop()
            case "trouble":
                beside.create_task(make_trouble(self._world, act.choice))
            case _:
                pass

    def _ask(self, act: Act) -> None:
        place = self._place(act, act.platform)
        self._ask_in(place, act.kind or KINDS[act.choice % len(KINDS)], act.person % place.size)

    def _place(self, act: Act, platform: str) -> Place:
        places = [place for place in self._world.places if place.name.startswith(platform)]
        return places[act.place % len(places)]

    def _ask_in(self, place: Place, kind: str, person: int) -> None:
        one = Asked(len(self._asked) + 1, kind, place, person, None)
        one.message = place.ask(one.person, one.text)
        self._asked.append(one)

    async def _cancel_soon(self, one: Asked) -> None:
        await asyncio.sleep(0.1)
        self._cancel(one)

    def _cancel(self, one: Asked) -> None:
        self._stopping(one)
        one.place.say(one.person, STOP_WORD)

    def _press_stop(self) -> None:
        for one in self._asked[-6:]:
            if one.place.press_stop():
                self._stopping(one)
                return

    def _stopping(self, one: Asked) -> None:
        """Whatever is not answered there by now may be stopped."""
        shown = {q for message in one.place.shown() for q, _, _ in message.words}
        for other in self._asked:
            if other.place is one.place and (other.number not in shown or self._may_run(other)):
                other.stopped = True

    def _may_run(self, one: Asked) -> bool:
        buttons = any(m.stoppable for m in one.place.shown())
        return self._words(one) != one.kind_words or buttons

    def _shows(self, one: Asked, words: Set[int]) -> bool:
        return self._words(one) == words

    def _words(self, one: Asked) -> set[int]:
        """The numbers of the words of its answer that its place shows."""
        return {w for m in one.place.shown() for q, _, w in m.words if q == one.number}

    # ---- the end ------------------------------------------------------------------------------

    async def _settle(self) -> None:
        bot = await self._start()
        why, left = "it did not start", ""
        end = time.monotonic() + STUCK_S
        while time.monotonic() < end and not bot.ended.is_set():
            unsettled = list(self._unsettled())
            why = next(iter(unsettled), "")
            if not why:
                break
            if str(unsettled) != left:
                left, end = str(unsettled), time.monotonic() + STUCK_S
            await asyncio.sleep(0.1)
        if why:
            self._result.findings.add(f"no progress for {STUCK_S} s: {why}")
        bot.kill(SIGTERM)
        if not await bot.ends_within(EXIT_S):
            self._result.findings.add("the last process does not stop")
            bot.kill()
            await bot.ended.wait()
        if not bot.ended_in_order:
            self._unexpected(bot)

    def _unsettled(self) -> Iterator[str]:
        """What is still to come."""
        world = self._world
        if world.telegram.updates.pending:
            yield f"{world.telegram.updates.pending} updates are not fetched"
        if any(not delivery.done for delivery in world.slack.deliveries):
            yield "events are not acknowledged"
        yield from _open(self._data / DATABASE)
        waits: dict[str, Callable[[], bool]] = {
            "Stop buttons": lambda: any(m.stoppable for p in world.places for m in p.shown()),
            "marks": lambda: any(one.place.marked(one.message) for one in self._asked),
        }
        for what, there in waits.items():
            if there():
                yield f"there are {what}"
        missing = len({one.number for one in self._asked} - _taken_in(self._data / DATABASE))
        if missing:
            yield f"{missing} questions are not taken in"


def _open(path: Path) -> Iterator[str]:
    if not path.exists():
        yield "there is no database"
        return
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        for table, condition in (
            ("inbox", "state = 'open'"),
            ("runs", OPEN_RUN),
            ("outbox", "state = 'open'"),
        ):
            found = database.execute(f"SELECT COUNT(*) FROM {table} WHERE {condition}").fetchone()
            if found[0]:
                yield f"{found[0]} rows of {table} are open"


def _taken_in(path: Path) -> set[int]:
    """The numbers of the questions that the inbox has."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        bodies = database.execute("SELECT body FROM inbox WHERE kind = 'turn'").fetchall()
    return {int(number) for (body,) in bodies for number, _ in QUESTION.findall(body)}
