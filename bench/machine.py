"""What the machine did while something was measured, so that a bad figure can be told from a busy
machine."""

from __future__ import annotations

import time

import psutil

from bench.processes import Child
from bench.report import Measure, Measures, percentile


class Machine:
    """Watches from its making on. `bot` is measured, `servers` serve it, `idle` is a `bench.idle`;
    what all other programs do is what disturbs."""

    def __init__(self, bot: Child, servers: Child, idle: Child) -> None:
        self._bot = bot
        self._servers = servers
        self._idle = idle
        idle.ask()
        self._began = time.monotonic()
        self._others_s = self._others()
        self._waited_s = bot.waited_s

    def measures(self) -> Measures:
        """Since the beginning: cores that others used; how late an idle loop woke; the part of the
        time that the bot's threads were ready to run and had no core."""
        seconds = time.monotonic() - self._began
        late = self._idle.ask()["late_ms"]
        return {
            "load_others_cpu": Measure((self._others() - self._others_s) / seconds, "cores"),
            "load_idle_late_p99_ms": Measure(percentile(late, 99), "ms"),
            "load_waited_for_core": Measure((self._bot.waited_s - self._waited_s) / seconds, "s/s"),
        }

    def _others(self) -> float:
        """CPU seconds so far of everything on the machine but the bot and the servers: also of
        programs that run with `nice`, of the kernel, and of other machines on the same host."""
        times = psutil.cpu_times()._asdict()
        # The time of guests is in `user` too.
        unused = ("idle", "iowait", "guest", "guest_nice")
        busy = sum(spent for kind, spent in times.items() if kind not in unused)
        return float(busy) - self._bot.cpu_s - self._servers.cpu_s
