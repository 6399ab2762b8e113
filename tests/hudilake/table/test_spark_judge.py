"""Hudi Spark 1.2.0 reads what we write, in every way it can, and writes to our tables; we go on after it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudilake.format.definition.bucket import file_id
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.schema import META_FIELDS
from hudilake.format.files.file_group_write import FileGroupWrite, write_file_group
from hudilake.format.files.view import file_slices
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import (
    ORDER,
    SCHEMA,
    Change,
    Model,
    Row,
    commit,
    data_files,
    deletes,
    new_table,
    ours,
    row_of,
    tree,
    upserts,
    write,
)
from tests.hudilake.services.compaction import compact, complete_compaction, request_compaction, write_base_files
from tests.judges.agreement import assert_judges_agree, assert_same
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]

WRITER = {
    "hoodie.table.name": "t1",
    "hoodie.metadata.enable": "false",
    "hoodie.datasource.write.operation": "upsert",
    "hoodie.embed.timeline.server": "false",
}


def spark_write(spark: SparkSession, path: Path, changes: Iterable[Change], **options: str) -> None:
    """An upsert by Hudi's own writer that is told nothing about the index: ``hoodie.properties`` says it."""
    rows = [row_of(c) for c in changes]
    fields = "id long, name string, qty int, price decimal(10,2), at timestamp, day string, _binlake_order long"
    named = {name.replace("__", "."): value for name, value in options.items()}
    frame = spark.createDataFrame([tuple(r.values()) for r in rows], fields)
    frame.write.format("hudi").options(**WRITER, **named).mode("append").save(str(path))


def agree(path: Path, model: Model, spark: HudiSpark) -> None:
    """All three readers."""
    assert_judges_agree(path, model.rows(), spark=spark, columns=SCHEMA.names)


# -- reading


EXTREMES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "small": (pa.int32(), [-(2**31), 2**31 - 1]),
    "large": (pa.int64(), [-(2**63), 2**63 - 1]),
    "unsigned": (pa.decimal128(20, 0), [Decimal(0), Decimal(2**64 - 1)]),
    "money": (pa.decimal128(10, 2), [Decimal("-99999999.99"), Decimal("99999999.99")]),
    "widest": (pa.decimal128(38, 10), [Decimal("-9999999999999999999999999999.9999999999"), Decimal("0.5000000001")]),
    "single": (pa.float32(), [-0.0, float("inf")]),
    "double": (pa.float64(), [float("nan"), 5e-324]),
    "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    "stamp": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)],
    ),
    "summer": (
        pa.timestamp("us", tz="UTC"),
        [datetime(1582, 10, 10, 1, 2, 3, 4, tzinfo=UTC), datetime(2024, 10, 27, 1, 30, tzinfo=UTC)],
    ),
    "time_of_day": (pa.int64(), [-3020399000000, 3020399000000]),
    "flag": (pa.bool_(), [True, False]),
    "bits": (pa.binary(), [b"", bytes(range(256))]),
    "text": (pa.string(), ["", '日本😀\x00\n,":']),
}


