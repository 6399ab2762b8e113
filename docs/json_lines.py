"""The kinds of lines that each command prints with ``--json``, as types of their fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from binlake.cli.commands.loads.quarantine import ReasonGroup
from binlake.cli.commands.reads.tables import TableSummary
from binlake.cli.commands.stream.check_result import CheckOutcome
from binlake.cli.console.lake_page import LakeRow
from binlake.hbase.derive.check import WideCheck
from binlake.load.first.table_load import LoadProgress
from binlake.load.replay.quarantine_records import ReplayResult
from binlake.position.in_hand import WorkInHand
from binlake.proof.verify.result import TableResult
from binlake.rows.upsert.route import Counts
from binlake.stream.monitoring.held import HeldTable
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.monitoring.status import TableStatus
from binlake.stream.monitoring.writers import Writer
from binlake.tables.unmatched import UnmatchedName
from hudilake.read.plan import PlanStep
from hudilake.services.advice.advise import Advice
from hudilake.services.fsck import Finding
from hudilake.services.rebucket.steps import RebucketResult

#: Rows of tables: their columns are those of the table.
ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclass(frozen=True)
class LineKind:
    """A kind of line.

    Args:
        of: the dataclass whose fields it has; None for none.
        without: fields of it that the line lacks.
        more: further fields: name -> type, or the fields of an object; a name that ends with ? may be missing.
        rows: whether it is a row of a table, with any fields.
    """

    of: type | None = None
    without: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)
    rows: bool = False


def _fields(**more: Any) -> LineKind:  # noqa: ANN401 - types
    return LineKind(more=more)


def _table(**more: Any) -> LineKind:  # noqa: ANN401 - types
    return LineKind(more={"table": str, **more})


_POSITIONS = dict[str, dict[str, int]]
_OFFSETS = dict[str, dict[str, list[int]]]
_MAYBE = str | None
_ERROR = dict[str, str | dict[str, str] | None] | None
_INSTANT = {"requested": str, "action": str, "state": str}
_PLANNED = {"due": _MAYBE, "scheduled": _MAYBE, "completed": list[str], "pending": list[str], "seconds": float}
_TAG = {"tag": str, "completed": str, "transaction": _MAYBE, "commits": dict[str, str]}
_SAVEPOINT = {"instant": str, "user": str, "comment": str, "made_ms": int, "files": int}
_CHECK = LineKind(more={"check": str, "verdict": CheckOutcome, "detail": str, "exit_code?": int, "next?": _MAYBE})
_RECORD = {
    "topic": str,
    "partition": int,
    "offset": int,
    "kafka_ms": int,
    "reason": str,
    "detail": str,
    "source_table": _MAYBE,
    "quarantined_ms": int,
    "replayed_ms": int | None,
    "replayed_to": _MAYBE,
}
_PORTION = LineKind(ProgressEvent)
_ROWS = [LineKind(rows=True)]
_KAFKA = {"topic": str, "partition": int, "offset": int}
_WRITTEN = {
    "found_in": str,
    "operation?": str,
    "order?": list[Any] | str | int,
    "source_position?": str,
    "fate?": str,
    "why": str,
    "values?": dict[str, Any],
    "changed?": list[str],
    "files?": list[str],
    "statement?": str,
    "instant?": str,
    "completed_ms?": int,
    "by?": str,
    "archived?": bool,
    "offsets?": _OFFSETS,
    "kafka?": _KAFKA,
    "gtid?": str,
    "transaction?": str,
    "binlog?": str,
    "source_ms?": int,
}
_COMMIT = {
    "instant": str,
    "completed_ms": int,
    "by": str,
    "archived": bool,
    "batch": int | None,
    "transaction": _MAYBE,
    "split": bool | None,
    "offsets": _OFFSETS,
    "source_ms": list[int] | None,
    "files": list[str],
}
_REPLAYED = {
    **dict.fromkeys(("events_read", "applied", "superseded", "filtered", "quarantined", "already_applied"), int),
    "commits": int,
    "error": _MAYBE,
}
_FOUND = {"severity": str, "what": str, "instant": str}
_REQUESTED = _table(request=str)

#: Command -> the kinds of its lines.
LINES: Mapping[str, Sequence[LineKind]] = {
    "archive": [_table(instants=int), _table()],
    "audit": [
        LineKind(
            more={
                "table": str,
                "commits": int,
                "foreign": int,
                "gaps": int,
                "streams": dict[str, Counts],
                "contents?": {"proved": int, "rows": int, "undetermined": int},
                "findings": list[dict[str, _MAYBE]],
            }
        ),
        _table(instant=str, stream=str, counts=Counts, offsets=_OFFSETS, rows=int | None, archived=bool),
    ],
    "backfill": [
        _PORTION,
        _table(
            columns=list[str],
            group=_MAYBE,
            portions=int,
            portions_before=int,
            held=bool,
            rows=int,
            counts=dict[str, int],
            bytes_written=int,
            stopped=bool,
            dry_run=bool,
        ),
    ],
    "cells": _ROWS,
    "changes": _ROWS,
    "check": [_CHECK],
    "clean": [_table(files=list[str], retained=_MAYBE), _table()],
    "cluster": [
        LineKind(
            more={
                "table": str,
                **_PLANNED,
                "units": int,
                "file_groups": int,
                "bytes_read": int,
                "replaced": int,
                "made": int,
                "rows": int,
                "bytes_written": int,
                "gave_way": int,
                "skipped": _MAYBE,
                "error": _ERROR,
            }
        )
    ],
    "compact": [
        LineKind(
            more={
                "table": str,
                **_PLANNED,
                "file_groups": int,
                "rows": int,
                "bytes_written": int,
                "cleaned": int,
                "archived": int,
                "skipped": _MAYBE,
                "warning": _MAYBE,
                "error": _ERROR,
            }
        )
    ],
    "config-schema": _ROWS,
    "console": [_fields(address=str, streams=list[str])],
    "cuts": [_fields(at=str, completed=str, transaction=_MAYBE, commits=dict[str, str], missing=dict[str, str])],
    "derive": [
        _table(rows=int, upserts=int, gone=int, faults=int, why=str, took_ms=float, instants=list[str], swept=bool),
        LineKind(WideCheck, more={"table": str}),
    ],
    "dump": [
        _fields(records=int, files=list[str], bytes=int, offsets=list[list[str | int]], lag=int, repeated=bool | int)
    ],
    "erase": [
        _table(file=str, bytes=int, plan=str),
        _table(savepoints=list[str], unread=dict[str, str]),
        _table(file=str, bytes=int, gone_ms=int | None),
        _table(
            scanned_files=int,
            scanned_bytes=int,
            shared_texts=int,
            left=dict[str, list[str]],
            unread=dict[str, str],
            record=str,
        ),
        _fields(unmatched_quarantined=int, not_looked_at=list[str]),
    ],
    "explain": [
        LineKind(
            more={
                "table": str,
                "query": str,
                "where": str,
                "columns": list[str],
                "steps": list[PlanStep],
                "laid_out": list[str],
                "warnings": list[str],
                "counted": {"slices": int, "rows": int},
                "slices": int,
                "files": int,
                "bytes": int,
                "inside": dict[str, int] | None,
            }
        ),
        _fields(parts=list[str], why_not=list[str]),
    ],
    "fsck": [LineKind(Finding)],
    "init": [_fields(wrote=str, connector=_MAYBE), _CHECK],
    "inspect": [
        LineKind(
            more={
                "table": str,
                "uri": str,
                "kind": str,
                "key": list[str],
                "partition": list[str],
                "ordering": _MAYBE,
                "columns": dict[str, str],
                "metadata_partitions": list[str],
                "completed": int,
                "pending": int,
                "instants": list[dict[str, str | dict[str, Any] | None]],
                "slices": int,
                "base_bytes": int,
                "log_bytes": int,
                "largest": list[dict[str, str | int | None]],
            }
        )
    ],
    "layout": [LineKind(Advice, more={"settings": list[str], "order": dict[str, Any] | None})],
    "lineage": [
        LineKind(
            more={
                "table": str,
                "path": str,
                "sources": list[dict[str, str]],
                "cells": _MAYBE,
                "engine": str,
                "derives": list[str],
                "positions": _POSITIONS,
                "commits": list[Any],
            }
        ),
        _fields(source=str, feeds=dict[str, str]),
    ],
    "load": [
        LineKind(LoadProgress, more={"state": str, "rows_per_second": int, "seconds_left": int | None}),
        _table(
            state=str,
            rows=int,
            before=int,
            commits=int,
            position=str,
            seconds=float,
            error=dict[str, _MAYBE] | None,
        ),
    ],
    "metastore check": [_fields(where=str, what=str, next=str)],
    "metastore push glue": [
        _table(change=str, added=int, altered=int, removed=int, seconds=float, error=_ERROR),
    ],
    "metastore rebuild": [_table(differences=list[str], seconds=float, error=_ERROR)],
    "metastore register": [
        _table(created=list[str], altered=list[str], added=int, dropped=int, seconds=float, error=_ERROR)
    ],
    "metastore serve": [_fields(said=str)],
    "quarantine list": [LineKind(ReasonGroup), LineKind(more=_RECORD)],
    "quarantine replay": [
        LineKind(ReplayResult, ("errors",), {"errors": dict[str, str]}),
        LineKind(ReasonGroup),
    ],
    "quarantine show": [LineKind(more={**_RECORD, "key": _MAYBE, "value": _MAYBE})],
    "query": _ROWS,
    "rebucket": [
        LineKind(RebucketResult, more={"table": str}),
        _table(partition=str, buckets=int, wanted=int, file_groups=int, bytes=int),
        LineKind(more={"table": str, "partition": str, "split?": list[int], "merge?": list[int]}),
    ],
    "repair": [_fields(steps=list[str], done=list[str], findings=list[Finding])],
    "replay": [
        _PORTION,
        LineKind(
            more={
                "from": str,
                "found": int,
                "covered": int,
                "taken": list[str],
                "late": int,
                "rewritten": list[str],
                "repeated_portions": int,
                "stopped": bool,
                "tables": dict[str, Any],
            }
        ),
    ],
    "restore": [
        LineKind(
            more={
                "table": str,
                "target": str,
                "undone": list[dict[str, _MAYBE]],
                "files": int,
                "bytes": int,
                "kept_writes": int,
                "kept_files": int,
                "restored": bool,
                "positions": dict[str, _POSITIONS],
            }
        ),
        _table(finished=str),
    ],
    "revert": [
        _table(
            key=Any,
            partition=str,
            what=str,
            cells=dict[str, dict[str, Any]],
            conflicts=list[dict[str, _MAYBE]],
            order=Any,
        ),
        _table(commit=_MAYBE),
    ],
    "run": [_PORTION],
    "savepoint create": [LineKind(more={"table": str, **_SAVEPOINT})],
    "savepoint delete": [_table(instant=str, deleted=bool)],
    "savepoint list": [LineKind(more=_SAVEPOINT)],
    "status": [
        LineKind(
            more={
                "stream": str,
                "run": Writer | None,
                "batches": int | None,
                "positions": _POSITIONS,
                "lag": int | None,
                "lags": _POSITIONS,
                "kafka": str,
                "behind": list[str],
                "in_hand": [LineKind(WorkInHand, more={"lives": bool})],
                "held": list[HeldTable],
                "quarantined": dict[str, int],
                "unmatched": list[UnmatchedName],
            }
        ),
        LineKind(TableStatus, more={"table": str}),
    ],
    "table forget": [_REQUESTED],
    "table pause": [_REQUESTED],
    "table resume": [_REQUESTED],
    "table resync": [
        _table(request=str, of=str, signal=str),
        _table(request=str, rows=int, deletes=int, position=str),
    ],
    "tables": [LineKind(TableSummary)],
    "tag create": [LineKind(more=_TAG)],
    "tag delete": [_fields(tag=str, deleted=bool)],
    "tag list": [LineKind(more=_TAG)],
    "top": [LineKind(LakeRow)],
    "verify": [LineKind(TableResult, more={"different": bool})],
    "why": [
        LineKind(more={"table": str, "key": Any, "partition": str, "kind": str, **_WRITTEN}),
        LineKind(
            more={
                "table": str,
                "key": Any,
                "partition": str,
                "kind": str,
                "fate": _MAYBE,
                "file_group": str,
                "not_known": list[str],
            }
        ),
        LineKind(
            more={
                "table": str,
                "kind": str,
                "found_in": str,
                "reason": str,
                "why": str,
                "kafka": _KAFKA,
                "replayed_to": _MAYBE,
            }
        ),
        LineKind(more={"table": str, "kind": str, "found_in": str, "records": int}),
    ],
}
