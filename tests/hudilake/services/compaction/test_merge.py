"""A compacted file group holds what the reader shows of its slice, whatever its files are like."""

from __future__ import annotations

import pickle
import random
import tempfile
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import BLOOM_FILTER_KEY, BLOOM_TYPE_KEY, MAX_KEY, MIN_KEY
from hudilake.format.files.bloom import DYNAMIC, SIMPLE, BloomFilter
from hudilake.format.files.column_stats import ColumnRange, column_ranges
from hudilake.format.files.parquet_file import AVRO_SCHEMA_KEY
from hudilake.services.compaction import CompactedFile, CompactionConfig, compact_file_group
from hudilake.storage.base import StorageNotFoundError
from hudilake.write import merge
from tests.hudilake.services.compaction.made import COMPACTION, META, ORDER, SCHEMA, Row, Slice, row
from tests.hypothesis_profile import scaled

FILE_NAME = "_hoodie_file_name"
SMALL = CompactionConfig(row_group_rows=3, tombstone_retention_hours=0)
KEYS = st.text("abé\U0001f600", min_size=1, max_size=2)
ORDERS = st.integers(0, 4)
DELETES = st.dictionaries(KEYS, st.one_of(st.none(), ORDERS), max_size=4)
COMMITS = st.lists(st.tuples(st.dictionaries(KEYS, ORDERS, max_size=5), DELETES).filter(any), min_size=1, max_size=4)


def check(made: Slice, done: CompactedFile, schema: pa.Schema = SCHEMA) -> list[Row]:
    """Rows, order, footer, statistics and bloom filter of the base file are those of what the reader shows."""
    file = made.base_file(done)
    table = file.read()
    rows: list[Row] = table.to_pylist()
    shown = [{**r, FILE_NAME: done.base.name} for r in made.read(schema)]
    assert rows == shown
    assert table.column_names == [*META.names, *schema.names]
    keys = [r[RECORD_KEY_FIELD] for r in rows]
    assert keys == sorted(keys)
    footer = {k.decode(): v.decode() for k, v in file.metadata.metadata.items()}
    assert (footer.get(MIN_KEY), footer.get(MAX_KEY)) == ((keys[0], keys[-1]) if keys else (None, None))
    assert f'"name":"{ORDER}"' in footer[AVRO_SCHEMA_KEY]
    assert done.base.bloom == (footer[BLOOM_TYPE_KEY], footer[BLOOM_FILTER_KEY])
    assert all(key in BloomFilter.from_base64(*done.base.bloom) for key in keys)
    expected = column_ranges(
        pa.Table.from_pylist(shown, pa.schema([*META, *schema])), [i.column for i in _ranges(done)]
    )
    assert _ranges(done) == expected
    assert done.base_stat.num_writes == len(rows)
    assert done.base.size == done.base_stat.file_size == len(made.storage.read(done.base.name))
    return rows


def _ranges(done: CompactedFile) -> tuple[ColumnRange, ...]:
    assert done.base.ranges is not None
    return done.base.ranges


