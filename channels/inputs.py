"""Forms: where a platform has them (`Capabilities.forms`), a person fills in several fields at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from channels.replies import Button


@dataclass(frozen=True, slots=True)
class FormField:
    """A line to fill in. `hint` stands below it; `value` is there from the start. `choices`: the values
    that can be chosen, each with its label; none: any text, of several `lines` or one. An empty field
    is sent as an empty text."""

    name: str
    label: str
    hint: str = ""
    value: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    lines: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """`action` and `value` come back with what is sent, as those of a button (`value` up to 2,000
    characters). `intro` is Markdown above the fields; `buttons` stand there too: a press of one comes
    as any other, with an empty message id. `title`, `send` and `close` have 24 characters at most."""

    action: str
    value: str
    title: str
    fields: tuple[FormField, ...]
    send: str
    close: str
    intro: str = ""
    buttons: tuple[Button, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A form that was sent: `texts` by the fields' names, as they were filled in."""

    action: str
    value: str
    texts: Mapping[str, str] = field(default_factory=dict[str, str])
