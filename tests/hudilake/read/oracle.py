"""What filters mean, row by row in plain Python, and random data to try it on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.read import And, Compare, Constant, Filter, In, IsNull, Not, Or, StartsWith
from hudilake.read.filters.expressions import Op, Value

COLUMNS: dict[str, pa.DataType] = {
    "n": pa.int32(),
    "big": pa.int64(),
    "price": pa.decimal128(10, 2),
    "wide": pa.decimal128(38, 10),
    "single": pa.float32(),
    "double": pa.float64(),
    "name": pa.string(),
    "raw": pa.binary(),
    "flag": pa.bool_(),
    "day": pa.date32(),
    "at": pa.timestamp("us", tz="UTC"),
    "local": pa.timestamp("us"),
    "clock": pa.time64("us"),
    "unsigned": pa.decimal128(20, 0),
}
SCHEMA = pa.schema(list(COLUMNS.items()))

WIDEST = Decimal("9" * 28 + "." + "9" * 10)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def naive(text: str) -> datetime:
    """A datetime without a zone."""
    return datetime.fromisoformat(text)


_LETTERS = st.text("ab\x00é\ud7ff\ue000\uffff\U0001f600", max_size=4)
#: Longer than any bound in the index.
_LONG = st.sampled_from(["x" * 300, "x" * 300 + "y", "é" * 200, "a\ud7ff" * 90, "\U0010ffff" * 70])
#: Few values of each type, so that predicates meet rows; and the ends of each type.
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "n": st.one_of(st.integers(-5, 5), st.sampled_from([-(2**31), 2**31 - 1])),
    "big": st.one_of(st.integers(-5, 5), st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1])),
    "price": st.integers(-300, 300).map(lambda n: Decimal(n) / 100),
    "wide": st.sampled_from(
        [Decimal("-1E+27"), Decimal("0.0000000001"), Decimal(0), Decimal("9" * 28 + "." + "9" * 10)]
    ),
    "single": st.sampled_from([0.0, -0.0, 0.5, -1.5, math.nan, math.inf, -math.inf, 0.10000000149011612]),
    "double": st.sampled_from([0.0, -0.0, 0.5, 0.1, -1.5, math.nan, math.inf, -math.inf, 5e-324]),
    "name": st.one_of(_LETTERS, _LETTERS, _LONG),
    "raw": st.one_of(st.binary(max_size=3), st.sampled_from([b"\xff" * 300, b"\x7f" * 300])),
    "flag": st.booleans(),
    "day": st.integers(-3, 3).map(lambda n: date(1970, 1, 4) + timedelta(days=n)),
    "at": st.integers(-3, 3).map(lambda n: _EPOCH + timedelta(hours=12 * n, microseconds=n)),
    "local": st.integers(-3, 3).map(lambda n: naive("1970-01-01") + timedelta(hours=12 * n, microseconds=n)),
    "clock": st.sampled_from([time(0), time(0, 0, 0, 1), time(12), time(23, 59, 59, 999_999)]),
    "unsigned": st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1]).map(Decimal),
}
_OTHER: dict[str, st.SearchStrategy[Any]] = {
    "n": st.sampled_from([2**40, -(2**40), Decimal("1.5"), 0.5, math.nan, math.inf]),
    "big": st.sampled_from([2**70, -(2**70), Decimal("-2.5"), 1.5, math.nan, -math.inf]),
    "price": st.sampled_from([1, Decimal("1.005"), Decimal(10) ** 30, 0.1, math.inf]),
    "wide": st.sampled_from([0, 0.1, Decimal("0.00000000005"), Decimal(10) ** 60]),
    "single": st.sampled_from([0, 1, Decimal("0.1"), 10**40, 0.1]),
    "double": st.sampled_from([0, 1, Decimal("0.1"), 10**400, -(10**400)]),
    "day": st.sampled_from([naive("1970-01-04"), datetime(1970, 1, 4, 12, tzinfo=UTC)]),
    "at": st.sampled_from([date(1970, 1, 1), naive("1970-01-01T12:00:00.000001")]),
    "unsigned": st.sampled_from([-1, 2**63, 2**64, Decimal("0.5"), 1e19, math.inf]),
}


def literals(column: str) -> st.SearchStrategy[Any]:
    """Literals for a column, some of other types than its own."""
    own = VALUES[column]
    return st.one_of(own, _OTHER[column]) if column in _OTHER else own


def _leaf(column: str) -> st.SearchStrategy[Filter]:
    value = literals(column)
    kinds: list[st.SearchStrategy[Filter]] = [
        st.builds(Compare, st.just(column), st.sampled_from(list(Op)), value),
        st.builds(In, st.just(column), st.lists(value, max_size=4).map(tuple), st.booleans()),
        st.builds(IsNull, st.just(column), st.booleans()),
    ]
    if column in ("name", "raw"):
        kinds.append(st.builds(StartsWith, st.just(column), VALUES[column], st.booleans()))
    return st.one_of(kinds)


def filters(columns: list[str], max_leaves: int = 6) -> st.SearchStrategy[Filter]:
    """Random filters over columns of COLUMNS."""
    leaf = st.one_of(st.sampled_from(columns).flatmap(_leaf), st.builds(Constant, st.sampled_from([True, False, None])))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(And, st.lists(inner, max_size=3).map(tuple)),
            st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
        ),
        max_leaves=max_leaves,
    )


def keyed_filters(columns: list[str], keys: st.SearchStrategy[int]) -> st.SearchStrategy[Filter]:
    """Random filters over columns, over the key column ``id`` and over the record key."""
    by_key = st.one_of(
        st.builds(Compare, st.just("id"), st.sampled_from(list(Op)), keys),
        st.builds(In, st.just("id"), st.lists(keys, max_size=3).map(tuple), st.booleans()),
        st.builds(In, st.just(RECORD_KEY_FIELD), st.lists(keys.map(str), max_size=3).map(tuple)),
    )
    rest = filters(columns, max_leaves=3)
    pair = st.tuples(by_key, rest)
    return st.one_of(rest, rest, by_key, pair.map(And), pair.map(Or))


def rows(columns: list[str], max_size: int = 12) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Random rows, nulls among them."""
    return st.lists(st.fixed_dictionaries({c: st.one_of(st.none(), VALUES[c]) for c in columns}), max_size=max_size)


