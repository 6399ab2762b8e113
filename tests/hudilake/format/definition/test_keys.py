"""Record keys and partition paths: the text of every type, and an oracle for the spelling."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hudilake.errors import UnsupportedError
from hudilake.format.definition.keys import (
    DEFAULT_PARTITION,
    PartitionLayout,
    escape_partition_value,
    key_text,
    record_keys,
    shared_keys,
)

TEXTS = st.text(max_size=8) | st.text(st.sampled_from("a,:/%='{}[]^é😀\x00\x1f\x7f\"#*?\\ ."), max_size=8)
NULLABLE = st.lists(st.none() | TEXTS, max_size=20)
#: Hive's list of characters that a path segment may not hold, as Hudi took it over.
FORBIDDEN = {chr(c) for c in range(0x20)} | set("\x7f\"#%'*/:=?\\{[]^")


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([0, -7, 2**31 - 1], pa.int32(), ["0", "-7", "2147483647"]),
        ([2**63 - 1, -(2**63)], pa.int64(), ["9223372036854775807", "-9223372036854775808"]),
        ([Decimal(2**64 - 1), Decimal(0)], pa.decimal128(20, 0), ["18446744073709551615", "0"]),
        ([Decimal("1.50"), Decimal("-0.07")], pa.decimal128(10, 2), ["1.50", "-0.07"]),
        ([True, False], pa.bool_(), ["true", "false"]),
        ([date(2024, 2, 29), date(1969, 12, 31)], pa.date32(), ["2024-02-29", "1969-12-31"]),
        ([b"\x00\xffA", b""], pa.binary(), ["00ff41", ""]),
        (["a,b:c", "", "é😀"], pa.string(), ["a,b:c", "", "é😀"]),
        (["a"], pa.large_string(), ["a"]),
    ],
    ids=lambda v: str(v) if isinstance(v, pa.DataType) else "",
)
def test_the_text_of_a_key_column(values: list[object], kind: pa.DataType, texts: list[str]) -> None:
    assert key_text(pa.array([*values, None], kind)).to_pylist() == [*texts, None]
    chunked = pa.chunked_array([pa.array(values, kind), pa.array([None], kind)])
    assert key_text(chunked).to_pylist() == [*texts, None]


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - hypothesis wants them naive
def test_timestamps_are_microseconds_since_the_epoch(moment: datetime) -> None:
    stamp = moment.replace(tzinfo=UTC)
    micros = (stamp - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert key_text(pa.array([stamp], pa.timestamp("us", tz="UTC"))).to_pylist() == [str(micros)]


@given(st.integers(-(10**18), 10**18), st.integers(0, 18))
def test_decimals_as_java_spells_them(unscaled: int, scale: int) -> None:
    value = Decimal(unscaled).scaleb(-scale)
    # BigDecimal.toString and Python's str follow one standard, exponents of small numbers included
    assert key_text(pa.array([value], pa.decimal128(38, scale))).to_pylist() == [str(value)]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.list_(pa.int32())], ids=str)
def test_types_that_cannot_be_keys(kind: pa.DataType) -> None:
    with pytest.raises(UnsupportedError, match="cannot be part of a record key"):
        key_text(pa.array([None], kind))


@given(NULLABLE)
def test_one_key_field_gives_bare_values(values: list[str | None]) -> None:
    table = pa.table({"k": pa.array(values, pa.string())})
    assert record_keys(table, ["k"]).to_pylist() == values


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | st.integers(-5, 5), TEXTS), max_size=20))
def test_several_key_fields(rows: list[tuple[str | None, int | None, str]]) -> None:
    columns = {"a": pa.string(), "b": pa.int32(), "c": pa.string()}
    table = pa.table({n: pa.array([r[i] for r in rows], t) for i, (n, t) in enumerate(columns.items())})
    spelled = [",".join(f"{n}:{spell(v)}" for n, v in zip(columns, row, strict=True)) for row in rows]
    assert record_keys(table, list(columns)).to_pylist() == spelled
    assert record_keys(table, ["c", "a"]).to_pylist() == [f"c:{spell(c)},a:{spell(a)}" for a, _, c in rows]


def spell(value: object) -> str:
    """A part of a composite key."""
    if value is None:
        return "__null__"
    return "__empty__" if value == "" else str(value)


Values = tuple[object, ...]
PARTS = st.lists(st.sampled_from(["1", ",a:", ",b:1", ",c:", ",d:", ",", ":", "\n", "__null__"]), max_size=4)
KEY_TEXTS = PARTS.map("".join) | st.sampled_from(["__empty__", "__null__", ""])
KEY_TYPES = {"a": pa.string(), "b": pa.int32(), "c": pa.large_string(), "d": pa.string()}
NULLABLE_KEYS = ("a", "b")
KEY_ROW = st.tuples(st.none() | KEY_TEXTS, st.sampled_from([None, 1, 22]), KEY_TEXTS, KEY_TEXTS)


def keys_table(rows: Sequence[Values], columns: Sequence[str]) -> pa.Table:
    return pa.table({n: pa.array([row[i] for row in rows], KEY_TYPES[n]) for i, n in enumerate(columns)})


def readings(key: str, columns: Sequence[str]) -> list[Values]:
    """All values of which a record key may be made, by trying every place at which one may end."""
    name, *rest = columns
    if not key.startswith(f"{name}:"):
        return []
    body = key[len(name) + 1 :]
    ends = [at for at, sign in enumerate(body) if sign == ","] if rest else [len(body)]
    return [
        (value, *tail)
        for end in ends
        for value in values_of(name, body[:end])
        for tail in (readings(body[end + 1 :], rest) if rest else [()])
    ]


def values_of(name: str, text: str) -> list[object]:
    """The values of a column that are spelled so in a key of several."""
    null: list[object] = [None] if text == "__null__" and name in NULLABLE_KEYS else []
    if name == "b":
        return null or ([int(text)] if text.isdecimal() and text.isascii() else [])
    return [*null, *([text] if text else []), *([""] if text == "__empty__" else [])]


@example(("1", None, ",a:", ""), ["b", "c", "a", "d"], 3)
@example((None, None, "1", "1,b:1\n,c:"), ["d", "b", "c", "a"], 3)
@given(KEY_ROW, st.permutations("abcd"), st.integers(2, 4))
def test_of_the_values_with_one_record_key_one_is_taken_at_most(row: Values, order: list[str], width: int) -> None:
    columns = order[:width]
    values = tuple(row["abcd".index(n)] for n in columns)
    key = ",".join(f"{n}:{spell(v)}" for n, v in zip(columns, values, strict=True))
    same = readings(key, columns)
    table = keys_table(same, columns)
    assert values in same
    assert set(record_keys(table, columns).to_pylist()) == {key}
    shared = shared_keys(table, columns, NULLABLE_KEYS)
    assert len(same) - shared.sum() <= 1
    if len(same) == 1:
        assert not shared.any()


@pytest.mark.parametrize(
    ("row", "columns", "nullable", "shared"),
    [
        (("__empty__", 1, "", ""), "ab", "", True),
        (("", 1, "", ""), "ab", "", False),
        (("__null__", 1, "", ""), "ab", "", False),
        (("__null__", 1, "", ""), "ab", "a", True),
        (("__empty__", 1, "", ""), "a", "", False),
        (("1,c:2", 1, "3", ""), "ac", "", True),
        (("1", 1, "2,c:3", ""), "ac", "", True),
        (("1,b:2", 1, "", ""), "ab", "", False),
        (("1,b:2,c:3", 1, "4", ""), "abc", "", True),
        (("1,b:2", 1, "4", ""), "abc", "", False),
        (("a,b:c", 1, "\n,:", ""), "ac", "", False),
    ],
)
def test_which_keys_other_values_have(row: tuple[object, ...], columns: str, nullable: str, shared: bool) -> None:
    table = keys_table([tuple(row["abcd".index(n)] for n in columns)], columns)
    assert shared_keys(table, columns, nullable).tolist() == [shared]


@given(TEXTS)
def test_escaped_values(value: str) -> None:
    escaped = escape_partition_value(value)
    assert escaped == "".join(f"%{ord(c):02X}" if c in FORBIDDEN else c for c in value)
    assert not FORBIDDEN - {"%"} & set(escaped)


@given(NULLABLE, st.booleans(), st.booleans())
def test_partition_paths_of_one_field(values: list[str | None], hive: bool, encode: bool) -> None:
    table = pa.table({"p": pa.array(values, pa.string())})
    layout = PartitionLayout(("p",), hive_style=hive, url_encode=encode)
    assert layout.paths(table).to_pylist() == [segment("p", v, hive, encode) for v in values]


@given(st.lists(st.tuples(st.none() | TEXTS, st.none() | st.dates()), max_size=20), st.booleans())
def test_partition_paths_of_two_fields(rows: list[tuple[str | None, date | None]], hive: bool) -> None:
    table = pa.table(
        {"p": pa.array([p for p, _ in rows], pa.string()), "d": pa.array([d for _, d in rows], pa.date32())}
    )
    spelled = [f"{segment('p', p, hive)}/{segment('d', d.isoformat() if d else None, hive)}" for p, d in rows]
    assert PartitionLayout(("p", "d"), hive_style=hive).paths(table).to_pylist() == spelled


def segment(name: str, value: str | None, hive: bool, encode: bool = True) -> str:
    """One segment of a partition path."""
    text = value or DEFAULT_PARTITION
    return (f"{name}=" if hive else "") + (escape_partition_value(text) if encode else text)


def test_no_partition_fields_mean_the_root() -> None:
    assert PartitionLayout().paths(pa.table({"a": [1, 2]})).to_pylist() == ["", ""]


def test_paths_of_numbers_times_and_nulls() -> None:
    table = pa.table({"n": pa.array([7, None], pa.int32()), "t": pa.array([0, None], pa.timestamp("us", tz="UTC"))})
    paths = PartitionLayout(("n", "t")).paths(table).to_pylist()
    assert paths == ["n=7/t=0", f"n={DEFAULT_PARTITION}/t={DEFAULT_PARTITION}"]
