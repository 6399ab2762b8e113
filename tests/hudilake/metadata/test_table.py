"""The metadata table tells the truth after every action, to this process and to a new one."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudilake.errors import ConfigError, CorruptDataError, LakeError, UnsupportedError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.format.timeline.instant import SAVEPOINT, Instant, State
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.describe import describe_file
from hudilake.metadata.initialise import drop, initialise
from hudilake.metadata.records.delta import AddedFile, MetadataDelta
from hudilake.metadata.records.layout import METADATA_PATH, indexed_fields
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.table import MetadataTable
from hudilake.services.fsck import Severity, fsck
from hudilake.storage.base import FileInfo, Storage
from hudilake.storage.local import LocalStorage
from hudilake.storage.passing import PassingStorage
from hudilake.table.table import HudiTable
from tests.hudilake.metadata.below import Counting
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema

COLUMNS = {"name": pa.string(), "price": pa.decimal128(10, 2), "n": pa.int32(), "day": pa.string()}
SMALL = MetadataConfig(compact_after=4, compact_at_most=6, archive_after=12, archive_keep=6)


def _row(number: int, order: int, **values: object) -> dict[str, Any]:
    own = {"name": f"n{number}", "n": number - 20, "day": f"d{number % 3}"}
    return {"id": number, ORDER: order, **own, **values}


def _check(table: IndexedTable, reader: MetadataReader) -> None:
    """Listing, statistics and filters against the files themselves."""
    listed = table.listed()
    files = reader.files(reader.partition_paths())
    assert {(path, name): size for path, names in files.items() for name, size in names.items()} == listed
    columns = table.metadata.columns
    ranges = reader.column_ranges(columns, listed)
    assert ranges.keys() == listed.keys()
    for (path, name), found in ranges.items():
        entry = describe_file(table.storage, path, FileInfo(name, listed[path, name], 0), columns, with_bloom=False)
        assert {item.column: item for item in entry.ranges or ()} == found
    if reader.has(MetadataPartition.PARTITION_STATS):
        _check_partitions(reader, columns, ranges)
    _check_filters(table, reader)


def _check_partitions(
    reader: MetadataReader, columns: tuple[str, ...], ranges: dict[tuple[str, str], dict[str, ColumnRange]]
) -> None:
    whole = reader.partition_ranges(columns, reader.partition_paths())
    assert whole.keys() == set(reader.partition_paths())
    for (path, _), found in ranges.items():
        for column, item in found.items():
            outer = whole[path][column]
            assert item.min is None or (outer.min <= item.min and item.max <= outer.max)  # type: ignore[operator]
            assert item.null_count == 0 or outer.null_count > 0


def _check_filters(table: IndexedTable, reader: MetadataReader) -> None:
    """Every base file has a filter, and the newest of a group denies no key of its slice, log files included."""
    bases = [(path, name) for path, name in table.listed() if not name.startswith(".")]
    filters = reader.bloom_filters(bases)
    assert filters.keys() == set(bases)
    newest = {(path, name[:38]): name for path, name in sorted(bases, key=lambda base: base[1].split("_")[2])}
    for row in table.rows().values():
        group = (row["_hoodie_partition_path"], row["_hoodie_file_name"][:38])
        if group in newest:
            assert str(row["_hoodie_record_key"]) in filters[group[0], newest[group]]


def _fresh_reader(table: IndexedTable) -> MetadataReader:
    opened = HudiTable.open(table.storage)
    return MetadataReader.open(table.storage, opened.config.metadata_partitions, opened.timeline)


@pytest.mark.first(1)
@pytest.mark.parametrize("part", ["day", None])
@pytest.mark.parametrize("seed", range(3))
def test_truth_after_every_action(tmp_path: Path, part: str | None, seed: int) -> None:
    random_of = random.Random(seed)
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part=part, config=SMALL)

    def write() -> None:
        ids = random_of.sample(range(40), random_of.randint(1, 8))
        gone = [i for i in random_of.sample(range(40), 2) if i not in ids]
        table.write([_row(i, 1) for i in ids], [_row(i, 2) for i in gone])

    def abort() -> None:
        instant, _, delta = table.begin_write([_row(1, 5), _row(2, 5)])
        if random_of.random() < 0.7:
            table.metadata.apply(instant, delta)
        table.abort(instant)

    actions: list[Callable[[], Any]] = [write] * 6 + [table.compact, table.clean, abort, table.reopen]
    write()
    for _ in range(14):
        random_of.choice(actions)()
        _check(table, table.metadata.reader)
    _check(table, _fresh_reader(table))
    assert not table.metadata.timeline.pending()


def test_lookups_find_nothing_that_is_not_there(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1)])
    reader = table.metadata.reader
    assert reader.files(["day=none"]) == {"day=none": {}}
    assert reader.column_ranges(["name", "absent"], [("day=d1", "absent.parquet")]) == {}
    assert reader.bloom_filters([("day=d1", "absent.parquet")]) == {}
    assert reader.partition_ranges(["name"], ["day=none"]) == {}


def test_an_empty_table_is_indexed_too(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    for reader in (table.metadata.reader, _fresh_reader(table)):
        assert reader.partition_paths() == []
    listed = HudiTable.open(table.storage).config.metadata_partitions
    assert listed == ("bloom_filters", "column_stats", "files", "partition_stats")


def test_what_is_kept_is_chosen(tmp_path: Path) -> None:
    config = MetadataConfig(columns=("n",), bloom_filters=False, column_stats_file_groups=3)
    table = IndexedTable(tmp_path / "a", arrow_schema(COLUMNS), part="day", config=config)
    assert table.metadata.partitions == (
        MetadataPartition.FILES,
        MetadataPartition.COLUMN_STATS,
        MetadataPartition.PARTITION_STATS,
    )
    assert table.metadata.columns[3:] == ("n",)
    assert len(table.metadata.reader.groups[MetadataPartition.COLUMN_STATS]) == 3
    plain = IndexedTable(
        tmp_path / "b", arrow_schema(COLUMNS), config=MetadataConfig(column_stats=False, bloom_filters=False)
    )
    plain.write([_row(1, 1)])
    assert plain.metadata.partitions == (MetadataPartition.FILES,)
    assert set(plain.metadata.reader.files([""])[""]) == {name for _, name in plain.listed()}


def test_late_beginning_says_the_same(tmp_path: Path) -> None:
    """A table that gets its index later, and one that had it from the start."""
    early = IndexedTable(tmp_path / "early", arrow_schema(COLUMNS), part="day")
    for order in range(5):
        early.write([_row(i, order) for i in range(order, order + 9)], [_row(order + 20, order)])
        if order == 2:
            early.compact()
    late = early.path.with_name("late")
    early.path.rename(late)
    again = IndexedTable.__new__(IndexedTable)
    again.__dict__.update({**early.__dict__, "path": late, "storage": type(early.storage)(late, fsync=False)})  # type: ignore[call-arg]
    config = drop(again.storage, HudiTable.open(again.storage).config)
    left = {path.name for path in (late / METADATA_PATH).rglob("*") if path.is_file()}
    assert left == {"hoodie.properties", ".hoodie_partition_metadata"}
    assert config.metadata_partitions == ()
    again.table = HudiTable.open(again.storage)
    again.initialise()
    _check(again, again.metadata.reader)
    files = again.listed()
    before = early.metadata.reader  # its file groups were read before the table moved
    del before
    again.write([_row(50, 9)])
    again.compact()
    _check(again, _fresh_reader(again))
    assert files


def test_initialise_refuses_what_it_would_break(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS))
    opened = HudiTable.open(table.storage)
    with pytest.raises(ConfigError, match="already"):
        initialise(table.storage, opened.config, opened.timeline, table.clock, opened.schema, table.config)
    bare = drop(table.storage, opened.config)
    table.table.begin()
    opened.timeline.refresh()
    with pytest.raises(ConfigError, match="pending"):
        initialise(table.storage, bare, opened.timeline, table.clock, opened.schema, table.config)


def test_a_second_attempt_begins_anew(tmp_path: Path) -> None:
    """A beginning that died before the properties were written leaves nothing that counts."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), indexed=False)
    stray = tmp_path / "t" / METADATA_PATH / "files" / "files-0000-0_0-0-0_00000000000000000.hfile"
    stray.parent.mkdir(parents=True)
    stray.write_bytes(b"half a file")
    table.initialise()
    table.write([_row(1, 1)])
    _check(table, _fresh_reader(table))


