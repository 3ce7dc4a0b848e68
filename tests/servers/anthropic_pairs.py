"""How calls and results must follow each other in Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.servers.llm_request import Refused
from tests.servers.llm_script import Json


@dataclass
class Turn:
    """Messages of one role in a row, which the API takes as one; `index` is that of the first."""

    index: int
    role: str
    blocks: list[tuple[str, Json]]  # where it stands, and the block


def merged(messages: list[Json]) -> list[Turn]:
    """The conversation in alternating turns, as the API sees it."""
    turns: list[Turn] = []
    for index, message in enumerate(messages):
        if not turns or turns[-1].role != message["role"]:
            turns.append(Turn(index, message["role"], []))
        content = message["content"]
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        turns[-1].blocks += [
            (f"messages.{index}.content.{place}", block) for place, block in enumerate(blocks)
        ]
    return turns


def check_pairs(messages: list[Json]) -> None:
    """Each call is answered once, at the head of the next message; each result has its call."""
    calls: dict[str, None] = {}  # those of the turn before, in order
    seen: set[str] = set()
    at = 0
    for turn in merged(messages):
        if turn.role == "user":
            check_results(turn, calls, at)
            calls = {}
            continue
        at = turn.index
        for where, block in turn.blocks:
            if block["type"] == "tool_use":
                if block["id"] in seen:
                    raise Refused(f"{where}: `tool_use` ids must be unique")
                seen.add(block["id"])
                calls[block["id"]] = None
    if calls:
        raise unanswered(at, list(calls))


def check_results(turn: Turn, calls: Mapping[str, None], at: int) -> None:
    """The results in a user turn against the calls of the assistant turn before it."""
    answered: set[str] = set()
    leading = True
    for where, block in turn.blocks:
        if block["type"] != "tool_result":
            leading = False
            continue
        id_ = block["tool_use_id"]
        if id_ not in calls:
            raise Refused(
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous "
                "message."
            )
        if id_ in answered:
            raise Refused(
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` "
                f"blocks with id: {id_}"
            )
        if leading:
            answered.add(id_)
    late = [id_ for id_ in calls if id_ not in answered]
    if late:
        raise unanswered(at, late)


def unanswered(at: int, ids: list[str]) -> Refused:
    """Calls without results directly after them; results after other content do not count."""
    return Refused(
        f"messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately "
        f"after: {', '.join(ids)}. Each `tool_use` block must have a corresponding `tool_result` "
        "block in the next message."
    )
