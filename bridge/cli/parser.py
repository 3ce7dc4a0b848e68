"""The command line: commands, their options, and the function that carries each out."""

from __future__ import annotations

import argparse
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bridge.cli.options import Options

# (words, function of `bridge.cli`, help)
_COMMANDS = (
    (("run",), "run:run", "the bot: the channels that are configured, and the terminal"),
    (("chat",), "run:chat", "a conversation in the terminal only"),
    (("setup",), "setup:setup", "four questions, then the bot answers in Telegram or Slack"),
    (("config", "check"), "config:check", "every fault of the configuration and of chats' limits"),
    (
        ("config", "show"),
        "config:show",
        "the configuration with its defaults, secrets masked, or the limits of a --chat",
    ),
    (("status",), "status:show", "what the running bot does: channels, queues, errors"),
    (("usage",), "usage:show", "tokens and cost, by chat, person, model, purpose, day or run"),
    (("people",), "access:people", "who may talk to the bot, and who asks to"),
    (("approve",), "access:approve", "let in whoever has told you the CODE that the bot gave them"),
    (("revoke",), "access:revoke", "take that back at once: of a person, a group, an invitation"),
    (("jobs",), "jobs:show", "what is done by the clock, and how it went"),
    (("backup",), "backup:back_up", "one archive of all that is stored, also while the bot runs"),
    (("restore",), "backup:restore", "unpack a backup into an empty --data folder, and check it"),
    (("doctor",), "doctor:doctor", "check everything, with the fix for what is wrong"),
    (("service", "install"), "service:install", "a systemd unit that runs the bot for this user"),
    (("slack", "manifest"), "slack:show_manifest", "what Slack needs to create the app"),
    (("history",), "history:show", "a stored conversation, or the list of them"),
    (
        ("memory", "list"),
        "memory_show:show_all",
        "the memories of all chats, and how large they are",
    ),
    (("memory", "show"), "memory_show:show", "what a chat's memory holds, or the notes of a day"),
    (("memory", "tidy"), "memory:tidy", "have the running bot tidy every MEMORY.md now"),
    (("memory", "reindex"), "memory:reindex", "build the search index over memory anew"),
    (("erase",), "erase:erase", "erase for good what is stored of a --person or a --chat"),
    (("error",), "error:show", "what stands behind an error id"),
    (("debug", "refusal"), "debug:refusal", "how a provider's refusal, on standard input, is read"),
    (
        ("debug", "history"),
        "debug:history",
        "what is wrong with a list of messages, and its repair",
    ),
    (("version",), "version:show", "the version"),
)

_FILES: Mapping[tuple[str, ...], tuple[str, str]] = {
    ("backup",): ("PATH", "the archive to be made, or a folder for it"),
    ("restore",): ("ARCHIVE", "a backup"),
}


def parse(argv: list[str] | None, environ: Mapping[str, str]) -> tuple[str, Options]:
    """The command's function as `module:name`, and its options. Exits with 2 on wrong use."""
    from bridge.cli.options import Options

    given = vars(_parser().parse_args(argv))
    return given.pop("function"), Options(environ=environ, **given)


def function(name: str) -> Callable[[Options], int]:
    """The function called `module:name`; only that module is imported."""
    module, _, attribute = name.partition(":")
    found: Callable[[Options], int] = getattr(import_module(f"bridge.cli.{module}"), attribute)
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="galata",
        description="An LLM agent in Telegram, Slack and the terminal.",
        allow_abbrev=False,
    )
    groups = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for words, name, text in _COMMANDS:
        group = words[0] if len(words) > 1 else ""
        if group not in groups:
            outer = groups[""].add_parser(
                group, help=f"see galata {group} --help", allow_abbrev=False
            )
            groups[group] = outer.add_subparsers(required=True, metavar="COMMAND")
        command = groups[group].add_parser(
            words[-1], help=text, description=text[0].upper() + text[1:] + ".", allow_abbrev=False
        )
        command.set_defaults(function=name)
        _add_options(command, words)
    return parser


