"""Parquet files of which some row groups and pages are read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.files.column_stats import ColumnRange, ValueType
from hudilake.format.files.pages import chunks
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.format.files.pages.compact import read_struct, write_struct
from hudilake.format.files.pages.footer import TAIL, Footer
from hudilake.storage import open_storage
from tests.hudilake.failing_storage import CountingStorage

NAME = "file.parquet"


def opened(path: Path, table: pa.Table, **options: Any) -> ChunkedFile:  # noqa: ANN401 - of pyarrow
    """A file with a page for each two rows and a row group for each ten."""
    layout = {"row_group_size": 10, "max_rows_per_page": 2, "write_batch_size": 2, "write_page_index": True}
    settings = {"write_page_checksum": True, "store_schema": False, **layout, **options}
    pq.write_table(table, path / NAME, **settings)
    return again(path)


def again(path: Path) -> ChunkedFile:
    return ChunkedFile(open_storage(str(path)), NAME, (path / NAME).stat().st_size)


def numbers(count: int = 40) -> pa.Table:
    """Rows that tell where they come from."""
    return pa.table(
        {
            "n": pa.array(range(count), pa.int64()),
            "text": pa.array([f"row {i:05d}" if i % 7 else None for i in range(count)]),
            "few": pa.array([f"f{i // 9}" for i in range(count)]),
        }
    )


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_the_rows_asked_for_are_read(tmp_path: Path, compression: str, version: str, dictionary: bool) -> None:
    table = numbers()
    options = {"compression": compression, "data_page_version": version, "use_dictionary": dictionary}
    file = opened(tmp_path, table, **options)
    found = file.read(["n", "text", "few"], {0: [(1, 2), (5, 9)], 1: None, 3: [(9, 10)]})
    places = [1, 5, 6, 7, 8, *range(10, 20), 39]
    assert sorted(found.to_pylist(), key=lambda row: row["n"]) == table.take(pa.array(places)).to_pylist()
    assert file.read(["n"], {}).num_rows == 0
    assert file.pages_read(0, ["n", "text"], [(1, 2), (5, 9)])[::2] == (8, 10)


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [
        (pa.array([1, None, -5], pa.int32()), -5, 1),
        (pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(30, 2)), -150, 225),
        (pa.array([Decimal("-1.50"), Decimal("2.25")], pa.decimal128(9, 2)), -150, 225),
        (pa.array([date(1969, 12, 31), date(1970, 1, 3)]), -1, 2),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")), 1000, 1000),
        (pa.array([datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")), 1_000_000, 1_000_000),
        (pa.array(["b", "é", "\U0001f600"]), "b", "\U0001f600"),
        (pa.array([b"\x7f", b"\x80"]), b"\x7f", b"\x80"),
        (pa.array([False, True]), False, True),
        (pa.array([-0.0, float("nan"), 0.0]), -0.0, 0.0),
    ],
    ids=str,
)
def test_bounds_of_row_groups_and_pages(tmp_path: Path, values: pa.Array, low: Any, high: Any) -> None:  # noqa: ANN401
    file = opened(tmp_path, pa.table({"c": values}), max_rows_per_page=10, use_dictionary=False)
    for found in (file.group_ranges("c"), file.page_ranges(0, "c")):
        assert found is not None
        (one,) = found
        assert one is not None
        assert (one.min, one.max, one.null_count, one.value_count) == (low, high, values.null_count, len(values))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([datetime(1970, 1, 1)], pa.timestamp("ns")),  # noqa: DTZ001 - a local time
        pa.array([float("nan")]),
        pa.array([[1, 2]]),
        pa.array([{"a": 1}]),
        pa.array([1], pa.uint64()),
    ],
    ids=str,
)
def test_what_has_no_bounds_that_are_known(tmp_path: Path, values: pa.Array) -> None:
    assert opened(tmp_path, pa.table({"c": values})).group_ranges("c") == [None]


def test_pages_of_nulls_alone(tmp_path: Path) -> None:
    file = opened(tmp_path, pa.table({"c": pa.array([1, 2, None, None, 5, None], pa.int64())}), use_dictionary=False)
    known = [ColumnRange("c", ValueType.LONG, *item) for item in ((1, 2, 0, 2), (None, None, 2, 2), (5, 5, 1, 2))]
    assert file.page_ranges(0, "c") == known
    file = opened(tmp_path, pa.table({"c": pa.nulls(3, pa.int64())}))
    assert file.group_ranges("c") == [ColumnRange("c", ValueType.LONG, None, None, 3, 3)]


def test_a_file_without_statistics_or_page_index_is_read_by_row_groups(tmp_path: Path) -> None:
    file = opened(tmp_path, numbers(), write_statistics=False, write_page_index=False)
    assert file.group_ranges("n") == [None] * 4
    assert not file.can_pick_pages(["n"])
    assert file.read(["n"], {1: None, 2: None}).column("n").to_pylist() == list(range(10, 30))


def test_nested_columns_are_read_by_row_groups(tmp_path: Path) -> None:
    table = numbers(20).append_column("many", pa.array([[i, i] for i in range(20)]))
    file = opened(tmp_path, table)
    assert (file.can_pick_pages(["n"]), file.can_pick_pages(["n", "many"])) == (True, False)
    assert file.read(["n", "many"], {1: None}).to_pylist() == table.slice(10).select(["n", "many"]).to_pylist()


@pytest.mark.full
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path: Path) -> None:
    """In pages and in the page index, of which only the pages have checksums; the footer is left alone."""
    table, chance = numbers(), Random(1)
    opened(tmp_path, table, use_dictionary=["few"])
    whole = (tmp_path / NAME).read_bytes()
    footer = int.from_bytes(whole[-TAIL:-4], "little")
    expected = table.take(pa.array([2, 3, 9, 31])).to_pylist()
    outcomes = set()
    for _ in range(400):
        place = chance.randrange(4, len(whole) - TAIL - footer)
        damaged = bytearray(whole)
        damaged[place] ^= 1 << chance.randrange(8)
        (tmp_path / NAME).write_bytes(damaged)
        try:
            rows = again(tmp_path).read(table.schema.names, {0: [(2, 4), (9, 10)], 3: [(1, 2)]})
        except CorruptDataError:
            outcomes.add("error")
        else:
            outcomes.add("same")
            assert rows.to_pylist() == expected, place
    assert outcomes == {"error", "same"}


def test_requests_are_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One for the end of the file, one for the pages if they are near each other; not one for each page or column."""
    monkeypatch.setattr(chunks, "WHOLE_BYTES", 0)
    chance = np.random.default_rng(1)
    texts = [f"{value:064d}" for value in chance.integers(0, 2**60, 60_000)]
    table = pa.table({"n": np.arange(60_000), "text": texts, "other": texts})
    opened(tmp_path, table, row_group_size=20_000, max_rows_per_page=500, use_dictionary=False)
    storage = CountingStorage(open_storage(str(tmp_path)))
    size = (tmp_path / NAME).stat().st_size
    file = ChunkedFile(storage, NAME, size)
    found = file.read(["n", "text"], {1: [(1000, 1200), (9000, 9100)]})
    assert found.column("n").to_pylist() == [*range(21_000, 21_200), *range(29_000, 29_100)]
    assert [method for method, _ in storage.calls] == ["read_range"] * file.parts.requests
    assert (file.parts.requests <= 4, file.parts.fetched < size // 4) == (True, True)


def test_a_footer_is_written_as_it_was_read(tmp_path: Path) -> None:
    opened(tmp_path, numbers())
    whole = (tmp_path / NAME).read_bytes()
    size = int.from_bytes(whole[-TAIL:-4], "little")
    data = whole[-TAIL - size : -TAIL]
    fields, end = read_struct(data, 0)
    assert (write_struct(fields), end) == (data, len(data))
    groups = fields[4][1].values
    footer = Footer(data)
    assert [footer.chunk(i, 2) for i in range(4)] == [group[1][1].values[2] for group in groups]
    for cut in range(0, size, 7):
        with pytest.raises((ValueError, IndexError)):
            Footer(data[:cut]).chunk(3, 2)
