"""Tables with a metadata table for the tests of reading, and what they hold by reading everything."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudilake.read import Filter, ScanPlan, TableReader
from hudilake.read.filters.expressions import normalised
from hudilake.storage import Storage
from tests.hudilake.failing_storage import CountingStorage
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.hudilake.read.oracle import truth

COLUMNS: dict[str, pa.DataType] = {
    "part": pa.string(),
    "n": pa.int32(),
    "price": pa.decimal128(10, 2),
    "double": pa.float64(),
    "name": pa.string(),
    "raw": pa.binary(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
}
SCHEMA = arrow_schema(COLUMNS)
ALL = SCHEMA.names
Row = dict[str, Any]


class Counting(CountingStorage):
    """Counts the calls below the root too, with the metadata table's paths as it sees them."""

    def sub(self, path: str) -> Storage:
        return Counting(self.inner.sub(path), self.calls)


def new_table(path: Path, buckets: int = 4, part: str | None = "part", **options: Any) -> IndexedTable:  # noqa: ANN401
    """An empty table with the columns above."""
    return IndexedTable(path, SCHEMA, part=part, buckets=buckets, **options)


def row(key: int, order: int, **cells: Any) -> Row:  # noqa: ANN401 - cells
    """A row of the table; what is not given follows from key and order."""
    made: Row = {
        "id": key,
        ORDER: order,
        "part": f"p{key % 3}",
        "n": key * order,
        "price": Decimal(key) / 4,
        "double": key / 2,
        "name": f"n{key:03d}",
        "raw": bytes([key % 256]),
        "flag": key % 2 == 0,
        "day": date(2024, 1, 1) + timedelta(days=key),
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=key, microseconds=order),
    }
    return {**made, **cells}


def random_row(key: int, order: int, chance: random.Random) -> Row:
    """Nulls, NaN and repeated values."""
    cells: Row = {
        "n": chance.randint(-4, 4),
        "price": Decimal(chance.randint(-9, 9)) / 100,
        "double": chance.choice([0.0, -0.0, 0.5, float("nan"), float("inf")]),
        "name": chance.choice(["", "a", "ab", "b", "\ue000", "\U0001f600", "x" * 400]),
        "raw": chance.choice([b"", b"\x00", b"\x7f", b"\x80"]),
        "flag": chance.choice([True, False]),
        "day": date(2024, 1, 1) + timedelta(days=chance.randint(0, 3)),
        "at": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=chance.randint(0, 3)),
    }
    gaps = {name: None for name in cells if chance.random() < 0.15}
    return row(key, order, **{**cells, **gaps})


def random_table(path: Path, seed: int, commits: int = 6, keys: int = 24, **options: Any) -> IndexedTable:  # noqa: ANN401
    """Upserts, late ones among them, deletes and compactions; a key stays in its partition."""
    chance = random.Random(seed)
    table = new_table(path, **options)
    for number in range(1, commits + 1):
        chosen = chance.sample(range(keys), chance.randint(1, keys // 2))
        gone = [row(key, chance.randint(1, number)) for key in chosen[: len(chosen) // 4]]
        alive = [random_row(key, chance.randint(1, number), chance) for key in chosen[len(chosen) // 4 :]]
        table.write(alive, gone)
        if number % 3 == 0:
            table.compact()
    return table


def everything(path: Path, columns: Iterable[str] = ALL) -> list[Row]:
    """All live rows, by a reader that skips nothing."""
    reader = TableReader.open(str(path), use_index=False)
    return [found for batch in reader.batches(reader.plan(columns=list(columns))) for found in batch.to_pylist()]


def passing(rows: Iterable[Mapping[str, Any]], part: Filter) -> list[Any]:
    """The keys of the rows that pass, sorted: the slow way."""
    part = normalised(part)
    return sorted(found["id"] for found in rows if truth(part, found) is True)


def ids(reader: TableReader, plan: ScanPlan) -> list[Any]:
    """The keys that a plan gives, sorted."""
    return sorted(key for batch in reader.batches(plan) for key in batch.column("id").to_pylist())


def step(plan: ScanPlan, name: str) -> tuple[int | None, int | None]:
    """(slices, files) that a step left."""
    (found,) = [item for item in plan.steps if item.name == name]
    return found.slices, found.files
