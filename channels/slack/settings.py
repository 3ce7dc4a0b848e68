"""The section `channels.slack` of the configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from channels.forms import URL, form

PersonId = Annotated[
    str,
    form(
        r"[UW][A-Z0-9]{1,30}",
        "must be a member's id, such as U012AB3CD (/galata whoami tells it); channels belong into "
        "allowed",
    ),
]
PersonOrChatId = Annotated[
    str,
    form(
        r"[UWCDG][A-Z0-9]{1,30}",
        "must be the id of a member, such as U012AB3CD, or of a channel, such as C012AB3CD "
        "(/galata whoami tells them)",
    ),
]
PersonOrGroupId = Annotated[
    str,
    form(
        r"[UWS][A-Z0-9]{1,30}",
        "must be the id of a member, such as U012AB3CD, or of a user group, such as S012AB3CD",
    ),
]
Url = Annotated[str, URL]
Port = Annotated[int, Field(ge=1, le=65535)]


class SlackSettings(BaseModel):
    """One app in one workspace, by Socket Mode (`app_token`) or by signed HTTP requests
    (`signing_secret` and `http_port`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    bot_token: SecretStr = Field(
        description="The bot token (xoxb-…) of the app, under OAuth & Permissions; required.",
    )
    app_token: SecretStr | None = Field(
        default=None,
        description="The app-level token (xapp-…) with connections:write, for Socket Mode; none.",
    )
    signing_secret: SecretStr | None = Field(
        default=None,
        description="Instead of app_token: the signing secret, for HTTP requests from Slack; none.",
    )
    http_port: Port | None = Field(
        default=None,
        description="The port of 127.0.0.1 on which /slack/events is served with signing_secret, "
        "behind your own HTTPS proxy; none.",
    )
    owners: tuple[PersonId, ...] = Field(
        default=(),
        description="Member ids (U…) of the people who may do everything (/galata whoami); none.",
    )
    allowed: tuple[PersonOrChatId, ...] = Field(
        default=(),
        description="Ids of people (U…), in private, and of channels (C…); none.",
    )
    managers: tuple[PersonOrGroupId, ...] = Field(
        default=(),
        description="Ids of members (U…) and user groups (S…) who may set the limits of channels, "
        "besides the workspace's admins and a channel's creator; none.",
    )
    access: Literal["listed", "open"] = Field(
        default="listed",
        description="listed: owners, allowed, and whom owners let in; open: everybody; listed.",
    )
    workspace_members: bool = Field(
        default=False,
        description="Whether full members of the workspace may talk to the bot directly; no.",
    )
    guests: bool = Field(
        default=False,
        description="Whether guests of the workspace count like its full members; no.",
    )
    other_organizations: bool = Field(
        default=False,
        description="Whether people of other organisations count like full members; no.",
    )
    shared_channels: bool = Field(
        default=False,
        description="Whether it answers in channels that other organisations read too; no.",
    )
    base_url: Url | None = Field(
        default=None,
        description="The root of the Web API; default https://slack.com/api/.",
    )
    proxy: SecretStr | None = Field(
        default=None,
        description="A proxy for all requests, as http://user:password@host:port; none.",
    )

    @field_validator("bot_token")
    @classmethod
    def _is_a_bot_token(cls, token: SecretStr) -> SecretStr:
        if not _is_token(token, "xoxb-"):
            raise ValueError("is not a bot token: it begins with xoxb-")
        return token

    @field_validator("app_token")
    @classmethod
    def _is_an_app_token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not _is_token(token, "xapp-"):
            raise ValueError("is not an app-level token: it begins with xapp-")
        return token

    @field_validator("proxy")
    @classmethod
    def _is_a_proxy(cls, proxy: SecretStr | None) -> SecretStr | None:
        if proxy is not None and not proxy.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return proxy

    @model_validator(mode="after")
    def _has_one_way_in(self) -> SlackSettings:
        over_http = self.signing_secret is not None and self.http_port is not None
        half = (self.signing_secret is None) is not (self.http_port is None)
        if half or over_http is (self.app_token is not None):
            raise ValueError("needs either app_token, or signing_secret and http_port")
        return self


def _is_token(token: SecretStr, prefix: str) -> bool:
    """Tokens travel in a header, so that a space or line break in one is refused here."""
    value = token.get_secret_value()
    rest = value.removeprefix(prefix)
    return value.startswith(prefix) and rest.isascii() and rest.replace("-", "a").isalnum()
