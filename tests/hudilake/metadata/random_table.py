"""Tables of random rows in all indexed types, and random predicates over them, the same for one seed."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from hudilake.metadata.config import MetadataConfig
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema

COLUMNS = {
    "s": pa.string(),
    "long": pa.string(),
    "dec": pa.decimal128(10, 2),
    "big": pa.decimal128(38, 0),
    "ts": pa.timestamp("us", tz="UTC"),
    "day": pa.date32(),
    "flag": pa.bool_(),
    "f": pa.float64(),
    "f4": pa.float32(),
    "i": pa.int32(),
    "bin": pa.binary(),
    "region": pa.string(),
}
TEXTS = ("", "a", "b", "ab", "abc", "é", "ｆｕｌｌ", "😀", "😀b", "\ufffd", "Z")
REGIONS = ("ap", "eu", "us")
CONFIG = MetadataConfig(compact_after=4, compact_at_most=6, archive_after=10, archive_keep=5)


def random_values(turn: int, chance: random.Random) -> dict[str, Any]:
    """A value for every column but the key, the order and the partition; some null."""
    odd = (0.0, -0.0, float("inf"), float("-inf"), 1e308)
    values: dict[str, Any] = {
        "s": chance.choice(TEXTS) + chance.choice(("", str(turn))),
        "long": chance.choice("abc") * chance.choice((3, 255, 256, 257, 400)) + chance.choice(("", "z", "😀")),
        "dec": Decimal(chance.randint(-100, 100) * chance.choice((1, 1000))) / 100,
        "big": Decimal(chance.choice((-1, 1)) * chance.choice((0, 1, 10**18, 10**37, 255, 256, 2**63))),
        "ts": datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randint(-(10**15), 10**9)),
        "day": date(2026, 1, 1) + timedelta(days=chance.randint(-30_000, 10)),
        "flag": chance.random() < 0.5,
        "f": chance.choice(odd) if chance.random() < 0.2 else turn + 0.5,
        "f4": chance.choice((0.0, -0.0, 0.1)) if chance.random() < 0.3 else float(turn),
        "i": chance.choice((-(2**31), 2**31 - 1)) if chance.random() < 0.05 else turn * 10 + chance.randint(0, 9),
        "bin": bytes([chance.randint(0, 255)]) * chance.randint(0, 3),
    }
    return {name: None if chance.random() < 0.15 else value for name, value in values.items()}


def random_rows(turn: int, chance: random.Random) -> list[dict[str, Any]]:
    """Four to twelve rows of sixty keys."""
    ids = chance.sample(range(60), chance.randint(4, 12))
    return [{"id": i, ORDER: turn, "region": REGIONS[i % 3], **random_values(turn, chance)} for i in ids]


def random_table(path: Path, part: str | None, seed: int, config: MetadataConfig = CONFIG) -> IndexedTable:
    """Twelve commits with updates and deletes, two compactions and a clean of the data; upkeep of the index between."""
    chance = random.Random(seed)
    table = IndexedTable(path, arrow_schema(COLUMNS), part=part, config=config)
    for turn in range(12):
        rows = random_rows(turn, chance)
        there = {row["id"] for row in rows}
        gone = [i for i in chance.sample(range(60), 3) if i not in there] if turn % 3 == 2 else []
        table.write(rows, [{"id": i, ORDER: turn, "region": REGIONS[i % 3]} for i in gone])
        if turn in (4, 8):
            table.compact()
            table.clean()
    return table


def small_table(path: Path, part: str | None, chance: random.Random) -> IndexedTable:
    """A few commits whose rows lie close together, each file with bounds of its own; perhaps a column all null, a
    compaction, a NaN."""
    table = IndexedTable(path, arrow_schema(COLUMNS), part=part, config=CONFIG)
    for turn in range(chance.randint(2, 4)):
        rows = random_rows(turn, chance)[:6]
        for name in chance.sample(["s", "long", "dec", "big", "ts", "day", "flag", "f", "f4", "i"], 2):
            rows = [{**row, name: None} for row in rows]
        if chance.random() < 0.15:
            rows[0]["f"] = float("nan")
        table.write(rows)
        if chance.random() < 0.25:
            table.compact()
    return table


def random_predicate(rows: list[dict[str, Any]], chance: random.Random, depth: int = 2) -> str:
    """SQL over the columns of ``COLUMNS`` and the key; its literals are values of the rows, or near them."""
    if depth and chance.random() < 0.4:
        sides = [random_predicate(rows, chance, depth - 1) for _ in range(2)]
        joined = f"({sides[0]} {chance.choice(('and', 'or'))} {sides[1]})"
        return f"not {joined}" if chance.random() < 0.2 else joined
    name = chance.choice(["id", *(name for name in COLUMNS if name != "bin")])
    values = [row[name] for row in rows if row[name] is not None and row[name] == row[name]]
    if not values or chance.random() < 0.1:
        return f"{name} is {chance.choice(('', 'not '))}null"
    first, second = (_literal(name, chance.choice(values)) for _ in range(2))
    if chance.random() < 0.2:
        return f"{name} {chance.choice(('', 'not '))}in ({first}, {second})"
    if chance.random() < 0.1:
        return f"{name} between {first} and {second}"
    return f"{name} {chance.choice(('=', '=', '<', '<=', '>', '>=', '<>', '<=>'))} {first}"


def _literal(name: str, value: Any) -> str:  # noqa: ANN401 - a value of any column
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return f"timestamp'{value.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}Z'"
    if isinstance(value, date):
        return f"date'{value}'"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, float):
        return f"{'float' if name == 'f4' else 'double'}('{value!r}')"
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
