"""Keys that sort rows, and the order that they give, against Python's own sorting."""

from __future__ import annotations

import itertools
import math
import pickle
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.layout.bounds import bounds_of
from hudilake.format.layout.order import Order, places, sort_keys
from hudilake.format.layout.sketch import sketch
from hudilake.policies import OrderPolicy
from tests.hypothesis_profile import scaled

SCHEMA = pa.schema([("n", pa.int64()), ("f", pa.float64()), ("t", pa.string()), ("d", pa.decimal128(38, 2))])
ORDERS = [
    Order(OrderPolicy.model_validate({"columns": columns, "curve": curve, "values": values}))
    for columns in (("t", "n"), ("f",), ("d", "t", "n", "f"))
    for curve, values in (
        ("linear", "sampled"),
        *itertools.product(("z_order", "hilbert"), ("sampled", "direct")),
    )
]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-5, 5),
            "f": st.none() | st.sampled_from([math.nan, -0.0, 0.0, -1.5, math.inf, -math.inf]),
            "t": st.none() | st.text("ab", max_size=3),
            "d": st.none() | st.decimals(-2, 2, places=2),
        }
    ),
    min_size=1,
    max_size=40,
)


def named(order: Order) -> str:
    return f"{'-'.join(order.columns)}-{order.policy.curve}-{order.policy.values}"


def keys_in_batches(order: Order, rows: pa.Table, size: int) -> list[pa.Table]:
    bounds = bounds_of(order, [sketch(order, [rows], 0)])
    bounds = pickle.loads(pickle.dumps(bounds))
    return [sort_keys(order, rows.slice(at, size), bounds) for at in range(0, rows.num_rows, size)]


def rank(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Nulls first, NaN last."""
    if value is None:
        return (0, False, 0)
    nan = isinstance(value, float) and math.isnan(value)
    return (1, nan, 0 if nan else value)


@pytest.mark.parametrize("order", ORDERS, ids=named)
@settings(max_examples=scaled(60, 10))
@given(ROWS, st.integers(1, 10))
def test_the_order_does_not_depend_on_the_batches(order: Order, drawn: list[dict[str, Any]], size: int) -> None:
    rows = pa.Table.from_pylist(drawn, SCHEMA)
    whole, parts = keys_in_batches(order, rows, rows.num_rows), keys_in_batches(order, rows, size)
    assert pa.concat_tables(parts).equals(pa.concat_tables(whole))
    found = places(parts).tolist()
    assert found == places(whole).tolist()
    keys = [tuple(rank(value) for value in row.values()) for row in whole[0].to_pylist()]
    assert found == sorted(range(len(drawn)), key=keys.__getitem__)  # rows with equal keys keep their order
    if order.policy.curve == "linear":
        cells = [tuple(rank(row[name]) for name in order.columns) for row in drawn]
        assert found == sorted(range(len(drawn)), key=cells.__getitem__)


@pytest.mark.parametrize("order", ORDERS, ids=named)
@settings(max_examples=scaled(60, 10))
@given(ROWS)
def test_equal_rows_are_together_and_one_column_is_in_order(order: Order, drawn: list[dict[str, Any]]) -> None:
    rows = pa.Table.from_pylist(drawn, SCHEMA)
    walk = [drawn[place] for place in places(keys_in_batches(order, rows, 7)).tolist()]
    cells = [tuple(rank(row[name]) for name in order.columns) for row in walk]
    assert len(list(itertools.groupby(cells))) == len(set(cells))
    if len(order.columns) == 1:
        assert cells == sorted(cells)


def test_no_rows() -> None:
    for order in ORDERS:
        rows = SCHEMA.empty_table()
        bounds = bounds_of(order, [sketch(order, [rows], 0)])
        assert places([sort_keys(order, rows, bounds)]).tolist() == []


def test_bounds_must_fit_to_the_order() -> None:
    rows = pa.table({"n": [1]})
    sampled = Order(OrderPolicy(columns=("n",)))
    with pytest.raises(ValueError, match="bounds are given"):
        sort_keys(sampled, rows)
    with pytest.raises(ValueError, match="bounds are given"):
        sort_keys(Order(OrderPolicy(columns=("n",), values="direct")), rows, bounds_of(sampled, []))
    other = bounds_of(sampled, [sketch(sampled, [pa.table({"n": [1, 2]})], 0)])
    with pytest.raises(ValueError, match="do not divide"):
        sort_keys(sampled, pa.table({"n": ["a"]}), other)