def test_every_type_at_its_ends(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    fields = [
        pa.field("id", pa.int64()),
        *(pa.field(n, t) for n, (t, _) in EXTREMES.items()),
        pa.field(ORDER, pa.int64()),
    ]
    schema = pa.schema(fields)
    rows = [
        {"id": i, ORDER: 7} | {name: values[i] if i < 2 else None for name, (_, values) in EXTREMES.items()}
        for i in range(3)
    ]
    table = HudiTable.create(open_storage(tmp_path.as_uri()), TableConfig("every type", ("id",), ORDER, 1), schema)
    for _ in range(2):
        instant = table.begin()
        upserts = pa.Table.from_pylist(rows, schema).add_column(0, "_hoodie_record_key", pa.array(["0", "1", "2"]))
        group = FileGroupWrite("", file_id(table.config.name, "", 0), upserts)
        table.commit(instant, [write_file_group(table.storage, table.write_context(instant), group)])
        assert_judges_agree(tmp_path, rows, spark=hudi_spark)
    compact(table)
    assert_judges_agree(tmp_path, rows, spark=hudi_spark)


HISTORY = [
    upserts(range(12), 100) + upserts(range(12), 100, day="d2"),
    upserts([1, 2], 90, "late") + deletes([3, 4], 110) + deletes([5], 99) + upserts([7], 100, "tie", "d2"),
    upserts([3], 105, "too late") + upserts([4], 111, "back") + upserts([50], 1, day="d3"),
]


@pytest.mark.full
def test_snapshot_time_travel_and_increments(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table, uri = new_table(tmp_path), str(tmp_path)
    assert hudi_spark.snapshot(uri) == []
    model, states = Model(), [list[Row]()]
    times: list[tuple[str, str]] = []
    for changes in HISTORY:
        instant = table.begin()
        times.append((instant, table.commit(instant, write(table, instant, changes))))
        model.apply(changes)
        states.append(model.rows())
        agree(tmp_path, model, hudi_spark)
    for (requested, completed), rows in zip(times, states[1:], strict=True):
        for moment in (requested, completed):
            assert_same("Hudi Spark", hudi_spark.as_of(uri, moment), rows, SCHEMA.names)
            assert_same("binlake", ours(tmp_path, as_of=moment), rows, SCHEMA.names)
    assert hudi_spark.read_optimized(uri) == []
    assert_same("from the beginning", hudi_spark.incremental(uri, "000"), states[-1], SCHEMA.names)
    changed = {(r["day"], r["id"]) for r in hudi_spark.incremental(uri, times[1][1])}
    assert changed == {("d1", 3), ("d1", 4), ("d3", 50)}
    assert {r["_hoodie_commit_time"] for r in hudi_spark.incremental(uri, times[0][1], times[1][1])} == {times[1][0]}
    assert hudi_spark.incremental(uri, times[2][1]) == []


def test_around_a_compaction(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    """Read-optimized gives the base files; commits during the compaction are in the next slice."""
    table, model, uri = new_table(tmp_path), Model(), str(tmp_path)
    for changes in HISTORY:
        commit(table, changes)
        model.apply(changes)
    early = table.begin()
    results = write(table, early, upserts([8], 300, "early"))
    compaction, slices = request_compaction(table)
    compacted = model.rows()
    table.commit(early, results)
    commit(table, upserts([9], 300, "inside") + deletes([10], 300))
    model.apply(upserts([8], 300, "early") + upserts([9], 300, "inside") + deletes([10], 300))
    complete_compaction(table, compaction, write_base_files(table, compaction, slices))
    agree(tmp_path, model, hudi_spark)
    assert_same("read-optimized", hudi_spark.read_optimized(uri), compacted, SCHEMA.names)


def test_a_pending_instant_and_its_files_are_invisible(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table, model = new_table(tmp_path), Model()
    commit(table, HISTORY[0])
    model.apply(HISTORY[0])
    instant = table.begin()
    results = write(table, instant, upserts(range(20), 999, "ghost"))
    agree(tmp_path, model, hudi_spark)
    table.commit(instant, results)
    model.apply(upserts(range(20), 999, "ghost"))
    agree(tmp_path, model, hudi_spark)


def test_a_new_column(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table = new_table(tmp_path)
    commit(table, HISTORY[0])
    instant = table.begin()
    wide = SCHEMA.append(pa.field("extra", pa.string()))
    context = table.write_context(instant, wide)
    row = {**row_of(Change(1, 200, "wide")), "extra": "x", "_hoodie_record_key": "1"}
    group = FileGroupWrite("day=d1", file_id("t1", "day=d1", 0), pa.Table.from_pylist([row], _keyed(wide)))
    table.commit(instant, [write_file_group(table.storage, context, group)], schema=wide)
    model = Model()
    model.apply(HISTORY[0] + [Change(1, 200, "wide")])
    expected = [{**r, "extra": "x" if r["name"] == "wide" else None} for r in model.rows()]
    assert_judges_agree(tmp_path, expected, spark=hudi_spark, columns=wide.names)


def _keyed(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field("_hoodie_record_key", pa.string()))


# -- writing


@pytest.mark.full
@pytest.mark.parametrize("listed", [False, True])
def test_hudi_rolls_our_dead_writer_back_and_writes_by_our_buckets(
    tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark, listed: bool
) -> None:
    """``listed``: its markers are a list, the only place that Hudi looks at then."""
    table, model = new_table(tmp_path), Model()
    commit(table, HISTORY[0], {"binlake.position": "7"})
    model.apply(HISTORY[0])
    dead = table.begin()
    ghosts = upserts(range(30), 999, "ghost") + (upserts(range(30), 999, "ghost", day="d2") if listed else [])
    write(table, dead, ghosts, listed=listed)
    groups = {(s.partition_path, s.file_id) for s in file_slices(table.storage, table.timeline)}

    theirs = upserts([1, 2, 60], 500, "spark")
    spark_write(spark, tmp_path, theirs)
    model.apply(theirs)
    assert [f for f in tree(tmp_path) if dead in f] == []
    agree(tmp_path, model, hudi_spark)
    assert table.refresh()
    assert {(s.partition_path, s.file_id) for s in file_slices(table.storage, table.timeline)} == groups
    assert table.extra_metadata("binlake.position") == "7"

    mine = upserts([1], 499, "late") + upserts([2], 501, "ours") + deletes([60], 500)
    assert table.rollback_pending() == []
    commit(table, mine)
    model.apply(mine)
    agree(tmp_path, model, hudi_spark)


@pytest.mark.full
def test_hudi_compacts_cleans_and_archives_our_commits(
    tmp_path: Path, spark: SparkSession, hudi_spark: HudiSpark
) -> None:
    """After a rollback of ours, too: Hudi's archival reads every body of the timeline."""
    table, model = new_table(tmp_path), Model()
    table.abort(table.begin())
    for order, changes in enumerate(HISTORY):
        commit(table, changes, {"binlake.position": str(order)})
        model.apply(changes)
    services = {
        "hoodie__compact__inline": "true",
        "hoodie__compact__inline__max__delta__commits": "1",
        "hoodie__clean__commits__retained": "1",
        "hoodie__keep__min__commits": "2",
        "hoodie__keep__max__commits": "3",
    }
    for order in range(4):
        theirs = upserts([order], 700 + order, "spark")
        spark_write(spark, tmp_path, theirs, **services)
        model.apply(theirs)
    agree(tmp_path, model, hudi_spark)
    reopened = HudiTable.open(table.storage)
    archived = [c.requested_time for c in reopened.timeline.history().commits()]
    first = table.timeline.completed()[0].requested_time
    assert first in archived
    assert reopened.timeline.find(first) is None
    assert reopened.extra_metadata("binlake.position") == "2"
    assert any(f.endswith(".parquet") for f in data_files(tmp_path))
    commit(reopened, deletes([0], 800))
    model.apply(deletes([0], 800))
    agree(tmp_path, model, hudi_spark)
    commit_time, *_ = META_FIELDS
    assert commit_time in hudi_spark.snapshot(str(tmp_path))[0]
