"""The bot as a benchmark runs it: `python -m bench.bot CONFIG DATA`.

Like `galata run`, but each line on standard input is answered with what the process has used so
far, and its end stops the bot.
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

from bridge.app import run_app
from bridge.config import load


def _answer_questions() -> None:
    for _ in sys.stdin:
        print(json.dumps({"cpu_s": time.process_time()}), flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    config = load(Path(sys.argv[1]), os.environ)
    threading.Thread(target=_answer_questions, daemon=True).start()
    sys.exit(asyncio.run(run_app(config, data=Path(sys.argv[2]), console=False)))
