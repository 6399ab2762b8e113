from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import dump_properties, load_properties
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.metadata.records.keys import bloom_key, column_stats_key, partition_identifier, partition_stats_key
from hudilake.metadata.records.layout import METADATA_PATH
from hudilake.metadata.records.records import (
    BloomRecord,
    RecordType,
    StatsRecord,
    encode_bloom,
    encode_listing,
    encode_stats,
)
from hudilake.services.fsck import Check, Finding, Repair, Severity
from hudilake.services.fsck.index_check import covers
from hudilake.services.repair import plan_repair, repair
from tests.hudilake.services.fsck.tables import age, bases, logs, metadata_of, put_records, report, told


def key_of(path: Path, file: Path) -> tuple[str, str]:
    return str(file.parent.relative_to(path)), file.name


def index_errors(path: Path) -> list[Finding]:
    found = told(path)
    assert all(f.check is Check.INDEX and f.severity is Severity.ERROR for f in found)
    assert all(f.repair is Repair.REBUILD_INDEX for f in found)
    return found


def put_listing(path: Path, partition: str, change: dict[str, int | None]) -> None:
    files: dict[str, int | None] = {**metadata_of(path).reader.files([partition])[partition], **change}
    kept = {name: size for name, size in files.items() if size is not None}
    put_records(
        path, MetadataPartition.FILES, {partition_identifier(partition): encode_listing(RecordType.FILES, kept)}
    )


def test_rewriting_records_as_they_are_changes_nothing(indexed: Path) -> None:
    put_listing(indexed, "p=a", {})
    put_range(indexed, logs(indexed)[-1], "x")
    assert told(indexed) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hoodie.table.version", "6"),
        ("hoodie.table.version", "10"),
        ("hoodie.timeline.layout.version", "1"),
        ("hoodie.table.base.file.format", "LANCE"),
        ("hoodie.table.base.file.format", None),
    ],
)
def test_a_metadata_table_of_another_form_is_told_and_made_anew(indexed: Path, name: str, value: str | None) -> None:
    properties = indexed / METADATA_PATH / ".hoodie/hoodie.properties"
    values = load_properties(properties.read_bytes())
    values = {key: old for key, old in values.items() if key != name} | ({name: value} if value else {})
    properties.write_bytes(dump_properties(values, "x"))
    (only,) = index_errors(indexed)
    assert name in only.what
    list(repair(metadata_of(indexed).data_storage, plan_repair([only])))
    assert told(indexed) == []


def test_a_file_missing_in_the_listing(indexed: Path) -> None:
    file = logs(indexed)[-1]
    put_listing(indexed, str(file.parent.relative_to(indexed)), {file.name: None})
    (only,) = index_errors(indexed)
    assert indexed / only.path == file
    assert "does not list" in only.what


def test_a_file_too_many_in_the_listing(indexed: Path) -> None:
    file = logs(indexed)[-1]
    ghost = file.name.replace("_0-0-0", "_7-0-0")
    put_listing(indexed, str(file.parent.relative_to(indexed)), {ghost: 10})
    (only,) = index_errors(indexed)
    assert only.path.endswith(ghost)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_wrong_size_in_the_listing(indexed: Path, by: int) -> None:
    file = logs(indexed)[-1]
    put_listing(indexed, str(file.parent.relative_to(indexed)), {file.name: file.stat().st_size + by})
    (only,) = index_errors(indexed)
    assert f"it has {file.stat().st_size}" in only.what


def put_range(path: Path, file: Path, column: str, **change: object) -> None:
    key = key_of(path, file)
    held = metadata_of(path).reader.column_ranges([column], [key])[key][column]
    record = StatsRecord(file.name, dataclasses.replace(held, **change))  # type: ignore[arg-type]
    put_records(
        path,
        MetadataPartition.COLUMN_STATS,
        {column_stats_key(column, *key): encode_stats(RecordType.COLUMN_STATS, record)},
    )


@pytest.mark.parametrize(
    ("column", "change", "tight"),
    [
        ("x", {"min": 61}, True),
        ("x", {"max": 21}, True),
        ("x", {"min": None, "max": None, "null_count": 4, "value_count": 4}, True),
        ("name", {"min": "n9"}, True),
        ("x", {"min": -1, "max": 10_000}, False),
        ("name", {"min": "", "max": "zz", "null_count": 1}, False),
    ],
)
def test_statistics(indexed: Path, column: str, change: dict[str, object], tight: bool) -> None:
    put_range(indexed, max(logs(indexed), key=lambda f: f.stat().st_size), column, **change)
    found = index_errors(indexed)
    assert [f"the file's statistics are too tight for its rows: {column}" == f.what for f in found] == [True] * tight


def test_statistics_of_one_column_are_missing(indexed: Path) -> None:
    key = key_of(indexed, logs(indexed)[-1])
    put_records(indexed, MetadataPartition.COLUMN_STATS, {column_stats_key("x", *key): None})
    (only,) = index_errors(indexed)
    assert "lack x" in only.what