def _add_options(command: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
    command.add_argument(
        "--data",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help="the folder of everything that is stored; default: ./data",
    )
    command.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="the configuration; default: what the environment says"
        + (" (setup writes config.yaml)" if words == ("setup",) else ""),
    )
    if words in _MORE_OPTIONS:
        _MORE_OPTIONS[words](command)
    elif words == ("setup",):
        command.add_argument(
            "--slack", action="store_true", help="Slack's tokens instead of Telegram's"
        )
    elif words == ("slack", "manifest"):
        command.add_argument(
            "--url", help="your public address of /slack/events, instead of Socket Mode"
        )
    elif words == ("history",):
        command.add_argument(
            "session", nargs="?", metavar="SESSION", help="its key or number; without it: the list"
        )
    elif words == ("status",):
        command.add_argument("--json", action="store_true", dest="as_json", help="as JSON")
    elif words == ("service", "install"):
        command.add_argument(
            "--print", action="store_true", dest="print_only", help="print the unit only"
        )
    elif words in _FILES:
        metavar, text = _FILES[words]
        command.add_argument("file", type=Path, metavar=metavar, help=text)
    elif words == ("error",):
        command.add_argument("error_id", metavar="ID", help="the id that the chat was shown")


def _add_code(command: argparse.ArgumentParser) -> None:
    command.add_argument("code", metavar="CODE", help="as they have told it")


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "target", metavar="ID", help="as galata people shows it: telegram:42, invite:3"
    )


def _add_chat_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--chat", default="", metavar="CHANNEL:ID", help="what holds in this chat, and why"
    )
    command.add_argument("--topic", default="", metavar="ID", help="in this topic of it")
    command.add_argument("--person", default="", metavar="ID", help="for this person")


def _add_erase_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--person", default="", metavar="CHANNEL:ID", help="a person, as telegram:42: in all chats"
    )
    command.add_argument(
        "--chat", default="", metavar="CHANNEL:ID", help="a chat, as telegram:-1001234567890"
    )
    command.add_argument("--yes", action="store_true", help="without asking")


def _add_memory_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("scope", metavar="SCOPE", help="as galata memory list names it")
    command.add_argument(
        "day", nargs="?", default="", metavar="DAY", help="as 2026-11-30: the notes of that day"
    )


def _add_usage_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--by",
        choices=("chat", "person", "channel", "model", "purpose", "day", "run"),
        default="chat",
        help="what it is summed up by; default: chat",
    )
    command.add_argument(
        "--since", default="", metavar="DATE", help="from this day on (UTC); default: 30 days"
    )
    command.add_argument(
        "--format", choices=("table", "csv", "json"), default="table", help="default: table"
    )


def _add_refusal_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--status", type=int, metavar="CODE", help="the HTTP status; none for an error in a stream"
    )
    command.add_argument("--provider", default="", metavar="NAME", help="its name or host")
    command.add_argument(
        "--header",
        action="append",
        default=[],
        dest="headers",
        metavar="LINE",
        help="such as 'Retry-After: 20'; may be given again",
    )


def _add_list_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file", type=Path, metavar="FILE", help="a JSON list, or a request; - for standard input"
    )
    command.add_argument(
        "--format", choices=("anthropic", "openai"), required=True, help="whose API takes it"
    )
    command.add_argument(
        "--repair",
        action="store_true",
        help="print the repaired list; what was wrong goes to errors",
    )


_MORE_OPTIONS: Mapping[tuple[str, ...], Callable[[argparse.ArgumentParser], None]] = {
    ("config", "show"): _add_chat_options,
    ("erase",): _add_erase_options,
    ("memory", "show"): _add_memory_options,
    ("approve",): _add_code,
    ("revoke",): _add_target,
    ("usage",): _add_usage_options,
    ("debug", "refusal"): _add_refusal_options,
    ("debug", "history"): _add_list_options,
}
