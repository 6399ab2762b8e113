"""Column statistics decide about files: never against a row that passes, and usefully."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.format.files.column_stats import ColumnRange, Value, ValueType, column_ranges
from hudilake.read import Eq, Filter, Ge, Gt, In, IsNotNull, IsNull, Le, Lt, Ne, Not, StartsWith
from hudilake.read.filters.bounds import ColumnBounds, column_bounds, comparison_type, may_match, span
from hudilake.read.filters.evaluate import Flags, matches
from hudilake.read.filters.expressions import Value as Literal
from hudilake.read.filters.expressions import normalised
from tests.counting import calls_an_item
from tests.hudilake.read.oracle import COLUMNS, SCHEMA, VALUES, filters, rows
from tests.hypothesis_profile import scaled

ALL = list(COLUMNS)
FILES = st.lists(rows(ALL, max_size=4), min_size=1, max_size=4)


def bounds_of(files: list[pa.Table]) -> dict[str, ColumnBounds]:
    """What the index would say of the files."""
    ranges = [{item.column: item for item in column_ranges(file, ALL)} for file in files]
    return {name: column_bounds(kind, [item[name] for item in ranges]) for name, kind in COLUMNS.items()}


@settings(max_examples=scaled(120), deadline=None)
@given(part=filters(ALL), data=FILES)
def test_a_file_with_a_row_that_passes_is_never_skipped(part: Filter, data: list[list[dict[str, Any]]]) -> None:
    files = [pa.Table.from_pylist(rows_of, SCHEMA) for rows_of in data]
    part = normalised(part)
    kept = may_match(part, bounds_of(files), len(files))
    for file, flag in zip(files, kept.tolist(), strict=True):
        assert flag or not matches(part, file).any()


@settings(max_examples=scaled(120), deadline=None)
@given(data=st.data(), column=st.sampled_from(ALL))
def test_a_file_of_one_value_is_kept_for_nothing_else(data: st.DataObject, column: str) -> None:
    """With one short value the bounds are the value: a comparison keeps the file if and only if the row passes."""
    value = data.draw(VALUES[column])
    part = normalised(data.draw(filters([column], max_leaves=1)))
    file = pa.Table.from_pylist([{column: value}], pa.schema([SCHEMA.field(column)]))
    (item,) = column_ranges(file, [column])
    exact = not isinstance(value, float) and not (isinstance(value, str) and any(c >= "\ue000" for c in value))
    exact = exact and not (isinstance(value, str | bytes) and len(value) > 64)  # long ones are cut
    kept = bool(may_match(part, {column: column_bounds(COLUMNS[column], [item])}, 1)[0])
    assert kept or not matches(part, file)[0]
    if exact:
        assert kept == bool(matches(part, file)[0])


def one(
    low: Value, high: Value, value_type: ValueType = ValueType.LONG, null_count: int = 0, info: str | None = None
) -> ColumnRange:
    """Statistics as the index holds them."""
    return ColumnRange("x", value_type, low, high, null_count, 5, info)


def kept(part: Filter, kind: pa.DataType, *ranges: ColumnRange | None, in_log: bool = False) -> list[bool]:
    """Which of the files stay."""
    bounds = column_bounds(kind, ranges, [in_log] * len(ranges))
    return [bool(flag) for flag in may_match(normalised(part), {"x": bounds}, len(ranges))]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (Eq("x", 5), [True, False, True]),
        (Eq("x", 10), [True, True, True]),
        (Ne("x", 5), [True, True, True]),
        (Lt("x", 0), [False, False, False]),
        (Le("x", 0), [True, False, True]),
        (Gt("x", 9.5), [True, True, True]),
        (Gt("x", 20), [False, False, False]),
        (Ge("x", 20), [False, True, True]),
        (In("x", (-1, 15)), [False, True, True]),
        (In("x", ()), [False, False, False]),
        (In("x", tuple(range(21, 9000))), [False, False, False]),
        (Not(In("x", (1, 2))), [True, True, True]),
        (IsNull("x"), [False, False, True]),
        (IsNotNull("x"), [True, True, True]),
    ],
)
def test_ranges_of_numbers(part: Filter, expected: list[bool]) -> None:
    assert kept(part, pa.int64(), one(0, 10), one(10, 20), one(0, 20, null_count=1)) == expected


def test_the_control_a_bound_that_is_too_tight_loses_the_row() -> None:
    """If this kept the file, the property above would prove nothing."""
    (item,) = column_ranges(pa.table({"x": [1, 7]}), ["x"])
    assert kept(Eq("x", 7), pa.int64(), item) == [True]
    assert kept(Eq("x", 7), pa.int64(), replace(item, max=6)) == [False]


def test_what_is_not_known_skips_nothing() -> None:
    low_high = one(0, 10)
    for item in (
        None,
        replace(low_high, min=None, max=None),
        replace(low_high, max=None),
        replace(low_high, null_count=-1),
        replace(low_high, null_count=9),
        replace(low_high, value_type=ValueType.STRING, min="a", max="b"),
        replace(low_high, value_type=ValueType.DECIMAL, info=None),
    ):
        assert kept(Eq("x", 50), pa.int64(), item) == [True], item
        assert kept(IsNull("x"), pa.int64(), item) == [True] or (item is not None and item.null_count == 0)
    assert may_match(Eq("y", 1), {}, 2).tolist() == [True, True]


def test_files_without_rows_and_files_of_nulls() -> None:
    empty = ColumnRange("x", ValueType.NULL, None, None, 0, 0)
    nulls = ColumnRange("x", ValueType.LONG, None, None, 4, 4)
    assert kept(IsNull("x"), pa.int64(), empty, nulls) == [False, True]
    assert kept(IsNotNull("x"), pa.int64(), empty, nulls) == [False, False]
    assert kept(Ne("x", 1), pa.int64(), empty, nulls) == [False, False]
    assert kept(Not(StartsWith("x", "a")), pa.string(), empty, nulls) == [False, False]


@pytest.mark.parametrize(
    ("kind", "item", "inside", "outside"),
    [
        (pa.int64(), one(1, 2, value_type=ValueType.INT), 2, 3),
        (pa.float64(), one(0.5, 1.5, value_type=ValueType.FLOAT), 1.5, 1.75),
        (pa.decimal128(14, 4), one(150, 250, value_type=ValueType.DECIMAL, info="10,2"), Decimal("2.5"), 3),
        (
            pa.timestamp("us", tz="UTC"),
            one(1000, 2000, value_type=ValueType.TIMESTAMP_MILLIS),
            datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC),
            datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC),
        ),
        (pa.date32(), one(0, 1, value_type=ValueType.DATE), date(1970, 1, 2), date(1970, 1, 3)),
    ],
)
def test_statistics_of_an_older_type_count_where_they_order_alike(
    kind: pa.DataType, item: ColumnRange, inside: object, outside: object
) -> None:
    assert kept(Eq("x", cast(Literal, inside)), kind, item) == [True]
    assert kept(Eq("x", cast(Literal, outside)), kind, item) == [False]


def test_a_wider_scale_says_nothing_of_a_narrower_one() -> None:
    item = one(15000, 25000, value_type=ValueType.DECIMAL, info="14,4")
    assert kept(Eq("x", 9), pa.decimal128(10, 2), item) == [True]


def test_text_that_another_order_may_have_bounded() -> None:
    """Java sorts U+1F600 (a surrogate pair) before U+E000: such bounds may be too tight in the order of code points."""
    values = ["a", "\ue000", "\U0001f600"]
    by_java = sorted(values, key=lambda text: text.encode("utf-16-be"))
    item = one(by_java[0], by_java[-1], value_type=ValueType.STRING)
    assert by_java[-1] != max(values)
    assert all(kept(Eq("x", value), pa.string(), item) == [True] for value in values)
    only = sorted(values[1:], key=lambda text: text.encode("utf-16-be"))
    item = one(only[0], only[-1], value_type=ValueType.STRING)
    assert all(kept(Eq("x", value), pa.string(), item) == [True] for value in only)
    plain = one("a", "日本", value_type=ValueType.STRING)
    assert kept(Eq("x", "\ue000"), pa.string(), plain) == [False]


def test_bytes_of_log_files_may_be_bounded_as_signed() -> None:
    item = one(b"\x80", b"\x01", value_type=ValueType.BYTES)  # signed order: 0x80 is the least
    assert kept(Eq("x", b"\x7f"), pa.binary(), item, in_log=True) == [True]
    good = one(b"\x01", b"\x80", value_type=ValueType.BYTES)
    assert kept(Eq("x", b"\x81"), pa.binary(), good) == [False]
    assert kept(IsNull("x"), pa.binary(), good, in_log=True) == [False]


def test_floats_of_a_footer_are_not_bounded() -> None:
    """Of a base file with -1.5 and NaN Hudi says [0.0, 0.0]."""
    item = replace(one(0.0, 0.0, value_type=ValueType.DOUBLE), sizes=(58, 41))
    assert kept(Lt("x", -1.0), pa.float64(), item) == [True]
    assert kept(Gt("x", 9.0), pa.float64(), item) == [True]
    assert kept(IsNull("x"), pa.float64(), item) == [False]
    assert kept(Lt("x", -1.0), pa.float64(), replace(item, sizes=(0, 0))) == [False]
    assert kept(Eq("x", 9), pa.int64(), replace(one(0, 0), sizes=(58, 41))) == [False]


def test_prefixes() -> None:
    item = one("abc", "abf", value_type=ValueType.STRING)
    for prefix in ("", "a", "abd", "abf"):
        assert kept(StartsWith("x", prefix), pa.string(), item) == [True], prefix
    for prefix in ("abb", "abfz", "abg", "b"):
        assert kept(StartsWith("x", prefix), pa.string(), item) == [False], prefix
    assert kept(Not(StartsWith("x", "ab")), pa.string(), item) == [False]
    assert kept(Not(StartsWith("x", "abc")), pa.string(), item) == [True]
    raw = one(b"\x00\x01", b"\x00\xff", value_type=ValueType.BYTES)
    assert kept(StartsWith("x", b"\x00"), pa.binary(), raw) == [True]
    assert kept(StartsWith("x", b"\x01"), pa.binary(), raw) == [False]


def test_bounds_cut_short_still_bound() -> None:
    long = "x" * 2000
    (item,) = column_ranges(pa.table({"x": [long, long + "y"]}), ["x"])
    assert len(str(item.max)) < 300
    assert kept(Eq("x", long + "y"), pa.string(), item) == [True]
    assert kept(Ge("x", "xz"), pa.string(), item) == [False]


@given(values=st.lists(st.integers(-9, 9), max_size=6), low=st.integers(-9, 9), size=st.integers(0, 5))
def test_the_span_of_values_inside_bounds(values: list[int], low: int, size: int) -> None:
    ordered = sorted(set(values))
    for kind, value_type in ((pa.int64(), ValueType.LONG), (pa.decimal128(10, 0), ValueType.DECIMAL)):
        item = one(low, low + size, value_type=value_type, info="10,0")
        bounds = column_bounds(kind, [item, None])
        first, last = span(bounds, pa.array(ordered, kind).cast(comparison_type(kind)))
        assert ordered[first[0] : last[0]] == [value for value in ordered if low <= value <= low + size]
        assert (first[1], last[1]) == (0, len(ordered))


def test_files_are_compared_in_columns() -> None:
    """A file takes no call of its own. The control, a loop over the files, takes some for each."""
    bounds = {count: _ranges(range(count)) for count in (1_000, 10_000)}
    each = {number: _ranges([number]) for number in range(200)}
    listed = normalised(In("x", tuple(range(0, 10_000, 7))))

    def compared(count: int) -> Flags:
        return may_match(listed, bounds[count], count) & may_match(Lt("x", 5000), bounds[count], count)

    def one_by_one(count: int) -> list[Flags]:
        return [may_match(Lt("x", 5000), each[number], 1) for number in range(count)]

    assert int(np.sum(compared(10_000))) == 5000
    assert calls_an_item(compared, 1_000, 10_000) < 0.01
    assert calls_an_item(one_by_one, 100, 200) > 1


def _ranges(numbers: Iterable[int]) -> dict[str, ColumnBounds]:
    """The statistics of files with ten numbers each, from these on."""
    ranges = [ColumnRange("x", ValueType.LONG, number, number + 10, 0, 100) for number in numbers]
    return {"x": column_bounds(pa.int64(), ranges)}
