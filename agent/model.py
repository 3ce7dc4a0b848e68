"""A model as a run uses it: the provider, the model's id there, what it can take, and its price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.estimate import Estimator
from agent.provider import ModelTraits, Provider, Usage
from agent.windows import CAUTIOUS, is_known


@dataclass(frozen=True, slots=True)
class ChatModel:
    """One entry of `models` in the configuration, with its provider.

    `name` is the entry's key, `id` what the provider calls it. `context_tokens` is its window,
    `max_output_tokens` the cap of an answer. `sizes` estimates tokens. `price` gives the cost of a
    call in micro-dollars, or is None where there is no price.
    """

    name: str
    id: str
    provider: Provider
    max_output_tokens: int
    traits: ModelTraits
    context_tokens: int
    sizes: Estimator
    price: Callable[[Usage], int] | None = None

    @property
    def known_window(self) -> int | None:
        """The window in tokens; None where it is only the cautious guess for an unknown model."""
        guessed = self.context_tokens == CAUTIOUS and not is_known(self.id)
        return None if guessed else self.context_tokens

    def cost_microusd(self, usage: Usage) -> int | None:
        """What a call cost in micro-dollars, or None without a price."""
        return None if self.price is None else self.price(usage)
