"""What a command asks of the process that runs on the data folder."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

from bridge.cli.options import CommandFailed
from bridge.control_address import SOCKET, socket_address

WAIT_S = 30.0  # for an answer


class NotRunning(CommandFailed):
    """No process runs there, or none that can be asked."""


def ask_running(data: Path, verb: str, *, wait_s: float = WAIT_S, **arguments: Any) -> Any:
    """The result of `verb`. Raises `NotRunning`, and `CommandFailed` with what the process said."""
    request = json.dumps({"verb": verb, "arguments": arguments})
    try:
        answer = json.loads(_exchange(data, request.encode() + b"\n", wait_s))
        if answer["ok"]:
            return answer["result"]
        raise CommandFailed(str(answer["error"]))
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        raise NotRunning(f"no galata runs on {data}: start it first (galata run)") from None
    except PermissionError:
        raise CommandFailed(
            f"{data / SOCKET} belongs to another user: run this as the one who runs the bot"
        ) from None
    except TimeoutError:
        raise CommandFailed(
            f"the galata that runs on {data} has not answered within {wait_s:.0f} s"
        ) from None
    except (OSError, ValueError, KeyError, TypeError):  # it ended in the middle of its answer
        raise CommandFailed(f"the galata that runs on {data} gave no whole answer") from None


def _exchange(data: Path, line: bytes, wait_s: float) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.settimeout(wait_s)
        with socket_address(data) as address:
            caller.connect(address)
        caller.sendall(line)
        with caller.makefile("rb") as answers:
            return answers.readline()
