"""Where the control socket lies, also in a folder whose path is too long for one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from pathlib import Path

SOCKET = "control.sock"
_MOST_BYTES = 100  # sun_path has 108 bytes on Linux and 104 elsewhere, a zero among them


@contextlib.contextmanager
def socket_address(data: Path) -> Generator[str]:
    """The path by which the socket of this data folder can be bound or connected to while inside: its
    own, or by way of the opened folder (Linux). Raises `OSError` when there is no such folder."""
    path = data / SOCKET
    if len(os.fsencode(path)) <= _MOST_BYTES:
        yield str(path)
        return
    descriptor = os.open(data, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/{SOCKET}"
    finally:
        os.close(descriptor)
