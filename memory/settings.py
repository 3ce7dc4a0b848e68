"""The settings of this package: how long what is stored is kept, and backups."""

from __future__ import annotations

from datetime import timedelta
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from memory.retention import Keep

_MEGABYTE = 1_000_000
_CENTURY = 36_500  # days


class _Section(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )


class RetentionSettings(_Section):
    """How long, and how much at most. What is open, or in the context of a conversation that was used
    within the time, is kept whatever its age."""

    messages_days: int = Field(
        default=90, ge=1, le=_CENTURY, description="days that messages are kept; default 90"
    )
    messages_most: int = Field(
        default=1_000_000, ge=1_000, description="messages kept at most; default 1000000"
    )
    transcripts_days: int = Field(
        default=30,
        ge=1,
        le=_CENTURY,
        description="days that files of transcripts are kept; default 30",
    )
    transcripts_mb: int = Field(
        default=500, ge=1, description="megabytes of transcripts kept at most; default 500"
    )
    usage_days: int = Field(
        default=400,
        ge=32,
        le=_CENTURY,
        description="days that the cost of calls is kept, a month at least; default 400",
    )
    usage_most: int = Field(
        default=1_000_000,
        ge=1_000,
        description="calls kept at most, and those of a month; default 1000000",
    )
    attachments_days: int = Field(
        default=7, ge=1, le=_CENTURY, description="days that pictures are kept; default 7"
    )
    attachments_mb: int = Field(
        default=1_000, ge=1, description="megabytes of pictures kept at most; default 1000"
    )

    def keep(self) -> Keep:
        """What concerns the database."""
        return Keep(
            messages=timedelta(days=self.messages_days),
            most_messages=self.messages_most,
            usage=timedelta(days=self.usage_days),
            most_usage=self.usage_most,
            pictures=timedelta(days=self.attachments_days),
            most_picture_bytes=self.attachments_mb * _MEGABYTE,
        )

    @property
    def transcripts(self) -> timedelta:
        """How long files of transcripts are kept."""
        return timedelta(days=self.transcripts_days)

    @property
    def transcript_bytes(self) -> int:
        """How much of them at most."""
        return self.transcripts_mb * _MEGABYTE


class BackupSettings(_Section):
    """Backups by the clock, into the folder `backups` of the data folder."""

    every: Literal["day", "week"] = Field(default="day", description="day or week; default day")
    keep: int = Field(
        default=7, ge=1, le=1_000, description="backups that are kept, the newest; default 7"
    )


class MemorySettings(_Section):
    """Day files and the nightly consolidation of `MEMORY.md`."""

    flush_after_idle_minutes: int = Field(
        default=60,
        ge=5,
        le=1_440,
        description="minutes of silence after which a conversation goes into the day file;"
        " default 60",
    )
    night_hour: int = Field(
        default=3,
        ge=0,
        le=23,
        description="hour of the night, by each chat's clock, in which memories are tidied;"
        " default 3",
    )
    most_lost_percent: int = Field(
        default=20,
        ge=0,
        le=100,
        description="percent of the entries that a night may drop or merge away; default 20",
    )
    budget_percent: int = Field(
        default=20,
        ge=0,
        le=100,
        description="percent of the month's and of a chat's budgets for notes, summaries and nights;"
        " default 20",
    )
    tell_overnight: bool = Field(
        default=True,
        description="whether the next answer says in a line what a night changed; default yes",
    )
    shared: tuple[str, ...] = Field(
        default=(),
        description="groups that have one memory together, as telegram:-1001234; default: none",
    )
    notes_model: str | None = Field(
        default=None,
        description="the key of models for notes, summaries and nights; default: the one that answers",
    )
