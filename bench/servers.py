"""The platforms and the models, in a process of their own: `python -m bench.servers`.

Its first line of output says how to reach them; then each line of input is a command:
`load` (see `bench.load`), `stops` (see `bench.cancel`), `question` (one question in a Telegram chat,
until all of the answer is there), `burst` (many at once, until Telegram is told that they are stored)
and `refusals`.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

from bench.cancel import SilentPort, Stops, hanging
from bench.load import Load
from tests.servers.anthropic import AnthropicServer
from tests.servers.llm import LlmRequest, LlmServer, Reply, Text, long_text
from tests.servers.openai import OpenAIServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

Json = dict[str, Any]
IN_TELEGRAM, IN_SLACK = 40, 60  # people (see `bench.load`)
SHORT = long_text(120, 20)
PAUSE_S = 0.01  # before each chunk of a short answer
_WANTED = re.compile(r"answer (\d+) in (\d+)")
_long_text = cache(long_text)


def answer(request: LlmRequest) -> Reply:
    """As long as the question wants it and at once; else a short one at a model's pace."""
    wanted = _WANTED.search(request.last_user_text)
    if wanted is None:
        return Reply(SHORT).slowly(PAUSE_S)
    part: Text = _long_text(int(wanted[1]), int(wanted[2]))
    return Reply(part)


class Servers:
    """All of them, with people in private chats."""

    def __init__(self) -> None:
        self.telegram = TelegramServer()
        self.slack = SlackServer()
        self.silent = SilentPort(self.telegram.changed)
        self.llms: dict[str, LlmServer] = {
            "anthropic": AnthropicServer(),
            "openai": OpenAIServer(),
        }
        for llm in self.llms.values():
            llm.default = self.answer

    def answer(self, request: LlmRequest) -> Reply:
        """What the model says."""
        return hanging(request, self.silent.port) or answer(request)

    def open_chats(self) -> None:
        """A private chat for everybody."""
        telegram, slack = range(1, IN_TELEGRAM + 1), range(1, IN_SLACK + 1)
        self.tg_people = [self.telegram.user(f"T{n}", language_code="en") for n in telegram]
        self.sl_people = [self.slack.user(f"S{n}", locale="en-US") for n in slack]
        self.tg_chats = [self.telegram.private(person) for person in self.tg_people]
        self.sl_chats = [self.slack.dm(person) for person in self.sl_people]

    def config(self, kind: str) -> Json:
        """The bot's configuration with the provider `kind`."""
        llm = self.llms[kind]
        return {
            "timezone": "Europe/Berlin",
            "model": "main",
            "providers": {"p": {"kind": kind, "api_key": llm.api_key, "base_url": llm.base_url}},
            "models": {"main": {"provider": "p", "id": "test-model", "context_tokens": "100000"}},
            "channels": {
                "telegram": {
                    "token": self.telegram.token,
                    "base_url": self.telegram.base_url.removesuffix("/bot"),
                    "owners": [str(person.id) for person in self.tg_people],
                },
                "slack": {
                    "bot_token": self.slack.bot_token,
                    "app_token": self.slack.app_token,
                    "base_url": self.slack.base_url,
                    "owners": [person.id for person in self.sl_people],
                },
            },
        }

    async def obey(self, command: Json) -> Json:
        """Carry out one command."""
        match command.pop("do"):
            case "load":
                llm = self.llms[command.pop("kind")]
                load = Load(self.telegram, self.slack, llm, self.tg_chats, self.sl_chats)
                found: Json = await load.run(**command)
                return found
            case "stops":
                stops = Stops(self.telegram, self.tg_chats, self.silent)
                times: Json = await stops.run(**command)
                return times
            case "question":
                return await self.question(**command)
            case "burst":
                return await self.burst(**command)
            case "refusals":
                return {"refusals": [r for llm in self.llms.values() for r in llm.refusals]}
            case other:
                raise ValueError(f"unknown command {other!r}")

    async def question(self, chars: int, chunks: int, chat: int) -> Json:
        """Ask for an answer of that length in a chat; returns when all of it is shown there."""
        place = self.tg_chats[chat % IN_TELEGRAM]
        before = len(place.bot_messages)
        place.send(f"answer {chars} in {chunks}")
        least = chars * 0.97  # blanks at the cuts go

        def is_there() -> bool:
            shown = place.bot_messages[before:]
            return sum(len(m.text) for m in shown) >= least and not shown[0].buttons

        await self.telegram.wait_for(is_there, 60)
        return {"messages": len(place.bot_messages) - before}

    async def burst(self, count: int) -> Json:
        """What people wrote while the bot was away, an hour ago, comes in at once: messages per second
        until the last one is acknowledged. The bot does not answer such ones before no more come, so
        that taking them in is all that it does."""
        telegram, sent = self.telegram, int(time.time()) - 3600
        await telegram.wait_for_poll()
        for number in range(count):
            self.tg_chats[number % IN_TELEGRAM].send(f"How is the tide, part {number}?", date=sent)
        began = time.monotonic()
        await telegram.wait_until_confirmed(60 + count / 50)
        return {"per_second": count / (time.monotonic() - began)}


async def main() -> None:
    """Serve until standard input ends."""
    servers = Servers()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(servers.telegram)
        await stack.enter_async_context(servers.slack)
        await stack.enter_async_context(servers.silent)
        for llm in servers.llms.values():
            await stack.enter_async_context(llm)
        servers.open_chats()
        llms = servers.llms
        facts = {
            "configs": {kind: servers.config(kind) for kind in llms},
            "llms": {k: {"base_url": s.base_url, "api_key": s.api_key} for k, s in llms.items()},
        }
        print(json.dumps(facts), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await servers.obey(json.loads(line))), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
