"""The section `channels.telegram` of the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator

from channels.forms import URL, form

# BotFather's tokens: the bot's numeric id, a colon, and letters, digits, "_" and "-".
_TOKEN_PARTS = 2

PersonId = Annotated[
    str,
    form(
        r"[1-9][0-9]{0,19}",
        "must be a person's numeric id, such as 123456789 (/whoami tells it); groups and channels, "
        "whose ids are negative, belong into allowed",
    ),
]
PersonOrChatId = Annotated[
    str,
    form(
        r"-?[1-9][0-9]{0,19}",
        "must be the numeric id of a person, such as 123456789, or of a group, such as "
        "-1001234567890 (/whoami tells them)",
    ),
]
GroupId = Annotated[
    str,
    form(
        r"-[1-9][0-9]{0,19}",
        "must be a group's numeric id, such as -1001234567890 (/whoami tells it there)",
    ),
]
Url = Annotated[str, URL]


class TelegramSettings(BaseModel):
    """One bot. Ids are text, as the configuration's reader gives them."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    token: SecretStr = Field(description="The token that BotFather gave; required.")
    owners: tuple[PersonId, ...] = Field(
        default=(),
        description="Numeric ids of the people who may do everything (/whoami tells); none.",
    )
    allowed: tuple[PersonOrChatId, ...] = Field(
        default=(),
        description="Numeric ids of people, in private, and of groups (negative); none.",
    )
    access: Literal["listed", "open"] = Field(
        default="listed",
        description="listed: owners, allowed, and whom owners let in; open: everybody; listed.",
    )
    members_of: tuple[GroupId, ...] = Field(
        default=(),
        description="Ids of groups whose members may talk to the bot, there and in private; none.",
    )
    base_url: Url | None = Field(
        default=None,
        description="The root of a Bot API server; default https://api.telegram.org.",
    )
    proxy: SecretStr | None = Field(
        default=None,
        description="A proxy for all requests, as http://user:password@host:port; none.",
    )

    @field_validator("token")
    @classmethod
    def _is_a_token(cls, token: SecretStr) -> SecretStr:
        """Reject what cannot be one, since it becomes part of a URL."""
        parts = token.get_secret_value().split(":")
        if len(parts) != _TOKEN_PARTS or not parts[0].isdecimal() or not _is_word(parts[1]):
            raise ValueError("is not a bot token: BotFather gives one such as 123456:ABC-def_1")
        return token

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        """Reject what aiohttp would refuse at start (its message would repeat the password)."""
        if proxy is not None and not proxy.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return proxy


def _is_word(text: str) -> bool:
    return text.isascii() and text.replace("_", "a").replace("-", "a").isalnum()
