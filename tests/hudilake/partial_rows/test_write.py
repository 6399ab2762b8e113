"""What a task writes of partial rows, what it refuses, and what readers refuse to merge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.merging import WRITER_ORDER
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.file_group_write import FileGroupWrite, encode_log_file, write_file_group
from hudilake.format.files.first_write import write_new_file_group
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.parquet_file import decode_parquet
from hudilake.metadata.records.reader import MetadataReader
from hudilake.read import Incremental, TableReader
from hudilake.read.index import TableIndex
from tests.hudilake.partial_rows.histories import ours
from tests.hudilake.partial_rows.lake import COLUMNS, ORDER, SCHEMA, Full, Gone, Lake, Part, cells
from tests.judges import hudi_rs
from tests.judges.agreement import read_ourselves


def only_group(lake: Lake, events: dict[int, Full | Part | Gone]) -> FileGroupWrite:
    """The write for the one file group of some events."""
    (group,) = lake.groups(events)
    return group


def new(path: Path, *, indexed: bool = False) -> Lake:
    """A table of one file group with rows 1 and 2."""
    lake = Lake.new(path, indexed=indexed, partitioned=False)
    lake.commit({1: Full(cells(1)), 2: Full(cells(2))}, base=True)
    return lake


def test_blocks_of_a_log_file(tmp_path: Path) -> None:
    lake = new(tmp_path)
    group = only_group(lake, {1: Part(cells(5, "b", "a")), 2: Gone(), 3: Full(cells(3)), 4: Part(cells(6, "d"))})
    context = lake.table.write_context(lake.table.begin())
    whole, one, two, gone = iter_blocks(encode_log_file(context, group))
    assert [block.is_partial for block in (whole, one, two, gone)] == [False, True, True, False]
    assert gone.block_type is BlockType.DELETE
    rows = decode_parquet(one.content, None, "x", schema_json=one.header[2])
    assert rows.schema.names[5:] == ["a", "b", ORDER]  # the order of the table's schema
    assert rows.schema.field("a").type == SCHEMA.field("a").type
    numbers = [row for block in (whole, one, two) for row in decode_parquet(block.content, None, "x").to_pylist()]
    assert len({row["_hoodie_commit_seqno"] for row in numbers}) == 3


def test_what_the_commit_learns_of_a_file(tmp_path: Path) -> None:
    lake = new(tmp_path, indexed=True)
    context = lake.table.write_context(lake.table.begin())
    storage = lake.table.storage
    changed = write_file_group(storage, context, only_group(lake, {1: Part(cells(5, "a")), 2: Part(cells(6, "c"))}))
    assert (changed.columns, changed.inserts, changed.num_upserts) == (frozenset({"a", "c"}), False, 2)
    assert (changed.min_record_key, changed.max_record_key) == ("1", "2")
    assert changed.lacking == {"id", "a", "b", "c", "d", "day"}  # some row lacks each of them
    both = only_group(lake, {1: Part(cells(5, "a")), 3: Full(cells(3))})
    assert write_file_group(storage, context, both).columns is None
    inserts = write_file_group(storage, context, replace(both, only_inserts=True))
    assert (inserts.columns, inserts.inserts) == (frozenset({"a"}), True)
    deletes = write_file_group(storage, context, only_group(lake, {1: Gone()}))
    assert (deletes.columns, deletes.inserts, deletes.num_deletes) == (frozenset(), False, 1)


def test_statistics_of_files_and_partitions(tmp_path: Path) -> None:
    """A file's range of a column that a row lacks is unbounded; the partition's holds what is there."""
    lake = Lake.new(tmp_path, indexed=True)
    lake.commit({1: Full(cells(1)), 2: Full(cells(2))}, base=True)
    instant = lake.commit({1: Part(cells(50, "a"))})
    table = lake.opened().table
    index = TableIndex(table.storage, table.config.metadata_partitions, table.timeline)
    reader: MetadataReader = index.reader(MetadataPartition.COLUMN_STATS)
    (name,) = [path.name for path in (tmp_path / "day=d1").glob(f".*{instant}.log.*")]
    of_file = reader.column_ranges(["a", "b", "_hoodie_record_key"], [("day=d1", name)])["day=d1", name]
    assert _bounds(of_file["a"]) == (350, 350)
    assert _bounds(of_file["_hoodie_record_key"]) == ("1", "1")
    assert of_file["b"].min == ""
    assert 0 < of_file["b"].null_count < of_file["b"].value_count
    parts = index.reader(MetadataPartition.PARTITION_STATS).partition_ranges(["a", "b"], ["day=d1"])["day=d1"]
    assert _bounds(parts["a"]) == (7, 350)
    assert _bounds(parts["b"]) == ("b1", "b2")


def _bounds(item: ColumnRange) -> tuple[object, object]:
    return item.min, item.max


def test_what_is_not_written(tmp_path: Path) -> None:
    lake = new(tmp_path)
    context = lake.table.write_context(lake.table.begin())
    group = only_group(lake, {1: Part(cells(5, "a"))})
    (rows,) = group.partials
    orderless = rows.drop_columns([ORDER])
    null = orderless.append_column(ORDER, pa.nulls(1, pa.int64()))
    for wrong, why in ((orderless, "no value of the ordering"), (null, "no value of the ordering")):
        with pytest.raises(UnsupportedError, match=why):
            encode_log_file(context, replace(group, partials=(wrong,)))
    strange = rows.append_column("strange", pa.array([1]))
    with pytest.raises(UnsupportedError, match="strange"):
        encode_log_file(context, replace(group, partials=(strange,)))
    with pytest.raises(UnsupportedError, match="first rows of a file slice"):
        write_new_file_group(lake.table.storage, context, group)


def write_anyway(lake: Lake, commits: Sequence[dict[int, Full | Part | Gone]], orders: Sequence[int]) -> None:
    """Commits whose rows have given orders, and which the model would refuse."""
    for events, order in zip(commits, orders, strict=True):
        instant = lake.table.begin()
        group = only_group(lake, events)
        group = replace(
            group,
            upserts=_ordered(group.upserts, order),
            deletes=_ordered(group.deletes, order),
            partials=tuple(_ordered(rows, order) for rows in group.partials),
        )
        lake.table.commit(instant, [write_file_group(lake.table.storage, lake.table.write_context(instant), group)])


def _ordered(rows: pa.Table | None, order: int) -> pa.Table | None:
    if rows is None:
        return None
    values = pa.array([order] * rows.num_rows, pa.int64())
    return rows.set_column(rows.schema.get_field_index(ORDER), ORDER, values)


@pytest.mark.parametrize(
    ("events", "what"),
    [
        ([{9: Part(cells(5, "a"))}], "'9', which has no row"),
        ([{1: Gone()}, {1: Part(cells(5, "a"))}], "'1', which has no row"),
    ],
)
def test_a_partial_row_without_a_row_is_an_error(
    tmp_path: Path, events: list[dict[int, Full | Part | Gone]], what: str
) -> None:
    lake = new(tmp_path)
    write_anyway(lake, events, [WRITER_ORDER] * len(events))
    with pytest.raises(CorruptDataError, match=what):
        read_ourselves(tmp_path)
    with pytest.raises(CorruptDataError, match=what):
        ours(lake)


@pytest.mark.parametrize("last", [Part(cells(6, "b")), Full(cells(6)), Gone()])
def test_an_order_in_which_the_readers_differ_is_refused(tmp_path: Path, last: Full | Part | Gone) -> None:
    lake = Lake.new(tmp_path, indexed=False, partitioned=False)
    lake.commit({1: Full(cells(1), 100), 2: Full(cells(2), 100)}, base=True)
    commits: list[dict[int, Full | Part | Gone]] = [{1: Part(cells(5, "a"))}, {2: Full(cells(9))}]
    write_anyway(lake, commits, [300, 90])
    assert {row["id"]: row["a"] for row in read_ourselves(tmp_path).to_pylist()} == {1: 35, 2: 14}
    write_anyway(lake, [{1: last}], [200])
    with pytest.raises(UnsupportedError, match="in another order than their ordering values"):
        read_ourselves(tmp_path)


@pytest.mark.parametrize("base", [False, True])
def test_an_incremental_read_gives_whole_rows(tmp_path: Path, base: bool) -> None:
    lake = Lake.new(tmp_path, indexed=True)
    first = lake.commit({1: Full(cells(1)), 2: Full(cells(2))}, base=base)
    lake.commit({1: Part(cells(50, "b"))})
    begin = lake.table.timeline.completion_time(first) or ""
    found = TableReader.open(str(tmp_path)).read(Incremental(begin), columns=COLUMNS).read_all()
    assert found.to_pylist() == [{**row, "b": "b50"} for row in lake.rows() if row["id"] == 1]
    assert hudi_rs.incremental(tmp_path, begin).column("a").to_pylist() == [None]  # as docs/limits.md says


def test_a_partial_row_below_the_base_file_is_late(tmp_path: Path) -> None:
    lake = Lake.new(tmp_path, indexed=False, partitioned=False)
    lake.commit({1: Full(cells(1), 100)}, base=True)
    write_anyway(lake, [{1: Part(cells(5, "a"))}], [99])
    assert read_ourselves(tmp_path).column("a").to_pylist() == [7]
    assert ours(lake)
    assert read_ourselves(tmp_path).column("a").to_pylist() == [7]