def test_a_late_deletion_of_a_metadata_table_meets_no_file_of_the_next_one(tmp_path: Path) -> None:
    """A store carries out a deletion, and once more later: nothing of the metadata table that came meanwhile goes."""
    deleted: list[str] = []

    class Noting(PassingStorage):
        def delete(self, path: str) -> bool:
            deleted.append(path)
            return self.inner.delete(path)

        def delete_tree(self, prefix: str) -> None:
            deleted.extend(info.path for info in self.inner.walk(prefix))
            self.inner.delete_tree(prefix)

        def sub(self, path: str) -> Storage:
            return self.inner.sub(path)

    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day", wrap=Noting)
    for turn in range(3):
        table.write([_row(n, turn) for n in range(4)])
        opened, before = HudiTable.open(table.storage), len(deleted)
        assert opened.keep_metadata(None)
        assert HudiTable.open(table.storage).keep_metadata(table.config)
        table.reopen()
        gone = [path for path in deleted[before:] if path.startswith(METADATA_PATH)]
        assert len(gone) > 8
        for path in gone:
            LocalStorage(tmp_path / "t", fsync=False).delete(path)
        table.write([_row(n, turn) for n in range(8)])
        _check(table, _fresh_reader(table))
        assert [f for f in fsck(table.storage, grace_ms=0).findings if f.severity is not Severity.INFO] == []


