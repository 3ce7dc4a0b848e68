"""People in many chats who ask, stop and are delivered twice, while platforms and the model fail.

Servers, people and most of the trouble are those of `tests/crash`; streams and requests that stall
for a while come from here. Whether an answer has come is seen in the chat: each of its words is
numbered.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from bridge.operation.data_folder import DATABASE
from tests.crash.audit import Asked
from tests.crash.trouble import make_trouble
from tests.crash.world import KINDS, QUESTION, Model, Place, World
from tests.servers.llm import HttpReply, LlmRequest, Reply, tool

_STALL_S = (0.5, 6.0)  # shorter than anybody's patience for a stream
_STALLED_STREAMS = 0.04  # of all
_REQUEST_STALL_S = 1.5
_SHOWN = 60  # of a chat's newest messages, in which an answer is looked for
_IN_GROUPS = 0.4  # of the questions that a private chat gets: their platform allows fewer messages


class StallingModel(Model):
    """The model of `tests/crash`, with tools that every bot has, and streams that stall."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self._chance = chance

    def answer(self, request: LlmRequest) -> Reply | HttpReply:
        """As that one, sometimes with a silence in the middle."""
        reply = super().answer(request)
        stalls = self._chance.random() < _STALLED_STREAMS
        if stalls and isinstance(reply, Reply) and not reply.faults:
            reply.stall_after(1)
            wait_s = self._chance.uniform(*_STALL_S)
            asyncio.get_running_loop().call_later(wait_s, reply.release)
        return reply

    def _call_tools(self, found: Sequence[tuple[int, str]], rounds: int) -> Reply:
        several = any(kind == "tools" for _, kind in found)
        names = ("current_time", "conversation_info") if several else ("current_time",)
        return Reply("One moment.", *map(tool, names)).slowly(0.01)

    def _look(self, request: LlmRequest) -> None:
        """What was told twice is looked for by `tests/crash`."""


class Crowd:
    """Everybody who writes to one bot."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world = world
        self._chance = chance
        self._open: defaultdict[int, list[Asked]] = defaultdict(list)  # by place
        self.asked = 0
        self.answered = 0
        self.stopped = 0  # questions that somebody has tried to stop: they need no answer
        self.uncertain = 0  # of which nobody knows whether all of the answer arrived, as was told

    def ask(self) -> None:
        """A question somewhere."""
        number = self._chance.randrange(len(self._world.places))
        place = self._world.places[number]
        if place.size > 1 and self._chance.random() > _IN_GROUPS:
            return
        self.asked += 1
        person = self._chance.randrange(place.size)
        one = Asked(self.asked, self._chance.choice(KINDS), place, person, None)
        one.message = place.ask(person, one.text)
        self._open[number].append(one)

    def stop(self) -> None:
        """Somebody stops what is under way in their chat, by a word or by the button."""
        busy = [number for number, asked in self._open.items() if asked]
        if not busy:
            return
        number = self._chance.choice(busy)
        asked = self._open.pop(number)
        self.stopped += len(asked)
        if self._chance.random() < 0.5 or not asked[-1].place.press_stop():
            asked[-1].place.say(asked[-1].person, "cancel")

    def again(self) -> None:
        """A platform delivers a message a second time."""
        for asked in self._open.values():
            if asked:
                asked[-1].place.again(asked[-1].message)
                return

    async def trouble(self) -> None:
        """Something goes wrong for a while."""
        if self._chance.random() < 0.2:
            telegram = self._world.telegram.fail_next("editMessageText", stall=True)
            slack = self._world.slack.fail_next("chat.update", stall=True)
            await asyncio.sleep(_REQUEST_STALL_S)
            telegram.release()
            slack.release()
        else:
            await make_trouble(self._world, self._chance.randrange(10**6))

    def look(self) -> None:
        """See which questions are answered by now."""
        for asked in self._open.values():
            if asked:
                there = _answered(asked[0].place, asked)
                self.answered += len(there)
                asked[:] = [one for one in asked if one not in there]

    def excuse(self, data: Path) -> None:
        """Leave out the questions of which a part may not have arrived, which their chat was told."""
        unsure = _unsure(data / DATABASE)
        for asked in self._open.values():
            self.uncertain += sum(one.number in unsure for one in asked)
            asked[:] = [one for one in asked if one.number not in unsure]

    @property
    def waiting(self) -> list[Asked]:
        """Questions without an answer so far."""
        return [one for asked in self._open.values() for one in asked]

    def forget(self) -> None:
        """Let the servers forget what nobody looks at any more, so that they do not grow."""
        world = self._world
        world.telegram.calls.clear()
        world.slack.calls.clear()
        world.llm.requests[:] = [one for one in world.llm.requests if not one.finished][-100:]
        world.slack.deliveries[:] = [one for one in world.slack.deliveries if not one.done]


def _answered(place: Place, asked: Sequence[Asked]) -> list[Asked]:
    seen: defaultdict[int, set[int]] = defaultdict(set)
    for shown in place.shown()[-_SHOWN:]:
        for question, _, number in shown.words:
            seen[question].add(number)
    return [one for one in asked if one.kind_words <= seen[one.number]]


def _unsure(path: Path) -> set[int]:
    """Questions with a part that is not sent again, since it may have arrived."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        rows = database.execute(
            "SELECT i.body FROM outbox_parts p JOIN outbox o ON o.id = p.reply_id"
            " JOIN inbox i ON i.run_id = o.key WHERE p.state IN ('uncertain', 'resending')"
        ).fetchall()
    return {int(number) for row in rows for number, _ in QUESTION.findall(row[0])}
