"""The settings of providers and models, as the configuration gives them."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from agent.provider import Deadlines, ModelTraits, Usage
from agent.windows import window_of

MAX_OUTPUT_TOKENS = 4_096  # of an answer, where the configuration does not say


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
        default=120, gt=0, description="seconds until the first piece of an answer"
    )
    between_chunks_s: float = Field(default=60, gt=0, description="seconds between two pieces")
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
    max_output_tokens: int = Field(
        default=MAX_OUTPUT_TOKENS, ge=16, description="cap of one answer, in tokens"
    )
    tools: bool = Field(default=True, description="whether tools are offered to it")
    images: bool = Field(default=True, description="whether it can see images")
    system_prompt: bool = Field(default=True, description="whether it takes a system prompt")
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

    @model_validator(mode="after")
    def _reserve_fits(self) -> ModelSettings:
        if self.max_output_tokens >= self.window:
            raise ValueError(
                f"max_output_tokens ({self.max_output_tokens}) must be smaller than "
                f"context_tokens ({self.window})"
            )
        return self