def test_a_savepoint_that_died_hides_no_file_of_its_write(tmp_path: Path) -> None:
    """Its inflight file has the requested time of the write that it holds."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    instant = table.write([_row(n, 1) for n in range(4)])
    table.storage.create(Instant(instant, SAVEPOINT, State.INFLIGHT).path, b"")
    _check(table, _fresh_reader(table))
    table.reopen()
    table.write([_row(9, 2)])
    _check(table, _fresh_reader(table))


def test_a_rewritten_properties_file_loses_its_hadoop_checksum(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), indexed=False)
    crc = tmp_path / "t" / ".hoodie" / ".hoodie.properties.crc"
    crc.write_bytes(b"crc\x00")
    table.initialise()
    assert not crc.exists()


def test_foreign_partitions_are_refused(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS))
    opened = HudiTable.open(table.storage)
    config = opened.config.with_metadata_partitions(("files", "record_index"))
    with pytest.raises(UnsupportedError, match="record_index"):
        MetadataTable.open(table.storage, config, opened.timeline, table.clock, opened.schema)
    none = config.with_metadata_partitions(())
    assert MetadataTable.open(table.storage, none, opened.timeline, table.clock, opened.schema) is None
    reader = MetadataReader.open(table.storage, ("files", "record_index"), opened.timeline)
    assert not reader.has(MetadataPartition.COLUMN_STATS)


@pytest.mark.parametrize("partition", [p for p in MetadataPartition if p is not MetadataPartition.RECORD_INDEX])
def test_damage_is_an_error(tmp_path: Path, partition: MetadataPartition) -> None:
    """A missing file group and a damaged base file: never an empty answer."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day", config=SMALL)
    for order in range(5):
        table.write([_row(i, order) for i in range(9)])
    table.compact()
    bases = sorted((tmp_path / "t" / METADATA_PATH / partition.value).glob("*.hfile"))
    assert bases
    for base in bases:
        data = base.read_bytes()
        base.write_bytes(data[:50] + bytes(len(data) - 50))
    with pytest.raises(LakeError):
        _check(table, _fresh_reader(table))
    for file in (tmp_path / "t" / METADATA_PATH / partition.value).iterdir():
        file.unlink()
    with pytest.raises(CorruptDataError, match="lacks file groups"):
        _fresh_reader(table)


def test_pending_instants_do_not_count(tmp_path: Path) -> None:
    """Noted, but not yet completed on the data table: a reader leaves the entries out."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1)])
    instant, results, delta = table.begin_write([_row(2, 1), _row(3, 1)])
    table.metadata.apply(instant, delta)
    assert _fresh_reader(table).partition_paths() == ["day=d1"]
    table.table.commit(instant, results)
    assert _fresh_reader(table).partition_paths() == ["day=d0", "day=d1", "day=d2"]


def test_another_writer_is_taken_in(tmp_path: Path) -> None:
    mine = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    mine.write([_row(1, 1)])
    other = IndexedTable.__new__(IndexedTable)
    other.__dict__.update(mine.__dict__)
    other.reopen()
    other.write([_row(2, 1), _row(4, 2)])
    mine.table.refresh()
    mine.metadata.refresh()
    mine.write([_row(3, 1), _row(5, 3)])
    _check(mine, mine.metadata.reader)
    _check(mine, _fresh_reader(mine))


def test_no_calls_for_an_empty_action(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), wrap=Counting)
    assert isinstance(table.storage, Counting)
    table.storage.calls.clear()
    table.metadata.apply("20260101000000000", MetadataDelta())
    assert table.storage.calls == []


@pytest.mark.full
def test_calls_do_not_grow(tmp_path: Path) -> None:
    """Opening, and a commit, cost as many storage calls after sixty commits as after ten."""
    config = MetadataConfig(compact_after=5, compact_at_most=5, archive_after=30, archive_keep=10)
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day", config=config, wrap=Counting)
    assert isinstance(table.storage, Counting)
    opening, commits = [], []
    for order in range(60):
        instant, results, delta = table.begin_write([_row(i, order) for i in range(6)])
        table.storage.calls.clear()
        table.metadata.apply(instant, delta)
        commits.append(len(table.storage.calls))
        table.table.commit(instant, results)
        if order % 5 == 4:
            table.compact()
            table.clean()
            table.storage.calls.clear()
            table.reopen()
            reader = table.metadata.reader
            reader.column_ranges(["n"], [("day=d1", name) for name in reader.files(["day=d1"])["day=d1"]])
            opening.append(len(table.storage.calls))
    assert max(opening[6:]) <= max(opening[:6])
    warm = [calls for order, calls in enumerate(commits) if order % 5 != 0]
    assert set(warm[3:]) == {7}  # requested, inflight, completed; files, statistics twice, partitions


def test_new_columns(tmp_path: Path) -> None:
    """A column that is added reads as null in older files: no predicate may skip them by it, least of all IS NULL."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day", config=SMALL)
    table.write([_row(1, 1)])
    wider = table.schema.append(pa.field("extra", pa.int64()))
    table.write([_row(1, 2, extra=5) | {"id": 4}], schema=wider)
    assert "extra" in table.metadata.columns
    whole = table.metadata.reader.partition_ranges(["extra"], ["day=d1"])["day=d1"]["extra"]
    assert (whole.min, whole.max) == (5, 5)
    assert 0 < whole.null_count < whole.value_count
    table.reopen()
    assert "extra" in table.metadata.columns


