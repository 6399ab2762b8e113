"""Values of every type as numbers in their own order, against Python's order of the values."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.errors import UnsupportedError
from hudilake.format.layout.direct import comparable, direct
from tests.hypothesis_profile import scaled

Rank = Callable[[Any], Any]


def ints(bits: int, *, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high) | st.sampled_from([low, high])


def decimals(precision: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**precision - 1
    return (st.integers(-most, most) | st.integers(-3, 3)).map(lambda n: Decimal(f"{n}E-{scale}"))


def number_rank(value: float) -> tuple[bool, float]:
    return (math.isnan(value), 0.0 if math.isnan(value) else value)


def same(value: Any) -> Any:  # noqa: ANN401 - any comparable value
    return value


def utf8(value: str) -> bytes:
    return value.encode()


TEXTS = st.text(max_size=12) | st.text("ab", max_size=12).map("http://".__add__)
BLOBS = st.binary(max_size=12)
DATES = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
TIMES = st.times()
INSTANTS = DATES.flatmap(lambda day: TIMES.map(lambda time: dt.datetime.combine(day, time)))

#: Type, values, and what Python compares.
EXACT: list[tuple[pa.DataType, st.SearchStrategy[Any], Rank]] = [
    (pa.bool_(), st.booleans(), same),
    *((pa.from_numpy_dtype(f"int{bits}"), ints(bits, signed=True), same) for bits in (8, 16, 32, 64)),
    *((pa.from_numpy_dtype(f"uint{bits}"), ints(bits, signed=False), same) for bits in (8, 16, 32, 64)),
    (pa.float32(), st.floats(width=32), number_rank),
    (pa.float64(), st.floats(), number_rank),
    (pa.decimal128(5, 2), decimals(5, 2), same),
    (pa.decimal128(18, 0), decimals(18, 0), same),
    (pa.date32(), DATES, same),
    (pa.date64(), DATES, same),
    (pa.time32("ms"), TIMES.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)), same),
    (pa.time64("us"), TIMES, same),
    (pa.timestamp("us"), INSTANTS, same),
    (pa.timestamp("us", "UTC"), INSTANTS.map(lambda t: t.replace(tzinfo=dt.UTC)), same),
    (pa.duration("us"), st.timedeltas(dt.timedelta(-9999), dt.timedelta(9999)), same),
]
#: Of these, a number does not tell all.
COARSE: list[tuple[pa.DataType, st.SearchStrategy[Any], Rank]] = [
    *((pa.decimal128(p, s), decimals(p, s), same) for p, s in ((19, 0), (20, 4), (28, 10), (38, 0), (38, 18))),
    (pa.decimal256(60, 3), decimals(60, 3), same),
    *((kind, TEXTS, utf8) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.dictionary(pa.int32(), pa.string()), TEXTS, utf8),
    *((kind, BLOBS, same) for kind in (pa.binary(), pa.large_binary())),
    (pa.binary(3), st.binary(min_size=3, max_size=3), same),
]


def ids(case: Any) -> str | None:  # noqa: ANN401 - what pytest gives
    return str(case) if isinstance(case, pa.DataType) else None


def sliced(kind: pa.DataType, values: list[Any]) -> pa.Array:
    """As an array that begins in the middle of its buffers."""
    return pa.array([values[0], *values, values[-1]], type=kind).slice(1, len(values))


@pytest.mark.parametrize(("kind", "values", "rank"), [*EXACT, *COARSE], ids=ids)
@settings(max_examples=scaled(60, 10))
@given(data=st.data())
def test_numbers_are_in_the_order_of_the_values(
    kind: pa.DataType, values: st.SearchStrategy[Any], rank: Rank, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(values | st.none(), min_size=1, max_size=30))
    numbers = direct(sliced(kind, drawn))
    assert numbers.dtype == np.uint64
    assert [not number for number in numbers] == [value is None for value in drawn]
    ranked = sorted(
        (rank(value), int(number)) for value, number in zip(drawn, numbers, strict=True) if value is not None
    )
    assert [number for _, number in ranked] == sorted(number for _, number in ranked)


@pytest.mark.parametrize(("kind", "values", "rank"), EXACT, ids=ids)
@settings(max_examples=scaled(60, 10))
@given(data=st.data())
def test_numbers_of_most_types_tell_all_values_apart(
    kind: pa.DataType, values: st.SearchStrategy[Any], rank: Rank, data: st.DataObject
) -> None:
    """But for the least long and the next one, because null needs a number."""
    left, right = data.draw(st.tuples(values, values))
    one, other = direct(pa.array([left, right], type=kind))
    assert (one == other) == (rank(left) == rank(right)) or one == other == 1


@pytest.mark.parametrize(("kind", "values", "rank"), [*EXACT, *COARSE], ids=ids)
@settings(max_examples=scaled(60, 10))
@given(data=st.data())
def test_comparable_values_compare_as_the_values(
    kind: pa.DataType, values: st.SearchStrategy[Any], rank: Rank, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(values | st.none(), min_size=1, max_size=30))
    compared = comparable(sliced(kind, drawn)).to_pylist()
    assert [one is None for one in compared] == [value is None for value in drawn]
    pairs = [(rank(value), one) for value, one in zip(drawn, compared, strict=True) if value is not None and one != 1]
    for value, one in pairs:
        for other_value, other in pairs:
            assert ((value > other_value) - (value < other_value)) == ((one > other) - (one < other))


@given(TEXTS)
def test_texts_are_their_first_bytes(text: str) -> None:
    first = int.from_bytes(text.encode()[:8].ljust(8, b"\0"), "big")
    assert direct(pa.array([text])).tolist() == [max(first, 1)]


@pytest.mark.parametrize("precision", [19, 20, 25, 38])
def test_decimals_use_their_bits(precision: int) -> None:
    """The numbers of all decimals of a precision cover more than half of all numbers."""
    most = 10**precision - 1
    low, high = direct(pa.array([Decimal(-most), Decimal(most)], type=pa.decimal128(precision, 0))).tolist()
    assert high - low > 1 << 63


def test_texts_are_cut_for_samples() -> None:
    assert comparable(pa.array(["abcdef", "ab", None]), most_bytes=3).to_pylist() == [b"abc", b"ab", None]


def test_pieces_and_no_rows() -> None:
    column = pa.chunked_array([["b", None], [], ["a"]])
    assert direct(column).tolist() == [ord("b") << 56, 0, ord("a") << 56]
    for kind, _, _ in (*EXACT, *COARSE):
        assert len(direct(pa.array([], type=kind))) == len(comparable(pa.array([], type=kind))) == 0
        assert len(direct(pa.chunked_array([], type=kind))) == 0
        assert comparable(pa.array([None], type=kind)).null_count == 1


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64())]
)
def test_nested_types_have_no_order(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="cannot be ordered"):
        direct(pa.array([None], type=kind))


def test_control_bytes_of_signed_numbers_are_not_their_order() -> None:
    numbers = [-1, 1]
    assert direct(pa.array(numbers)).tolist() == sorted(direct(pa.array(numbers)).tolist())
    assert np.array(numbers).view(np.uint64).tolist() != sorted(np.array(numbers).view(np.uint64).tolist())
