"""How the HTTP API is served."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from prometheus_client import CollectorRegistry

from lakemetastore.lake.lake_tables import LakeTables

#: Told of an instant that a writer has completed: the URI of its table's root, and its requested time.
Register: TypeAlias = Callable[[str, str], None]


@dataclass(frozen=True)
class ServeOptions:
    """Limits of the service.

    Args:
        register: called from a thread for every registered instant; None to only look at the timeline.
        states: the metastore's states of lake tables: partitions, files and column ranges come from there while a state
            has the timeline that storage shows. None to read each table's own metadata table.
        page: the most items of one answer.
        body_bytes: the longest body of a request.
        watch_ms: how often a table is compared with storage while clients wait for its changes. A client sees a commit
            of another writer at most so long, and the time of a comparison, after it completed.
        wait_ms: the longest wait of a client for changes.
        waiters: the most clients that wait at once.
        threads: the most requests that are worked on at once; those that wait for changes need none.
        registry: of the process's metrics, all of which ``/metrics`` shows; None for one of its own.
    """

    register: Register | None = None
    states: LakeTables | None = None
    page: int = 10_000
    body_bytes: int = 8 << 20
    watch_ms: int = 500
    wait_ms: int = 60_000
    waiters: int = 10_000
    threads: int = 80
    registry: CollectorRegistry | None = None
