"""pyarrow expressions as filters: no row that Arrow finds is missed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.read.filters.arrow_filter import from_arrow
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import normalised
from tests.hudilake.read.oracle import COLUMNS, SCHEMA, literals, rows
from tests.hypothesis_profile import scaled

_OPERATORS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


def _compared(column: str, operator: str, value: Any) -> pc.Expression:  # noqa: ANN401 - a cell
    try:
        return getattr(pc.field(column), operator)(value)
    except (pa.ArrowException, OverflowError):  # a literal that Arrow does not have
        return pc.field(column).is_valid()


def _leaf(column: str) -> st.SearchStrategy[pc.Expression]:
    value = literals(column)
    return st.one_of(
        st.builds(_compared, st.just(column), st.sampled_from(_OPERATORS), value),
        st.lists(value, min_size=1, max_size=3).map(lambda found: _one_of(column, found)),
        st.sampled_from(
            [pc.field(column).is_null(), pc.field(column).is_valid(), pc.field(column).is_null(nan_is_null=True)]
        ),
    )


def _one_of(column: str, values: list[Any]) -> pc.Expression:
    try:
        return pc.field(column).isin(pa.array(values, COLUMNS[column]))
    except (pa.ArrowException, OverflowError, TypeError):
        return pc.field(column).is_valid()


EXPRESSIONS = st.recursive(
    st.sampled_from(list(COLUMNS)).flatmap(_leaf),
    lambda inner: st.one_of(
        inner.map(lambda part: ~part),
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
    ),
    max_leaves=4,
)


@dataclass
class _Drawn:
    """Keeps an expression from being printed by Hypothesis: pyarrow fails to print some of them."""

    expression: pc.Expression

    def __repr__(self) -> str:
        try:
            return str(self.expression)
        except UnicodeDecodeError as error:
            return str(error.object)


@st.composite
def _drawn(draw: st.DrawFn) -> _Drawn:
    return _Drawn(draw(EXPRESSIONS))


@settings(max_examples=scaled(250), deadline=None)
@given(drawn=_drawn(), data=rows(list(COLUMNS), max_size=8))
def test_no_row_that_arrow_finds_is_missed(drawn: _Drawn, data: list[dict[str, Any]]) -> None:
    expression = drawn.expression
    table = pa.Table.from_pylist(data, SCHEMA).append_column("row", pa.array(range(len(data)), pa.int64()))
    try:
        expected = set(table.filter(expression).column("row").to_pylist())
    except (pa.ArrowException, OverflowError, UnicodeDecodeError):  # the last: pyarrow cuts its own message anywhere
        return
    part = normalised(from_arrow(expression, SCHEMA))
    found = {i for i, flag in enumerate(matches(part, table).tolist()) if flag}
    assert expected <= found


@pytest.mark.parametrize(
    ("expression", "understood"),
    [
        ((pc.field("name") == 'a"b') & ~(pc.field("n") < 3), "(name = 'a\"b' and not n < 3)"),
        (pc.scalar(5) > pc.field("n"), "n < 5"),
        (pc.field("n").isin([1, 2]), "(n in (1, 2) and [is_in(n)])"),
        (pc.field("n").is_null(), "n is null"),
        (pc.starts_with(pc.field("name"), "x"), "name starts with 'x'"),
        (pc.starts_with(pc.field("name"), "x", ignore_case=True), "[starts_with(name)]"),
        (pc.field("flag") | (pc.field("day") == date(2024, 2, 29)), "(flag = true or day = 2024-02-29)"),
        (pc.field("at") >= datetime(2024, 2, 29, tzinfo=UTC), "at >= 2024-02-29 00:00:00+00:00"),
        (pc.field("price") == Decimal("1.5"), "price = 1.5"),
        (pc.field("double") > math.nan, "[greater(double, nan)]"),
        (pc.scalar(None) == pc.field("n"), "null"),
        (pc.field("n") + 1 == 2, "[equal(add_checked(n, 1), 2)]"),
        (pc.field("n") == pc.field("big"), "[equal(n, big)]"),
        (pc.field(("a", "b")) == 1, "[(FieldRef.Nested"),
        (pc.field(0) == 1, "[(FieldPath(0) == 1)]"),
        (pc.field("nope") == 1, "[equal(nope, 1)]"),
        (pc.scalar(True), "true"),
    ],
)
def test_what_is_understood(expression: pc.Expression, understood: str) -> None:
    assert str(from_arrow(expression, SCHEMA)).startswith(understood)


def test_text_that_pyarrow_cannot_print_is_unknown_all_the_same() -> None:
    long = pc.field("name").isin(pa.array(["a\ud7ff" * 40]))
    with pytest.raises(UnicodeDecodeError):  # the control: pyarrow cut a character in two
        str(long)
    found = from_arrow(long & (pc.field(("a", "b")) == 1), SCHEMA)
    assert "is_in(name" in str(found)
