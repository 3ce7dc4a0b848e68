"""`docs/limits.md` and the section of `config.example.yaml`, made from the declarations.

`python -m bridge.limits.documents` writes both anew; a test fails while they differ.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

from bridge.limits.keys import CEILING_KEYS, DEFAULT_KEYS, KEYS, PERSON_KEYS, TOPIC_KEYS, Key

WIDTH = 100
BEGIN = "# Limits in all chats, until a chat's own file or /limits sets others (docs/limits.md)."
END = "# What the model sees of a conversation.\n"

_ABOUT = """\
# Limits of a chat

Made from `bridge/limits/keys.py`; do not edit.

A chat's limits are lines `key: value`, in the file `groups/<channel>/<chat>.yaml` of the data folder,
or set in the chat by its admins. `/limits` shows them, in Telegram with buttons for admins (Apply and
Discard after each choice, Undo after each change; a typed value, or lines, as a reply), in Slack as a
form. In Slack's threads, which have no commands, a mention does the same: `@galata limits`,
`@galata limits set …`, and `@galata limits here set …` for the thread alone (in Telegram's topics
`/limits here set …`). In words, `/limits set cost_per_day_usd 3` sets one,
`/limits set cost_per_day_usd default` removes it, `/limits undo` takes the last change back and
`/limits log` tells who changed what. They hold from the next message on; an answer that has begun keeps
those that it began with.

The last of these that has a key counts: the configuration's `defaults`, its
`channels.<name>.defaults`, the chat's file, that of the topic (`groups/<channel>/<chat>/<topic>.yaml`),
and the configuration's `people`. None of them can pass its `ceilings`.
`galata config show --chat telegram:-1001234567890 [--topic 7] [--person 42]` tells each value and where
it comes from; `galata config check` reads all files. A file with a fault changes nothing: what held
before holds on.

```yaml
{example}
```

| key | value | what it does | without it |
| --- | --- | --- | --- |
{rows}

For one topic alone: {topic}. For one person, by the operator: {person}. As ceilings: {ceilings}.

Numbers: `50k` and `1.5m` are understood; `50.000` and `0,50` are refused, since they mean different
numbers in different countries. `key: default` removes a key; an empty value is an error, never "no
limit". A limit in USD is refused, with the model's name, while a model that a chat may use, or that
writes its notes, has no `price` in the configuration; `tokens_per_day` needs none. A day begins at
midnight in the chat's `timezone`; when that changes, the day that has begun goes on until a midnight a
day later. Where neither the configuration nor the system names a zone (a system that is set to UTC
names none: nobody has chosen that), a private chat has that of the person's Slack profile; elsewhere
the bot asks once, when it first matters (until then UTC). In their private chat everybody may `/limits
set timezone`. One person can use a third of what a group may use in a day, unless
`cost_per_person_per_day_usd` says otherwise. Questions count for the person who asks, in all threads
and topics together; commands, edits and `/cancel` never count, and pictures sent together are one
question.
"""


def markdown() -> str:
    """`docs/limits.md`."""
    return _ABOUT.format(
        example="\n".join(f"{key.name}: {key.example}" for key in KEYS),
        rows="\n".join(map(_row, KEYS)),
        topic=_names(TOPIC_KEYS),
        person=_names(PERSON_KEYS),
        ceilings=_names(CEILING_KEYS),
    )


def example() -> str:
    """The sections of `config.example.yaml`."""
    lines = [BEGIN, "#defaults:"]
    for key in DEFAULT_KEYS:
        lines += _comment(key)
        lines.append(f"  #{key.name}: {key.example}")
    lines += [
        "",
        "# What no chat can pass, in its file or by /limits: any of the keys of `defaults`, and",
        "# conversation and who_can_stop. Default: none.",
        "#ceilings:",
        "  # As above. Default: no ceiling.",
        "  #cost_per_day_usd: 10.00",
        "",
        "# Limits of single people, in all chats. Default: none.",
        "#people:",
        "  #telegram:42: # channel and id",
        "    # As above. Default: as for everybody.",
        "    #questions_per_person_per_day: 200",
        "",
        "",
    ]
    return "\n".join(lines)


def with_example(config: str) -> str:
    """The text of `config.example.yaml` with its section of limits as it should be."""
    found = re.search(
        rf"(?s){re.escape(BEGIN)}.*?(?={re.escape(END)})|(?={re.escape(END)})", config
    )
    if found is None:
        raise ValueError("config.example.yaml has lost the place of its limits")
    return config[: found.start()] + example() + config[found.end() :]


def _row(key: Key[Any]) -> str:
    return f"| `{key.name}` | {key.kind.words} | {key.sentence} | {_default(key)} |"


def _default(key: Key[Any]) -> str:
    if key.at_top:
        return "none" if key.name == "instructions" else "as at the top of the configuration"
    if key.default is None:
        return "no limit"
    return key.show(key.default)


def _comment(key: Key[Any]) -> list[str]:
    words = f"{str(key.sentence)[:-1]}: {key.kind.words}. Default: {_default(key)}."
    return textwrap.wrap(words, WIDTH, initial_indent="  # ", subsequent_indent="  # ")


def _names(keys: tuple[Key[Any], ...]) -> str:
    return ", ".join(f"`{key.name}`" for key in keys)


def main(root: Path = Path()) -> None:
    """Write both files."""
    config = root / "config.example.yaml"
    config.write_text(with_example(config.read_text("utf-8")), "utf-8")
    (root / "docs" / "limits.md").write_text(markdown(), "utf-8")


if __name__ == "__main__":
    main()
