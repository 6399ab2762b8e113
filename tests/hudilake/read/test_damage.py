"""A damaged or missing metadata table: right rows all the same, and a warning."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.file_group_write import write_file_group
from hudilake.format.files.log_file import encode_delete_block, iter_blocks, whole_blocks
from hudilake.metadata.config import MetadataConfig
from hudilake.read import ScanPlan, TableReader
from hudilake.read.index import TableIndex
from tests.hudilake.read.lakes import Row, everything, ids, new_table, passing, row
from tests.selection import first

#: One of so many files is damaged in ``make test``, the others in ``make test-rest``.
SHARES = 3
CONDITION = "n > 20 AND id IN (3, 7, 14, 21)"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two commits with a delete, a compaction, a third commit."""
    table = new_table(tmp_path_factory.mktemp("damage") / "t", buckets=2)
    table.write([row(key, 1) for key in range(24)])
    table.write([row(key, 2) for key in range(0, 24, 5)], [row(7, 2)])
    table.compact()
    table.write([row(key, 3) for key in range(0, 24, 7)])
    return table.path


def read(path: Path) -> tuple[list[int], ScanPlan]:
    reader = TableReader.open(str(path))
    plan = reader.plan(condition=CONDITION, columns=["id"])
    return ids(reader, plan), plan


def damages(data: bytes, chance: random.Random) -> Iterator[tuple[str, bytes | None]]:
    """What may happen to a file; None: it is gone."""
    yield "gone", None
    yield "empty", b""
    yield "half", data[: len(data) // 2]
    yield "junk behind", data + bytes(100)
    for _ in range(4 if data else 0):
        at = chance.randrange(len(data))
        yield "a bit", data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]


@pytest.mark.full
@pytest.mark.parametrize("share", first(1, range(SHARES)))
def test_no_damage_to_the_metadata_table_changes_the_rows(original: Path, tmp_path: Path, share: int) -> None:
    path = tmp_path / "t"
    shutil.copytree(original, path)
    expected, plan = read(path)
    assert (expected, plan.warnings) == ([7, 14, 21], ())
    outcomes: Counter[tuple[str, bool]] = Counter()
    chance = random.Random(7)
    files = [f for f in sorted((path / ".hoodie/metadata").rglob("*")) if f.is_file() and f.stat().st_size]
    held = [f for f in files if f.suffix == ".hfile" or ".log." in f.name or f.parent.name == "timeline"]
    for file in held[share::SHARES]:
        data = file.read_bytes()
        for kind, damaged in damages(data, chance):
            file.unlink() if damaged is None else file.write_bytes(damaged)
            found, plan = read(path)
            assert found == expected, (file, kind)
            outcomes[kind, bool(plan.warnings)] += 1
            file.write_bytes(data)
    assert all(outcomes[kind, True] for kind in ("gone", "empty", "half", "junk behind", "a bit")), outcomes


@pytest.mark.parametrize("gone", ["", "files", "column_stats", "bloom_filters", "timeline"])
def test_a_directory_that_is_gone(original: Path, tmp_path: Path, gone: str) -> None:
    path = tmp_path / "t"
    shutil.copytree(original, path)
    shutil.rmtree(path / ".hoodie/metadata" / (gone if gone != "timeline" else ".hoodie/timeline"))
    found, plan = read(path)
    assert found == [7, 14, 21]
    expected = {"column_stats": {"column stats", "key range"}, "bloom_filters": {"bloom filters"}}
    assert {warning.step for warning in plan.warnings} == expected.get(gone, {"listing"})


def test_a_commit_that_the_metadata_table_never_heard_of(tmp_path: Path) -> None:
    """Its files would be missing from the listing: Hudi's own readers lose such rows without a word."""
    table = new_table(tmp_path, buckets=1)
    table.write([row(3, 1)])
    instant, results, _ = table.begin_write([row(6, 1)])
    table.table.commit(instant, results)
    reader = TableReader.open(str(tmp_path))
    plan = reader.plan(columns=["id"])
    assert ["not in the metadata table" in str(warning) for warning in plan.warnings] == [True]
    assert ids(reader, plan) == [3, 6]
    index = TableIndex(table.storage, [MetadataPartition.FILES], reader.table.timeline)
    with pytest.raises(CorruptDataError) as caught:
        index.reader(MetadataPartition.FILES)
    assert caught.value.where["instant"] == instant


def test_a_commit_without_files_is_no_damage(tmp_path: Path) -> None:
    table = new_table(tmp_path, buckets=1)
    table.write([row(3, 1)])
    table.table.commit(table.table.begin(), [], {"own": "position"})
    assert not TableReader.open(str(tmp_path)).plan().warnings


def test_a_metadata_table_made_late_is_no_damage(tmp_path: Path) -> None:
    table = new_table(tmp_path, indexed=False)
    rows: list[Row] = [row(key, 1) for key in range(9)]
    for part in (rows[:5], rows[5:]):
        instant = table.table.begin()
        context = table.table.write_context(instant)
        groups = table._groups(part, [], context.arrow_schema)
        table.table.commit(instant, [write_file_group(table.storage, context, group) for group in groups])
    table.initialise()
    table.write([row(20, 2)])
    reader = TableReader.open(str(tmp_path))
    plan = reader.plan(condition="n >= 0", columns=["id"])
    assert (ids(reader, plan), plan.warnings) == ([*range(9), 20], ())


def test_a_metadata_table_that_is_compacted_and_archived_is_no_damage(tmp_path: Path) -> None:
    config = MetadataConfig(compact_after=3, compact_at_most=4, archive_keep=5, archive_after=8)
    table = new_table(tmp_path, buckets=1, part=None, config=config)
    for number in range(1, 31):
        table.write([row(number % 7, number)])
        if number % 11 == 0:
            table.compact()
        plan = TableReader.open(str(tmp_path)).plan(condition="n > 0")
        assert not plan.warnings, number
    assert passing(everything(tmp_path), plan.condition) == [1, 2, 3, 4, 5, 6]


def test_the_data_table_is_read_by_listing_where_the_index_is_not_wanted(original: Path) -> None:
    reader = TableReader.open(str(original), use_index=False)
    plan = reader.plan(condition=CONDITION, columns=["id"])
    assert ids(reader, plan) == [7, 14, 21]
    assert [step.name for step in plan.steps] == ["table", "bucket"]


def test_a_log_file_that_must_be_whole() -> None:
    """``iter_blocks`` leaves damaged blocks out, as readers of data must: of a listing that would hide files."""
    blocks = [encode_delete_block(f"{n}", "{}", b"\x00\x00\x00\x03\x00\x00\x00\x01\x00") for n in range(3)]
    data = b"".join(blocks)
    assert [block.instant for block in whole_blocks(data)] == ["0", "1", "2"]
    for damaged in (data[:-1], data + b"\x00", data[: len(blocks[0])] + b"x" + data[len(blocks[0]) :], b""):
        assert len(list(iter_blocks(damaged))) < 3 or damaged == data + b"\x00"
        with pytest.raises(CorruptDataError, match="damaged"):
            whole_blocks(damaged, "x")
