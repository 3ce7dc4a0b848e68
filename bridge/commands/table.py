"""Every command, declared once: who may use it, and what follows from that.

`/help`, the rights that are checked before a command is carried out, and `docs/commands.md` are made
from this table; `python -m bridge.command_table` writes the page, and a test fails while it differs.
What a command does is said by the text `help_<words>` (`help_memory_undo`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bridge.texts import Say
    from channels.base import Command

Who = Literal["everybody", "people", "asker", "own", "admins", "managers", "owners", "nobody"]
"""`everybody`: strangers too; `people`: who may talk to the bot there; `asker`: for their own
questions, admins and owners for all; `own`: for what they have said, admins for all; `managers`:
admins who may change what the group is. Only `everybody`, `admins` and `nobody` are checked by the
table: the others need to know what the command is about."""


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """`words`: the name, and what stands after it where that has rights of its own. `changes`: done
    twice it is not the same as done once. `helped`: `/help` lists it."""

    words: str
    private: Who = "people"
    group: Who = "people"
    changes: bool = False
    helped: bool = False

    @property
    def name(self) -> str:
        """Without what stands after it."""
        return self.words.split()[0]

    @property
    def text(self) -> str:
        """The key of the text that says what it does."""
        return f"help_{self.words.replace(' ', '_')}"


_C = CommandSpec
TABLE: Final = (
    _C("ask", helped=True),
    _C("cancel", group="asker", helped=True),
    _C("stop", group="asker"),
    _C("new", changes=True, helped=True),
    _C("private", group="nobody", changes=True, helped=True),
    _C("retry", helped=True),
    _C("resend", helped=True),
    _C("undo", changes=True, helped=True),
    _C("compact", changes=True, helped=True),
    _C("context", helped=True),
    _C("why", helped=True),
    _C("memory", changes=True, helped=True),
    _C("memory undo", group="admins"),
    _C("memory tidy", group="admins"),
    _C("memory off", group="admins"),
    _C("memory on", group="admins"),
    _C("memory erase", group="admins"),
    _C("remember", changes=True, helped=True),
    _C("forget", group="own", changes=True),
    _C("privacy", "everybody", "everybody", helped=True),
    _C("privacy erase", "people", "nobody"),
    _C("export", group="own", helped=True),
    _C("status", helped=True),
    _C("limits", changes=True, helped=True),
    _C("limits set", "owners", "managers"),
    _C("limits replace", "owners", "managers"),
    _C("limits undo", "owners", "managers"),
    _C("approve", "owners", "owners", changes=True),
    _C("invite", "owners", "owners", changes=True),
    _C("people", "owners", "nobody"),
    _C("revoke", "owners", "owners", changes=True),
    _C("pause", "owners", "managers", changes=True),
    _C("resume", "owners", "managers", changes=True),
    _C("block", "nobody", "managers", changes=True),
    _C("unblock", "nobody", "managers", changes=True),
    _C("model", group="managers", changes=True, helped=True),
    _C("usage", helped=True),
    _C("whoami", "everybody", "everybody", helped=True),
    _C("help", "everybody", "everybody"),
    _C("start"),
)
BY_WORDS: Final[Mapping[str, CommandSpec]] = MappingProxyType({one.words: one for one in TABLE})
NAMES: Final = frozenset(one.name for one in TABLE)
CHANGING: Final = frozenset(one.name for one in TABLE if one.changes)
FOR_STRANGERS: Final = frozenset(one.name for one in TABLE if one.private == "everybody")
MENU: Final = (
    "ask",
    "cancel",
    "new",
    "retry",
    "undo",
    "compact",
    "status",
    "help",
)  # 8 at the most


def spec_of(command: Command) -> CommandSpec | None:
    """The row that holds for a command as it was typed; None where there is no such command."""
    first, *_ = command.args.lower().split() or [""]
    return BY_WORDS.get(f"{command.name} {first}") or BY_WORDS.get(command.name)


def help_lines(say: Say) -> str:
    """What `/help` lists."""
    return "\n".join(say(one.text) for one in TABLE if one.helped)


# The page ---------------------------------------------------------------------------------------------

PAGE: Final = Path(__file__).parents[2] / "docs" / "commands.md"
_ABOUT = """\
# Commands

Made from `bridge/commands/table.py`; do not edit.

In Slack they are written `/galata memory`, in Telegram and the terminal `/memory`. Rights are checked
by the platform's id when the command is carried out; owners of the bot may do in a group what its
admins may. A command that was forwarded, quoted or edited does nothing. Slack's threads have no
commands: there a mention with `cancel`, `limits`, or `limits` and one of its verbs is one.

| command | what it does | private chat | member of a group | admin of the group |
| --- | --- | --- | --- | --- |
{rows}
"""
_PRIVATE: Final[Mapping[Who, str]] = MappingProxyType(
    {"everybody": "everybody", "people": "yes", "owners": "owners of the bot", "nobody": "no"}
)
_MEMBER: Final[Mapping[Who, str]] = MappingProxyType(
    {
        "everybody": "everybody",
        "people": "yes",
        "asker": "their own questions",
        "own": "what is theirs",
        "admins": "no",
        "managers": "no",
        "owners": "owners of the bot",
        "nobody": "no",
    }
)
_ADMIN: Final[Mapping[Who, str]] = MappingProxyType(
    {
        "managers": "who may change the group's info",
        "owners": "owners of the bot",
        "nobody": "no",
    }
)


def markdown(say: Say) -> str:
    """`docs/commands.md`; `say` speaks English."""
    return _ABOUT.format(rows="\n".join(_row(one, say) for one in TABLE))


def _row(one: CommandSpec, say: Say) -> str:
    usage, _, sentence = say(one.text).partition(" – ")
    usage = re.sub(r"\*([^*]+)\*", r"`\1`", usage.replace("`", ""))
    cells = (
        usage.replace(f"/{one.words}", f"`/{one.words}`", 1),
        sentence,
        _PRIVATE[one.private],
        _MEMBER[one.group],
        _ADMIN.get(one.group, "yes"),
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    from bridge.texts import Say, Texts

    PAGE.write_text(markdown(Say(Texts.load(), "en")), encoding="utf-8")
