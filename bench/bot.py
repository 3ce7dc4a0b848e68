"""The bot as a benchmark runs it: `python -m bench.bot CONFIG DATA`.

Like `galata run`, but each line on standard input is answered with what the process has used so
far, its end stops the bot, and there is a tool that hangs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from agent.messages import JsonObject
from agent.tools import ToolContext, ToolOutput, ToolSpec
from bridge.app import serve
from bridge.config import Config, load
from bridge.log import Redactor, setup
from bridge.signals import Signals


class AskPort:
    """Connects to a port of this machine, says which chat it is called for, and waits for an answer
    that never comes."""

    spec = ToolSpec(
        "ask_port",
        "Ask the program behind a port of this machine.",
        {
            "type": "object",
            "properties": {"port": {"type": "integer"}, "chat": {"type": "string"}},
            "required": ["port", "chat"],
        },
        side_effects=True,
    )

    async def run(self, arguments: JsonObject, context: ToolContext) -> ToolOutput:
        """The answer, if there ever is one."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(str(arguments["port"])))
        try:
            writer.write(f"{arguments['chat']}\n".encode())
            return ToolOutput.of((await reader.read()).decode())
        finally:
            writer.close()


async def _run(config: Config, data: Path) -> int:
    redactor = Redactor(config.secrets())
    setup(config.log.level, as_json=config.log.json_lines, redactor=redactor)
    stopping = Signals()
    with stopping.on_signals():
        return await serve(config, data, redactor, stopping, console=False, more_tools=(AskPort(),))


def _answer_questions() -> None:
    for _ in sys.stdin:
        print(json.dumps({"cpu_s": time.process_time()}), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    config = load(Path(sys.argv[1]), os.environ)
    threading.Thread(target=_answer_questions, daemon=True).start()
    sys.exit(asyncio.run(_run(config, Path(sys.argv[2]))))
