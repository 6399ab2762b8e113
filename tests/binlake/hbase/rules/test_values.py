"""Values as HBase's ``Bytes`` writes them: what it makes itself, random ones, and every kind of value that is none."""

from __future__ import annotations

import decimal
import json
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.hbase.rules.piecewise import ConvertedValues
from binlake.hbase.rules.values import decode_values, expectation, value_type
from binlake.hbase.settings.declared import wide_column
from tests.binlake.hbase.rules.slow import EXACT, Undecodable, decode, encode, text_form
from tests.paths import GOLDEN

MADE: dict[str, Any] = json.loads((GOLDEN / "hbase_bytes.json").read_text())
DECLARED = {
    "utf8": "utf8",
    "long": "long",
    "int": "int",
    "short": "short",
    "double": "double",
    "float": "float",
    "boolean": "boolean",
    "decimal": "decimal(38,6)",
    "bytes": "bytes",
}
SIZES = {"long": 8, "int": 4, "short": 2, "double": 8, "float": 4}


def read(type_: str, *values: bytes, storage: str = "b") -> ConvertedValues:
    """The values of a column declared as that type."""
    return decode_values(pa.array(values, pa.binary()), wide_column("c", f"d:c#{storage} {DECLARED.get(type_, type_)}"))


def one(type_: str, value: bytes, storage: str = "b") -> Any:  # noqa: ANN401 - a value of any type
    """One value, or "none" if it is none of the type."""
    found = read(type_, value, storage=storage)
    return "none" if found.bad[0] else found.values[0].as_py()


@pytest.mark.parametrize(("type_", "stored", "read_by_hbase"), MADE["values"])
def test_as_hbase_itself_reads_it(type_: str, stored: str, read_by_hbase: str | None) -> None:
    """But for longer values, of which ``Bytes`` reads the beginning: that is silently wrong, so they are bad here."""
    data = bytes.fromhex(stored)
    found = read(type_, data)
    if len(data) > SIZES.get(type_, len(data)):
        assert read_by_hbase is not None  # Bytes reads the beginning
        assert found.bad[0]
        return
    if type_ == "decimal" and read_by_hbase is not None:
        exact = decimal.Decimal(read_by_hbase)
        whole = exact.scaleb(6, EXACT)
        if whole != whole.to_integral_value() or abs(whole) >= 10**38:
            read_by_hbase = None  # the column cannot hold it
        else:
            assert found.values[0].as_py() == exact
    assert found.bad[0] == (read_by_hbase is None)
    if read_by_hbase is None or type_ == "decimal":
        assert found.values.null_count == found.bad[0]
    elif type_ in ("double", "float"):
        assert struct.pack(">d" if type_ == "double" else ">f", found.values[0].as_py()) == data or "f8" in stored
        assert bits(found.values) == int(read_by_hbase)
    else:
        assert found.values[0].as_py() == json.loads(read_by_hbase)


def bits(values: pa.Array) -> int:
    """The bits of the first float, as a signed number."""
    held = np.frombuffer(values.buffers()[1], dtype=np.int64 if values.type == pa.float64() else np.int32)
    return int(held[0])


@pytest.mark.parametrize(("data", "text"), MADE["text_forms"])
def test_text_forms_are_hbases_but_for_commas_and_reserved_texts(data: str, text: str) -> None:
    ours = text_form(bytes.fromhex(data))
    assert ours == (text.replace(",", "\\x2C") if text != "__empty__" else "\\x5F_empty__")


numbers = {
    "long": st.integers(-(1 << 63), (1 << 63) - 1),
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "short": st.integers(-(1 << 15), (1 << 15) - 1),
    "double": st.floats(),
    "float": st.floats(width=32),
    "boolean": st.booleans(),
    "decimal": st.decimals(allow_nan=False, allow_infinity=False, places=6, min_value=-(10**30), max_value=10**30),
    "utf8": st.text(),
    "bytes": st.binary(),
}


@pytest.mark.parametrize("type_", numbers)
@given(data=st.data())
def test_what_is_written_is_read(type_: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(numbers[type_]))
    found = read(type_, *(encode(type_, value) for value in values))
    assert not found.bad.any()
    assert [plain(value) for value in found.values.to_pylist()] == [plain(value) for value in values]
    found.values.validate(full=True)


@pytest.mark.parametrize("text", [b"0E40", b"-0.00e-99", b".0E+7", b"0"])
def test_a_zero_has_any_exponent(text: bytes) -> None:
    found = decode_values(pa.array([text, b"1.5"], pa.binary()), wide_column("c", "d:c#s decimal(38,6)"))
    assert (found.bad.tolist(), found.values.to_pylist()) == ([False, False], [0, decimal.Decimal("1.5")])


