"""The log of a stream for machines: one JSON object a line for every thing that happened."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pipeline.clock import now_ms
from pipeline.errors import BinlakeError, ConfigError
from pipeline.monitoring.progress import ProgressEvent, TableProgress

_FATES = ("events_read", "applied", "superseded", "filtered", "quarantined", "already_applied")


class JsonLog(AbstractContextManager["JsonLog"]):
    """Appends to a file, or to standard error (``-``). Raises ConfigError for a file that cannot be written.

    Every line has ``time`` (UTC), ``level``, ``event`` and ``stream``; lines about a table have ``table``, and where
    they apply ``instant`` and ``offsets`` (topic -> partition -> [first, end]). A failure is told as it ends the run.
    """

    def __init__(self, stream: str, path: str) -> None:
        self._stream = stream
        try:
            self._file = sys.stderr if path == "-" else Path(path).open("a", encoding="utf-8")  # noqa: SIM115 - __exit__
        except OSError as error:
            raise ConfigError(f"cannot write the log: {error}", do_next="correct --log-json", path=path) from error

    def __enter__(self) -> Self:
        self._write("info", "started")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, BinlakeError):
            where = {name: str(value) for name, value in error.where.items()}
            self._write("error", "failed", error=error.what, where=where, next=error.do_next)
        elif error is not None:
            self._write("error", "failed", error=repr(error))
        else:
            self._write("info", "stopped")
        if self._file is not sys.stderr:
            self._file.close()

    def update(self, event: ProgressEvent) -> None:
        """Write what a finished batch brought."""
        for ddl in event.ddl:
            level, what = ("info", "ddl") if ddl.error is None else ("warning", "ddl_failed")
            self._write(level, what, batch=event.batch_id, **dataclasses.asdict(ddl))
        for notice in event.notices:
            self._write("warning", "notice", batch=event.batch_id, notice=notice)
        for part in event.tables:
            for level, what, fields in _of_table(part):
                self._write(level, what, batch=event.batch_id, table=part.table, offsets=part.offsets, **fields)
        stages = {name: round(ms, 1) for name, ms in event.stage_ms.items()}
        counts = {"records": event.events_read, "lag": event.lag, "quarantined_without_table": event.quarantined}
        self._write("info", "batch", batch=event.batch_id, latency_ms=event.latency_ms, stage_ms=stages, **counts)

    def _write(self, level: str, event: str, **fields: Any) -> None:  # noqa: ANN401 - any JSON
        moment = datetime.fromtimestamp(now_ms() / 1000, UTC).isoformat(timespec="milliseconds")
        line = {"time": moment.replace("+00:00", "Z"), "level": level, "event": event, "stream": self._stream, **fields}
        self._file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")
        self._file.flush()


def _of_table(part: TableProgress) -> Iterator[tuple[str, str, dict[str, Any]]]:
    counts = {name: getattr(part, name) for name in _FATES}
    if part.error is not None:
        yield "error", "table_failed", {"error": part.error, **counts}
    elif part.commit_instant is not None:
        times = {"latency_ms": part.commit_latency_ms, "freshness_ms": part.freshness_newest_ms}
        yield "info", "commit", {"instant": part.commit_instant, "bytes": part.bytes_written, **counts, **times}
    else:
        yield "info", "no_commit", counts
    if part.compaction_instant is not None:
        yield "info", "compaction", {"instant": part.compaction_instant}
    if part.warning is not None:
        yield "warning", "warning", {"instant": part.commit_instant, "warning": part.warning}
