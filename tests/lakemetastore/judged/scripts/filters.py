"""Filters on partitions: operators, keys of several types, limits, both dialects, and texts that are no filters."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from hive_metastore import ttypes

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import columns, database, partition, table
from tests.lakemetastore.judged.scripts.filter_texts import DATES, INTEGERS, OTHERS, STRINGS, TWO
from tests.lakemetastore.judged.scripts.partitions import NULL

_KEYS = (
    "s string",
    "i int",
    "d date",
    "b bigint",
    "v varchar(20)",
    "c char(5)",
    "n decimal(10,2)",
    "f double",
    "t timestamp",
    "o boolean",
)
_VALUES = {
    "s": ["a", "ab", "abc", "b", "A", "a b", "a'b", "10", "9", "ü", "a%b", "a_b", "a.b", NULL],
    "i": ["1", "2", "9", "10", "-5", "007", "100", NULL],
    "d": ["2024-01-01", "2024-01-02", "2024-02-29", "2023-12-31", NULL],
    "b": ["1", "10000000000", "-1", "2", NULL],
    "v": ["a", "ab", "b", NULL],
    "c": ["a", "ab", "b"],
    "n": ["1.5", "10.25", "2"],
    "f": ["1.5", "10.5", "2.0"],
    "t": ["2024-01-01 00:00:00", "2024-01-02 01:02:03"],
    "o": ["true", "false"],
}
_EQUALITY = ("=", "!=", "<>")
_ORDER = ("<", "<=", ">", ">=")


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; the database's name begins with ``prefix``."""
    db = f"{prefix}_f"
    yield call("create_database", database(db))
    for key in _KEYS:
        name = f"by_{key[0]}"
        yield call("create_table", table(db, name, columns(key)))
        yield call("add_partitions", [partition(db, name, [value]) for value in _VALUES[key[0]]])
    yield call("create_table", table(db, "by_two", columns("s string", "i int")))
    pairs = [(s, i) for s in ("a", "b", "ab", NULL) for i in ("1", "2", "10")]
    yield call("add_partitions", [partition(db, "by_two", pair) for pair in pairs])
    yield call("create_table", table(db, "none"))
    groups = {"s": STRINGS, "i": INTEGERS, "d": DATES, **OTHERS}
    for key, texts in groups.items():
        for text in texts:
            yield from _asked(db, f"by_{key}", text)
    for text in TWO:
        yield from _asked(db, "by_two", text)
    yield from _random(db, rng)
    yield from _limits(db)
    yield call("drop_database", db, False, True)


def _asked(db: str, name: str, text: str) -> Iterator[Call]:
    yield call("get_partitions_by_filter", db, name, text, -1)
    yield call("get_num_partitions_by_filter", db, name, text)


def _random(db: str, rng: random.Random) -> Iterator[Call]:
    for _ in range(40):
        yield call("get_partitions_by_filter", db, "by_two", _condition(rng, 3), rng.choice((-1, -1, 1, 5)))


def _condition(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return _leaf(rng)
    parts = [_condition(rng, depth - 1) for _ in range(rng.randint(2, 3))]
    word = rng.choice((" and ", " or ", " AND ", " OR "))
    joined = word.join(parts)
    return f"({joined})" if rng.random() < 0.6 else joined


def _leaf(rng: random.Random) -> str:
    key = rng.choice("si")
    values: Sequence[str] = ("a", "b", "ab", "absent") if key == "s" else ("1", "2", "10", "-3")
    quoted = [f'"{value}"' if key == "s" else value for value in values]
    one = rng.random()
    if one < 0.2:
        return f"({key}) in ({', '.join(rng.sample(quoted, 2))})"
    if one < 0.35:
        low, high = rng.sample(quoted, 2)
        return f"{key} between {low} and {high}"
    if one < 0.45 and key == "s":
        return f's like "{rng.choice(("a.*", ".*b", "a", "b.*"))}"'
    return f"{key} {rng.choice((*_EQUALITY, *_ORDER))} {rng.choice(quoted)}"


def _limits(db: str) -> Iterator[Call]:
    for limit in (-1, 0, 1, 2, 100, -7):
        yield call("get_partitions_by_filter", db, "by_s", 's > "a"', limit)
        yield call("get_partitions_by_filter", db, "by_i", "i > 1", limit)
        yield call("get_part_specs_by_filter", db, "by_s", 's > "a"', limit)
    for name in ("none", "absent"):
        yield from _asked(db, name, 's = "a"')
        yield from _asked(db, name, "")
    yield from _asked(f"{db}_absent", "by_s", 's = "a"')
    yield from _asked(db.upper(), "BY_S", 's = "a"')
    keys = columns("s string")
    for text in (None, 's > "a"'):
        asked = ttypes.PartitionValuesRequest(dbName=db, tblName="by_s", partitionKeys=keys, filter=text)
        yield call("get_partition_values", asked)
