"""Real calls that tell whether a key, a token or an endpoint works, for `setup` and `doctor`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.errors import ProviderError, RefusalKind
from agent.messages import user_text
from agent.provider import ModelRequest
from agent.providers import KeyMissing, build_provider
from agent.settings import ModelSettings, ProviderSettings
from bridge.log import Redactor
from channels.slack.settings import SlackSettings
from channels.telegram.settings import TelegramSettings

if TYPE_CHECKING:
    from channels.slack.api import BotIdentity as SlackIdentity
    from channels.telegram.parse import BotIdentity as TelegramIdentity
    from channels.telegram.probe import Silent

PATIENCE_S = 30.0  # for one probe
# The least that reasoning models and compatible servers take; a "hello" costs thousandths of a cent.
MAX_OUTPUT_TOKENS = 16
_MOST_DETAIL = 200  # characters of a provider's own words

_WORDS = {
    RefusalKind.AUTH: "the key is refused, or it may not use this model",
    RefusalKind.QUOTA: "the account has no credit left",
    RefusalKind.RATE_LIMIT: "the provider asks to wait: try again in a minute",
    RefusalKind.TRANSIENT: "the provider cannot be reached or is out of order",
}


class ProbeFailed(Exception):
    """It does not work; the text says why, without secrets."""


async def probe_model(name: str, settings: ProviderSettings, model: ModelSettings) -> None:
    """One call with a short answer. Raises `ProbeFailed`."""
    try:
        provider = build_provider(name, settings)
    except KeyMissing as error:
        raise ProbeFailed(str(error)) from None
    request = ModelRequest(
        model=model.id,
        system="",
        messages=(user_text("hello"),),
        tools=(),
        max_output_tokens=MAX_OUTPUT_TOKENS,
        traits=model.traits,
    )
    try:
        async with asyncio.timeout(PATIENCE_S), provider.stream(request) as events:
            async for _ in events:
                pass
    except TimeoutError:
        raise ProbeFailed(f"no answer within {PATIENCE_S:.0f} s") from None
    except ProviderError as error:
        raise ProbeFailed(_reason(error, settings)) from None
    finally:
        await provider.aclose()


async def probe_telegram(settings: TelegramSettings) -> TelegramIdentity:
    """Who the bot is. Raises `ChannelFailed`, `ChannelUnavailable`."""
    from channels.telegram.probe import identify

    return await identify(settings)


async def probe_members(settings: TelegramSettings) -> Sequence[tuple[str, Silent]]:
    """The groups of `members_of` that do not tell who is in them, with why."""
    from channels.telegram.probe import silent_groups

    return await silent_groups(settings)


async def probe_slack(settings: SlackSettings) -> SlackIdentity:
    """Who the bot is, and whether the app-level token opens a connection. Raises `ChannelFailed`,
    `ChannelUnavailable`."""
    from channels.slack.probe import identify

    return await identify(settings)


def _reason(error: ProviderError, settings: ProviderSettings) -> str:
    """Our words for the operator, then the provider's."""
    refusal = error.refusal
    key = settings.api_key.get_secret_value() if settings.api_key else ""
    said = " ".join(Redactor([key]).clean(refusal.detail).split())[:_MOST_DETAIL]
    status = "" if refusal.status is None else f"HTTP {refusal.status}"
    details = ": ".join(part for part in (status, said) if part)
    ours = _WORDS.get(refusal.kind, f"the call was refused ({refusal.kind})")
    return f"{ours} ({details})" if details else ours
