"""Providers: one module for each API, and the classifier of their refusals."""

from __future__ import annotations

from agent.errors import AgentError
from agent.provider import Provider
from agent.settings import ProviderSettings


class KeyMissing(AgentError):
    """A provider has no key; the text names the configuration key."""


def build_provider(name: str, settings: ProviderSettings) -> Provider:
    """The provider `providers.<name>`; its SDK is imported later, by `warm` or the first call.

    Raises `KeyMissing`: only an OpenAI-compatible endpoint of one's own may be without a key.
    """
    if settings.api_key is None and (settings.kind == "anthropic" or settings.base_url is None):
        raise KeyMissing(f"providers.{name}.api_key is missing")
    if settings.kind == "anthropic":
        from agent.providers.anthropic import AnthropicProvider

        return AnthropicProvider(name, settings)
    from agent.providers.openai_chat import OpenAIChatProvider

    return OpenAIChatProvider(name, settings)