def truth(part: Filter, row: Mapping[str, Any]) -> bool | None:
    """The value of a filter for one row, None for unknown."""
    if isinstance(part, And | Or):
        decisive = isinstance(part, Or)
        found = [truth(inner, row) for inner in part.parts]
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(part, Not):
        inner = truth(part.part, row)
        return None if inner is None else not inner
    if isinstance(part, Constant):
        return part.value
    assert isinstance(part, Compare | In | IsNull | StartsWith)
    value = row[part.column]
    if isinstance(part, IsNull):
        return (value is None) is not part.negated
    if value is None:
        return None
    if isinstance(part, Compare):
        return compared(part.op, value, part.value)
    if isinstance(part, In):
        return any(compared(Op.EQ, value, item) for item in part.values) is not part.negated
    return bool(value.startswith(part.prefix)) is not part.negated


def compared(op: Op, value: Any, literal: Value) -> bool:  # noqa: ANN401 - a cell
    """Exact, NaN the greatest."""
    left, right = rank(value), rank(literal)
    found: bool = {
        Op.EQ: left == right,
        Op.NE: left != right,
        Op.LT: left < right,
        Op.LE: left <= right,
        Op.GT: left > right,
        Op.GE: left >= right,
    }[op]
    return found


def rank(value: Any) -> Any:  # noqa: ANN401 - a cell
    """Values of one column and its literals in one order."""
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return Fraction(since.days * 86_400_000_000 + since.seconds * 1_000_000 + since.microseconds)
    if isinstance(value, date):
        return Fraction((value - _EPOCH.date()).days * 86_400_000_000)
    if isinstance(value, bool | str | bytes | time):
        return value
    if isinstance(value, float) and not math.isfinite(value):
        return (2, 0) if math.isnan(value) else (1, 0) if value > 0 else (-1, 0)
    return (0, Fraction(value))