def test_what_enters_or_leaves_the_index_does_so_everywhere(tmp_path: Path) -> None:
    """Partitions that a commit does not write to, too, and files that are older: Hudi Spark prunes what lacks one."""
    older = arrow_schema({"day": pa.string(), "n": pa.int32()})
    table = IndexedTable(tmp_path / "t", older, part="day", buckets=1, config=SMALL)
    for number, day in enumerate(("d1", "d2")):
        table.write([{"id": number, ORDER: 1, "day": day, "n": 5}])
    newer = arrow_schema({"day": pa.string(), "n": pa.string(), "new": pa.int64()})

    def said() -> dict[str, set[str]]:
        columns = ["n", "new", "id"]
        return {
            path: set(r) for path, r in _fresh_reader(table).partition_ranges(columns, ["day=d1", "day=d2"]).items()
        }

    before = said()
    instant, _, delta = table.begin_write([{"id": 2, ORDER: 2, "day": "d2", "n": "x", "new": 7}], schema=newer)
    table.metadata.apply(instant, delta, newer)
    table.abort(instant)
    assert said() == before == {path: {"n", "id"} for path in ("day=d1", "day=d2")}
    table.write([{"id": 2, ORDER: 2, "day": "d2", "n": "x", "new": 7}], schema=newer)
    assert said() == {path: {"new", "id"} for path in ("day=d1", "day=d2")}
    reader = _fresh_reader(table)
    files = list(table.listed())
    assert all("new" in ranges for ranges in reader.column_ranges(["new", "id"], files).values())
    assert reader.partition_ranges(["new"], ["day=d1"])["day=d1"]["new"].max is None


def test_a_late_index_leaves_out_what_older_files_hold_otherwise(tmp_path: Path) -> None:
    """Numbers that became text: their statistics bound no text."""
    table = IndexedTable(tmp_path / "t", arrow_schema({"n": pa.int32(), "m": pa.int32()}), config=SMALL)
    table.write([{"id": 1, ORDER: 1, "n": 100, "m": 1}])
    table.write([{"id": 2, ORDER: 2, "n": "7", "m": 2}], schema=arrow_schema({"n": pa.string(), "m": pa.int64()}))
    drop(table.storage, HudiTable.open(table.storage).config)
    table.table = HudiTable.open(table.storage)
    table.initialise()
    assert table.metadata.columns[3:] == ("id", "m", ORDER)


