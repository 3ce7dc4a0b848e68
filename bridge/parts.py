"""What the bridge is made of, in the order in which one part stands on another: what everything
stands on, what answers, what is kept for a chat, and what is done with a message."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import tzinfo

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.access.door import Door
from bridge.beside import Beside
from bridge.chats.erasing import Eraser, quiet
from bridge.chats.holds import Holds
from bridge.chats.keeper import ChatKeeper, TakeUp
from bridge.chats.private_talks import PrivateTalks
from bridge.commands.parts import build_commands
from bridge.intake.acts import Acts
from bridge.intake.backlog import DEFAULT_TIMING, Backlog, BacklogTiming
from bridge.intake.chat_rules import ChatRules
from bridge.intake.questions import Questions
from bridge.intake.router import Router
from bridge.lanes import Lanes
from bridge.limits.admission import Admission
from bridge.limits.keys import WHO_CAN_STOP
from bridge.models.chat_models import ModelChoice
from bridge.operation.budget_warnings import BudgetWarnings
from bridge.operation.policy_changes import PolicyChanges
from bridge.runs.delivery import Deliveries
from bridge.runs.lost_questions import LostQuestions
from bridge.runs.lost_runs import LostRuns
from bridge.runs.notices import Notices
from bridge.runs.outage import Outages
from bridge.runs.overheard import Overheard
from bridge.runs.stopping import Stopping
from bridge.runs.turn_plan import TurnServices
from bridge.runs.turns import Turns
from channels.base import Address, Channel
from channels.errors import Unreachable
from memory.chats.reach import ChatPlace


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """What the bridge takes from the configuration beside the chats' policies. `queue_length`: messages
    that may wait in one session; `usage_names`: /usage tells admins who has used how much."""

    timezone: tzinfo
    queue_length: int
    usage_names: bool = False
    backlog: BacklogTiming = DEFAULT_TIMING


@dataclass(frozen=True, slots=True)
class Ground:
    """What all parts stand on. `beside` owns what runs outside the lanes."""

    settings: BridgeSettings
    services: TurnServices
    access: Access
    models: ModelChoice
    channels: Mapping[str, Channel]
    group: asyncio.TaskGroup
    beside: Beside
    rules: ChatRules
    notices: Notices

    @classmethod
    def of(
        cls,
        settings: BridgeSettings,
        services: TurnServices,
        access: Access,
        models: ModelChoice,
        channels: Mapping[str, Channel],
        group: asyncio.TaskGroup,
    ) -> Ground:
        """With what it brings itself."""
        rules = ChatRules(services.policies)
        notices = Notices(channels, services.texts, rules.language, rules.is_quiet, services.inbox)
        beside = Beside(group, services.errors)
        return cls(settings, services, access, models, channels, group, beside, rules, notices)


@dataclass(frozen=True, slots=True)
class Answering:
    """From a session's next questions to a delivered answer."""

    tokens: CancelTokenRegistry
    overheard: Overheard
    deliveries: Deliveries
    lost_runs: LostRuns
    turns: Turns
    holds: Holds
    lanes: Lanes
    outages: Outages


