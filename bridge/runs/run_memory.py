"""A run's memory: what of it stands in the prompt, the tools, and the lines that the chat reads about
what was changed. Fixed when the run starts, but for what is forgotten meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from agent.context import Turn
from agent.messages import Message, TextBlock
from agent.model import ChatModel
from agent.tools import Tool
from bridge.chats.rights import is_among
from bridge.limits.keys import MEMORY, WHO_CAN_TEACH
from bridge.remembering.buttons import undo_buttons
from bridge.remembering.parts import OWN_TOOLS
from bridge.runs.display import OUR_SIGN
from bridge.runs.turn_plan import TurnPlan, TurnServices
from bridge.sharing import Audience
from bridge.speakers import plain_name
from bridge.texts import Say
from channels.base import Button
from memory.errors import StoreError
from memory.forgotten.copies import cleaned
from memory.memory_tools import MemoryOfRun, memory_tools
from memory.runs import Before, Visible
from memory.scopes import MARK
from memory.snapshots import MOST_SNAPSHOT, Shown, is_within
from memory.text.provenance import Heard, Whose, heard
from memory.text.quoting import SPEAKER
from memory.whose.authors import Member, Receipt

MOST_HEARD = 2_000  # messages of a conversation that are looked through for who has said something
SHARE_OF_WINDOW = 8  # the snapshot's characters: an eighth of the tokens of the smallest window


class RunMemory:
    """For one run. `before`: what it goes by; `new_messages`: those of the run so far."""

    def __init__(
        self,
        services: TurnServices,
        plan: TurnPlan,
        before: Before,
        question: Message,
        *,
        own_words: bool,
        new_messages: Callable[[], Sequence[Message]],
    ) -> None:
        self._services = services
        self._plan = plan
        self._before = before
        self._question = question
        self._own_words = own_words
        self._new_messages = new_messages
        self._forgotten = before.memory.forgotten
        self._shown = ""
        self._on = plan.policy[MEMORY] and not before.memory_off
        self._teaches = False  # until it has begun
        newest = plan.question.newest
        self._chat = services.memory.sharing.chat(newest.address)
        name = plain_name(newest.sender.name)
        by = Member(plan.person, name, self._may_change_all, plan.run_id)
        self._memory = MemoryOfRun(services.notebook, self._chat, by, own_words, self._heard)

    async def begin(self) -> str:
        """What stands in the prompt. What can be known only by reading is read here. A memory that
        cannot be read is no reason to give no answer."""
        plan, notebook = self._plan, self._services.notebook
        address = plan.question.newest.address
        self._teaches = await is_among(
            plan.policy[WHO_CAN_TEACH], address, plan.person, plan.channel
        )
        if plan.begun is not None:
            self.receipts.extend(await notebook.receipts(self._chat, plan.run_id))
        if not self._on:
            return ""
        try:
            self._shown = await self._snapshot()
        except OSError as error:
            await self._services.errors.report(error, f"memory of run {plan.run_id}")
        return self._shown

    async def _snapshot(self) -> str:
        """That of the last answer, as long as the context begins at the same place."""
        plan, shown = self._plan, self._before.memory.shown
        boundary = self._before.context.boundary_id
        if shown is not None and shown.boundary_id == boundary:
            return shown.text
        snapshots, room = self._services.notebook.snapshots, snapshot_room(plan.models)
        return await snapshots.made(self._chat, plan.session, boundary, room)

    async def renewed(self, visible: Visible) -> tuple[str, Callable[[Turn], Turn]] | None:
        """With what it may see now: what stands in the prompt from now on, and what takes out of
        messages what was forgotten since the run began; None where nothing is gone. What is new is for
        the next run: this one's prompt stays as it is cached."""
        fresh = visible.forgotten.since(self._forgotten)
        shown = await self._now(visible.shown)
        if shown is None and not fresh.sayings:
            return None
        self._forgotten = visible.forgotten
        self._shown = self._shown if shown is None else shown
        return self._shown, lambda turn: cleaned(turn, fresh)

    async def _now(self, shown: Shown | None) -> str | None:
        """The snapshot as it is made now, where a line of that in the prompt has gone."""
        plan, snapshots = self._plan, self._services.notebook.snapshots
        if not self._shown or (shown is not None and shown.text == self._shown):
            return None
        try:
            now = await snapshots.now(self._chat, snapshot_room(plan.models))
        except OSError as error:
            await self._services.errors.report(error, f"memory of run {plan.run_id}")
            return None
        return None if is_within(self._shown, now) else now

    @property
    def tools(self) -> Sequence[Tool]:
        """To search, read, remember and forget; of a private conversation nothing is written down."""
        if not self._on:
            return ()
        search, read, remember, forget = memory_tools(self._memory)
        if MARK in self._plan.session_key:
            return search, read
        return (search, read, remember, forget) if self._teaches else (search, read, forget)

    @property
    def receipts(self) -> list[Receipt]:
        """What the run has changed so far."""
        return self._memory.receipts

    @property
    def kept_back(self) -> bool:
        """Whether the model wanted to write down what a person had the like of forgotten."""
        return bool(self._memory.kept_back)

    async def undo_buttons(self, say: Say) -> tuple[Button, ...]:
        """For the lines about what was remembered. Without them it can be undone all the same."""
        if not self.receipts:
            return ()
        try:
            changes = await self._services.notebook.authors.undoable(self._plan.run_id)
        except StoreError as error:
            await self._services.errors.report(error, f"memory of run {self._plan.run_id}")
            return ()
        return undo_buttons(changes, say)

    async def _may_change_all(self) -> bool:
        """What others have said: in a group its admins may."""
        plan, address = self._plan, self._plan.question.newest.address
        return address.private or bool(await plan.channel.is_admin(address, plan.person))

    async def _heard(self) -> Heard:
        """What was said since /new, also what a summary stands for by now: it may have kept what
        foreign words ask for. A conversation that is too long to look through counts as one that
        holds some."""
        plan = self._plan
        before = await self._services.runs.since_new(
            plan.session, plan.person, besides=plan.run_id, most=MOST_HEARD
        )
        too_long = len(before) == MOST_HEARD
        if plan.heard:
            before.append((Message("user", (TextBlock(plan.heard),)), "foreign"))
        before.append((self._question, self._whose()))
        before.extend((message, "own") for message in self._new_messages())
        said = await asyncio.to_thread(heard, before, OWN_TOOLS)
        return replace(said, tainted=True) if too_long else said

    def _whose(self) -> Whose:
        """Whose words the question is: /retry asks that of another member again."""
        if not self._own_words:
            return "foreign"
        texts = [block.text for block in self._question.blocks if isinstance(block, TextBlock)]
        asked, asks = SPEAKER.match(texts[-1] if texts else ""), self._plan.question.speaker
        if self._plan.retry_of is None or asked is None or asks is None:
            return "own"
        return "own" if asks.endswith(f"#{asked[2]}") else "people"


def snapshot_room(models: Iterable[ChatModel]) -> int:
    """Characters of memory that a prompt may hold, whichever of the models answers."""
    return min(MOST_SNAPSHOT, *(model.context_tokens // SHARE_OF_WINDOW for model in models))


def receipt_lines(say: Say, receipts: Iterable[Receipt], where: Audience) -> list[str]:
    """One line for each change, with a sign that no model can set (`bridge.runs.display`). Without
    such a line nothing was saved."""
    return [
        f"{OUR_SIGN} {say(f'memory_{each.kind}_{where}', text=each.text, number=each.number)}"
        for each in receipts
    ]
