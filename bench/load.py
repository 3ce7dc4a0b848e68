"""People in many chats who write at random instants, and how long the bot takes for each message.

The instants are a seeded Poisson process over all chats. The chats take turns in a shuffled order,
so that the limits which a platform sets for one chat (a message a second) are not measured here:
they are kept, whatever the bot costs.

So is Telegram's limit for all chats together, 30 requests a second. An answer there takes three: the
sign that it comes, its first words, all of it (docs/decisions/0012). With half of 20 messages a second
that would be 30, and the first words would be left out in one answer of ten, as they should be then.
So 40 of the 100 people talk in Telegram, and 60 in Slack.

The servers share the machine with the bot, and this process measures for all of them: what its own
loop is late is in every latency. `late` tells how much that was.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from bench.idle import beat
from tests.servers.llm import LlmServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

FIRST_WORD = "The"
"""What every answer begins with; a question, a notice or the "…" of a preview does not."""

_NUMBER = re.compile(r"\bq(\d+)\b")
_TELEGRAM = {"sendmessage", "editmessagetext"}
_SLACK = {"chat.postMessage", "chat.update"}
PATIENCE_S = 20.0  # for the last answers


@dataclass(frozen=True, slots=True)
class _Asked:
    chat: str
    at: float


class Load:
    """One run. `run` may be called again."""

    def __init__(
        self,
        telegram: TelegramServer,
        slack: SlackServer,
        llm: LlmServer,
        telegram_chats: list[Any],
        slack_chats: list[Any],
    ) -> None:
        self._telegram = telegram
        self._slack = slack
        self._llm = llm
        self._chats = [*telegram_chats, *slack_chats]

    async def run(self, seconds: float, per_second: float, warm_s: float, seed: int) -> Any:
        """Latencies in ms of what was asked after the first `warm_s` seconds: `in` from the update
        to the provider's request, `out` from the provider's first chunk to the chat's next
        message or edit that shows words of an answer; `lost` counts messages without one; `late` is
        how late this process's loop woke."""
        chance = random.Random(seed)
        order = list(self._chats)
        chance.shuffle(order)
        asked: list[_Asked] = []
        late: list[float] = []
        beating = asyncio.create_task(beat(late))
        start = time.monotonic()
        due = start
        while due < start + warm_s + seconds:
            due += chance.expovariate(per_second)
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            chat = order[len(asked) % len(order)]
            asked.append(_Asked(str(chat.id), time.monotonic()))
            chat.send(f"q{len(asked) - 1} How is the tide today?")
        beating.cancel()
        await self._settle(start, len(asked))
        return {**self._latencies(asked, start, warm_s), "late": late}

    async def _settle(self, start: float, count: int) -> None:
        """Until as many calls as questions have ended, and what they showed has gone out."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            since = [r for r in self._llm.requests if r.arrived >= start]
            if sum(r.finished for r in since) >= count:
                break
            await asyncio.sleep(0.1)
        await asyncio.sleep(1.0)

    def _latencies(self, asked: list[_Asked], start: float, warm_s: float) -> Any:
        shown = self._shown(start)
        requests = {
            int(number): request
            for request in self._llm.requests
            if request.arrived >= start
            for number in _NUMBER.findall(request.last_user_text)
        }
        to_model, to_chat, lost = [], [], 0
        for number, question in enumerate(asked):
            if question.at < start + warm_s:
                continue
            request = requests.get(number)
            times = shown.get(question.chat, [])
            if request is None or request.first_chunk_at is None:
                lost += 1
                continue
            index = bisect_left(times, request.first_chunk_at)
            if index == len(times):
                lost += 1
                continue
            to_model.append(1000 * (request.arrived - question.at))
            to_chat.append(1000 * (times[index] - request.first_chunk_at))
        return {"in": to_model, "out": to_chat, "lost": lost, "asked": len(asked)}

    def _shown(self, start: float) -> dict[str, list[float]]:
        """When each chat got a message or an edit with words of an answer. A preview in Telegram
        begins without any: its id is stored first."""
        times: dict[str, list[float]] = {}
        calls: list[tuple[str, Any]] = [
            *(("chat_id", c) for c in self._telegram.calls if c.method.lower() in _TELEGRAM),
            *(("channel", c) for c in self._slack.calls if c.method in _SLACK),
        ]
        for chat, call in calls:
            if call.at >= start and str(call.params.get("text")).startswith(FIRST_WORD):
                times.setdefault(str(call.params.get(chat)), []).append(call.at)
        return times
