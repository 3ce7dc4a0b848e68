"""What has to be known of a language to read refusals in it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """What was sent (`input`), how much a model takes (`window`), that it is too much (`exceeds`; said
    of the input itself: `too_long`), what is counted (`unit`, or `characters`), and the words for the
    other kinds of refusals. `limit` and `used` stand before numbers; `later` says that it is worth
    trying again, after a number of seconds, minutes or hours."""

    input: str
    window: str
    exceeds: str
    too_long: str
    unit: str
    characters: str
    limit: str
    used: str
    period: str
    rate: str
    quota: str
    content_filter: str
    picture: str
    picture_fault: str
    auth: str
    format: str
    transient: str
    later: str
    seconds: str
    minutes: str
    hours: str
