"""What follows a clustering: time travel and incremental reads over it, statistics, filters, keys, older columns."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.errors import UnsupportedError
from hudilake.policies import IndexType, TableType
from hudilake.query.samples import Samples
from hudilake.query.samples.position import SamplePosition
from hudilake.read import Incremental, Snapshot, TableReader
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.fsck import Severity, fsck
from tests.hudilake.lake import Change, deletes, upserts
from tests.hudilake.services.clustering.made import Made, clustering
from tests.judges import hudi_rs

KINDS: list[tuple[IndexType, TableType]] = [
    ("bloom", "copy_on_write"),
    ("simple", "merge_on_read"),
    ("partitioned_record_index", "copy_on_write"),
    ("record_index", "merge_on_read"),
    ("none", "merge_on_read"),
]
kinds = pytest.mark.parametrize(("index", "table_type"), KINDS)


def keys_at(made: Made, moment: Snapshot | Incremental) -> list[tuple[int, str]]:
    rows = TableReader.open(str(made.path)).read(moment, columns=["id", "name"]).read_all()
    return sorted((row["id"], row["name"]) for row in rows.to_pylist())


def keys_of(rows: pa.Table) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in rows.to_pylist())


@kinds
def test_moved_rows_have_not_changed(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    made = Made.at(tmp_path / "t", index, table_type)
    first = made.commit(upserts(range(0, 20, 2), 1))
    made.commit(upserts(range(1, 20, 2), 2), "b")
    before = keys_at(made, Snapshot())
    made.cluster(clustering("name"))
    changed = [] if made.table.config.kind.appends else [Change(3, 9, "x3")]
    made.commit([*changed, Change(50, 9, "x50")], "c")
    writes = made.table.timeline.completed()
    clustered = next(write for write in writes if write.action == "replacecommit")
    ends = [write.completion_time or "" for write in writes]
    new = [(change.id, change.name) for change in (*changed, Change(50, 9, "x50"))]
    assert keys_at(made, Snapshot(first)) == [(n, f"n{n}") for n in range(0, 20, 2)]
    assert keys_at(made, Snapshot(clustered.requested_time)) == before
    assert keys_at(made, Incremental(ends[0], ends[2])) == [(n, f"n{n}") for n in range(1, 20, 2)]
    assert keys_at(made, Incremental(ends[1], ends[2])) == []
    assert keys_at(made, Incremental(ends[1])) == new
    assert keys_of(hudi_rs.as_of(made.path, first)) == keys_at(made, Snapshot(first))
    assert keys_of(hudi_rs.as_of(made.path, clustered.requested_time)) == before
    assert keys_of(hudi_rs.incremental(made.path, ends[1])) == new
    assert hudi_rs.incremental(made.path, ends[1], ends[2]).num_rows == 0


@kinds
def test_moved_rows_are_no_new_samples(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    """Neither for an iteration that stood before the clustering, nor for one that is cut into larger steps."""
    made = Made.at(tmp_path / "t", index, table_type)
    made.commit(upserts(range(5), 1), "a")
    first = Samples(made.table.storage, ["id", "name"])
    assert len(ids_of(first)) == 5
    made.commit(upserts(range(5, 8), 2), "b")
    made.cluster(clustering("name"))
    whole = Samples(made.table.storage, ["id", "name"])
    assert ids_of(whole) == list(range(8))
    made.commit([Change(50, 9, "x50")], "c")
    made.cluster(clustering("id"))
    made.commit([Change(51, 9, "x51")], "d")
    for commits in (1, 3):
        since = Samples(made.table.storage, ["id", "name"], since=first.position, step_commits=commits)
        assert ids_of(since) == [5, 6, 7, 50, 51]
    assert ids_of(Samples(made.table.storage, ["id", "name"], since=whole.position)) == [50, 51]
    assert ids_of(Samples(made.table.storage, ["id"], since=SamplePosition())) == [*range(8), 50, 51]


def ids_of(samples: Samples) -> list[int]:
    """Of all batches, in one order."""
    return sorted(value for batch in samples for value in batch.column("id").to_pylist())


def test_a_time_whose_file_groups_were_replaced_and_cleaned_is_refused(tmp_path: Path) -> None:
    """It would otherwise have no rows: the new file groups did not exist then, and the old ones do not exist now."""
    made = Made.at(tmp_path / "t", "simple", "copy_on_write")
    first = made.commit(upserts(range(10), 1), "a")
    second = made.commit(upserts([100], 1, day="d2"), "b")
    made.cluster(clustering("name", partitions=("day=d1",)))
    assert keys_at(made, Snapshot(first)) == [(n, f"n{n}") for n in range(10)]
    later = [made.commit(upserts([30 + number], 2), "c") for number in range(3)]
    assert clean(made.table, CleaningConfig(commits=1)) is not None
    for moment in (first, second):
        with pytest.raises(UnsupportedError, match="may have been cleaned"):
            keys_at(made, Snapshot(moment))
    assert len(keys_at(made, Snapshot(later[-1]))) == 14
    made.check()


@pytest.mark.first(2)
@kinds
def test_the_metadata_table_says_what_the_files_hold(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    """``fsck`` computes ranges, filters and the places of keys from the files, and compares."""
    made = Made.at(tmp_path / "t", index, table_type)
    for part in range(3):
        others = upserts(range(100 + part, 130, 3), 1, day="d2")
        made.commit([*upserts(range(part, 40, 3), part + 1), *others], f"{part}")
    if not made.table.config.kind.appends:
        made.commit([*upserts(range(0, 40, 5), 7, "x"), *deletes([1, 6], 7), *deletes([102], 7, day="d2")])
    for _ in range(2):
        made.cluster(clustering("at", "price", curve="z_order"))
        assert [f for f in fsck(made.table.storage, grace_ms=0).findings if f.severity is Severity.ERROR] == []
        made.commit(upserts(range(200, 210), 9), "d")


def test_older_files_lack_a_column(tmp_path: Path) -> None:
    made = Made.at(tmp_path / "t", "simple", "copy_on_write", partitioned=False)
    made.commit(upserts(range(10), 1))
    wider = pa.schema([*made.table.schema, pa.field("more", pa.int64())])
    instant = made.table.begin()
    made.table.commit(instant, [], schema=wider)
    (done,) = made.cluster(clustering("more", "id"))
    (result,) = done.results
    rows = pq.ParquetFile(tmp_path / "t" / result.path).read()
    assert rows.column("more").to_pylist() == [None] * 10
    assert rows.column("id").to_pylist() == list(range(10))
    made.check()
    assert result.ranges is not None
    (more,) = [item for item in result.ranges if item.column == "more"]
    assert dataclasses.astuple(more)[2:6] == (None, None, 10, 10)