def test_statistics_of_a_whole_file_may_be_missing(indexed: Path) -> None:
    key = key_of(indexed, logs(indexed)[-1])
    columns = metadata_of(indexed).columns
    put_records(indexed, MetadataPartition.COLUMN_STATS, {column_stats_key(c, *key): None for c in columns})
    assert told(indexed) == []
    assert [f.severity for f in report(indexed).findings] == [Severity.INFO]
    assert "1 of" in report(indexed).findings[0].what


def test_partition_statistics_too_tight(indexed: Path) -> None:
    held = metadata_of(indexed).reader.partition_ranges(["x"], ["p=a"])["p=a"]["x"]
    record = StatsRecord("p=a", dataclasses.replace(held, min=held.max), tight=True)
    key = partition_stats_key("x", "p=a")
    put_records(indexed, MetadataPartition.PARTITION_STATS, {key: encode_stats(RecordType.PARTITION_STATS, record)})
    found = index_errors(indexed)
    assert found
    assert all(f.what == "its partition's statistics are too tight for its rows: x" for f in found)


def test_a_bloom_filter_without_a_key(indexed: Path) -> None:
    base = bases(indexed)[0]
    other = BloomFilter.simple(10, 1e-9)
    record = encode_bloom(BloomRecord(other.kind, "1", other.to_base64().encode()))
    put_records(indexed, MetadataPartition.BLOOM_FILTERS, {bloom_key(*key_of(indexed, base)): record})
    found = [f for f in told(indexed) if f.severity is Severity.ERROR]
    assert [indexed / f.path for f in found] == [base]
    over = [f for f in told(indexed) if f.severity is Severity.WARNING]
    assert over
    assert all("keys of a log file" in f.what and f.repair is Repair.REBUILD_INDEX for f in over)


def test_a_missing_bloom_filter_is_fine(indexed: Path) -> None:
    put_records(indexed, MetadataPartition.BLOOM_FILTERS, {bloom_key(*key_of(indexed, bases(indexed)[0])): None})
    assert told(indexed) == []


@pytest.mark.parametrize("partition", ["files", "column_stats", "bloom_filters", "partition_stats"])
def test_a_missing_metadata_partition(indexed: Path, partition: str) -> None:
    shutil.rmtree(indexed / METADATA_PATH / partition)
    assert any("cannot be read" in f.what for f in index_errors(indexed))


def metadata_files(path: Path, pattern: str) -> list[Path]:
    return sorted(
        f
        for f in (path / METADATA_PATH).rglob(pattern)
        if ".hoodie/timeline" not in str(f.relative_to(path / METADATA_PATH))
    )


@pytest.mark.parametrize("pattern", ["*.hfile", "files/.files*[1-9]*.log.*"])
def test_a_damaged_file_of_the_metadata_table(indexed: Path, pattern: str) -> None:
    file = metadata_files(indexed, pattern)[-1]
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    assert index_errors(indexed)
    file.write_bytes(b"")
    assert any(f.path and indexed / f.path == file for f in index_errors(indexed))
    file.write_bytes(data)
    assert told(indexed) == []


def test_no_index_definitions(indexed: Path) -> None:
    (indexed / ".hoodie/.index_defs/index.json").unlink()
    assert len(index_errors(indexed)) == 1


def test_a_commit_that_is_not_completed_in_the_metadata_table(indexed: Path) -> None:
    newest = sorted((indexed / METADATA_PATH / ".hoodie/timeline").glob("*_*.deltacommit"))[-1]
    newest.unlink()
    assert any("not in its metadata table" in f.what for f in index_errors(indexed))


def test_a_leftover_instant_of_the_metadata_table(indexed: Path) -> None:
    (indexed / METADATA_PATH / ".hoodie/timeline/20990101000000000.deltacommit.requested").write_bytes(b"")
    (young,) = told(indexed)
    assert (young.severity, young.repair) == (Severity.WARNING, None)
    age(indexed)
    (old,) = told(indexed)
    assert old.repair is Repair.RECOVER_INDEX


def whole(low: object, high: object, nulls: int = 0, kind: ValueType = ValueType.DOUBLE) -> ColumnRange:
    return ColumnRange("c", kind, low, high, nulls, 4)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("said", "actual", "expected"),
    [
        (whole(0.0, 1.0), whole(-0.0, 1.0), True),
        (whole(0.0, 1.0), whole(0.0, 1.0, 1), False),
        (whole(0.0, 1.0, 1), whole(0.0, 1.0), True),
        (whole(0.0, 1.0), whole(0.0, float("nan")), False),
        (whole(0.0, float("nan")), whole(0.0, 9.0), True),
        (whole(0, 5, kind=ValueType.LONG), whole(1, 5, kind=ValueType.INT), True),
        (whole(1, 5, kind=ValueType.INT), whole(0, 5, kind=ValueType.LONG), False),
        (whole("a", "z", kind=ValueType.STRING), whole(0.0, 1.0), False),
        (whole(0.0, 1.0, 4), whole(0.0, 1.0), False),
        (whole(0.0, 1.0), whole(None, None, 0), True),
    ],
)
def test_what_a_statistic_admits(said: ColumnRange, actual: ColumnRange, expected: bool) -> None:
    assert covers(said, actual) is expected
