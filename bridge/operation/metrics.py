"""What Prometheus is told: numbers by channel, never an id of a chat or a person."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from bridge.limits.gate import MICRO
from bridge.operation.status import Status


def metrics_text(status: Status, month_cost_microusd: int, tasks: int, data: Path) -> bytes:
    """All metrics in the text format. `tasks`: those of the event loop; `data`: whose disk is
    measured."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    GCCollector(registry)
    registry.register(_Ours(status, month_cost_microusd, tasks, shutil.disk_usage(data).free))
    return generate_latest(registry)


class _Ours(Collector):
    def __init__(
        self, status: Status, month_cost_microusd: int, tasks: int, free_bytes: int
    ) -> None:
        self._status = status
        self._month_cost_microusd = month_cost_microusd
        self._tasks = tasks
        self._free_bytes = free_bytes

    def collect(self) -> Iterable[Metric]:
        """Called by the registry."""
        status = self._status
        yield InfoMetricFamily("galata", "This Galata.", value={"version": status.version})
        yield from self._of_channels()
        queues = status.queues
        for name, text, value in (
            ("runs", "Runs under way.", sum(queue.running for queue in queues)),
            ("messages_waiting", "Messages that wait.", sum(queue.waiting for queue in queues)),
            (
                "replies_undelivered",
                "Replies that are not delivered yet.",
                sum(queue.undelivered for queue in queues),
            ),
            ("chats_at_work", "Conversations that have something to do.", len(queues)),
            ("errors_last_hour", "Errors of the last hour.", status.errors.count),
            (
                "cost_month_usd",
                "Cost of this month's model calls, where a price is known.",
                self._month_cost_microusd / MICRO,
            ),
            ("tasks", "Tasks of the event loop.", self._tasks),
            ("disk_free_bytes", "Free space where the data folder lies.", self._free_bytes),
        ):
            yield GaugeMetricFamily(f"galata_{name}", text, value=value)

    def _of_channels(self) -> Iterable[Metric]:
        receiving = GaugeMetricFamily(
            "galata_channel_receiving", "1 while the channel receives.", labels=["channel"]
        )
        last = GaugeMetricFamily(
            "galata_channel_last_message_timestamp_seconds",
            "When the channel's last message came.",
            labels=["channel"],
        )
        for channel in self._status.channels:
            receiving.add_metric([channel.name], float(channel.receiving or False))
            if channel.last_message is not None:
                at = datetime.fromisoformat(channel.last_message)
                last.add_metric([channel.name], at.timestamp())
        yield receiving
        yield last
