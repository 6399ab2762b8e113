"""What tasks report, added up; and that all of it can be pickled."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa

from binlake.decode.changes import Column, Control, ControlKind, QuarantinedRecord, SourceTable, TableSchema
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import NoSchemas
from binlake.rows.tasks.plan import (
    BatchPlan,
    TableFailure,
    TableState,
    TableWriter,
    TaskFailure,
    TaskReport,
    TaskTableReport,
    WrittenFile,
)
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import Target
from binlake.rows.upsert.truncates import Truncates
from binlake.settings import TablesSettings
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import GroupNames, SimpleBuckets
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.write.group_writer import LogWriter

A, B = SourceTable("shop", "a"), SourceTable("shop", "b")


def table(source: SourceTable, *columns: str, **facts: Any) -> TaskTableReport:  # noqa: ANN401 - fields of TaskTableReport
    """A report of a table with text columns."""
    schema = TableSchema(source, tuple(Column(name, "", pa.string()) for name in columns), ("id",))
    target = Target.new(source, f"shop/{source.table}", ("id",), SimpleBuckets(2))
    return TaskTableReport(schema, target, schema.arrow(), **facts)


def quarantined(source: SourceTable | None) -> QuarantinedRecord:
    """A bad record."""
    return QuarantinedRecord("t", 0, 1, 2, b"k", b"\xff", "malformed_json", "line 1", source)


def test_reports_of_one_table_add_up() -> None:
    first = table(A, "id", topics={"t"}, counts=Counts(read=3, superseded=1), oldest_ms=50, newest_ms=90)
    first.add(
        table(A, "id", "more", topics={"u"}, counts=Counts(read=2, already_applied=4), oldest_ms=20, newest_ms=70)
    )
    assert first.counts == Counts(read=5, superseded=1, already_applied=4)
    assert first.topics == {"t", "u"}
    assert (first.oldest_ms, first.newest_ms) == (20, 90)
    assert first.columns.names == ["id", "more"]
    assert [c.name for c in first.schema.columns] == ["id", "more"]


def test_a_report_without_times_does_not_hide_those_of_another() -> None:
    for one, other in ((0, 20), (20, 0)):
        report = table(A, "id", oldest_ms=one, newest_ms=one)
        report.add(table(A, "id", oldest_ms=other, newest_ms=other))
        assert (report.oldest_ms, report.newest_ms) == (20, 20)


def test_columns_widen_and_empty_reports_take_nothing_away() -> None:
    narrow, wide = table(A, "id"), table(A, "id")
    narrow.columns, wide.columns = pa.schema([("n", pa.int32())]), pa.schema([("n", pa.int64()), ("x", pa.string())])
    narrow.add(wide)
    assert narrow.columns == wide.columns
    empty = table(A, "id")
    empty.columns = pa.schema([])
    narrow.add(empty)
    assert narrow.columns == wide.columns


def test_task_reports_add_up() -> None:
    control = Control(ControlKind.TRUNCATE, A, 7, "t", 0, 3)
    first = TaskReport(
        tables={A: table(A, "id", counts=Counts(read=1))},
        quarantined=[quarantined(None)],
        quarantined_count=1,
        filtered={(None, "heartbeat"): 2, (A, "tombstone"): 1},
        unknown_columns={A: {"x"}},
        skipped={B: {"t"}},
        records=10,
        raw_bytes=100,
        stage_ms={"decode": 5.0, "fetch": 9.0},
    )
    second = TaskReport(
        tables={A: table(A, "id", counts=Counts(read=2)), B: table(B, "id", counts=Counts(read=4))},
        quarantined=[quarantined(A)],
        quarantined_count=30,
        controls=[control],
        filtered={(A, "tombstone"): 4, (B, "ddl"): 1},
        unknown_columns={A: {"y"}, B: {"z"}},
        skipped={B: {"u"}},
        records=5,
        raw_bytes=50,
        stage_ms={"decode": 8.0, "write": 1.0},
    )
    first.add(second)
    assert {source: report.counts.read for source, report in first.tables.items()} == {A: 3, B: 4}
    assert (first.quarantined, first.quarantined_count) == ([quarantined(None), quarantined(A)], 31)
    assert first.controls == [control]
    assert first.filtered == {(None, "heartbeat"): 2, (A, "tombstone"): 5, (B, "ddl"): 1}
    assert first.unknown_columns == {A: {"x", "y"}, B: {"z"}}
    assert first.skipped == {B: {"t", "u"}}
    assert (first.records, first.raw_bytes) == (15, 150)
    assert first.stage_ms == {"decode": 8.0, "fetch": 9.0, "write": 1.0}  # tasks run side by side: the longest counts


def test_everything_travels() -> None:
    context = WriteContext("a", "20240101000000000", "{}", pa.schema([("id", pa.string())]), "_binlake_order")
    error = UnsupportedError("no", do_next="stop", table="a")
    things = [
        BatchPlan(
            DecodeOptions(),
            NoSchemas(),
            TablesSettings(),
            {A: TableState({"t": {0: 5}}, Truncates(7), "because", True)},
            {"bootstrap.servers": "x"},
            "file:///lake",
            {},
            writers={"shop/a": TableWriter(LogWriter(context), GroupNames("a", SimpleBuckets(2), {("", 0): "id"}))},
        ),
        TaskReport(tables={A: table(A, "id")}, quarantined=[quarantined(A)]),
        WrittenFile("shop/a", WriteResult("", "id", "name", 1, 2, 3, "a", "b"), 4),
    ]
    assert [pickle.loads(pickle.dumps(thing)) for thing in things] == things
    for failed in (TableFailure("shop/a", error), TaskFailure(error)):
        back = pickle.loads(pickle.dumps(failed))
        assert (str(back.error), back.error.where, back.error.do_next) == (str(error), {"table": "a"}, "stop")