def plain(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """NaN as a text, and the sign of a zero."""
    return repr(value) if isinstance(value, float) else value


@pytest.mark.parametrize("storage", ["b", "s"])
@pytest.mark.parametrize("type_", [name for name in numbers if name != "bytes"])
@given(data=st.data())
def test_any_bytes_are_read_as_the_reference_reads_them(type_: str, storage: str, data: st.DataObject) -> None:
    digits = st.text("0123456789.-+eE xX_", max_size=8) | st.sampled_from(
        ["NaN", "-Infinity", "true", "FALSE", "1e999"]
    )
    stored = st.binary(max_size=10) | digits.map(str.encode)
    stored |= st.builds(
        lambda scale, rest: struct.pack(">i", scale) + rest, st.integers(-40, 90), st.binary(max_size=20)
    )
    values = data.draw(st.lists(stored, max_size=12))
    column = wide_column("c", f"d:c#{storage} {DECLARED[type_]}")

    found = decode_values(pa.array(values, pa.binary()), column)

    assert found.values.type == value_type(column)
    for value, read_value, bad in zip(values, found.values.to_pylist(), found.bad, strict=True):
        try:
            assert plain(read_value) == plain(decode(column, value))
            assert not bad
        except Undecodable:
            assert bad
            assert read_value is None


@pytest.mark.parametrize(
    ("type_", "stored", "value"),
    [
        ("long", b"1234", "none"),
        ("int", b"1234", 825373492),
        ("int", b"", "none"),
        ("boolean", b"", "none"),
        ("boolean", b"\x02", True),
        ("utf8", b"", ""),
        ("utf8", b"\xff", "none"),
        ("utf8", b"\xed\xa0\x80", "none"),  # a lone surrogate
        ("bytes", b"", b""),
        ("decimal(5,2)", encode("decimal", decimal.Decimal("1.500")), decimal.Decimal("1.50")),
        ("decimal(5,2)", encode("decimal", decimal.Decimal("1.501")), "none"),
        ("decimal(5,2)", encode("decimal", decimal.Decimal("999.99")), decimal.Decimal("999.99")),
        ("decimal(5,2)", encode("decimal", decimal.Decimal(1000)), "none"),
        ("decimal(5,2)", encode("decimal", decimal.Decimal("1E+2")), decimal.Decimal("100.00")),
        ("decimal(5,2)", struct.pack(">i", -(1 << 31)) + b"\0", decimal.Decimal("0.00")),
        ("decimal(5,2)", struct.pack(">i", -(1 << 31)) + b"\1", "none"),
        ("decimal(38,0)", struct.pack(">i", 76) + b"\0", decimal.Decimal(0)),
        ("decimal(38,0)", struct.pack(">i", 76) + b"\1", "none"),
        ("decimal(38,0)", encode("decimal", decimal.Decimal("7." + "0" * 75)), decimal.Decimal(7)),
        ("decimal(38,0)", encode("decimal", decimal.Decimal("7." + "0" * 80)), "none"),
        ("decimal(38,38)", struct.pack(">i", -38) + b"\0", decimal.Decimal(0).scaleb(-38)),
        ("decimal(38,38)", struct.pack(">i", -38) + b"\1", "none"),
        ("decimal(5,2)", struct.pack(">i", 2) + bytes(5000) + b"\1", decimal.Decimal("0.01")),
    ],
)
def test_one_by_one(type_: str, stored: bytes, value: object) -> None:
    assert one(type_, stored) == value
    both = read(type_, stored, stored)
    assert both.values.to_pylist() == [None if value == "none" else value] * 2


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("long", "-0042", -42),
        ("long", "+42", 42),
        ("long", "0x10", "none"),
        ("long", " 1", "none"),
        ("long", "1 ", "none"),
        ("long", "1\n", "none"),
        ("long", "1_000", "none"),
        ("long", "9223372036854775808", "none"),
        ("long", "٣", "none"),
        ("short", "32767", 32767),
        ("short", "32768", "none"),
        ("double", "1E10", 1e10),
        ("double", "1e999", "none"),
        ("double", "Infinity", float("inf")),
        ("double", "inf", "none"),
        ("double", "nan", "none"),
        ("float", "1e39", "none"),
        ("boolean", "TRUE", True),
        ("boolean", "1", "none"),
        ("boolean", "true\n", "none"),
        ("decimal(5,2)", "1e2", decimal.Decimal("100.00")),
        ("decimal(5,2)", "1.234", "none"),
        ("decimal(5,2)", "", "none"),
        ("utf8", "größe", "größe"),
    ],
)
def test_texts_one_by_one(type_: str, text: str, value: object) -> None:
    assert one(type_, text.encode(), storage="s") == value


@pytest.mark.parametrize("type_", numbers)
def test_a_bad_value_leaves_its_neighbours_alone(type_: str) -> None:
    good = {"boolean": True, "utf8": "a", "bytes": b"a", "decimal": decimal.Decimal("1.5")}.get(type_, 7)
    stored = encode(type_, good)
    bad = b"\xff\xff\xff"
    found = read(type_, stored, bad, stored, bad, stored)
    expected = [good, bad, good, bad, good] if type_ == "bytes" else [good, None, good, None, good]
    assert found.values.to_pylist() == expected


def test_slices_of_arrays() -> None:
    values = pa.array([b"xxxx", b"\0\0\0\1", b"y", b"\0\0\0\2", b"zzzz"], pa.binary()).slice(1, 3)
    found = decode_values(values, wide_column("c", "d:c#b int"))
    assert found.values.to_pylist() == [1, None, 2]


def test_what_a_value_must_be() -> None:
    for declared, words in {
        "d:c#b short": "2 bytes, a big-endian short",
        "d:c#b decimal(5,2)": "four bytes of scale and an unscaled number that fits decimal(5,2)",
        "d:c#b boolean": "one byte, a boolean",
        "d:c": "UTF-8",
        "d:c#s decimal(5,2)": "the text of decimal(5,2)",
        "d:c#s int": "the text of int",
    }.items():
        assert expectation(wide_column("c", declared)) == words
