"""Statistics bound every value of a column, whatever it holds, and say so exactly where they can."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hudilake.format.files.column_stats import (
    MAX_BOUND_BYTES,
    ColumnRange,
    ValueType,
    admits,
    column_ranges,
    lower_text,
    orders_alike,
    says_the_same,
    unknown_range,
    upper_bytes,
    upper_text,
    value_type,
    widen,
)
from hudilake.metadata.indexed_columns import INDEXED_META_FIELDS, indexed_columns

DECIMAL = pa.decimal128(38, 3)
STAMP = pa.timestamp("us", tz="UTC")
TYPES: dict[pa.DataType, st.SearchStrategy[Any]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint32(): st.integers(0, 2**32 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats() | st.sampled_from([0.0, -0.0]),
    pa.string(): st.text(max_size=8) | st.text(alphabet="a\uffff\U0010ffff😀", min_size=60, max_size=120),
    pa.binary(): st.binary(max_size=8) | st.binary(min_size=250, max_size=300),
    pa.binary(4): st.binary(min_size=4, max_size=4),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    STAMP: st.datetimes(timezones=st.just(UTC)),
    DECIMAL: st.decimals(-(10**35) + 1, 10**35 - 1, places=3, allow_nan=False),
    pa.decimal128(20, 0): st.integers(-(10**20) + 1, 10**20 - 1).map(Decimal),
}


def _range(column: pa.Array | pa.ChunkedArray) -> ColumnRange:
    (item,) = column_ranges(pa.table({"c": column}), ["c"])
    return item


def _stored(value: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - any column value
    """A value as the index compares it, worked out without the code under test."""
    if isinstance(value, Decimal):
        sign, digits, exponent = value.as_tuple()
        assert isinstance(exponent, int)
        number = int("".join(map(str, digits))) * 10 ** (exponent + kind.scale)
        return -number if sign else number
    if isinstance(value, datetime):
        epoch = datetime(1970, 1, 1, tzinfo=value.tzinfo)
        return (value - epoch).days * 86_400_000_000 + (value - epoch).seconds * 1_000_000 + value.microsecond
    return (value - date(1970, 1, 1)).days if isinstance(value, date) else value


def _order(value: Any) -> Any:  # noqa: ANN401 - a sort key
    """As Spark orders: text by UTF-8 bytes, NaN above all numbers, both zeros equal."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, float):
        return (math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return value


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(data=st.data())
def test_bounds_hold_every_value(kind: pa.DataType, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | TYPES[kind], max_size=12))
    item = _range(pa.array(values, kind))
    present = [_stored(value, kind) for value in values if value is not None]
    assert (item.value_count, item.null_count) == (len(values), len(values) - len(present))
    if not present:
        assert item.min is item.max is None
        return
    low, high = min(map(_order, present)), max(map(_order, present))
    assert _order(item.min) <= low
    assert high <= _order(item.max)
    short = not isinstance(item.min, str | bytes) or all(len(_order(value)) <= MAX_BOUND_BYTES for value in present)
    if short:
        assert (_order(item.min), _order(item.max)) == (low, high)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(data=st.data())
def test_widening_is_the_range_of_both(kind: pa.DataType, data: st.DataObject) -> None:
    parts = data.draw(st.lists(st.lists(st.none() | TYPES[kind], max_size=5), min_size=1, max_size=4))
    ranges = [_range(pa.array(part, kind)) for part in parts]
    whole = _range(pa.chunked_array([pa.array(part, kind) for part in parts]))
    widened = reduce(lambda one, other: widen(one, other) or pytest.fail("not comparable"), ranges)
    assert says_the_same(widened, whole)
    assert (widened.null_count, widened.value_count) == (whole.null_count, whole.value_count)


@pytest.mark.parametrize("kind", TYPES, ids=str)
@given(data=st.data())
def test_the_unknown_range_admits_everything(kind: pa.DataType, data: st.DataObject) -> None:
    known = value_type(kind)
    assert known is not None
    unknown = unknown_range("c", *known)
    value = data.draw(TYPES[kind].filter(lambda v: not (isinstance(v, float) and math.isnan(v))))
    item = _range(pa.array([value], kind))
    assert _order(unknown.min) <= _order(item.min)
    assert _order(item.max) <= _order(unknown.max)
    assert 0 < unknown.null_count < unknown.value_count


def test_zeros_admit_each_other() -> None:
    for values in ([0.0], [-0.0], [0.0, -0.0]):
        item = _range(pa.array(values))
        assert (math.copysign(1, item.min), math.copysign(1, item.max)) == (-1, 1)  # type: ignore[arg-type]


def test_nan_is_the_greatest() -> None:
    item = _range(pa.array([1.0, math.nan]))
    assert (item.min, math.isnan(item.max)) == (1.0, True)  # type: ignore[arg-type]
    alone = _range(pa.array([math.nan, None]))
    assert math.isnan(alone.min)  # type: ignore[arg-type]
    assert math.isnan(alone.max)  # type: ignore[arg-type]
    assert math.isnan(widen(alone, item).max)  # type: ignore[arg-type, union-attr]


