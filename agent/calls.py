"""One model call that gets through, or the error that says why none did.

Around the provider's stream lie, from the inside out: booking, retries with waits, what each kind of
refusal wants (less input, less output, smaller images or none), and the models to fall back on. Every
part can be cancelled at any await.
"""

from __future__ import annotations

import asyncio
import logging
import random
import unicodedata
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from agent.errors import ProviderDown, ProviderError, Refusal, RefusalKind
from agent.events import Emit, Retrying, TextShown
from agent.images import Shrink, Spared
from agent.mending import Mending
from agent.messages import ImageBlock, Message
from agent.model import ChatModel
from agent.provider import (
    Completed,
    ModelRequest,
    TextDelta,
    ThinkingDelta,
    Usage,
    UsageReport,
)
from agent.retry import wait_s
from agent.tools import ToolSpec
from agent.working import Renewed, WorkingCopy

log = logging.getLogger(__name__)

K = RefusalKind
CallOutcome = Literal["completed", "cancelled", "failed"]

NEARLY_FULL = 0.95  # of the window: an answer without output there is an overflow (field case 37)
# Failures after which another model may still answer, at last also what one refuses of the request
# itself. What is said is not among them: who declines it is not passed by.
FALL_BACK_ON = frozenset(K) - {K.CONTENT_FILTER}


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call as it is booked. `model` is the configuration's name of it, `outcome` how it
    ended, `estimated_tokens` our estimate of the input."""

    number: int
    model: ChatModel
    usage: Usage
    outcome: CallOutcome
    estimated_tokens: int

    @property
    def cost_microusd(self) -> int | None:
        """What it cost, or None without a price."""
        return self.model.cost_microusd(self.usage)


class Health(Protocol):
    """What is known of the providers, shared by all runs."""

    def admit(self, provider: str) -> None:
        """Raises `ProviderDown` while the provider fails for everybody."""
        ...

    def note(self, provider: str, refusal: Refusal | None) -> None:
        """How a call went; None: well."""
        ...


async def leave_as_it_is(image: ImageBlock) -> None:
    """Where images cannot be made smaller, what is refused is left out at once."""


async def note_nothing(model: str, spared: Sequence[Spared]) -> None:
    """Where a later run finds out anew."""


async def reserve_nothing(number: int, model: ChatModel, tokens: int) -> None:
    """Where nothing is counted against a limit, and nothing is ever taken back."""


async def as_it_was() -> None:
    """Where nothing that a run has been shown is ever taken back."""


@dataclass(frozen=True, slots=True)
class CallPorts:
    """What calls ask of their surroundings. `book` gets each call once, except cancelled ones, which
    are only in `ModelCalls.made`. `reserve` is asked right before each call, with its number, its
    model and the tokens that it will read; it may raise `LimitReached`, and then the call is not made;
    what it tells may not be sent any more (None: nothing has changed). `renew` tells the same before
    something else may be sent: what leaves a context is summed up by a model. `sleep` waits some
    seconds. `shrink` makes an image smaller, `spare` notes those that a model, by the configuration's
    name, did not get as they are."""

    health: Health
    book: Callable[[ModelCall], Awaitable[None]]
    emit: Emit
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    shrink: Shrink = leave_as_it_is
    spare: Callable[[str, Sequence[Spared]], Awaitable[None]] = note_nothing
    reserve: Callable[[int, ChatModel, int], Awaitable[Renewed | None]] = reserve_nothing
    renew: Callable[[], Awaitable[Renewed | None]] = as_it_was


@dataclass(slots=True)
class _Call:
    """A model call under way: what came in so far."""

    number: int
    model: ChatModel
    request: ModelRequest
    estimated: int
    text: list[str] = field(default_factory=list[str])
    thinking: list[str] = field(default_factory=list[str])
    usage: Usage | None = None


class ModelCalls:
    """The model calls of one run."""

    def __init__(
        self,
        models: Sequence[ChatModel],
        system: str,
        tools: tuple[ToolSpec, ...],
        working: WorkingCopy,
        ports: CallPorts,
        *,
        made_before: int = 0,
    ) -> None:
        """`models`: the first is asked, the others are fallbacks. `made_before`: calls that an
        earlier process has booked for this run."""
        self._models = list(models)
        self._system = system
        self._tools = tools
        self._working = working
        self._ports = ports
        self._made_before = made_before
        self._call: _Call | None = None
        self._mending = Mending(self.model, working, self.fixed_tokens, ports.shrink)
        self.made: list[ModelCall] = []

    @property
    def model(self) -> ChatModel:
        """The model that is asked."""
        return self._models[0]

    @property
    def partial_text(self) -> str:
        """Text of the call that did not complete, as far as it was shown."""
        return "".join(self._call.text).strip() if self._call is not None else ""

    @property
    def output_tokens(self) -> int:
        """Tokens that an answer may have."""
        return self._mending.output_tokens

    def fixed_tokens(self) -> int:
        """Estimated tokens of the system prompt and the tools."""
        return self.model.sizes.fixed(self._system, self._offered())

    async def ask(self, *, tools: bool = True, advice: str | None = None) -> Completed:
        """The model's answer. `tools` false: it may not call any. `advice`: a sentence of ours for
        this call only.

        Raises `ProviderError`, and `ProviderDown` when no model's provider can be asked now.
        """
        retries = 0
        while True:
            try:
                self._ports.health.admit(self.model.provider.name)
                completed = await self._make(await self._admitted(tools=tools, advice=advice))
            except ProviderDown:
                if not self._fall_back():
                    raise
                continue
            except ProviderError as error:
                gentle = self._another_may_take_it(error.refusal.kind)
                self._take_back(await self._ports.renew())
                if await self._mending.mend(error.refusal, gentle=gentle):
                    log.info("the request is changed and made again")
                    if self.partial_text:  # it was refused in mid-answer
                        self._ports.emit(Retrying(0, error.refusal.kind))
                    continue
                if await self._wait(error.refusal, retries):
                    retries += 1
                    continue
                if error.refusal.kind in FALL_BACK_ON and self._fall_back():
                    retries = 0
                    continue
                self._ports.health.admit(self.model.provider.name)  # the reason of all, if it is
                raise
            self._call = None
            return completed

    def forget_partial(self) -> None:
        """The call's text has become part of a message."""
        self._call = None

    # Another try ----------------------------------------------------------------------------------

    async def _wait(self, refusal: Refusal, retries: int) -> bool:
        """Wait for the next try; false when there is none. Raises `ProviderDown` where nobody else can
        be asked meanwhile."""
        wait = wait_s(refusal, retries, random.random)
        if wait is None:
            return False
        try:
            self._ports.health.admit(self.model.provider.name)
        except ProviderDown:
            if len(self._models) > 1:
                return False
            raise
        self._ports.emit(Retrying(wait, refusal.kind))
        await self._ports.sleep(wait)
        return True

    def _another_may_take_it(self, kind: RefusalKind) -> bool:
        """Whether a model to fall back on may take what this one refuses, so that the conversation need
        not be given up for it: the form is another provider's affair, the length that of a window."""
        if kind is K.FORMAT:
            names = {model.provider.name for model in self._models}
            return len(names) > 1
        window = self.model.context_tokens
        return any(model.context_tokens > window for model in self._models[1:])

    def _fall_back(self) -> bool:
        if len(self._models) < 2:
            return False
        self._ports.emit(Retrying(0, None))
        del self._models[0]
        self._mending.ask_instead(self.model)
        return True

    # One call -------------------------------------------------------------------------------------

    async def _admitted(self, *, tools: bool, advice: str | None) -> _Call:
        """A call that may be made now, with nothing in it that may not be sent any more."""
        call = await self._fitting(tools=tools, advice=advice)
        renewed = await self._ports.reserve(call.number, call.model, call.estimated)
        if renewed is None:
            return call
        self._take_back(renewed)
        return self._begin(tools=tools, advice=advice)

    def _take_back(self, renewed: Renewed | None) -> None:
        if renewed is not None:
            self._system = renewed.system
            self._working.clean(renewed.clean)

    async def _fitting(self, *, tools: bool, advice: str | None) -> _Call:
        """A call that the model's window holds, as far as we can tell and mend it."""
        while True:
            call = self._begin(tools=tools, advice=advice)
            if not self._mending.is_too_long(call.estimated):
                return call
            self._take_back(await self._ports.renew())
            gentle = self._another_may_take_it(K.OVERFLOW)
            shrunk = await self._mending.shrink_before_sending(call.estimated, gentle=gentle)
            if not shrunk and not gentle:
                return self._begin(tools=tools, advice=advice)
            if not shrunk:
                self._fall_back()

    async def _make(self, call: _Call) -> Completed:
        self._call = call
        provider = self.model.provider.name
        try:
            completed = await self._stream(call)
            raise_if_silently_full(call.model, completed)
        except ProviderError as error:
            kind, status = error.refusal.kind, error.refusal.status
            log.info(
                "call %d of %s, %d tokens: %s (HTTP %s)",
                *(call.number, call.model.name, call.estimated, kind, status or "-"),
            )
            self._ports.health.note(provider, error.refusal)
            await self._ports.book(self._note(call, "failed"))
            raise
        except asyncio.CancelledError:
            self._note(call, "cancelled")  # booked when the run is settled
            raise
        self._ports.health.note(provider, None)
        made = self._note(call, "completed")  # booked when the run is settled, if a stop comes now
        await self._working.answered()
        await self._ports.book(made)
        if spared := self._mending.spared():
            await self._ports.spare(call.model.name, spared)
        return completed

    def _begin(self, *, tools: bool, advice: str | None) -> _Call:
        model = self.model
        request = ModelRequest(
            model=model.id,
            system=self._system,
            messages=self._working.request(advice),
            tools=self._offered(),
            max_output_tokens=self.output_tokens,
            traits=model.traits,
            may_call=tools,
        )
        number = self._made_before + len(self.made) + 1
        return _Call(number, model, request, model.sizes.request(request))

    async def _stream(self, call: _Call) -> Completed:
        async with call.model.provider.stream(call.request) as events:
            async for event in events:
                match event:
                    case TextDelta(text):
                        call.text.append(text)
                        self._ports.emit(TextShown(text))
                    case ThinkingDelta(text):
                        call.thinking.append(text)
                    case UsageReport(usage):
                        call.usage = usage
                    case Completed():
                        call.usage = event.usage or call.usage
                        return event
        raise RuntimeError(f"provider {call.model.provider.name} broke its contract: no Completed")

    def _offered(self) -> tuple[ToolSpec, ...]:
        return self._tools if self.model.traits.tools else ()

    def _note(self, call: _Call, outcome: CallOutcome) -> ModelCall:
        usage = _usage(call, complete=outcome == "completed")
        made = ModelCall(call.number, call.model, usage, outcome, call.estimated)
        self.made.append(made)
        return made


