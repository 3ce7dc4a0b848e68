"""`galata debug refusal` and `galata debug history`: what the bot makes of a refusal and of a list."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from bridge.cli.options import FAILED, FINE, WRONG_USE, Options, say, tell

if TYPE_CHECKING:
    from agent.messages import JsonObject, Message
    from agent.providers.history_rows import ReadHistory


class _Unreadable(Exception):
    """The input is not what the command reads; the text says where and why."""


def refusal(options: Options) -> int:
    """The classifier's verdict on the body at standard input, as JSON."""
    from agent.providers.errors import classify, retry_after

    headers: dict[str, str] = {}
    for line in options.headers:
        name, colon, value = line.partition(":")
        if not colon:
            tell(f"--header {line!r}: write it as 'Name: value'")
            return WRONG_USE
        headers[name.strip().lower()] = value.strip()
    body = sys.stdin.buffer.read()
    found = classify(options.status, body, retry_after(headers), provider=options.provider)
    verdict = {
        "class": str(found.kind),
        "limit_tokens": found.limit_tokens,
        "requested_tokens": found.requested_tokens,
        "retry_after_s": found.retry_after_s,
    }
    say(json.dumps(verdict))
    return FINE


def history(options: Options) -> int:
    """What is wrong with a message list, a line each; with `--repair` the list without it."""
    from agent.history import repair, violations

    try:
        rows = _rows(options.file)
        read = _read(options.format, rows)
    except _Unreadable as error:
        tell(f"{options.file}: {error}")
        return WRONG_USE
    found = [_numbered(line, read.rows) for line in violations(read.messages)] + read.faults
    for line in found:
        (tell if options.repair else say)(line)
    if not found:
        tell(f"{options.file}: nothing is wrong with these {len(rows)} messages")
    if options.repair:
        # What is legal stays as it is, word for word.
        say(_as_json(_written(options.format, read, repair(read.messages)) if found else rows))
    return FAILED if found else FINE


def _rows(path: Path) -> list[object]:
    """The list in a file, or that of a whole request. Raises `_Unreadable`."""
    from agent.providers.history_rows import HistoryFormatError, list_at

    try:
        text = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        document: object = json.loads(text)
    except OSError as error:
        raise _Unreadable(error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"no JSON: {error}") from None
    if isinstance(document, dict):
        document = cast("dict[str, object]", document).get("messages", "")
    try:
        return list_at("the messages", document)
    except HistoryFormatError as error:
        raise _Unreadable(str(error)) from None


def _read(form: str, rows: list[object]) -> ReadHistory:
    """The list with all that is wrong with it. Raises `_Unreadable`."""
    from agent.providers import anthropic_history, openai_history
    from agent.providers.history_rows import HistoryFormatError

    read = anthropic_history.read if form == "anthropic" else openai_history.read
    try:
        try:
            return read(rows)
        except HistoryFormatError:
            return _without_odd_rows(read, rows)
    except RecursionError:
        raise _Unreadable("it is nested too deeply") from None


def _without_odd_rows(
    read: Callable[[Sequence[object]], ReadHistory], rows: list[object]
) -> ReadHistory:
    """Rows of which no message can be made out count as empty ones, with the reason as their fault."""
    from agent.providers.history_rows import HistoryFormatError

    odd: list[tuple[str, str]] = []
    kept: list[object] = []
    for number, row in enumerate(rows):
        try:
            read([row])
            kept.append(row)
        except HistoryFormatError as error:
            where, _, what = str(error).partition(": ")
            odd.append((where.replace("messages.0", f"messages.{number}", 1), what))
            kept.append({"role": "user", "content": ""})
    history = read(kept)
    for where, what in odd:
        history.fault(where, what)
    return history


def _written(form: str, read: ReadHistory, messages: Sequence[Message]) -> list[JsonObject]:
    """The list in its own form; what it cannot hold is told."""
    from agent.providers import anthropic_history, openai_history

    for note in read.notes:
        tell(f"note: {note}")
    if form == "anthropic":
        return anthropic_history.write(read, messages)
    return openai_history.write(read, messages)


def _numbered(line: str, rows: Sequence[int]) -> str:
    """A finding with the number that its message has in the file."""
    return re.sub(r"^message (\d+)", lambda found: f"message {rows[int(found[1])]}", line)


def _as_json(rows: Sequence[object]) -> str:
    """JSON that the output can show; with escapes where its encoding or the text needs them."""
    text = json.dumps(rows, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(rows, indent=2)
    return text