def test_what_a_task_did_not_compute_may_be_anything(tmp_path: Path) -> None:
    """Statistics that lack an indexed column: Hudi would take it for all null, so it is said to be unknown."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1)])
    instant, results, delta = table.begin_write([_row(4, 2)])
    file = delta.added[-1]
    short = replace(file, ranges=tuple(item for item in file.ranges or () if item.column != "n"))
    table.metadata.apply(instant, MetadataDelta((*delta.added[:-1], short)))
    table.table.commit(instant, results)
    reader = _fresh_reader(table)
    found = reader.column_ranges(["n", "name"], [("day=d1", file.name)])["day=d1", file.name]
    assert (found["n"].min, found["n"].max, found["name"].min) == (-(2**31), 2**31 - 1, "n4")
    assert reader.partition_ranges(["n"], ["day=d1"])["day=d1"]["n"].max == 2**31 - 1


def test_columns_whose_order_changes_leave_the_index(tmp_path: Path) -> None:
    table = IndexedTable(
        tmp_path / "t", arrow_schema({"a": pa.int32(), "b": pa.int64(), "c": pa.int32(), "d": pa.string()})
    )
    table.write([{"id": 1, ORDER: 1, "a": 1, "b": 1, "c": 1, "d": "x"}])
    changed = arrow_schema({"a": pa.int64(), "b": pa.string(), "new": pa.float64()})
    table.write([{"id": 1, ORDER: 2, "a": 2**40, "b": "10", "new": 0.5}], schema=changed)
    assert table.metadata.columns[3:] == ("id", "a", ORDER, "new")
    again = arrow_schema({"a": pa.int64(), "b": pa.string(), "new": pa.float64(), "c": pa.int32()})
    table.write([{"id": 1, ORDER: 3, "a": 3, "b": "11", "c": 7}], schema=again)
    definitions = (tmp_path / "t" / ".hoodie" / ".index_defs" / "index.json").read_bytes()
    assert indexed_fields(definitions) == table.metadata.columns
    assert "b" not in table.metadata.columns


def test_nan_takes_its_column_out_of_the_index(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema({"f": pa.float64(), "g": pa.float32()}))
    table.write([{"id": 1, ORDER: 1, "f": 0.5, "g": 0.5}])
    assert {"f", "g"} <= set(table.metadata.columns)
    table.write([{"id": 2, ORDER: 1, "f": float("nan"), "g": 1.0}])
    assert "f" not in table.metadata.columns
    assert "g" in table.metadata.columns
    late = drop(table.storage, HudiTable.open(table.storage).config)
    assert late.metadata_partitions == ()
    table.table = HudiTable.open(table.storage)
    table.initialise()
    assert "f" not in table.metadata.columns


def test_a_file_without_statistics_closes_no_partition(tmp_path: Path) -> None:
    """It may hold anything: its partition's range admits everything, and the file itself is not indexed."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1)])
    instant, results, delta = table.begin_write([_row(4, 2)])
    file = delta.added[-1]
    unknown = AddedFile(file.partition_path, file.name, file.size)
    table.metadata.apply(instant, MetadataDelta((*delta.added[:-1], unknown)))
    table.table.commit(instant, results)
    reader = _fresh_reader(table)
    assert reader.column_ranges(["n"], [("day=d1", file.name)]) == {}
    whole = reader.partition_ranges(["n", "name"], ["day=d1"])["day=d1"]
    assert (whole["n"].min, whole["n"].max) == (-(2**31), 2**31 - 1)
    assert whole["name"].min == ""
    table.write([_row(7, 3)])
    assert _fresh_reader(table).partition_ranges(["n"], ["day=d1"])["day=d1"]["n"].max == 2**31 - 1


def test_partition_statistics_are_written_only_when_they_grow(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1), _row(7, 1)])
    (group,) = table.metadata.reader.groups[MetadataPartition.PARTITION_STATS]
    before = len(group.tail())
    table.write([_row(4, 1)])
    grown = {key: values for key, values in group.tail().items() if len(values) > 1}
    assert len(group.tail()) == before
    assert len(grown) == 1  # the commit time
    whole = table.metadata.reader.partition_ranges(["n"], ["day=d1"])["day=d1"]["n"]
    assert whole == ColumnRange("n", ValueType.INT, -19, -13, 0, 2)


def test_names_on_storage(tmp_path: Path) -> None:
    """One log file for each touched file group, under the data's own instant."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="day")
    table.write([_row(1, 1), _row(2, 1)])
    instant = table.write([_row(1, 2), _row(2, 2)])
    names = [p.name for p in (tmp_path / "t" / METADATA_PATH).rglob(f"*_{instant}.log*")]
    groups = ["col-stats-0000", "col-stats-0001", "files-0000", "partition-stats-0000"]
    assert sorted(names) == [f".{group}-0_{instant}.log.1_0-0-0" for group in groups]
    timeline = sorted(p.name for p in (tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline").iterdir())
    assert [n for n in timeline if re.match(rf"{instant}(_\d+)?\.deltacommit", n)] == [
        n for n in timeline if n.startswith(instant)
    ]
    completed = next(n for n in timeline if re.match(rf"{instant}_\d+\.deltacommit$", n))
    data = next(p.name for p in (tmp_path / "t" / ".hoodie" / "timeline").glob(f"{instant}_*.deltacommit"))
    assert completed < data  # noted before it completes on the data table
