from __future__ import annotations

import dataclasses
import random
from pathlib import Path

import pytest

from hudilake.format.files.log_file import iter_blocks
from hudilake.services.fsck import Check, Finding, Severity
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import bases, logs, rows, told


def damage(path: Path, file: Path) -> list[Finding]:
    found = [f for f in told(path) if f.check is Check.CONTENT]
    assert all(f.severity is Severity.ERROR and path / f.path == file and f.repair is None for f in found)
    assert all(f.instant in file.name for f in found)
    return found


def two_blocks(path: Path) -> tuple[Path, bytes, int]:
    """A log file with a data block and a delete block, and where the second begins."""
    for file in logs(path):
        data = file.read_bytes()
        offsets = [b.offset for b in iter_blocks(data)]
        if len(offsets) == 2:
            return file, data, offsets[1]
    raise AssertionError("no such log file")


def test_the_magic_of_the_first_block(plain: Path) -> None:
    file, data, _ = two_blocks(plain)
    file.write_bytes(b"?" + data[1:])
    assert [f.offset for f in damage(plain, file)] == [0]


def test_the_magic_of_the_second_block(plain: Path) -> None:
    file, data, second = two_blocks(plain)
    file.write_bytes(data[:second] + b"?" + data[second + 1 :])
    assert [f.offset for f in damage(plain, file)] == [0]  # Hudi passes over the block that junk follows


@pytest.mark.parametrize("back", [0, 1])
def test_a_length(plain: Path, back: int) -> None:
    file, data, second = two_blocks(plain)
    at = len(data) - 1 if back else second + 13
    file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    assert [f.offset for f in damage(plain, file)] == [second]


def test_the_length_of_a_block_that_a_sound_one_follows(plain: Path) -> None:
    file, data, second = two_blocks(plain)
    file.write_bytes(data[:13] + bytes([data[13] ^ 1]) + data[14:])
    (only,) = damage(plain, file)
    assert only.offset == 0
    assert f"({second} bytes)" in only.what


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_a_flipped_bit_in_the_rows(plain: Path, share: float) -> None:
    file, data, second = two_blocks(plain)
    block = next(iter_blocks(data))
    start = second - 12 - len(block.content)
    at = start + int(len(block.content) * share)
    file.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
    assert [f.offset for f in damage(plain, file)] == [0]


def test_a_torn_end(plain: Path) -> None:
    file, data, second = two_blocks(plain)
    for cut in (second + 3, second + 20, len(data) - 1):
        file.write_bytes(data[:cut])
        assert [f.offset for f in damage(plain, file)] == [second]


def test_an_empty_file(plain: Path) -> None:
    file = logs(plain)[0]
    file.write_bytes(b"")
    assert [f.what for f in damage(plain, file)] == ["the file is empty"]


def test_a_block_of_another_instant(plain: Path) -> None:
    file, data, _ = two_blocks(plain)
    instant = file.name.partition("_")[2][:17].encode()
    at = data.index(instant)
    file.write_bytes(data[:at] + b"20200101000000000" + data[at + 17 :])
    assert any("has the instant 20200101000000000" in f.what for f in told(plain))


def test_a_base_file(indexed: Path) -> None:
    base = bases(indexed)[0]
    data = base.read_bytes()
    base.write_bytes(data[:200] + bytes([data[200] ^ 1]) + data[201:])
    assert len(damage(indexed, base)) == 1
    base.write_bytes(data[:-1])
    assert len(damage(indexed, base)) == 1
    base.write_bytes(data)
    assert told(indexed) == []


def test_fewer_rows_than_the_commit_wrote(plain: Path) -> None:
    table = HudiTable.open(lake.storage_at(plain))
    instant = table.begin()
    (result,) = lake.write(table, instant, lake.upserts([1], 9))
    for claimed in (dataclasses.replace(result, num_upserts=2), dataclasses.replace(result, num_deletes=1)):
        table.commit(instant, [claimed])
        (only,) = told(plain)
        assert only.path == result.path
        assert "1 rows and 0 deletes where its commit wrote" in only.what
        newest = table.timeline.completed()[-1]
        (plain / newest.path).unlink()
        table = HudiTable.open(lake.storage_at(plain))


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_flipped_bit_anywhere_is_told_or_changes_no_row(plain: Path, indexed: Path, seed: int) -> None:
    numbers = random.Random(seed)
    for path in (plain, indexed):
        before, found = rows(path), 0
        files = [*logs(path), *bases(path)]
        for _ in range(12):
            file = numbers.choice(files)
            data = file.read_bytes()
            at = numbers.randrange(len(data))
            file.write_bytes(data[:at] + bytes([data[at] ^ 1 << numbers.randrange(8)]) + data[at + 1 :])
            if told(path):
                found += 1
            else:
                assert rows(path) == before, (file, at)
            file.write_bytes(data)
        assert found
