"""The bot's commands. They never wait behind a run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, tzinfo
from typing import Any

from agent.cancel import CancelTokenRegistry
from bridge.access import Access
from bridge.access.commands import AccessCommands
from bridge.access.desk import Desk
from bridge.answers import Answer, Handler, Handlers, answer_of
from bridge.chats.holds import Holds
from bridge.chats.private_talks import PrivateTalks
from bridge.chats.rights import Rights
from bridge.commands.context import ContextCommands
from bridge.commands.erase import EraseCommands
from bridge.commands.memory import TIDY, MemoryCommands
from bridge.commands.memory_presses import MemoryPresses
from bridge.commands.privacy import PrivacyCommands
from bridge.commands.table import FOR_STRANGERS, NAMES, CommandSpec, help_lines, spec_of
from bridge.commands.usage import UsageCommand
from bridge.commands.why import WhyCommand
from bridge.lanes import Lanes
from bridge.limits.chat_commands import ChatCommands
from bridge.limits.command import LimitsCommand
from bridge.limits.gate import usd
from bridge.limits.keys import MODEL
from bridge.limits.policies import zone_of
from bridge.models.chat_models import ModelChoice
from bridge.runs.outage import Outages
from bridge.runs.stopping import work_of
from bridge.runs.turn_plan import TurnServices
from bridge.session import chat_of
from bridge.texts import Say
from channels.base import InboundMessage
from memory.access.people import OWNER_PREFIX
from memory.conversations import SessionPlace

NEW = "new"  # after it, what was said before goes into the day files
ASKING = frozenset(("compact",))  # what asks a model, and costs
RESEND = "resend"  # the last answer once more, from the outbox


class Commands:
    """Everything a command can be, except stopping (`bridge.runs.stopping`)."""

    def __init__(
        self,
        timezone: tzinfo,
        services: TurnServices,
        access: Access,
        models: ModelChoice,
        lanes: Lanes,
        holds: Holds,
        outages: Outages,
        tokens: CancelTokenRegistry,
        limits: LimitsCommand,
        chat_commands: ChatCommands,
        usage: UsageCommand,
        memory: MemoryCommands,
        memory_presses: MemoryPresses,
        privacy: PrivacyCommands,
        erasing: EraseCommands,
        rights: Rights,
        talks: PrivateTalks,
        letting_in: AccessCommands,
        desk: Desk,
        owner_came: Callable[[], None],
    ) -> None:
        self._timezone = timezone
        self._services = services
        self._access = access
        self._models = models
        self._context = ContextCommands(services, models, outages)
        self._lanes = lanes
        self._holds = holds
        self._outages = outages
        self._tokens = tokens
        self._memory = memory
        self._privacy = privacy
        self._rights = rights
        self._talks = talks
        self._desk = desk
        self._owner_came = owner_came
        self._handlers: Handlers = {
            "start": self._start,
            "help": self._help,
            "ask": self._ask,
            "new": self._new,
            "private": self._private,
            "status": self._status,
            "whoami": self._whoami,
            "compact": self._compact,
            "context": self._show_context,
            "undo": self._undo,
            **limits.commands,
            **chat_commands.commands,
            **usage.commands,
            **memory.commands,
            **WhyCommand(services).commands,
            "memory": self._memory_now,
            **privacy.commands,
            **erasing.subcommands,
            **letting_in.commands,
        }
        self._presses_of_limits = frozenset(limits.presses)
        self._presses: Handlers = {
            **limits.presses,
            **chat_commands.presses,
            **erasing.presses,
            **memory_presses.presses,
            **letting_in.presses,
        }
        self._forms = limits.forms
        self._replies = limits.replies

    async def carry_out(self, message: InboundMessage, place: SessionPlace, say: Say) -> Answer:
        """Do it; what to answer with. An unknown command in a group may be meant for another bot, and
        is answered with nothing."""
        if message.press is not None:
            pressed = self._presses.get(message.press.action)
            return (
                Answer("", spent=True)
                if pressed is None
                else answer_of(await pressed(message, place, say))
            )
        if message.form is not None:
            return await self._forms[message.form.action].carry_out(message, say)
        if message.command is None:
            return await self._replies.reply(message, say)
        spec = spec_of(message.command)
        handler = None if spec is None else self._handler(spec)
        if handler is not None:
            refused = await self._refused(message, say)
            return refused or answer_of(await handler(message, place, say))
        if message.address.private or message.whispered:
            return Answer(say("unknown_command", command=_plain(message.command.name)))
        return Answer("")

    def _handler(self, spec: CommandSpec) -> Handler | None:
        """What stands after a command may have a handler of its own."""
        return self._handlers.get(spec.words) or self._handlers.get(spec.name)

    async def _refused(self, message: InboundMessage, say: Say) -> Answer | None:
        """What to answer where the table of commands does not let the sender do this here."""
        spec = None if message.command is None else spec_of(message.command)
        private = message.address.private
        who = None if spec is None else spec.private if private else spec.group
        if who == "nobody":
            return Answer(say("only_in_groups" if private else "only_in_private"))
        if who == "admins" and not await self._rights.over_all(message):
            return Answer(say("admins_only"))
        return None

    async def check(self, message: InboundMessage, say: Say) -> Mapping[str, str]:
        """What is wrong in a form that was sent, by field."""
        form = self._forms.get(message.form.action) if message.form is not None else None
        return {} if form is None else await form.check(message, say)

    async def awaits(self, message: InboundMessage) -> bool:
        """Whether a message is no question, but answers one of ours."""
        return await self._replies.awaits(message)

    async def goes_on(self, message: InboundMessage) -> bool:
        """Whether it belongs to something whose rights are checked by itself: an admin of a group may
        set its limits in a private chat, too, without being known there."""
        pressed = message.press is not None and message.press.action in self._presses_of_limits
        return pressed or await self._replies.awaits(message)

    def _is_owner(self, message: InboundMessage) -> bool:
        return self._access.is_owner(message.address.channel, message.sender.id)

    async def for_stranger(self, message: InboundMessage, say: Say) -> str | None:
        """What somebody without access is answered; None where it is not about a command of theirs."""
        code = owner_code(message)
        if code is not None:
            return await self._claim(message, code, say)
        name = message.command.name if message.command else ""
        if name in FOR_STRANGERS:
            return await self._tell_stranger(name, message, say)
        return None

    async def _tell_stranger(self, name: str, message: InboundMessage, say: Say) -> str:
        if name == "privacy":
            return await self._privacy.tell(message, say, stranger=True)
        return _ids(message, say) if name == "whoami" else _help(say)

    async def _start(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        return say("start")

    async def _claim(self, message: InboundMessage, code: str, say: Say) -> str:
        channel, person = message.address.channel, message.sender.id
        if self._access.is_owner(channel, person):
            return say("owner_already")
        if not _is_first_hand(message):
            return say("owner_passed_on")
        claimed = await self._access.claim(channel, person, code)
        if claimed:
            self._owner_came()
        return say("owner_now" if claimed else "owner_link_bad")

    async def _help(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        return _help(say)

    async def _ask(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        return say("ask_what")

    async def _new(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        if await self._is_answering(place):
            return say("new_while_running")
        if await self._talks.end(message.address):
            return say("private_over")
        session = await self._services.conversations.open(place)
        await self._services.conversations.begin_new(session)
        return say("new")

    async def _private(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        if await self._is_answering(place):
            return say("new_while_running")
        await self._talks.begin(message.address)
        days = self._services.storing.backup_days
        return say("private") + (" " + say("private_backups", days=days) if days else "")

    async def _compact(self, message: InboundMessage, place: SessionPlace, say: Say) -> str | None:
        if await self._is_answering(place):
            return say("not_while_running")
        focus = message.command.args if message.command else ""
        return await self._stoppable(
            message, place, self._context.compact(message, place, focus, say)
        )

    async def _memory_now(
        self, message: InboundMessage, place: SessionPlace, say: Say
    ) -> str | None:
        """`/memory tidy` asks a model; the others are done at once, and never by half."""
        working = self._memory.show(message, place, say)
        if message.command is None or message.command.args.split() != [TIDY]:
            return await working
        return await self._stoppable(message, place, working)

    async def _stoppable(
        self, message: InboundMessage, place: SessionPlace, working: Coroutine[Any, Any, str]
    ) -> str | None:
        """What a command answers that a stop reaches while it works; None when one did, which
        answers."""
        request = work_of(message)
        token = self._tokens.register(request, place.key, message.sender.id, message.sent_at)
        work = asyncio.create_task(working)
        token.bind(work)
        try:
            return await work
        except asyncio.CancelledError:
            if not token.cancelled:
                raise  # the process is stopping
            return None
        finally:
            self._tokens.release(request)

    async def _show_context(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        return await self._context.show(message, place, say)

    async def _undo(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        if await self._is_answering(place):
            return say("not_while_running")
        return await self._context.undo(place, say)

    async def _is_answering(self, place: SessionPlace) -> bool:
        """Whether a run is under way, one that was begun waits for its provider, or what was asked
        during an outage is still being gathered."""
        if self._lanes.busy(place.key):
            return True
        held = self._holds.is_held(chat_of(place.key))
        rows = await self._services.inbox.open_turns(place.key)
        return any(held or row.run_id is not None for row in rows)

    async def _status(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        services = self._services
        session = await services.conversations.open(place)
        size = await services.conversations.size(session)
        calls, used = await services.usage.of_session(session)
        spent = await services.gate.spent_microusd()
        since = say("never") if size.started_at is None else self._local(size.started_at)
        policy = services.policies.of(message.address, message.sender.id)
        model = self._models.named(policy[MODEL])[0]
        next_try = self._outages.next_try(place.key)
        text = say(
            "status",
            model=model.name,
            messages=size.messages,
            since=since,
            calls=calls,
            tokens=used.input_tokens
            + used.output_tokens
            + used.cache_read_tokens
            + used.cache_write_tokens,
            running=say("yes" if self._lanes.busy(place.key) else "no"),
            waiting=await services.inbox.waiting(place.key, begun=next_try is not None),
            cost=usd(spent),
            limit=usd(services.gate.limit_microusd),
        )
        if next_try is not None:
            until = f"{next_try.astimezone(zone_of(policy)):%H:%M}"
            text += "\n" + say("waits_for_provider", until=until)
        if model.price is None:
            text += "\n" + say("no_price", model=model.name)
        if self._is_owner(message):
            out = [f"`{channel}:{person}`" for channel, person in await self._desk.out_of_reach()]
            text += "\n" + say("owners_out_of_reach", owners=", ".join(out)) if out else ""
        return text

    async def _whoami(self, message: InboundMessage, place: SessionPlace, say: Say) -> str:
        return _ids(message, say)

    def _local(self, moment: str) -> str:
        return f"{datetime.fromisoformat(moment).astimezone(self._timezone):%Y-%m-%d %H:%M}"


def _help(say: Say) -> str:
    everywhere = say.capabilities.commands_in_threads
    end = say("help_replies" if everywhere else "help_threads")
    return "\n\n".join((say("help_begin"), help_lines(say), end))


def _ids(message: InboundMessage, say: Say) -> str:
    return say("whoami", person=message.sender.id, chat=message.address.chat)


def owner_code(message: InboundMessage) -> str | None:
    """A one-time code in a private chat: `/start own_…` from a link, or the bare code where there
    are no links. It is recognised in forwards and edits too, since it belongs in no history, but
    counts only in a message that its sender wrote so (`_is_first_hand`)."""
    if not message.address.private:
        return None
    if message.command is not None:
        words = message.command.args.strip() if message.command.name == "start" else ""
    else:
        words = message.text.strip().removeprefix("/start").lstrip()
    return words if words.startswith(OWNER_PREFIX) else None


def _is_first_hand(message: InboundMessage) -> bool:
    return message.own_words and not message.edited_command


def is_ours(message: InboundMessage) -> bool:
    """Whether an edited text is a command of ours; in a group it may be another bot's."""
    words = message.text.split()
    name = words[0].lstrip("/").split("@")[0].lower() if words else ""
    return name in NAMES or message.address.private or not message.text.lstrip().startswith("/")


def _plain(name: str) -> str:
    return "".join(c for c in name if c.isalnum() or c == "_")[:32]
