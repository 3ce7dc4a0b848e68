"""A model as a turn uses it: the provider, the model's id there, its traits and its price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.prompt import build
from agent.provider import ModelTraits, Provider, Usage


@dataclass(frozen=True, slots=True)
class ChatModel:
    """One entry of `models` in the configuration, with its provider.

    `name` is the entry's key, `id` what the provider calls it. `traits`: what it can take.
    `price` gives the cost of a call in micro-dollars, or is None where there is no price.
    """

    name: str
    id: str
    provider: Provider
    max_output_tokens: int
    traits: ModelTraits
    instructions: str
    price: Callable[[Usage], int] | None

    def system_prompt(self, *, group: bool) -> str:
        """The system prompt for a chat of that kind."""
        return build(self.instructions, group=group)

    def cost_microusd(self, usage: Usage) -> int | None:
        """What a call cost in micro-dollars, or None without a price."""
        return None if self.price is None else self.price(usage)