@settings(deadline=None, max_examples=scaled(150))
@given(
    base=st.one_of(st.none(), st.dictionaries(KEYS, ORDERS, max_size=8)),
    commits=COMMITS,
    shuffled=st.booleans(),
    stretch=st.integers(1, 4),
    group_rows=st.one_of(st.none(), st.integers(1, 4)),
)
def test_the_compacted_rows_are_those_the_reader_shows(
    base: dict[str, int] | None,
    commits: list[tuple[dict[str, int], dict[str, int | None]]],
    shuffled: bool,
    stretch: int,
    group_rows: int | None,
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        patch.setattr(merge, "STRETCH_ROWS", stretch)
        made = Slice.at(Path(place))
        if base is not None:
            rows = [row(key, order, 0, n=order) for key, order in sorted(base.items())]
            if shuffled:
                random.Random(1).shuffle(rows)
            made.write_base(rows, group_rows=group_rows)
        for number, (upserts, deletes) in enumerate(commits, 1):
            written = [row(key, order, number, n=number) for key, order in sorted(upserts.items())]
            made.write_log(number, written, sorted(deletes.items()))
        check(made, made.compact(SMALL))


def test_control_a_wrong_winner_is_found(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_base([row("a", 5, 0, n=1)])
    made.write_log(1, [row("a", 4, 1, n=2)])
    done = made.compact()
    check(made, done)
    made.write_log(2, [row("a", 6, 2, n=3)])
    with pytest.raises(AssertionError):
        check(made, done)


def test_row_groups_are_bounded_in_rows_and_in_bytes(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row(f"{n:03}", 1, 1, n=n) for n in range(100)])
    by_rows = made.base_file(made.compact(CompactionConfig(row_group_rows=30, tombstone_retention_hours=0))).metadata
    assert [by_rows.row_group(n).num_rows for n in range(by_rows.num_row_groups)] == [30, 30, 30, 10]
    sized = CompactionConfig(row_group_bytes=2_000, tombstone_retention_hours=0)
    by_bytes = made.base_file(made.compact(sized)).metadata
    assert by_bytes.num_row_groups > 5
    assert by_bytes.num_rows == 100


def test_the_numbers_of_the_commit(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_base([row(key, 5, 0) for key in "abcd"])
    made.write_log(1, [row("a", 6, 1), row("e", 1, 1), row("b", 1, 1)], [("c", 9), ("d", 1), ("z", 1)])
    stat = made.compact().base_stat
    assert (stat.num_writes, stat.num_inserts, stat.num_update_writes, stat.num_deletes) == (4, 1, 1, 1)
    assert (stat.total_log_records, stat.total_log_blocks, stat.total_log_files_compacted) == (6, 2, 1)


def test_a_schema_that_changed_between_the_files(tmp_path: Path) -> None:
    """A number widened, a column added, one dropped, and the order changed."""
    made = Slice.at(tmp_path)
    narrow = pa.schema(
        [pa.field("old", pa.string()), pa.field("n", pa.int32()), SCHEMA.field("id"), SCHEMA.field(ORDER)]
    )
    wide = SCHEMA.append(pa.field("extra", pa.string()))
    made.write_base([row("a", 1, 0, n=1, old="x"), row("b", 1, 0, n=2, old="y")], narrow)
    made.write_log(1, [row("b", 2, 1, n=3, old="z")], schema=narrow)
    made.write_log(2, [row("c", 2, 2, n=1 << 40, extra="new")], schema=wide)
    rows = check(made, made.compact(schema=wide), wide)
    assert [(r["id"], r["n"], r["extra"]) for r in rows] == [("a", 1, None), ("b", 3, None), ("c", 1 << 40, "new")]


def test_everything_deleted_leaves_an_empty_base_file(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_base([row("a", 1, 0)])
    made.write_log(1, (), [("a", 2)])
    assert check(made, made.compact()) == []


def test_blocks_of_instants_that_are_not_completed_do_not_count(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_base([row("a", 1, 0, n=1)])
    made.write_log(1, [row("a", 2, 1, n=2)])
    made.timeline = Slice.at(tmp_path).timeline
    made.completed("20240101000000000")
    assert [r["n"] for r in check(made, made.compact())] == [1]


@pytest.mark.parametrize("kind", [SIMPLE, DYNAMIC])
def test_bloom_filters_of_both_kinds(tmp_path: Path, kind: Literal["SIMPLE", "DYNAMIC_V0"]) -> None:
    made = Slice.at(tmp_path)
    made.write_log(1, [row(f"{n}", 1, 1) for n in range(50)])
    config = CompactionConfig(bloom_kind=kind, bloom_entries=10, bloom_max_entries=60, tombstone_retention_hours=0)
    done = made.compact(config)
    check(made, done)
    assert done.base.bloom is not None
    assert done.base.bloom[0] == kind
    absent = [f"x{n}" for n in range(100)]
    assert sum(BloomFilter.from_base64(*done.base.bloom).might_contain(absent)) < 10


def test_a_retried_task_writes_the_same_bytes(tmp_path: Path) -> None:
    """Also after its context went through pickle, as to another machine."""
    made = Slice.at(tmp_path)
    made.write_base([row(f"{n:04}", 1, 0, n=n) for n in range(1000)])
    made.write_log(1, [row(f"{n:04}", 2, 1, n=-n) for n in range(0, 1500, 3)], [("0001", 2)])
    config = CompactionConfig(row_group_rows=100, tombstone_retention_hours=1)
    first = made.compact(config)
    assert first.tombstones is not None
    bytes_of = {name: made.storage.read(name) for name in (first.base.name, first.tombstones.name)}
    storage, context, operation = pickle.loads(pickle.dumps((made.storage, made.context(config), made.operation())))
    second = pickle.loads(pickle.dumps(compact_file_group(storage, context, operation)))
    assert second == first
    assert bytes_of == {name: made.storage.read(name) for name in bytes_of}
    markers = [i.path for i in made.storage.walk(f".hoodie/.temp/{COMPACTION}")]
    assert len(markers) == 2


def test_what_cannot_be_merged_is_refused(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    made.write_base([row("a", 1, 0, n=1)])
    made.write_log(1, [row("a", 2, 1, n=2)])
    narrow = pa.schema([SCHEMA.field("id"), pa.field("n", pa.date32()), SCHEMA.field(ORDER)])
    with pytest.raises(UnsupportedError, match="column n"):
        made.compact(schema=narrow)
    base = made.operation().base_file or ""
    whole = made.storage.read(base)
    made.storage.write(base, whole[:-20])
    with pytest.raises(CorruptDataError, match="base file cannot be read"):
        made.compact()
    made.storage.delete(base)
    with pytest.raises(StorageNotFoundError):
        made.compact()
