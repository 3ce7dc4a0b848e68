"""What `galata doctor` asks others: one call to each model, one to each platform."""

from __future__ import annotations

import asyncio

from bridge.cli.finding import Finding
from bridge.cli.probe import ProbeFailed, probe_members, probe_model, probe_slack, probe_telegram
from bridge.configuration.settings import Config
from channels.errors import ChannelError, ChannelFailed

_PRIVACY = (
    "in groups it hears commands such as /ask and replies to it, but no mentions; for those: "
    "@BotFather, /setprivacy, Disable, then remove the bot from the group and add it again"
)

_SILENT = {
    "outside": "the bot is not in it",
    "hidden": "its members are hidden, and the bot is no administrator there",
    "unknown": "Telegram does not say",
}
_MEMBERS = "add the bot to it, as an administrator where the members are hidden, or take it out"


async def models(config: Config) -> list[Finding]:
    """A real call to each model that may answer: the usual one, those to fall back on, and those that
    chats may choose."""
    if config.local_model:
        return [_embedded()]
    names = dict.fromkeys((config.model, *config.fallback_models, *config.models_for_chats))
    return await asyncio.gather(*(_model(config, name) for name in names))


async def _model(config: Config, called: str) -> Finding:
    model = config.models[called]
    name = f"{model.provider}: {model.id}"
    try:
        await probe_model(model.provider, config.providers[model.provider], model)
    except ProbeFailed as error:
        fix = f"check providers.{model.provider} (its proxy too) and models.{called}"
        return Finding("FAIL", "model", f"{name}: {error}", fix)
    if model.price is None:
        fix = f"set models.{called}.price, or the month's limit does not count it"
        return Finding("note", "model", f"{name} answers, but has no price", fix)
    return Finding("ok", "model", f"{name} answers; prices of {model.price.as_of}")


def _embedded() -> Finding:
    from bridge.models.local_model import MODEL, available

    if available():
        return Finding("ok", "model", f"{MODEL}, embedded (no key is set)")
    return Finding("note", "model", "embedded, not yet installed", "`galata run` installs it")


async def telegram(config: Config) -> Finding | None:
    """Who the bot is, and whether it hears mentions in groups; None when Telegram is off."""
    if config.channels.telegram is None:
        return None
    try:
        bot = await probe_telegram(config.channels.telegram)
    except ChannelError as error:
        return _refused("telegram", error)
    name = f"@{bot.username} ({bot.id})"
    if bot.sees_all_group_messages:
        return Finding("ok", "telegram", f"{name}, privacy mode off")
    return Finding("note", "telegram", f"{name}, privacy mode on", _PRIVACY)


async def members(config: Config) -> Finding | None:
    """Whether the groups whose members may talk tell who is in them; None without any."""
    settings = config.channels.telegram
    if settings is None or not settings.members_of:
        return None
    try:
        silent = await probe_members(settings)
    except ChannelError as error:
        return _refused("members_of", error)
    if not silent:
        return Finding("ok", "members_of", f"{len(settings.members_of)} groups tell who is in them")
    told = "; ".join(f"{group}: {_SILENT[why]}" for group, why in silent)
    return Finding("FAIL", "members_of", f"nobody is let in by {told}", _MEMBERS)


async def slack(config: Config) -> Finding | None:
    """Who the app is, and whether it has all its scopes; None when Slack is off."""
    if config.channels.slack is None:
        return None
    from channels.slack.probe import missing_scopes

    try:
        app = await probe_slack(config.channels.slack)
    except ChannelError as error:
        return _refused("slack", error)
    missing = missing_scopes(app)
    name = f"{app.name} in {app.team} ({app.team_id})"
    if missing:
        fix = "give the app the manifest of `galata slack manifest` and install it again"
        return Finding("FAIL", "slack", f"{name} lacks the scopes {', '.join(missing)}", fix)
    return Finding("ok", "slack", f"{name}, all {len(app.scopes)} scopes")


def _refused(subject: str, error: ChannelError) -> Finding:
    channel = "slack" if subject == "slack" else "telegram"
    network = f"check the network, and channels.{channel}.proxy and base_url where they are set"
    fix = "give it a valid token" if isinstance(error, ChannelFailed) else network
    return Finding("FAIL", subject, str(error), fix)
