"""People who stop an answer that hangs, and how long it takes until the chat says so.

The time counts from the moment at which the local Bot API hands the update with /cancel to the bot's
waiting `getUpdates`, to the moment at which the edit that ends the preview with "Stopped." has come in
there: the bot's HTTP client, parsing, the cancel itself, what is stored, the edit. It leaves out what
nobody's program can change and what others are measured for: the way through the internet, updates
that came before (each stop waits until the bot polls again), and Telegram's limit of an edit a second
in one chat (a chat stops again only when its limit has room for the preview and for the last edit).

Several answers hang at a time, each in a chat of its own, and are stopped one by one, in any order.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

from tests.servers.llm import LlmRequest, Reply, tool
from tests.servers.telegram import TelegramServer

_HANG = re.compile(r"hang in a (stream|tool), chat (-?\d+)")
_LIMIT_S = 3.5  # until a chat's limit has forgotten what it got
_PAUSE_S = 0.03  # from one stop to the next; the bot as a whole may send 30 messages a second
_STOPPED = "Stopped."


def hanging(request: LlmRequest, port: int) -> Reply | None:
    """The model's answer to somebody who wants it to hang: it falls silent in mid-sentence, or calls
    a tool that waits for an answer from `port`."""
    wanted = _HANG.search(request.last_user_text)
    if wanted is None:
        return None
    if wanted[1] == "stream":
        return Reply("Let me think about that for a while.").stall_after(1)
    return Reply("Let me ask.", tool("ask_port", {"port": port, "chat": wanted[2]}))


@dataclass
class SilentPort:
    """Takes what the hanging tool says, which is the id of its chat, and never answers. `changed` is
    called when a chat comes or goes."""

    changed: Callable[[], None]
    chats: set[str] = field(default_factory=set[str])
    port: int = 0
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._listen, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._server is not None:
            self._server.close()

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        chat = (await reader.readline()).decode().strip()
        self.chats.add(chat)
        self.changed()
        try:
            await reader.read()  # until the tool is ended
        finally:
            self.chats.discard(chat)
            self.changed()
            writer.close()


class Stops:
    """Stops on one server. `run` may be called again."""

    def __init__(self, telegram: TelegramServer, chats: list[Any], port: SilentPort) -> None:
        self._telegram = telegram
        self._chats = chats
        self._port = port

    async def run(self, where: str, count: int, at_a_time: int, seed: int) -> Any:
        """Latencies in ms of `count` stops, `where` the answers hang: in a `stream` or in a `tool`.
        `at_a_time` of them hang together."""
        chance = random.Random(seed)
        free_at = dict.fromkeys(range(len(self._chats)), 0.0)
        latencies: list[float] = []
        while len(latencies) < count:
            numbers = sorted(free_at, key=free_at.__getitem__)[:at_a_time]
            await asyncio.sleep(max(0.0, max(free_at[n] for n in numbers) - time.monotonic()))
            for number in numbers:
                self._chats[number].send(f"hang in a {where}, chat {self._chats[number].id}")
            for number in numbers:
                await self._telegram.wait_for(lambda n=number: self._hangs(self._chats[n], where))
            chance.shuffle(numbers)
            for number in numbers:
                await asyncio.sleep(_PAUSE_S * (1 + chance.random()))
                latencies.append(1000 * await self._stop(self._chats[number]))
                free_at[number] = time.monotonic() + _LIMIT_S
        return {"latencies": latencies[:count]}

    def _hangs(self, chat: Any, where: str) -> bool:
        """Whether its answer is begun, shown and hanging."""
        begun = chat.last is not None and "Stop" in chat.last.buttons
        return begun and (where == "stream" or str(chat.id) in self._port.chats)

    async def _stop(self, chat: Any) -> float:
        """Seconds from the update to the edit."""
        await self._telegram.wait_for_poll()
        preview, edits = chat.last, len(self._telegram.calls_to("editMessageText", chat))
        since = time.monotonic()
        chat.send("/cancel")  # handed out at once: a poll waits for it
        await self._telegram.wait_for(lambda: _STOPPED in preview.text)
        ended = self._telegram.calls_to("editMessageText", chat)[edits:]
        return min(call.at for call in ended if _STOPPED in str(call.params["text"])) - since
