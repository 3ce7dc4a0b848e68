"""In a group two people say the same of themselves, notes and nights write it down, and one forgets: of
theirs nothing is left anywhere, of the other's all of it. By seeded plans."""

from __future__ import annotations

import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from agent.messages import assistant_text, user_text
from agent.provider import ModelRequest
from bridge.inbound import entry
from bridge.session import memory_scope, session_of
from channels.base import InboundMessage, Sender
from memory.inbox import Inbox
from memory.markdown.facts import FactsRefused
from memory.notebook import Notebook
from memory.scopes import ChatScope
from memory.whose.authors import Member
from tests.bridge.memory_bed import TEAM, MemoryBed, memory_bed
from tests.bridge.memory_models import faithful, notes

IDS = {"Ana": "7", "Bo": "8"}
SAYINGS = {
    "plover": "my secret word is plover",
    "gull": "I like gull soup",
    "finch": "I have a finch",
}
SCOPE = memory_scope(TEAM)
CHAT = ChatScope(SCOPE, TEAM.channel, TEAM.account, TEAM.chat)


def model(request: ModelRequest) -> str:
    return faithful(request) if "<notes>" in request.messages[-1].text else notes(request)


async def nobody_is_admin() -> bool:
    return False


class Group:
    """`said`, `gone`: who has said which word, and who has forgotten it."""

    def __init__(self, it: MemoryBed) -> None:
        self.it = it
        self.notebook = Notebook(it.database, it.folder)
        self.day = date(2026, 11, 30)
        self.said: set[tuple[str, str]] = set()
        self.gone: set[tuple[str, str]] = set()
        self.session = 0

    async def say(self, who: str, word: str) -> None:
        it, run = self.it, f"r{len(self.said)}"
        place = session_of(TEAM, IDS[who], "shared")
        self.session = await it.conversations.open(place)
        message = InboundMessage(
            TEAM, f"m:{run}", run, Sender(IDS[who], who), it.now, SAYINGS[word]
        )
        inbox = Inbox(it.database)
        id_ = await inbox.put(entry(message, place, "turn"))
        assert id_ is not None
        await inbox.close([id_], "answered")
        await it.database.write(
            lambda c: c.execute("UPDATE inbox SET run_id = ? WHERE id = ?", (run, id_))
        )
        said = user_text(f"[{who}#{IDS[who]}] {SAYINGS[word]}")
        await it.say(self.session, said, assistant_text("ok"), run=run)
        self.said.add((who, word))

    async def work(self) -> None:
        """Notes, and a night."""
        await self.it.flush(self.session)
        self.day += timedelta(days=1)
        await self.it.night(self.session, self.day, SCOPE)

    async def forget(self, who: str, word: str) -> None:
        """What of it is listed and theirs."""
        by = Member(IDS[who], who, nobody_is_admin)
        for match in await self.notebook.forgetting.matches(CHAT, word):
            try:
                await self.notebook.forgetting.forget(CHAT, by, [match.ref])
            except FactsRefused:
                continue
            self.said.remove((who, word))
            self.gone.add((who, word))
            return

    async def everything(self) -> list[str]:
        """Lines of files, of the context, of the prompt and of what is found."""
        files = [path.read_text() for path in self.it.folder.rglob("*.md")]
        context = await self.it.conversations.context(self.session)
        texts = [stored.message.text for stored in context.messages]
        texts.append(await self.notebook.snapshots.of(CHAT, self.session, 0, 20_000))
        return [line for text in (*files, *texts) for line in text.split("\n")] + await self.found()

    async def found(self) -> list[str]:
        hits = [hit for word in SAYINGS for hit in await self.notebook.search.find(CHAT, word)]
        return [line for hit in hits for line in hit.text.split("\n")]


def is_of(line: str, who: str, word: str) -> bool:
    named = (f"**{who}**", f", {who})", f"[{who}#")
    return word in line and any(name in line for name in named)


@pytest.mark.parametrize("seed", range(4))
async def test_what_one_forgets_is_nowhere_and_what_the_other_said_stays(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with memory_bed(tmp_path, model) as it:
        group = Group(it)
        pairs = [(who, word) for who in IDS for word in SAYINGS]
        for who, word in chance.sample(pairs, len(pairs)):
            await group.say(who, word)
            if chance.random() < 0.5:
                await group.work()
        for who, word in chance.sample(pairs, 3):
            await group.forget(who, word)
            if chance.random() < 0.5:
                await group.work()
        await group.work()
        everything, found = await group.everything(), await group.found()
        for who, word in group.gone:
            assert not [line for line in everything if is_of(line, who, word)], (who, word)
        for who, word in group.said:
            assert [line for line in found if is_of(line, who, word)], (who, word)
        assert group.gone
