"""Conditions that are too large are refused in one line, before they take time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hudilake.errors import ConfigError
from hudilake.read.filters.expressions import In, Or, leaves
from hudilake.read.filters.sql_filter import MOST_DEPTH, MOST_PARTS, parse_filter
from lakemetastore.api.conditions import MAX_PARTS, CompareWire, GroupWire, LiteralValue, from_wire
from lakemetastore.catalog.filters.syntax import parse
from lakemetastore.errors import MetaError

SCHEMA = pa.schema([("n", pa.int64())])


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        (" OR ".join(f"n = {n}" for n in range(20_000)), "joins 20000 parts"),
        ("(" * 3000 + "n = 1" + ")" * 3000, "3000 brackets in each other"),
        ("NOT " * 3000 + "n = 1", "joins 3001 parts"),
        ("n = " + "- " * 20_000 + "1", "nested too deep"),
        (f"n IN ({', '.join(map(str, range(100_000)))})", "characters"),
    ],
    ids=["ors", "brackets", "nots", "signs", "values"],
)
def test_sql(condition: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as refused:
        parse_filter(condition, SCHEMA)
    assert len(str(refused.value)) < 400


def test_the_largest_sql() -> None:
    found = parse_filter(" OR ".join(f"n = {n}" for n in range(MOST_PARTS)), SCHEMA)
    assert isinstance(found, Or)
    assert len(list(leaves(found))) == MOST_PARTS
    assert str(parse_filter("(" * MOST_DEPTH + "n = 1" + ")" * MOST_DEPTH, SCHEMA)) == "n = 1"
    values = parse_filter(f"n IN ({', '.join(map(str, range(20_000)))})", SCHEMA)
    assert isinstance(values, In)
    assert len(values.values) == 20_000


def test_a_tree_with_too_many_parts() -> None:
    one = CompareWire(column="n", op="=", value=LiteralValue(type="integer", value="1"))
    assert from_wire(GroupWire(kind="or", parts=(one,) * (MAX_PARTS - 1))) is not None
    with pytest.raises(ConfigError, match="too large: it has 2001 parts"):
        from_wire(GroupWire(kind="or", parts=(one,) * MAX_PARTS))


def test_a_filter_of_partitions() -> None:
    assert parse(" OR ".join(f"n = {n}" for n in range(10_000))) is not None
    with pytest.raises(MetaError, match="20000 values, and at most 10000"):
        parse(" OR ".join(f"n = {n}" for n in range(20_000)))
    with pytest.raises(MetaError, match="NumberFormatException"):
        parse("n = " + "9" * 5000)
    with pytest.raises(MetaError, match="at most 100 parentheses"):
        parse("(" * 20_000 + "n = 1" + ")" * 20_000)
