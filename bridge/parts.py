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
from bridge.acts import Acts
from bridge.backlog import DEFAULT_TIMING, Backlog, BacklogTiming
from bridge.beside import Beside
from bridge.budget_warnings import BudgetWarnings
from bridge.chat_models import ModelChoice
from bridge.chat_rules import ChatRules
from bridge.chats import ChatKeeper, TakeUp
from bridge.command_parts import build_commands
from bridge.delivery import Deliveries
from bridge.erasing import Eraser, quiet
from bridge.holds import Holds
from bridge.intake import Intake
from bridge.lanes import Lanes
from bridge.limits.admission import Admission
from bridge.limits.keys import WHO_CAN_STOP
from bridge.notices import Notices
from bridge.outage import Outages
from bridge.overheard import Overheard
from bridge.policy_changes import PolicyChanges
from bridge.private_talks import PrivateTalks
from bridge.questions import Questions
from bridge.stopping import Stopping
from bridge.turn_plan import TurnServices
from bridge.turns import Turns
from channels.base import Address, Channel
from channels.errors import Unreachable
from memory.chats import ChatPlace


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
    turns: Turns
    holds: Holds
    lanes: Lanes
    outages: Outages


def answering(on: Ground, gone: Callable[[Address, Unreachable], Awaitable[None]]) -> Answering:
    """`gone` hears where nothing can be delivered any more."""
    services, channels = on.services, on.channels
    tokens, overheard = CancelTokenRegistry(), Overheard(on.access)
    deliveries = Deliveries(
        services.outbox,
        services.runs,
        channels,
        services.texts,
        on.notices.language,
        services.errors,
        gone,
        on.beside.start,
    )
    turns = Turns(
        services,
        on.models,
        channels,
        on.notices,
        tokens,
        deliveries,
        overheard,
        on.beside.start,
    )
    holds = Holds()
    lanes = Lanes(on.group, holds.guard(turns.next_turn))
    holds.bind(lanes.wake)
    outages = Outages(lanes.wake)
    warnings = BudgetWarnings(
        services.usage,
        services.inbox,
        services.people,
        services.policies,
        services.gate,
        on.access,
        services.texts,
        channels,
    )
    turns.bind(lanes, outages, warnings.look)
    return Answering(tokens, overheard, deliveries, turns, holds, lanes, outages)


@dataclass(frozen=True, slots=True)
class Keeping:
    """What is kept for a chat, and how it goes."""

    chats: ChatKeeper
    talks: PrivateTalks
    eraser: Eraser
    backlog: Backlog


def keeping(on: Ground, answers: Answering, take_up: TakeUp) -> Keeping:
    """`take_up` a session whose chat has another id."""
    services, holds = on.services, answers.holds

    async def forget_chat(channel: str, chat: str) -> None:
        """Its limits, and what an owner has decided about it."""
        await services.policies.files.erase(channel, chat)
        on.access.forget_chat(channel, chat)

    chats = ChatKeeper(
        services.chats,
        services.folders,
        holds,
        on.beside.start,
        take_up,
        forget_chat,
        answers.deliveries.tidy_up,
    )
    in_quiet = quiet(holds, services.chats, services.memory)
    talks = PrivateTalks(services.talks, services.folders, services.jobs, in_quiet)

    def erased(place: ChatPlace) -> None:
        """What is kept of a chat in this process goes with what is stored."""
        talks.forget(place)
        for name in services.chats.names(place):
            answers.overheard.forget_chat(place.channel, place.account, name)

    eraser = Eraser(
        services.traces,
        services.chats,
        services.folders,
        in_quiet,
        erased,
        answers.overheard.forget,
    )
    backlog = Backlog(
        services.backlog,
        services.people,
        holds,
        on.notices.tell,
        on.notices.say,
        answers.turns.dropped,
        on.beside.start,
        on.settings.timezone,
        on.settings.backlog,
    )
    return Keeping(chats, talks, eraser, backlog)


@dataclass(frozen=True, slots=True)
class Taking:
    """What is done with a message."""

    policy_changes: PolicyChanges
    door: Door
    acts: Acts
    intake: Intake


def taking(on: Ground, answers: Answering, kept: Keeping) -> Taking:
    """Commands, presses and questions, and the way in."""
    services, access, channels, rules = on.services, on.access, on.channels, on.rules
    zone, policies, beside = on.settings.timezone, on.services.policies, on.beside
    stopping = Stopping(
        access,
        answers.lanes,
        answers.tokens,
        services.inbox,
        services.chats,
        channels,
        lambda message: rules.of(message)[WHO_CAN_STOP],
        services.memory.at_work,
        zone,
    )
    policy_changes = PolicyChanges(
        policies,
        services.limits,
        services.chats,
        services.inbox,
        answers.lanes,
        answers.turns,
        on.notices,
        channels,
        services.people,
        beside.start,
    )
    policies.files.listen(policy_changes.changed)
    language = policies.layers.top.get("language")
    door = Door(
        access,
        channels,
        services.texts,
        None if language == "auto" else language,
        answers.tokens,
        services.inbox,
        answers.turns.dropped,
        beside,
    )
    commands = build_commands(
        zone,
        services,
        access,
        on.models,
        channels,
        answers.lanes,
        answers.outages,
        answers.tokens,
        kept.talks,
        kept.eraser,
        door,
        usage_names=on.settings.usage_names,
    )
    admission = Admission(services.usage, services.people, access, channels, services.gate)
    questions = Questions(
        services.inbox,
        answers.lanes,
        answers.turns,
        answers.outages,
        kept.backlog,
        on.notices,
        beside,
        admission,
        policies,
        on.settings.queue_length,
    )
    acts = Acts(
        services,
        commands,
        stopping,
        answers.turns,
        kept.backlog,
        answers.deliveries,
        on.notices,
        beside,
        lambda message: rules.place(message, kept.talks),
        answers.lanes.wake,
    )
    intake = Intake(
        access,
        policies,
        rules,
        kept.chats,
        kept.talks,
        door,
        stopping,
        commands,
        acts,
        questions,
        answers.lanes,
        answers.overheard,
        admission,
        on.notices,
        services.inbox,
        services.errors,
        beside,
    )
    return Taking(policy_changes, door, acts, intake)
