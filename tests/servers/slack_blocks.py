"""Block Kit: the limits of the reference pages.

Limits from docs.slack.dev/reference/block-kit: 50 blocks in a message (100 in a view), 25 elements
of actions, 10 of context, 3,000 characters of a section, 10 fields of 2,000, 150 of a header, 75
of a button, 2,000 of its value, 255 of an id, 12,000 of all markdown blocks together; 3,000 as the
`max_length` of a text that is typed, 100 options of 75 characters with values of 150, hints of 2,000.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

from tests.servers.slack_render import Json, elements_of
from tests.servers.slack_state import SlackError

MARKDOWN_LIMIT = 12_000
TEXT_LIMIT = 12_000
"""Of all other blocks: a maintainer's "12,000 text characters with a buffer for block containers"
(slackapi/bolt-js#2509); with `CONTAINER` it fits what was measured there (#2867)."""
CONTAINER = 20

Report = Callable[[str, str], None]
"""Takes what is wrong and the JSON pointer of the place."""


def parse(
    value: Any, *, note: Callable[[list[Json]], None], name: str = "blocks", most: int = 50
) -> list[Json]:
    """Blocks of a request, checked; `note` hears of them first. Raises `SlackError`."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else []
        except ValueError:
            raise SlackError("invalid_blocks_format") from None
    if not isinstance(value, list) or not all(isinstance(block, dict) for block in value):
        raise SlackError("invalid_blocks_format")
    note(value)
    problems: list[str] = []

    def report(what: str, where: str) -> None:
        problems.append(f"{what} [json-pointer:{where}]")

    if len(value) > most:
        report(f"no more than {most} items allowed", f"/{name}")
    for index, block in enumerate(value):
        _check_block(block, f"/{name}/{index}", report)
    if not problems:
        _check_unique(value, name, report)
    if problems:
        messages = [f"[ERROR] {problem}" for problem in problems]
        raise SlackError(
            "invalid_blocks", errors=problems, response_metadata={"messages": messages}
        )
    _check_size(value)
    return value


def _check_size(blocks: list[Json]) -> None:
    markdown = [len(block["text"]) for block in blocks if block["type"] == "markdown"]
    others = [block for block in blocks if block["type"] != "markdown"]
    rest = sum(len(text) + CONTAINER for text in map(_all_text, others))
    if sum(markdown) > MARKDOWN_LIMIT or rest > TEXT_LIMIT:
        raise SlackError("msg_blocks_too_long")


def _all_text(value: Any) -> str:
    """All `text` strings in a block, joined."""
    if isinstance(value, list):
        return "".join(map(_all_text, value))
    if not isinstance(value, dict):
        return ""
    own = value.get("text")
    inner = "".join(_all_text(one) for one in value.values())
    return own + inner if isinstance(own, str) else inner


def violations_of_sdk(blocks: list[Json]) -> list[str]:
    """What slack_sdk's own validation says against these blocks."""
    found = []
    for block in copy.deepcopy(blocks):
        kind = block.get("type")
        try:
            parsed = Block.parse(block)
            if parsed is None:
                found.append(f"{kind}: unknown to slack_sdk")
            else:
                parsed.validate_json()
        except (SlackObjectFormationError, TypeError, KeyError, AttributeError) as error:
            found.append(f"{kind}: {error}")
    return found


def _check_block(block: Json, where: str, report: Report) -> None:
    kind = block.get("type")
    if not isinstance(kind, str):
        report("missing required field: type", where)
        return
    _check_length(block.get("block_id"), 255, f"{where}/block_id", report)
    check = _CHECKS.get(kind)
    if check is None:
        report(f"unsupported type: {kind}", f"{where}/type")
    else:
        check(block, where, report)


def _check_length(value: Any, most: int, where: str, report: Report) -> None:
    if isinstance(value, str) and len(value) > most:
        report(f"must be less than {most + 1} characters", where)


def _check_text(
    value: Any, most: int, where: str, report: Report, kinds: tuple[str, ...] = ("plain_text",)
) -> None:
    problems: list[tuple[str, str]] = []
    if not isinstance(value, dict):
        problems.append(("missing required field: text", ""))
    else:
        text, kind = value.get("text"), value.get("type")
        if kind not in kinds:
            problems.append((f"unsupported type: {kind}", "/type"))
        extra = "emoji" if kind == "mrkdwn" else "verbatim"
        if extra in value:
            problems.append((f"invalid additional property: {extra}", ""))
        if not isinstance(text, str):
            problems.append(("missing required field: text", ""))
        elif not text:
            problems.append(("must be more than 0 characters", "/text"))
        elif len(text) > most:
            problems.append((f"must be less than {most + 1} characters", "/text"))
    if problems:
        report("failed to match all allowed schemas", where)
    for what, at in problems:
        report(what, where + at)


def _check_section(block: Json, where: str, report: Report) -> None:
    both = ("plain_text", "mrkdwn")
    fields = block.get("fields", [])
    if block.get("text") is None and not fields:
        report("missing required field: text or fields", where)
    if block.get("text") is not None:
        _check_text(block["text"], 3000, f"{where}/text", report, both)
    if len(fields) > 10:
        report("no more than 10 items allowed", f"{where}/fields")
    for index, item in enumerate(fields):
        _check_text(item, 2000, f"{where}/fields/{index}", report, both)
    if "accessory" in block:
        _check_element(block["accessory"], f"{where}/accessory", report)


def _check_header(block: Json, where: str, report: Report) -> None:
    _check_text(block.get("text"), 150, f"{where}/text", report)


def _check_markdown(block: Json, where: str, report: Report) -> None:
    text = block.get("text")
    if not isinstance(text, str):
        report("missing required field: text", where)
        block["text"] = ""
    elif not text:
        report("must be more than 0 characters", f"{where}/text")
    else:
        _check_length(text, MARKDOWN_LIMIT, f"{where}/text", report)


def _check_actions(block: Json, where: str, report: Report) -> None:
    _check_elements(block, where, report, 25)
    for index, element in enumerate(block.get("elements") or []):
        _check_element(element, f"{where}/elements/{index}", report)


def _check_context(block: Json, where: str, report: Report) -> None:
    _check_elements(block, where, report, 10)
    for index, element in enumerate(block.get("elements") or []):
        if isinstance(element, dict) and element.get("type") == "image":
            continue
        _check_text(element, 3000, f"{where}/elements/{index}", report, ("plain_text", "mrkdwn"))


def _check_elements(block: Json, where: str, report: Report, most: int) -> None:
    elements = block.get("elements")
    if not isinstance(elements, list):
        report("missing required field: elements", where)
        block["elements"] = []
    elif not elements:
        report("no fewer than 1 items allowed", f"{where}/elements")
    elif len(elements) > most:
        report(f"no more than {most} items allowed", f"{where}/elements")


def _check_element(element: Any, where: str, report: Report) -> None:
    if not isinstance(element, dict):
        report("must be an object", where)
        return
    _check_length(element.get("action_id"), 255, f"{where}/action_id", report)
    if element.get("type") == "plain_text_input":
        _check_text_input(element, where, report)
    if element.get("type") == "static_select":
        _check_select(element, where, report)
    if element.get("type") != "button":
        return
    for name in set(element) - _BUTTON:
        report(f"invalid additional property: {name}", where)
    _check_text(element.get("text"), 75, f"{where}/text", report)
    _check_length(element.get("value"), 2000, f"{where}/value", report)
    _check_length(element.get("url"), 3000, f"{where}/url", report)
    if element.get("style", "primary") not in ("primary", "danger"):
        report("must be a valid enum value", f"{where}/style")


def _check_text_input(element: Json, where: str, report: Report) -> None:
    """What may be typed is bounded by `max_length` alone, which has a bound of its own."""
    for name in set(element) - _TEXT_INPUT:
        report(f"invalid additional property: {name}", where)
    for name, least in (("min_length", 0), ("max_length", 1)):
        length = element.get(name, least)
        if not isinstance(length, int) or not least <= length <= 3000:
            report(f"must be {least} to 3000", f"{where}/{name}")
    if "placeholder" in element:
        _check_text(element["placeholder"], 150, f"{where}/placeholder", report)
    most = element.get("max_length")
    if isinstance(most, int):
        _check_length(element.get("initial_value"), most, f"{where}/initial_value", report)


def _check_select(element: Json, where: str, report: Report) -> None:
    options = element.get("options") or []
    if not 1 <= len(options) <= 100:
        report("must have 1 to 100 items", f"{where}/options")
    for index, option in enumerate(options):
        _check_text(option.get("text"), 75, f"{where}/options/{index}/text", report)
        _check_length(option.get("value"), 150, f"{where}/options/{index}/value", report)
    if element.get("initial_option", options[:1] and options[0]) not in options:
        report("must be one of the options", f"{where}/initial_option")


def _check_input(block: Json, where: str, report: Report) -> None:
    _check_text(block.get("label"), 2000, f"{where}/label", report)
    if "hint" in block:
        _check_text(block["hint"], 2000, f"{where}/hint", report)
    _check_element(block.get("element"), f"{where}/element", report)


def _nothing(block: Json, where: str, report: Report) -> None:
    """Kinds that are passed on as they are."""


_BUTTON = frozenset(
    ("type", "text", "action_id", "url", "value", "style", "confirm", "accessibility_label")
)

_TEXT_INPUT = frozenset(
    (
        *("type", "action_id", "initial_value", "multiline", "min_length", "max_length"),
        *("dispatch_action_config", "focus_on_load", "placeholder"),
    )
)

_CHECKS: dict[str, Callable[[Json, str, Report], None]] = {
    "section": _check_section,
    "header": _check_header,
    "markdown": _check_markdown,
    "actions": _check_actions,
    "context": _check_context,
    "input": _check_input,
    "divider": _nothing,
    "image": _nothing,
    "rich_text": _nothing,
    "file": _nothing,
    "video": _nothing,
    "table": _nothing,
    "context_actions": _nothing,
    "plan": _nothing,
    "task_card": _nothing,
}


def _check_unique(blocks: list[Json], name: str, report: Report) -> None:
    """Slack refuses a `block_id` twice, and an `action_id` twice within one block."""
    seen: set[str] = set()
    for index, block in enumerate(blocks):
        own = block.get("block_id")
        if own and own in seen:
            report(f"block_id already exists: {own}", f"/{name}/{index}/block_id")
        seen.add(own or "")
        actions: set[str] = set()
        for place, element in enumerate(elements_of(block)):
            action = element.get("action_id")
            if action and action in actions:
                where = f"/{name}/{index}/elements/{place}/action_id"
                report(f"action_id already exists: {action}", where)
            actions.add(action or "")
