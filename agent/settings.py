"""The settings of providers and models, as the configuration gives them."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from agent.provider import Deadlines, ModelTraits, Usage
from agent.windows import window_of

MAX_OUTPUT_TOKENS = 4_096  # of an answer, where the configuration does not say
_SHORTEST_ANSWER = 16  # tokens
# What a question takes at least, in tokens: the instructions, the chat's memory and itself; and the
# tools: those of Galata's own are about 900 by `agent.estimate`.
_QUESTION_TOKENS, _TOOLS_TOKENS = 500, 1_000


def least_room(*, tools: bool) -> int:
    """Tokens that a model's answer must leave for what it answers."""
    return _QUESTION_TOKENS + (_TOOLS_TOKENS if tools else 0)


class ProviderSettings(BaseModel):
    """One endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Literal["anthropic", "openai"] = Field(
        description="API it speaks: anthropic (Messages) or openai (Chat Completions, compatible)"
    )
    api_key: SecretStr | None = Field(
        default=None, description="key; may be left out where base_url needs none"
    )
    base_url: str | None = Field(
        default=None, description="address of the API; default: the provider's own"
    )
    organization: str | None = Field(default=None, description="OpenAI organisation; default: none")
    proxy: SecretStr | None = Field(
        default=None, description="HTTP proxy for this provider; default: none"
    )
    first_chunk_s: float = Field(
        default=120, gt=0, description="seconds of silence before the first piece of an answer"
    )
    between_chunks_s: float = Field(default=60, gt=0, description="seconds of silence after it")
    total_s: float = Field(default=900, gt=0, description="seconds for one whole model call")

    @field_validator("base_url")
    @classmethod
    def _is_an_address(cls, base_url: str | None) -> str | None:
        if base_url is not None and not base_url.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return base_url

    @property
    def deadlines(self) -> Deadlines:
        """The three deadlines together."""
        return Deadlines(self.first_chunk_s, self.between_chunks_s, self.total_s)


class PriceSettings(BaseModel):
    """What a model costs, in USD for a million tokens, and when that was true."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    input: float = Field(ge=0, description="USD per million input tokens")
    output: float = Field(ge=0, description="USD per million output tokens")
    cache_read: float | None = Field(default=None, ge=0, description="default: as input")
    cache_write: float | None = Field(default=None, ge=0, description="default: as input")
    as_of: date = Field(description="date of these prices, YYYY-MM-DD")

    def cost_microusd(self, usage: Usage) -> int:
        """The cost of a call in micro-dollars: USD per million tokens is micro-dollars per token."""
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        return round(
            usage.input_tokens * self.input
            + usage.output_tokens * self.output
            + usage.cache_read_tokens * read
            + usage.cache_write_tokens * write
        )


class ModelSettings(BaseModel):
    """One model at one provider."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    provider: str = Field(description="a key of providers")
    id: str = Field(description="what the provider calls the model")
    context_tokens: int | None = Field(
        default=None,
        ge=1_000,
        description="the model's window, in tokens; default: by its id, else a cautious 32000",
    )
    tools: bool = Field(default=True, description="whether tools are offered to it")
    images: bool = Field(default=True, description="whether it can see images")
    system_prompt: bool = Field(default=True, description="whether it takes a system prompt")
    max_output_tokens: int = Field(  # behind what its check looks at
        default=MAX_OUTPUT_TOKENS,
        ge=_SHORTEST_ANSWER,
        validate_default=True,
        description="cap of one answer, in tokens",
    )
    price: PriceSettings | None = Field(
        default=None, description="prices; without them its cost is not counted"
    )

    @property
    def traits(self) -> ModelTraits:
        """What the model can take, for its requests."""
        return ModelTraits(self.images, self.tools, self.system_prompt)

    @property
    def window(self) -> int:
        """The model's window in tokens."""
        return self.context_tokens or window_of(self.id)

    @field_validator("max_output_tokens")
    @classmethod
    def _leaves_room(cls, reserve: int, info: ValidationInfo) -> int:
        """The answer's share is reserved in every request (`agent.context`), so what it leaves of the
        window must hold the shortest conversation: one question, the instructions and the tools. With
        less, each request is refused, or each turn forgets all that was said before it."""
        if {"id", "context_tokens", "tools"} - info.data.keys():
            return reserve  # one of these is at fault itself
        window: int = info.data["context_tokens"] or window_of(info.data["id"])
        least = least_room(tools=info.data["tools"])
        if reserve <= window - least:
            return reserve
        what = "its instructions and tools" if info.data["tools"] else "its instructions"
        if window - least < _SHORTEST_ANSWER:
            raise ValueError(
                f"({reserve}) does not fit: context_tokens ({window}) must be at least "
                f"{least + _SHORTEST_ANSWER}, for one question with {what}"
            )
        raise ValueError(
            f"({reserve}) leaves {max(window - reserve, 0)} of context_tokens ({window}), and a "
            f"question with {what} needs {least}: at most {window - least} is allowed here"
        )
