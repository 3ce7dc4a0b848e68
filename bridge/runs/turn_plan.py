"""What a turn is given: the stores and settings that all turns share, and what is fixed for one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import tzinfo

from agent.breaker import RunLimits
from agent.model import ChatModel
from agent.tools import Tool
from bridge.configuration.storing import Storing
from bridge.errors import ErrorReporter
from bridge.limits.gate import MonthlyGate
from bridge.limits.policies import ChatPolicies
from bridge.limits.policy import Policy
from bridge.log import Redactor
from bridge.models.ratios import Ratios
from bridge.remembering.parts import MemoryParts
from bridge.runs.compaction import CompactionServices, Subject
from bridge.runs.pictures import Pictures
from bridge.runs.question import Question
from bridge.runs.slots import Slots
from bridge.texts import Texts
from channels.base import Channel
from memory.access.people import People
from memory.backlog import BacklogStore
from memory.chats.reach import Chats
from memory.chats.talks import Talks
from memory.conversations import Conversations
from memory.costs.chat_usage import ChatUsage
from memory.dialogues import Dialogues
from memory.inbox import Inbox
from memory.jobs import Jobs
from memory.markdown.folders import ChatFolders
from memory.notebook import Notebook
from memory.outbox import Outbox
from memory.policies import PolicyStore
from memory.refused_images import RefusedImages
from memory.removal.person_traces import PersonTraces
from memory.runs import BegunRun, Runs
from memory.transcripts import Transcripts
from memory.usage import UsageStore

MOST_TAKEOVERS = 2  # of a run whose process died; then its person is told


@dataclass(frozen=True, slots=True)
class TurnSettings:
    """What the configuration says of every turn. `budget_tokens` None: the model's whole window."""

    instructions: str
    limits: RunLimits
    max_turns: int
    budget_tokens: int | None


@dataclass(frozen=True, slots=True)
class TurnServices:
    """What every turn uses; built once by the composition root."""

    conversations: Conversations
    inbox: Inbox
    runs: Runs
    outbox: Outbox
    usage: UsageStore
    people: People
    chats: Chats
    backlog: BacklogStore
    folders: ChatFolders
    traces: PersonTraces
    talks: Talks
    jobs: Jobs
    memory: MemoryParts
    transcripts: Transcripts
    ratios: Ratios
    refused_images: RefusedImages
    errors: ErrorReporter
    texts: Texts
    gate: MonthlyGate
    settings: TurnSettings
    policies: ChatPolicies
    notebook: Notebook
    limits: PolicyStore
    chat_usage: ChatUsage
    dialogues: Dialogues
    pictures: Pictures = field(default_factory=Pictures)
    slots: Slots = field(default_factory=Slots)
    redactor: Redactor = field(default_factory=Redactor)
    storing: Storing = field(default_factory=Storing)
    more_tools: tuple[Tool, ...] = ()

    @property
    def acting(self) -> frozenset[str]:
        """Tools that change something outside of the memory."""
        specs = (tool.spec for tool in self.more_tools)
        return frozenset(spec.name for spec in specs if spec.side_effects)

    def compaction(self, reader: ChatModel) -> CompactionServices:
        """Those that a compaction of a context writes to that `reader` reads."""
        calls = self.memory.summaries(reader)
        return CompactionServices(self.conversations, self.memory.flushing, self.transcripts, calls)


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """What is fixed when a turn starts: target, models, language, scope, and the `policy` that holds
    for its person. Nothing is looked up later.

    `inbox_ids` are the rows that this turn answers; `session` is the session's row id; `begun`: the run
    was begun before, and is taken up. `retry_of`: the run whose question is answered again, in place
    of its answer. `heard`: what was said in the chat before, and not to the bot. `quiet`: the answer
    makes no sound.
    """

    run_id: str
    session: int
    session_key: str
    person: str
    inbox_ids: tuple[int, ...]
    begun: BegunRun | None
    question: Question
    channel: Channel
    models: tuple[ChatModel, ...]
    language: str
    timezone: tzinfo
    memory_scope: str
    policy: Policy
    retry_of: str | None = None
    heard: str = ""
    quiet: bool = False

    @property
    def given_up(self) -> bool:
        """Whether its process has died so often that it is not taken up once more."""
        begun = self.begun
        return begun is not None and not begun.withdrawn and begun.takeovers >= MOST_TAKEOVERS

    def subject(self, read_at: str) -> Subject:
        """Whose context the turn works on, as it was at `read_at` (ISO, UTC)."""
        return Subject(
            self.session,
            self.session_key,
            self.run_id,
            self.memory_scope,
            self.timezone,
            read_at,
        )
