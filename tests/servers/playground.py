"""`make playground`: every local server, the bot on them, and a terminal to be a user in.

Type `t TEXT` to write as Ana in Telegram, `s TEXT` in Slack, `g TEXT` in the Telegram group, `stop` to
press the newest Stop button, `press LABEL` for another, Ctrl-D to leave. What the bot shows is printed
as it changes (of a long text that grows only the end), buttons in brackets. The model is the embedded
one where it is installed, else an endpoint that repeats what it is asked.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bridge.app import serve
from bridge.configuration.settings import Channels, Config
from bridge.log import Redactor, setup
from bridge.models.local_model import available
from bridge.operation.signals import Signals
from tests.e2e.bed import config, slack_settings, telegram_settings
from tests.servers.anthropic import AnthropicServer
from tests.servers.slack import SlackServer
from tests.servers.telegram import TelegramServer

GROUP = -100500
SHORT = 200  # characters that are printed again at each change
FOUND_AGAIN = 30  # characters of a known text before what is new in it


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
        if where == "stop" or (where == "press" and text):
            self._press(text or "Stop")
        elif where in ("t", "s", "g") and text:
            chat = {"t": self.private, "s": self.dm, "g": self.group}[where]
            sender = self.colleague if where == "s" else self.ana
            chat.send(text, sender=sender)
        elif line.strip():
            print("t TEXT (Telegram), g TEXT (group), s TEXT (Slack), stop, press LABEL, Ctrl-D")

    def _press(self, label: str) -> None:
        """The newest button with this label, wherever it is."""
        found = sorted(self._buttons(label), key=lambda one: one[0])
        if found:
            _, press = found[-1]
            press()
        else:
            print(f"(no button {label} to press)")

    def _buttons(self, label: str) -> Iterator[tuple[float, Callable[[], object]]]:
        """When its message was sent, in Unix seconds, and how it is pressed."""
        for chat in (self.private, self.group):
            for message in chat.bot_messages:
                if label in message.buttons:
                    press = partial(chat.press, message, label, user=self.ana)
                    yield float(message.data["date"]), press
        for shown in self.dm.from_bot:
            if any(button.text == label for button in shown.buttons):
                yield float(shown.ts), partial(self.dm.press, shown, label, self.colleague)

    def changes(self) -> Iterator[str]:
        """Lines for what the bot shows now and has not shown like that before."""
        for key, text in self.visible():
            before = self._shown.get(key, "")
            if before != text:
                self._shown[key] = text
                yield f"  {key[0]}| {_news(before, text)}"

    def visible(self) -> Iterator[tuple[tuple[str, object], str]]:
        for name, chat in (("telegram", self.private), ("group", self.group)):
            for message in chat.bot_messages:
                brackets = [f"[{label}]" for label in message.buttons]
                yield (name, message.id), "   ".join([message.text, *brackets])
        for shown in self.dm.from_bot:
            yield ("slack", shown.ts), shown.shown  # which has the buttons in it


def _news(before: str, now: str) -> str:
    """The whole text; where a long beginning of it was printed before, what comes after that, with a
    few words to find the place."""
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, now, strict=False))
    known = sum(1 for _ in same)
    return now if known < SHORT else f"... {now[known - FOUND_AGAIN :]}"


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


async def _bot(play: Playground, llm: AnthropicServer, stopping: Signals) -> None:
    made = _config(play, llm)
    redactor = Redactor(made.secrets())
    setup("WARNING", as_json=False, redactor=redactor)
    with tempfile.TemporaryDirectory() as folder:
        await serve(made, Path(folder), redactor, stopping, console=False)


async def main() -> None:
    """Until the input ends."""
    async with TelegramServer() as telegram, SlackServer() as slack, AnthropicServer() as llm:
        play = Playground(telegram, slack)
        stopping = Signals()
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
