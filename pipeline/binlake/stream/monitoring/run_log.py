"""The log of a run: one record with fields for each event, through Python's ``logging``."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Self

from binlake.rows.upsert.outcomes import DELIVERED_OUTCOMES
from binlake.stream.monitoring.progress import DdlProgress, ProgressEvent, TableProgress
from hudilake.errors import LakeError

_log = logging.getLogger(__name__)
#: The name of the logger. A program that shows progress in another way can filter these records by the name.
RUN_LOGGER = _log.name
_Record = tuple[int, str, str, dict[str, Any]]


class RunLog(AbstractContextManager["RunLog"]):
    """Logs the start, the batches and the end of a run.

    Every record has the fields ``event`` and ``stream``; records about a table have ``table``, and if they apply
    ``instant`` and ``offsets`` (topic -> partition -> [first, end]). An error that ends the run is logged and raised.
    """

    def __init__(self, stream: str) -> None:
        self._stream = stream

    def __enter__(self) -> Self:
        self._write(logging.INFO, "started", "the run started")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, LakeError):
            where = {name: str(value) for name, value in error.where.items()}
            fields = {"error": error.what, "where": where, "next": error.do_next}
            self._write(logging.ERROR, "failed", f"the run failed: {error}", **fields)
        elif error is not None:
            self._write(logging.ERROR, "failed", f"the run failed: {error!r}", error=repr(error))
        else:
            self._write(logging.INFO, "stopped", "the run stopped")

    def update(self, event: ProgressEvent) -> None:
        """Log a finished batch."""
        for ddl in event.ddl:
            self._write(*_of_ddl(ddl), batch=event.batch_id, **dataclasses.asdict(ddl))
        for notice in event.notices:
            self._write(logging.WARNING, "notice", notice, batch=event.batch_id, notice=notice)
        for part in event.tables:
            for level, name, text, fields in _of_table(part):
                fields = {"batch": event.batch_id, "table": part.table, "offsets": part.offsets, **fields}
                self._write(level, name, f"{part.table}: {text}", **fields)
        stages = {name: round(ms, 1) for name, ms in event.stage_ms.items()}
        counts = {"records": event.events_read, "by_template": event.by_template, "lag": event.lag}
        counts["quarantined_without_table"] = event.quarantined
        text = f"batch {event.batch_id}: {event.events_read} records in {event.latency_ms:.0f} ms, lag {event.lag}"
        fields = {"batch": event.batch_id, "latency_ms": event.latency_ms, "stage_ms": stages, **counts}
        self._write(logging.INFO, "batch", text, **fields)

    def _write(self, level: int, event: str, text: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON
        _log.log(level, "%s", text, extra={"event": event, "stream": self._stream, **fields})


def _of_ddl(ddl: DdlProgress) -> tuple[int, str, str]:
    if ddl.error is not None:
        return logging.WARNING, "ddl_failed", str(ddl)
    return logging.WARNING if ddl.undetermined else logging.INFO, "ddl", str(ddl)


def _of_table(part: TableProgress) -> Iterator[_Record]:
    counts = {name: getattr(part, name) for name in ("events_read", *DELIVERED_OUTCOMES)}
    if (derived := part.derived) is not None:
        counts = {"derived": derived.rows, "written": derived.upserts, "deleted": derived.deletes}
        counts |= {"quarantined": derived.faults, "derive_ms": round(derived.took_ms, 1)}
    if part.error is not None:
        yield logging.ERROR, "table_failed", f"no commit: {part.error}", {"error": part.error, **counts}
    elif (instant := part.commit_instant) is not None:
        times = {"latency_ms": part.commit_latency_ms, "freshness_ms": part.freshness_newest_ms}
        fields = {"instant": instant, "bytes": part.bytes_written, **counts, **times}
        rows = part.applied if derived is None else derived.upserts + derived.deletes
        yield logging.INFO, "commit", f"commit {instant}, {rows} rows", fields
    else:
        yield logging.INFO, "no_commit", "no commit was needed", counts
    if part.compaction_instant is not None:
        text = f"compaction {part.compaction_instant} completed"
        yield logging.INFO, "compaction", text, {"instant": part.compaction_instant}
    if part.clustering_instant is not None:
        text = f"clustering {part.clustering_instant} completed"
        yield logging.INFO, "clustering", text, {"instant": part.clustering_instant}
    if part.warning is not None:
        fields = {"instant": part.commit_instant, "warning": part.warning}
        yield logging.WARNING, "warning", part.warning, fields
