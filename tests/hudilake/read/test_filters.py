"""Filters on rows: SQL's three values, exact across types."""

from __future__ import annotations

import math
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import UnsupportedError
from hudilake.read import (
    And,
    Constant,
    Eq,
    Filter,
    Ge,
    Gt,
    In,
    IsNotNull,
    IsNull,
    Le,
    Lt,
    Ne,
    Not,
    Or,
    StartsWith,
    Unknown,
)
from hudilake.read.filters.evaluate import evaluate, matches
from hudilake.read.filters.expressions import FALSE, TRUE, Value, columns_of, normalised, unknown_parts
from hudilake.read.filters.literals import position
from tests.hudilake.read.oracle import COLUMNS, SCHEMA, filters, naive, rows, truth
from tests.hypothesis_profile import scaled

ALL = list(COLUMNS)


@settings(max_examples=scaled(120), deadline=None)
@given(part=filters(ALL), data=rows(ALL))
def test_rows_are_judged_as_one_by_one(part: Filter, data: list[dict[str, Any]]) -> None:
    table = pa.Table.from_pylist(data, SCHEMA)
    expected = [truth(part, row) for row in data]
    assert evaluate(part, table).to_pylist() == expected
    assert matches(normalised(part), table).tolist() == [value is True for value in expected]
    assert matches(normalised(Not(part)), table).tolist() == [value is False for value in expected]


def test_numbers_compare_by_value_whatever_their_types() -> None:
    table = pa.table({"i": pa.array([1, 2, 3, None], pa.int32()), "f": pa.array([0.5, math.nan, -0.0, None])})
    assert passing(Lt("i", 2.5), table) == [0, 1]
    assert passing(Eq("i", Decimal("2.0")), table) == [1]
    assert passing(Eq("i", 2.5), table) == []
    assert passing(Ne("i", 2.5), table) == [0, 1, 2]
    assert passing(Gt("i", -(2**70)), table) == [0, 1, 2]
    assert passing(Gt("f", 10**400), table) == [1]
    assert passing(Ge("f", math.nan), table) == [1]
    assert passing(In("f", (0,)), table) == [2]
    assert passing(Not(Le("f", 0.5)), table) == [1]


def passing(part: Filter, table: pa.Table) -> list[int]:
    return [i for i, flag in enumerate(matches(normalised(part), table).tolist()) if flag]


@pytest.mark.parametrize(
    ("kind", "value", "below", "exact"),
    [
        (pa.int8(), 200, 127, False),
        (pa.int8(), -200, None, False),
        (pa.int64(), math.nan, 2**63 - 1, False),
        (pa.decimal128(10, 2), Decimal("1.005"), Decimal("1.00"), False),
        (pa.decimal128(10, 2), Decimal("-1.005"), Decimal("-1.01"), False),
        (pa.decimal128(38, 10), Decimal(10) ** 40, Decimal("9" * 28 + "." + "9" * 10), False),
        (pa.float32(), 0.5, 0.5, True),
        (pa.float32(), -(10**60), -math.inf, False),
        (pa.date32(), naive("2024-02-29T12:00"), date(2024, 2, 29), False),
        (
            pa.timestamp("ms", tz="UTC"),
            naive("2024-02-29T00:00:00.001999"),
            naive("2024-02-29T00:00:00.001000"),
            False,
        ),
        (pa.time64("us"), time(1, 2, 3, 4), time(1, 2, 3, 4), True),
        (pa.timestamp("us"), date(9999, 12, 31), naive("9999-12-31"), True),
    ],
)
def test_the_place_of_a_literal(kind: pa.DataType, value: Value, below: object, exact: bool) -> None:
    found = position(kind, value)
    got = None if found.value is None else found.value.as_py()
    got = got.replace(tzinfo=None) if isinstance(got, datetime) else got
    assert (got, found.exact) == (below, exact)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), "1"),
        (pa.int64(), True),
        (pa.bool_(), 1),
        (pa.string(), b"x"),
        (pa.string(), 1),
        (pa.binary(), "x"),
        (pa.date32(), "2024-01-01"),
        (pa.date32(), 1),
        (pa.timestamp("us"), time(1)),
        (pa.time64("us"), naive("2024-01-01")),
        (pa.list_(pa.int64()), 1),
    ],
)
def test_a_literal_of_another_kind_is_refused(kind: pa.DataType, value: Value) -> None:
    with pytest.raises(UnsupportedError, match="cannot be compared"):
        position(kind, value)


@given(part=filters(["n", "name"], max_leaves=10), data=rows(["n", "name"], max_size=4))
def test_a_normalised_filter_has_no_negation_and_no_null(part: Filter, data: list[dict[str, Any]]) -> None:
    found = normalised(part)
    assert not any(isinstance(inner, Not) or inner == Constant(None) for inner in inner_parts(found))
    assert normalised(found) == found
    assert [truth(found, row) is True for row in data] == [truth(part, row) is True for row in data]


def inner_parts(part: Filter) -> list[Filter]:
    inner = part.parts if isinstance(part, And | Or) else (part.part,) if isinstance(part, Not) else ()
    return [part, *(found for item in inner for found in inner_parts(item))]


def test_constants_fold_and_parts_flatten() -> None:
    a, b = Eq("a", 1), Eq("b", 2)
    assert normalised(And((a, TRUE, And((b, a))))) == And((a, b))
    assert normalised(And((a, FALSE))) == FALSE
    assert normalised(Or((a, TRUE))) == TRUE
    assert normalised(Or((a, Constant(None)))) == a
    assert normalised(Not(Or((a, Constant(None))))) == FALSE
    assert normalised(And(())) == TRUE
    assert normalised(Or(())) == FALSE


def test_what_is_not_understood_lets_rows_pass_also_when_negated() -> None:
    part = And((Eq("a", 1), Unknown("f(a)")))
    table = pa.table({"a": [1, 2]})
    assert passing(part, table) == [0]
    assert passing(Not(part), table) == [0, 1]
    assert unknown_parts(normalised(Not(part))) == ("not f(a)",)
    with pytest.raises(UnsupportedError, match=r"f\(a\)"):
        evaluate(part, table)


def test_a_filter_says_what_it_is() -> None:
    part = Or(
        (And((Eq("a", "it's"), Not(IsNull("b")))), In("c", tuple(range(9)), negated=True), StartsWith("d", b"\x01"))
    )
    assert str(part) == ("((a = 'it''s' and not b is null) or c not in (0, 1, 2, 3, 4, ...) or d starts with x'01')")
    assert columns_of(part) == ("a", "b", "c", "d")
    assert str(normalised(Not(And((IsNotNull("a"), Ge("f", True), Lt("g", date(2024, 1, 1))))))) == (
        "(a is null or f < true or g >= 2024-01-01)"
    )


@given(values=st.lists(st.integers(-3, 3), min_size=1, max_size=5), negated=st.booleans())
def test_a_list_is_the_comparisons_joined(values: list[int], negated: bool) -> None:
    table = pa.table({"n": pa.array([-3, 0, 3, None])})
    spelled = Or(tuple(Eq("n", value) for value in values))
    assert evaluate(In("n", tuple(values), negated), table) == evaluate(Not(spelled) if negated else spelled, table)