def answering(on: Ground, gone: Callable[[Address, Unreachable], Awaitable[None]]) -> Answering:
    """`gone` hears where nothing can be delivered any more."""
    services, channels = on.services, on.channels
    tokens, overheard = CancelTokenRegistry(), Overheard(on.access)
    deliveries = Deliveries(
        outbox=services.outbox,
        runs=services.runs,
        channels=channels,
        texts=services.texts,
        language=on.notices.language,
        errors=services.errors,
        gone=gone,
        beside=on.beside.start,
    )
    lost_runs = LostRuns(services, deliveries, on.notices)
    turns = Turns(
        services=services,
        models=on.models,
        channels=channels,
        notices=on.notices,
        tokens=tokens,
        deliveries=deliveries,
        lost_runs=lost_runs,
        overheard=overheard,
        beside=on.beside.start,
    )
    holds = Holds()
    lanes = Lanes(on.group, holds.guard(turns.next_turn))
    holds.bind(lanes.wake)
    outages = Outages(lanes.wake)
    warnings = BudgetWarnings(
        usage=services.usage,
        inbox=services.inbox,
        people=services.people,
        policies=services.policies,
        gate=services.gate,
        access=on.access,
        texts=services.texts,
        channels=channels,
    )
    turns.bind(lanes, outages, warnings.look)
    return Answering(tokens, overheard, deliveries, lost_runs, turns, holds, lanes, outages)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is kept for a chat, and how it goes."""

    chats: ChatKeeper
    talks: PrivateTalks
    eraser: Eraser
    backlog: Backlog
    lost_questions: LostQuestions


def keeping(on: Ground, answers: Answering, take_up: TakeUp) -> Keeping:
    """`take_up` a session whose chat has another id."""
    services, holds = on.services, answers.holds

    async def forget_chat(channel: str, chat: str) -> None:
        """Its limits, and what an owner has decided about it."""
        await services.policies.files.erase(channel, chat)
        on.access.forget_chat(channel, chat)

    chats = ChatKeeper(
        chats=services.chats,
        folders=services.folders,
        holds=holds,
        beside=on.beside.start,
        take_up=take_up,
        erase_limits=forget_chat,
        tidy_up=answers.deliveries.tidy_up,
    )
    in_quiet = quiet(holds, services.chats, services.memory)
    talks = PrivateTalks(services.talks, services.folders, services.jobs, in_quiet)

    def erased(place: ChatPlace) -> None:
        """What is kept of a chat in this process goes with what is stored."""
        talks.forget(place)
        for name in services.chats.names(place):
            answers.overheard.forget_chat(place.channel, place.account, name)

    eraser = Eraser(
        traces=services.traces,
        chats=services.chats,
        folders=services.folders,
        quiet=in_quiet,
        erased=erased,
        forget=answers.overheard.forget,
    )
    backlog = Backlog(
        store=services.backlog,
        people=services.people,
        holds=holds,
        tell=on.notices.tell,
        announce=answers.deliveries.announce,
        say=on.notices.say,
        is_quiet=on.notices.quiet,
        dropped=answers.turns.dropped,
        beside=on.beside.start,
        timezone=on.settings.timezone,
        timing=on.settings.backlog,
    )
    lost_questions = LostQuestions(
        people=services.people,
        outbox=services.outbox,
        deliveries=answers.deliveries,
        notices=on.notices,
        place_of=lambda message: on.rules.place(message, talks),
        is_on=lambda address: address.channel in on.channels,
    )
    return Keeping(chats, talks, eraser, backlog, lost_questions)


@dataclass(frozen=True, slots=True)
class Taking:
    """What is done with a message."""

    policy_changes: PolicyChanges
    door: Door
    acts: Acts
    router: Router


def taking(on: Ground, answers: Answering, kept: Keeping) -> Taking:
    """Commands, presses and questions, and the way in."""
    policy_changes, door = _policy_changes(on, answers), _door(on, answers)
    services, stopping = on.services, _stopping(on, answers)
    admission = Admission(services.usage, services.people, on.access, on.channels, services.gate)
    questions = _questions(on, answers, kept, admission)
    commands = build_commands(
        timezone=on.settings.timezone,
        services=services,
        access=on.access,
        models=on.models,
        channels=on.channels,
        lanes=answers.lanes,
        outages=answers.outages,
        tokens=answers.tokens,
        talks=kept.talks,
        eraser=kept.eraser,
        holds=answers.holds,
        door=door,
        usage_names=on.settings.usage_names,
    )
    acts = Acts(
        services=services,
        commands=commands,
        stopping=stopping,
        turns=answers.turns,
        backlog=kept.backlog,
        deliveries=answers.deliveries,
        lost_runs=answers.lost_runs,
        notices=on.notices,
        beside=on.beside,
        place_of=lambda message: on.rules.place(message, kept.talks),
        wake=answers.lanes.wake,
    )
    router = Router(
        access=on.access,
        policies=services.policies,
        rules=on.rules,
        chats=kept.chats,
        talks=kept.talks,
        door=door,
        stopping=stopping,
        commands=commands,
        acts=acts,
        questions=questions,
        lanes=answers.lanes,
        overheard=answers.overheard,
        admission=admission,
        notices=on.notices,
        inbox=services.inbox,
        errors=services.errors,
        beside=on.beside,
    )
    return Taking(policy_changes, door, acts, router)


def _policy_changes(on: Ground, answers: Answering) -> PolicyChanges:
    made = PolicyChanges(
        policies=on.services.policies,
        store=on.services.limits,
        chats=on.services.chats,
        inbox=on.services.inbox,
        lanes=answers.lanes,
        turns=answers.turns,
        notices=on.notices,
        channels=on.channels,
        people=on.services.people,
        beside=on.beside.start,
    )
    on.services.policies.files.listen(made.changed)
    return made


def _door(on: Ground, answers: Answering) -> Door:
    language = on.services.policies.layers.top.get("language")
    return Door(
        access=on.access,
        channels=on.channels,
        texts=on.services.texts,
        language=None if language == "auto" else language,
        tokens=answers.tokens,
        inbox=on.services.inbox,
        dropped=answers.turns.dropped,
        beside=on.beside,
    )


def _stopping(on: Ground, answers: Answering) -> Stopping:
    return Stopping(
        access=on.access,
        lanes=answers.lanes,
        tokens=answers.tokens,
        inbox=on.services.inbox,
        chats=on.services.chats,
        channels=on.channels,
        who_can_stop=lambda message: on.rules.of(message)[WHO_CAN_STOP],
        is_tidying=on.services.memory.at_work,
        timezone=on.settings.timezone,
    )


def _questions(on: Ground, answers: Answering, kept: Keeping, admission: Admission) -> Questions:
    return Questions(
        inbox=on.services.inbox,
        lanes=answers.lanes,
        turns=answers.turns,
        outages=answers.outages,
        backlog=kept.backlog,
        notices=on.notices,
        beside=on.beside,
        admission=admission,
        policies=on.services.policies,
        queue_length=on.settings.queue_length,
    )
