"""The tool by which a model looks up what has left its context."""

from __future__ import annotations

from agent.messages import JsonObject, JsonValue
from agent.tools import ToolContext, ToolOutput, ToolSpec
from memory.rendering import READ_TOOL
from memory.transcripts import Transcripts

LINES = 100  # without a limit
MOST_LINES = 400
MOST_CHARACTERS = 20_000  # in one answer; what results in old turns are cut to
_FOR_THE_HEAD = 200  # characters of it


class ReadTranscript:
    """`read_transcript`: this conversation's stored messages, also those no longer in context."""

    spec = ToolSpec(
        READ_TOOL,
        "Reads the stored transcript of this conversation, also what was cut or has left the "
        "context. The transcript is numbered by lines, oldest first.",
        {
            "type": "object",
            "properties": {
                "offset": {
                    "type": "integer",
                    "description": "First line, from 0; a negative one counts from the end, so "
                    "-100 gives the last 100 lines. Default 0.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "description": f"Number of lines. Default {LINES}, at most {MOST_LINES}.",
                },
            },
            "additionalProperties": False,
        },
        parallel=True,
        timeout_s=30,
    )

    def __init__(self, transcripts: Transcripts, session: int) -> None:
        self._transcripts = transcripts
        self._session = session

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """The lines that were asked for, as many as fit; which session is not the model's choice."""
        lines = await self._transcripts.lines(self._session)
        if not lines:
            return ToolOutput.of("The transcript is empty.")
        total = len(lines)
        start = _whole(arguments.get("offset"), 0)
        if start < 0:
            start = max(0, total + start)
        if start >= total:
            return ToolOutput.of(f"There are {total} lines; the last one is line {total - 1}.")
        shown = _fitting(
            lines[start : start + min(_whole(arguments.get("limit"), LINES), MOST_LINES)]
        )
        end = start + len(shown)
        more = f"Go on with offset {end}." if end < total else "This is the end."
        head = f"Lines {start} to {end - 1} of {total} (counted from 0). {more}"
        return ToolOutput.of("\n".join([head, *shown]))


def _whole(value: JsonValue, default: int) -> int:
    """The number; JSON's whole numbers may be written as 5.0."""
    return int(value) if isinstance(value, int | float) else default


def _fitting(lines: list[str]) -> list[str]:
    """The first lines that fit an answer: one line always does."""
    room = MOST_CHARACTERS - _FOR_THE_HEAD
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return lines[:count]
    return lines
