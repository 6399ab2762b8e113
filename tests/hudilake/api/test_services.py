"""Time travel, services and other columns through the façade; each leaves the rows as they are, or as they were."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import hudilake
from tests.hudilake.api.tables import SCHEMA, assert_holds, keyed, row
from tests.judges.agreement import assert_same


def test_time_travel_and_incremental_reads(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(n, 1) for n in range(4)])
    table.upsert([row(1, 2, "b"), row(7, 1)])
    table.delete([row(2, 0)])
    _, second, first = table.history()
    assert_same("as of", table.scan(as_of=first).to_arrow(), [row(n, 1) for n in range(4)])
    assert_same("as of text", table.scan(as_of=first.requested).to_arrow(), [row(n, 1) for n in range(4)])
    assert table.count(as_of=second) == 5
    assert_same("since", table.scan(since=first).to_arrow(), [row(1, 2, "b"), row(7, 1)])
    assert_same("since, until", table.scan(since="", until=first).to_arrow(), [row(n, 1) for n in range(4)])
    assert table.scan(as_of=datetime.now(UTC)).to_arrow().num_rows == 4  # noqa: TID251 - a moment of a caller
    with pytest.raises(hudilake.ConfigError, match="exclude each other"):
        table.scan(as_of=first, since=first)
    with pytest.raises(hudilake.ConfigError, match="no time zone"):
        table.scan(as_of=datetime(2024, 2, 29))  # noqa: DTZ001 - what is refused


@pytest.mark.full
def test_compaction_cleaning_and_archival(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    for order in range(12):
        table.upsert([row(n, order) for n in range(5)])
    expected = [row(n, 11) for n in range(5)]
    assert table.scan(read_optimized=True).to_arrow().column("updated_at").unique().to_pylist() == [0]
    assert table.compact() == 1
    assert_same("read optimized", table.scan(read_optimized=True).to_arrow(), expected)
    for order in range(12, 16):
        table.upsert([row(n, order) for n in range(5)])
    files = len(list((tmp_path / "t").rglob("*.log.*")))
    assert table.clean(hudilake.RetentionPolicy(commits=2)) is not None
    assert len(list((tmp_path / "t").rglob("*.log.*"))) < files
    assert table.archive(keep=3, most=4) >= 0
    assert_holds(table, [row(n, 15) for n in range(5)])
    with pytest.raises(hudilake.UnsupportedError, match="cleaned"):
        table.scan(as_of=table.history()[-1].requested[:-9] + "000000000")


def test_savepoint_and_restore(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    held = table.savepoint(comment="before")
    table.upsert([row(1, 2, "b"), row(2, 1)])
    assert [one.instant for one in table.savepoints()] == [held]
    assert table.restore(held)
    assert_holds(table, [row(1, 1)])
    assert not table.restore(held)
    assert table.delete_savepoint(held)
    assert not table.delete_savepoint(held)
    table.upsert([row(1, 2, "c")])
    assert_holds(table, [row(1, 2, "c")])


def test_clustering_orders_an_append_table(tmp_path: Path) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA)
    rows = [row(n * 7 % 20, n) for n in range(20)]
    for low in (0, 10):
        table.append(rows[low : low + 10])
    done = table.cluster(hudilake.ClusteringPolicy(order_by=hudilake.OrderPolicy(columns=("id",), curve="linear")))
    assert done is not None
    assert (done.completed, done.rows) == (True, 20)
    assert table.scan(["id"]).to_arrow().column("id").to_pylist() == sorted(r["id"] for r in rows)
    assert_holds(table, rows)


def test_other_columns(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    table.evolve(pa.schema([*SCHEMA, pa.field("price", pa.float64())]))
    table.upsert([{**row(2, 1), "price": 2.5}, row(3, 1)])
    assert_holds(table, [{**row(1, 1), "price": None}, {**row(2, 1), "price": 2.5}, {**row(3, 1), "price": None}])
    with pytest.raises(hudilake.UnsupportedError, match="cannot change"):
        table.evolve(SCHEMA.set(0, pa.field("id", pa.int32())).append(pa.field("price", pa.string())))
    assert table.schema.names[-1] == "price"


def test_fsck_finds_and_repair_mends(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    (marker,) = (tmp_path / "t").glob("day=*/.hoodie_partition_metadata*")
    marker.unlink()
    report = table.fsck()
    assert report.findings != ()
    assert table.repair(report) != []
    assert_holds(table, [row(1, 1)])


def test_readers_of_other_libraries(tmp_path: Path) -> None:
    import duckdb

    table = keyed(tmp_path / "t")
    frame = pa.Table.from_pylist([row(n, 1) for n in range(6)]).to_pandas()
    table.upsert(frame)
    table.upsert(duckdb.from_arrow(pa.Table.from_pylist([row(7, 1)])))
    table.upsert(pa.RecordBatchReader.from_stream(pa.Table.from_pylist([row(8, 1)])))
    table.upsert(pa.RecordBatch.from_pylist([row(9, 1)]))
    expected = [row(n, 1) for n in (0, 1, 2, 3, 4, 5, 7, 8, 9)]
    assert_holds(table, expected)
    reader = table.scan()
    assert_same("pandas", pa.Table.from_pandas(reader.to_pandas()), expected)
    assert_same("DuckDB", reader.to_duckdb().to_arrow_table(), expected)
    assert_same("PyCapsule", pa.table(reader), expected)
    assert sum(task.to_arrow().num_rows for task in reader.tasks()) == 9
