"""What the console tells Prometheus at ``/metrics``: what a stream cannot tell of itself, since it may be down.

All values are of the last look; a scrape reads memory only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from binlake.cli.console.looked import LookedTable, StreamView
from hudilake.clock import now_ms, parse_instant

_OF_STREAM = {
    "binlake_console_up": "Whether a run of the stream is alive.",
    "binlake_console_stream_lag": "Records in the stream's topics that it has not applied.",
    "binlake_console_look_age_seconds": "Since the console last looked at the stream.",
}
_OF_TABLE = {
    "binlake_console_lag": "Records in the table's topics that it has not applied.",
    "binlake_console_newest_change_seconds": "The age of the newest change of the source in the table.",
    "binlake_console_quarantined": "Records in quarantine that were not replayed.",
    "binlake_console_log_base_ratio": "Log bytes over base bytes.",
    "binlake_console_pending_seconds": "The age of the oldest compaction that is not completed; 0 for none.",
    "binlake_console_lock_held_seconds": "Since the lock was first seen with its present holder; 0 if it is free.",
    "binlake_console_verify_differences": "What binlake verify last found different and did not repair.",
    "binlake_console_unreadable": "Whether the table could not be read.",
}


class ViewCollector(Collector):
    """The metrics of some views.

    Args:
        views: of the streams, at the moment of the scrape.
    """

    def __init__(self, views: Sequence[StreamView]) -> None:
        self._views = views

    def collect(self) -> Iterable[GaugeMetricFamily]:
        """The metrics with their values; a value that is not known is left out."""
        families = {name: GaugeMetricFamily(name, text, labels=["stream"]) for name, text in _OF_STREAM.items()}
        families |= {
            name: GaugeMetricFamily(name, text, labels=["stream", "table"]) for name, text in _OF_TABLE.items()
        }
        for view in self._views:
            for name, value in _of_stream(view):
                if value is not None:
                    families[name].add_metric([view.name], value)
            for table in view.tables.values():
                for name, value in _of_table(table):
                    if value is not None:
                        families[name].add_metric([view.name, table.name], value)
        return families.values()


def _of_stream(view: StreamView) -> Iterator[tuple[str, float | None]]:
    yield "binlake_console_up", float(view.state == "running")
    yield "binlake_console_stream_lag", view.stream.lag if view.stream is not None else None
    yield "binlake_console_look_age_seconds", (now_ms() - view.looked_ms) / 1000 if view.looked_ms else None


def _of_table(table: LookedTable) -> Iterator[tuple[str, float | None]]:
    status = table.status
    yield "binlake_console_unreadable", float(table.error is not None)
    yield "binlake_console_lag", table.waiting
    if status is None:
        return
    yield "binlake_console_newest_change_seconds", table.behind_ms / 1000 if table.behind_ms is not None else None
    yield "binlake_console_quarantined", status.quarantined
    yield "binlake_console_log_base_ratio", status.log_bytes / status.base_bytes if status.base_bytes else None
    oldest = min(map(parse_instant, status.pending), default=None)
    yield "binlake_console_pending_seconds", max(0.0, (now_ms() - oldest) / 1000) if oldest is not None else 0.0
    since_ms = table.lock_since_ms
    yield "binlake_console_lock_held_seconds", (now_ms() - since_ms) / 1000 if since_ms is not None else 0.0
    yield "binlake_console_verify_differences", status.differing


def rendered_metrics(views: Sequence[StreamView]) -> str:
    """The values in Prometheus' text format, version 0.0.4."""
    registry = CollectorRegistry()
    registry.register(ViewCollector(views))
    return generate_latest(registry).decode()
