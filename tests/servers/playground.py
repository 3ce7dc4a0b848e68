"""`make playground`: every local server, the bot on them, and a terminal to be a user in.

Type `t TEXT` to write as Ana in Telegram, `s TEXT` in Slack, `g TEXT` in the Telegram group, `stop` to
press the newest Stop button, Ctrl-D to leave. What the bot shows is printed as it changes. The model
is the embedded one where it is installed, else an endpoint that repeats what it is asked.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge.app import Stopping, serve
from bridge.local_model import available
from bridge.log import Redactor, setup
from bridge.settings import Channels, Config
from tests.e2e.bed import config, slack_settings, telegram_settings
from tests.servers.anthropic import AnthropicServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

GROUP = -100500


class Playground:
    """The people, their chats, and what they have been shown so far."""

    def __init__(self, telegram: TelegramServer, slack: SlackServer) -> None:
        self.telegram, self.slack = telegram, slack
        self.ana = telegram.user("Ana")
        self.private = telegram.private(self.ana)
        self.group = telegram.group("Team", members=[self.ana], id=GROUP)
        self.colleague = slack.user("Ana")
        self.dm = slack.dm(self.colleague)
        self._shown: dict[tuple[str, object], str] = {}

    def act(self, line: str) -> None:
        """Do what a typed line says."""
        where, _, text = line.strip().partition(" ")
        if where == "stop":
            self._stop()
        elif where in ("t", "s", "g") and text:
            chat = {"t": self.private, "s": self.dm, "g": self.group}[where]
            sender = self.colleague if where == "s" else self.ana
            chat.send(text, sender=sender)
        elif line.strip():
            print("t TEXT (Telegram), g TEXT (group), s TEXT (Slack), stop, Ctrl-D")

    def _stop(self) -> None:
        for chat in (self.private, self.group):
            for message in reversed(chat.bot_messages):
                if message.buttons:
                    chat.press(message, "Stop", sender=self.ana)
                    return
        for message in reversed(self.dm.from_bot):
            if message.buttons:
                self.dm.press(message, "Stop", self.colleague)
                return
        print("(no Stop button to press)")

    def changes(self) -> Iterator[str]:
        """Lines for what the bot shows now and has not shown like that before."""
        for key, text in self.visible():
            if self._shown.get(key) != text:
                self._shown[key] = text
                yield f"  {key[0]}| {text}"

    def visible(self) -> Iterator[tuple[tuple[str, object], str]]:
        for name, chat in (("telegram", self.private), ("group", self.group)):
            for message in chat.bot_messages:
                yield (name, message.id), _with_buttons(message.text, message.buttons)
        for message in self.dm.from_bot:
            yield ("slack", message.ts), _with_buttons(message.shown, message.buttons)


def _with_buttons(text: str, buttons: Any) -> str:
    return f"{text}   [Stop]" if buttons else text


def _config(play: Playground, llm: AnthropicServer) -> Config:
    channels: dict[str, Any] = {
        "telegram": telegram_settings(
            play.telegram, owners=[str(play.ana.id)], allowed=[str(GROUP)]
        ),
        "slack": slack_settings(play.slack, owners=[play.colleague.id]),
    }
    if available():
        return Config(timezone="UTC", channels=Channels(**channels))
    return config(llm, **channels)


async def _watch(play: Playground) -> None:
    while True:
        for line in play.changes():
            print(line, flush=True)
        await asyncio.sleep(0.2)  # for a person's eyes


async def _type(play: Playground) -> None:
    print(__doc__.split("\n\n")[1], flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        play.act(line)


async def _bot(play: Playground, llm: AnthropicServer, stopping: Stopping) -> None:
    made = _config(play, llm)
    redactor = Redactor(made.secrets())
    setup("WARNING", as_json=False, redactor=redactor)
    with tempfile.TemporaryDirectory() as folder:
        await serve(made, Path(folder), redactor, stopping, console=False)


async def main() -> None:
    """Until the input ends."""
    async with TelegramServer() as telegram, SlackServer() as slack, AnthropicServer() as llm:
        play = Playground(telegram, slack)
        stopping = Stopping()
        bot = asyncio.create_task(_bot(play, llm, stopping))
        watching = asyncio.create_task(_watch(play))
        try:
            await _type(play)
            await _settle(play)
        finally:
            watching.cancel()
            stopping.asked.set()
            await bot
            for line in play.changes():
                print(line, flush=True)


async def _settle(play: Playground) -> None:
    """When the input is a pipe: give what was just asked up to 15 seconds to be answered."""
    for _ in range(0 if sys.stdin.isatty() else 75):
        await asyncio.sleep(0.2)
        shown = [text for _, text in play.visible()]
        if shown and not any("[Stop]" in text for text in shown):
            return


if __name__ == "__main__":
    asyncio.run(main())
