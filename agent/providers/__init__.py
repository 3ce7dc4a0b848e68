"""The APIs of models, and the classifier of their refusals.

client  wire  sendable                what every API needs
named_image                           which image a refusal is about
anthropic  anthropic_body             the Messages API: its stream, and a request in its shape
openai_chat  openai_body              Chat Completions, in the dialect of each server
anthropic_history  openai_history     message lists of both, read and written back for an operator,
history_rows  system_rows             and what that takes
errors                                what a refusal wants; the modules behind it are named there
"""

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