def text_of(message: Message) -> str:
    """What the message says in words, without surrounding space; empty when nobody could see any
    of it (format characters alone)."""
    text = message.text.strip()
    return text if any(map(_can_be_seen, text)) else ""


def _can_be_seen(sign: str) -> bool:
    return not sign.isspace() and unicodedata.category(sign) not in ("Cc", "Cf")


def raise_if_silently_full(model: ChatModel, completed: Completed) -> None:
    """Some servers cut the input to fill the window, and answer nothing: no token at all, or some
    reasoning where the window that we know of is nearly full (field case 37)."""
    message, reason, usage = completed.message, completed.stop_reason, completed.usage
    if text_of(message) or message.tool_uses:
        return
    full = usage is not None and (
        (usage.output_tokens == 0 and not message.blocks)
        or usage.read_tokens >= NEARLY_FULL * model.context_tokens
    )
    if reason == "window" or (reason == "length" and full):
        read = None if usage is None else usage.read_tokens or None
        detail = "no output: the input filled the window"
        refusal = Refusal(K.OVERFLOW, 200, requested_tokens=read, detail=detail)
        raise ProviderError(model.provider.name, refusal)


def _usage(call: _Call, *, complete: bool) -> Usage:
    """What the provider reported; else our estimate, marked as such.

    Of a call that did not complete the provider may have reported the input and the first token of
    the output: the text that came in counts then, if it is more.
    """
    sizes = call.model.sizes
    written = sizes.text("".join(call.text)) + sizes.text("".join(call.thinking))
    if call.usage is None:
        return Usage(call.estimated, written, estimated=True)
    if complete or written <= call.usage.output_tokens:
        return call.usage
    return replace(call.usage, output_tokens=written, estimated=True)
