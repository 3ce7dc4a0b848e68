"""The lines of a file descriptor, read beside the event loop by one daemon thread.

asyncio's pipes refuse files and never see the end of /dev/null, and the standard streams depend on
the locale: here bytes are read, and decoded as UTF-8.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading

MOST_AHEAD = 100  # lines that are read before they are asked for
_BYTE_ORDER_MARK = "\ufeff"


class Lines:
    """Lines as they are typed or piped; bytes that are no UTF-8 become U+FFFD. The descriptor is not
    closed."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read: asyncio.Queue[str | None] = asyncio.Queue()
        self._room = threading.Semaphore(MOST_AHEAD)
        self._thread: threading.Thread | None = None
        self._ended = False

    async def next(self) -> str | None:
        """The next line, without its line break; None at the end of the input, as often as asked.

        May be cancelled and called again: nothing is lost, and there is never a second thread.
        """
        if self._ended:
            return None
        if self._thread is None:
            loop = asyncio.get_running_loop()
            self._thread = threading.Thread(
                target=self._read_all, args=(loop,), daemon=True, name="console input"
            )
            self._thread.start()
        line = await self._read.get()
        self._room.release()
        self._ended = line is None
        return line

    def _read_all(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            os.set_blocking(self._descriptor, True)  # another program may have left it otherwise
            with open(self._descriptor, "rb", closefd=False) as source:
                for line in source:
                    self._room.acquire()
                    text = line.decode(errors="replace").rstrip("\r\n")
                    self._put(loop, text.removeprefix(_BYTE_ORDER_MARK))
        except OSError:
            pass  # the terminal is gone or the input is closed: that is its end
        finally:
            self._put(loop, None)

    def _put(self, loop: asyncio.AbstractEventLoop, line: str | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
            loop.call_soon_threadsafe(self._read.put_nowait, line)
