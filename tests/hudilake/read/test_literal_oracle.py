"""Comparisons of columns with literals, row by row and by column statistics, beside Python's exact numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from hudilake.format.files.column_stats import ColumnRange
from hudilake.read.filters.bounds import ColumnBounds, comparison_type, may_match
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import Filter, Gt, Lt, normalised
from hudilake.read.filters.sql_filter import parse_filter

assert ColumnRange is not None
FLOATS = (0.0, -0.0, 0.1, 0.5, -0.5, 1.5, 5e-324, 1e-45, 1e-38, 16777216.0, 3.4e38, -3.4e38, 1e30, math.inf, math.nan)
INTEGERS = (0, 1, -1, 2, 10, (1 << 24) + 1, (1 << 31) - 1, -(1 << 31))
MOMENTS = tuple(datetime(2024, 2, 28, 23, 59, 59, 999_999, tzinfo=UTC) + timedelta(microseconds=n) for n in range(4))
VALUES: dict[pa.DataType, tuple[Any, ...]] = {
    pa.float32(): tuple(float(np.float32(value)) for value in FLOATS if not 3.4e38 < abs(value) < math.inf),
    pa.float64(): (*FLOATS, 1e300, -1e300, 0.30000000000000004),
    pa.decimal128(8, 2): tuple(map(Decimal, ("0.00", "2.67", "2.68", "-2.67", "999999.99", "-999999.99"))),
    pa.int32(): INTEGERS,
    pa.int64(): (*INTEGERS, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)),
    pa.string(): ("", " ", "a", "a ", "A", "é", "\uffff", "\U0001f600"),
    pa.date32(): (date(2024, 2, 28), date(2024, 2, 29), date(1970, 1, 1)),
    pa.timestamp("us", tz="UTC"): MOMENTS,
}
EDGES = (
    *("0", "-0", "0.1", "0.5", "1.5", "5e-324", "1e-45", "1.4e-45", "-5e-324", "1e30", "-1e30", "1e308", "3.5e38"),
    *("2.675", "2.67", "2.670000000000000001", "999999.991", "-1000000", "16777217", "16777216.5", "2147483648"),
    *(
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "0.30000000000000004",
        "1e0",
        "1." + "0" * 40,
    ),
)
OPS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def place(value: Any) -> tuple[int, Any]:  # noqa: ANN401 - any value of VALUES
    """A value among its like; NaN is the greatest number."""
    if isinstance(value, float) and not math.isfinite(value):
        return (2, 0) if math.isnan(value) else (1 if value > 0 else -1, 0)
    return 0, Fraction(value) if isinstance(value, int | float | Decimal) else value


def literal(rng: random.Random, kind: pa.DataType) -> tuple[str, Any]:
    """A literal and its value, as it compares with a column of a type."""
    if pa.types.is_string(kind):
        text = rng.choice(VALUES[kind])
        return f"'{text}'", text.encode()
    if pa.types.is_date(kind):
        day = rng.choice(VALUES[kind])
        return f"'{day}'", day
    if pa.types.is_timestamp(kind):
        moment = rng.choice(MOMENTS)
        return f"'{moment.replace(tzinfo=None)}'", moment
    text = rng.choice(EDGES)
    if rng.random() < 0.5:
        text = f"{rng.choice(['', '-'])}{rng.randrange(10 ** rng.randrange(1, 12))}.{rng.randrange(1000)}"
    return text, float(text) if pa.types.is_floating(kind) or "e" in text else Decimal(text)


def own(kind: pa.DataType, value: Any) -> Any:  # noqa: ANN401 - any value of VALUES
    return value.encode() if pa.types.is_string(kind) else value


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", VALUES, ids=str)
def test_every_comparison_is_exact(kind: pa.DataType) -> None:
    rng, values = random.Random(str(kind)), VALUES[kind]
    schema, rows = pa.schema([("c", kind)]), pa.table({"c": pa.array([*values, None], kind)})
    for _ in range(400):
        op, (text, value) = rng.choice(list(OPS)), literal(rng, kind)
        found = normalised(parse_filter(f"c {op} {text}", schema))
        expected = [OPS[op](place(own(kind, one)), place(value)) for one in values]
        assert matches(found, rows).tolist() == [*expected, False], (op, text)
        check_files(found, kind, values, expected)


def check_files(found: Filter, kind: pa.DataType, values: tuple[Any, ...], expected: list[bool]) -> None:
    """A file of any two values is kept if one of them passes."""
    bounded = [(a, b) for a in range(len(values)) for b in range(a, len(values)) if is_bounded(values[a], values[b])]
    ends = [sorted((values[a], values[b]), key=lambda v: place(own(kind, v))) for a, b in bounded]
    all_true = np.ones(len(ends), dtype=np.bool_)
    stored = comparison_type(kind)
    low, high = (pa.array([end[side] for end in ends], kind).cast(stored) for side in (0, 1))
    kept = may_match(found, {"c": ColumnBounds(kind, low, high, all_true, all_true)}, len(ends))
    wanted = np.array([expected[a] or expected[b] for a, b in bounded])
    assert not (wanted & ~kept).any(), (str(found), [ends[i] for i in np.flatnonzero(wanted & ~kept)])


def is_bounded(*values: Any) -> bool:  # noqa: ANN401 - any value of VALUES
    return not any(isinstance(value, float) and math.isnan(value) for value in values)


def test_a_float_is_widened() -> None:
    """399 rows of 0.0 are no rows of 5e-324."""
    rows = pa.table({"f": pa.array([0.0] * 399 + [float(np.float32(0.1))], pa.float32())})
    for text, hits in {"f = 5e-324": 0, "f < 5e-324": 399, "f = 0.1": 0, "f > 0.1": 1, "f = '0.1'": 1}.items():
        assert matches(normalised(parse_filter(text, rows.schema)), rows).sum() == hits, text


@pytest.mark.parametrize("kind", [pa.int64(), pa.decimal128(8, 2), pa.float64(), pa.float32()], ids=str)
def test_numbers_of_a_billion_digits(kind: pa.DataType) -> None:
    rows = pa.table({"c": pa.array([1], pa.int64()).cast(pa.decimal128(20, 0)).cast(kind)})
    for text, above in {"1e999999999": False, "-1e999999999": True, "1e-999999999": True}.items():
        assert matches(Gt("c", Decimal(text)), rows).tolist() == [above]
        assert matches(Lt("c", Decimal(text)), rows).tolist() == [not above]
