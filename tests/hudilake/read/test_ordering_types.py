"""A read without the ordering column merges as one with it, whatever type the column has and files have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudilake

EARLY, LATE = 1, 0  # which value of a pair
VALUES: dict[pa.DataType, tuple[Any, Any]] = {
    pa.int32(): (2, 1),
    pa.int64(): (2**40, 1),
    pa.date32(): (date(2024, 2, 2), date(2024, 2, 1)),
    pa.timestamp("us", "UTC"): (datetime(2024, 2, 2, tzinfo=UTC), datetime(2024, 2, 1, tzinfo=UTC)),
    pa.timestamp("us"): (datetime(2024, 2, 2), datetime(2024, 2, 1)),  # noqa: DTZ001 - without a zone
}


def made(path: Path, kind: pa.DataType) -> hudilake.Table:
    schema = pa.schema({"id": pa.int64(), "name": pa.string(), "at": kind})
    return hudilake.create_table(str(path), schema, key="id", order_by="at", buckets=1)


def written(table: hudilake.Table, name: str, at: object) -> None:
    rows = [{"id": number, "name": name, "at": at} for number in (1, 2)]
    table.upsert(pa.Table.from_pylist(rows, table.schema))


def names(table: hudilake.Table, columns: list[str] | None) -> list[str]:
    return sorted(table.scan(columns).to_arrow().column("name").to_pylist())


@pytest.mark.first(5)
@pytest.mark.parametrize("kind", VALUES, ids=str)
@pytest.mark.parametrize("compacted", [False, True])
def test_an_older_row_that_comes_late(kind: pa.DataType, compacted: bool, tmp_path: Path) -> None:
    table = made(tmp_path / "t", kind)
    written(table, "kept", VALUES[kind][LATE])
    if compacted:
        table.compact()
    written(table, "late", VALUES[kind][EARLY])
    assert names(table, None) == names(table, ["name"]) == ["kept", "kept"]
    assert table.count("name = 'kept'") == 2


@pytest.mark.parametrize("unit", ["ms", "ns"])
def test_a_base_file_with_times_of_another_unit(unit: str, tmp_path: Path) -> None:
    """Hudi's Spark writer makes them with ``hoodie.parquet.outputtimestamptype``: milliseconds, or INT96, which Arrow
    reads as nanoseconds."""
    kind = pa.timestamp("us", "UTC")
    table = made(tmp_path / "t", kind)
    written(table, "base", VALUES[kind][EARLY])
    table.compact()
    (base,) = (path for path in (tmp_path / "t").glob("*.parquet") if pq.read_metadata(path).num_rows)
    file = pq.ParquetFile(base)
    rows = file.read()
    place = rows.column_names.index("at")
    rows = rows.set_column(place, "at", rows.column("at").cast(pa.timestamp(unit, "UTC")))
    pairs = {name: text for name, text in file.metadata.metadata.items() if name != b"ARROW:schema"}
    with pq.ParquetWriter(base, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata(pairs)
    table = hudilake.open_table(str(tmp_path / "t"))
    before = datetime(2024, 1, 1, tzinfo=UTC)
    written(table, "late", before)
    assert names(table, None) == names(table, ["name"]) == ["base", "base"]
    written(table, "newest", VALUES[kind][LATE])
    assert names(table, None) == names(table, ["name"]) == ["newest", "newest"]