@given(st.text(alphabet="ab\u07ff\ud7ff\uffff\U0010ffff", max_size=200), st.sampled_from(["", "a" * 300, "é" * 150]))
def test_cut_text(tail: str, head: str) -> None:
    text = head + tail
    low, high = lower_text(text), upper_text(text)
    assert low.encode() <= text.encode() <= high.encode()
    assert len(low.encode()) <= MAX_BOUND_BYTES
    if len(text.encode()) <= MAX_BOUND_BYTES:
        assert low == high == text


def test_text_that_cannot_be_raised_stays_whole() -> None:
    text = "\U0010ffff" * 100
    assert upper_text(text) == text
    assert upper_bytes(b"\xff" * 300) == b"\xff" * 300
    assert upper_bytes(b"a" + b"\xff" * 300) == b"b"
    assert upper_text("a" * 300 + "b") == "a" * 255 + "b"
    assert upper_text("\ud7ff" * 100) == "\ud7ff" * 84 + "\ue000"


def test_decimals_compare_as_signed_numbers() -> None:
    column = pa.array([Decimal("-0.01"), Decimal("2.55"), Decimal("-129.00")], pa.decimal128(10, 2))
    assert _range(column) == ColumnRange("c", ValueType.DECIMAL, -12900, 255, 0, 3, "10,2")


def test_dictionary_columns() -> None:
    """The meta columns of a log file are constants, kept as dictionaries."""
    column = pa.DictionaryArray.from_arrays(pa.array([1, 1, 1], pa.int32()), pa.array(["unused", "x"]))
    assert _range(column) == ColumnRange("c", ValueType.STRING, "x", "x", 0, 3)


def test_a_log_file_that_only_deletes() -> None:
    assert column_ranges(None, ["a", "b"]) == tuple(ColumnRange(n, ValueType.NULL, None, None, 0, 0) for n in "ab")


def test_columns_that_the_rows_lack() -> None:
    """The file reads as null there; without a statistic Hudi Spark loses it under a condition on two columns."""
    assert column_ranges(pa.table({"a": [1]}), ["b"]) == (ColumnRange("b", ValueType.NULL, None, None, 1, 1),)


WIDE = pa.schema([pa.field("_hoodie_commit_seqno", pa.string()), pa.field("blob", pa.binary())]).append(
    pa.field("nested", pa.list_(pa.int32()))
)


def test_which_columns_are_indexed() -> None:
    many = pa.schema([*WIDE, *(pa.field(f"c{n}", pa.int64()) for n in range(40))])
    assert indexed_columns(many) == (*INDEXED_META_FIELDS, *(f"c{n}" for n in range(32)))
    wanted = ["c39", "blob", "nested", "absent", "c39", "_hoodie_record_key"]
    assert indexed_columns(many, wanted) == (*INDEXED_META_FIELDS, "c39", "blob")
    assert indexed_columns(many, []) == INDEXED_META_FIELDS


@pytest.mark.parametrize(
    ("older", "newer", "alike"),
    [
        (pa.int32(), pa.int64(), True),
        (pa.float32(), pa.float64(), True),
        (pa.decimal128(10, 2), pa.decimal128(14, 4), True),
        (pa.int64(), pa.string(), False),
        (pa.int64(), pa.decimal128(20, 0), False),
        (pa.string(), pa.binary(), False),
        (pa.string(), pa.list_(pa.string()), False),
    ],
)
def test_types_that_order_alike(older: pa.DataType, newer: pa.DataType, alike: bool) -> None:
    assert orders_alike(older, newer) == alike


BOUNDS = (None, math.nan, -math.inf, -1.5, -0.0, 0.0, 2.5)
EVERY_RANGE = [
    ColumnRange("c", kind, low, high, nulls, 3)
    for kind in (ValueType.DOUBLE, ValueType.FLOAT)
    for low in BOUNDS
    for high in BOUNDS
    for nulls in (0, 1, 3)
]


def test_what_a_range_admits_says_nothing_new() -> None:
    """Of every two ranges: if the first admits the second, it says the same after it is widened. Most pairs of which
    that is true are admitted, so that the answer is of use."""
    same = admitted = 0
    for one in EVERY_RANGE:
        for other in EVERY_RANGE:
            widened = widen(one, other)
            unchanged = widened is not None and says_the_same(one, widened)
            same += unchanged
            admitted += admits(one, other)
            assert unchanged or not admits(one, other), (one, other)
    assert admitted > same / 3


def test_widening_over_a_type_change() -> None:
    longer = widen(_range(pa.array([-5], pa.int32())), _range(pa.array([2**40])))
    assert longer == ColumnRange("c", ValueType.LONG, -5, 2**40, 0, 2)
    cents = _range(pa.array([Decimal("1.50")], pa.decimal128(10, 2)))
    finer = widen(cents, _range(pa.array([Decimal("-1.2345")], pa.decimal128(14, 4))))
    assert finer == ColumnRange("c", ValueType.DECIMAL, -12345, 15000, 0, 2, "14,4")
    assert widen(longer, _range(pa.array(["a"]))) is None
    assert widen(cents, column_ranges(None, ["c"])[0]) == ColumnRange("c", ValueType.DECIMAL, 150, 150, 0, 1, "10,2")
