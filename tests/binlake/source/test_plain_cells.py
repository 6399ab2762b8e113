"""The compiled reading of cells gives what the conversions of texts give, or leaves the cell to them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from binlake.decode.types.mysql_types import parse_type
from binlake.settings import SourceSettings
from binlake.source.database.plain_cells import compact_json, plain_values
from binlake.source.database.values import Unreadable, ValueReader
from tests.hypothesis_profile import scaled

#: Type -> cells that the loops read, and cells that they leave.
CELLS: dict[str, tuple[list[str], list[str]]] = {
    "tinyint": (["0", "-128", "127", "-0", "007"], ["", "1.0", "+1", " 1", "0x10", "1e3", "-", "٣"]),
    "int unsigned": (["4294967295", "0"], ["9" * 20]),
    "int": (["2147483647", "-2147483648"], ["2147483648", "-2147483649"]),
    "bigint": (["999999999999999999", "-999999999999999999"], [str(2**63 - 1), str(-(2**63)), str(2**63)]),
    "year": (["0", "1901", "2155", "0000"], ["20x4"]),
    "decimal(12,2)": (["0.00", "-0.01", "9999999999.99", "5"], ["0.001", "10000000000.00", ".5", "5.", "1.2.3"]),
    "decimal(15,15)": (["0.000000000000001", "-0.999999999999999"], ["0.0000000000000001", "1.0"]),
    "decimal(18,18)": ([], ["0.000000000000000001"]),
    "decimal(30,4)": (["1234567890123.5678"], ["12345678901234567890.1234", "-99999999999999999999999999.9999"]),
    "decimal(20,0)": (["-7"], ["9" * 20, "-" + "9" * 20]),
    "date": (
        ["2024-02-29", "0001-01-01", "9999-12-31", "1969-12-31", "1900-02-28", "2000-02-29"],
        ["0000-00-00", "2024-00-01", "2024-01-00", "2023-02-29", "1900-02-29", "2024-04-31", "24-01-01", ""],
    ),
    "datetime(6)": (
        ["1969-12-31 23:59:59.999999", "2024-02-29 00:00:00", "0001-01-01 00:00:00.1", "9999-12-31 23:59:59.12"],
        ["2024-02-30 00:00:00", "0000-00-00 00:00:00", "2024-01-00 00:00:00", "2024-01-01 24:00:00",
         "2024-01-01T00:00:00", "2024-01-01 00:00:00.", "2024-01-01 00:00:00.1234567", "2024-01-01", ""],
    ),
    "timestamp(3)": (["1970-01-01 00:00:01.500", "2038-01-19 03:14:07"], ["0000-00-00 00:00:00.000"]),
    "time(6)": (
        ["00:00:00", "-00:00:00.000001", "838:59:59.000000", "-838:59:59", "12:34:56.78"],
        ["1:00:00", "1000:00:00", "00:60:00", "00:00:60", "-", "00:00:00.", "00-00:00", "00:00:0x"],
    ),
}  # fmt: skip


def reader(kind: str, zero_dates: str = "null") -> ValueReader:
    source = SourceSettings.model_validate({"zero_dates": zero_dates})
    return ValueReader.of("c", parse_type(kind), source, nullable=True, in_key=False)


def read(how: Callable[[pa.Array, Unreadable], pa.Array], cells: list[bytes | None]) -> tuple[Any, ...]:
    """Type, values and the number of unreadable ones; or the kind of error."""
    unreadable = Unreadable()
    try:
        array = how(pa.array(cells, pa.binary()), unreadable)
    except ValueError as error:
        return (type(error),)
    array.validate(full=True)
    return array.type, array.to_pylist(), unreadable.count


@pytest.mark.parametrize("kind", CELLS)
def test_the_loops_read_plain_cells_and_leave_others(kind: str) -> None:
    plain, odd = ([text.encode() for text in texts] for texts in CELLS[kind])
    for cells, expected in ((plain, False), (odd, True)):
        for cell in cells:
            seen = plain_values(pa.array([cell], pa.binary()), reader(kind).column)
            assert seen is not None
            assert seen[1].tolist() == [expected], cell
    nulls = plain_values(pa.array([None, *plain[:1]], pa.binary()), reader(kind).column)
    assert nulls is not None
    assert not nulls[1].any()
    assert nulls[0].is_null().to_pylist() == [True, False][: len(nulls[0])]


@pytest.mark.parametrize("zero_dates", ["null", "epoch", "quarantine", "text"])
@pytest.mark.parametrize("kind", CELLS)
def test_both_ways_agree_on_every_cell(kind: str, zero_dates: str) -> None:
    one = reader(kind, zero_dates)
    cells: list[bytes | None] = [None, *(text.encode() for texts in CELLS[kind] for text in texts if text.isascii())]
    for cell in cells:
        assert read(one.read, [cell]) == read(one._converted, [cell]), cell
    random.Random(1).shuffle(cells)
    assert read(one.read, cells * 3) == read(one._converted, cells * 3)


_TEXTS = st.text("0123456789-.: x", max_size=28).map(str.encode)
_SHAPED = st.from_regex(rb"-?[0-9]{1,22}(\.[0-9]{1,8})?|[0-9]{4}-[01][0-9]-[0-3][0-9]( [0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,7})?)?|-?[0-9]{1,4}:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,7})?", fullmatch=True)  # fmt: skip # noqa: E501


@settings(max_examples=scaled(1500), deadline=None)
@given(st.sampled_from(list(CELLS)), st.lists(st.one_of(st.none(), _TEXTS, _SHAPED), max_size=12))
def test_both_ways_agree_on_anything(kind: str, cells: list[bytes | None]) -> None:
    one = reader(kind)
    assert read(one.read, cells) == read(one._converted, cells)


def test_a_value_that_is_read_wrong_would_be_seen() -> None:
    """The control: the comparison of these tests tells neighbours apart."""
    for kind, (plain, _) in CELLS.items():
        values = read(reader(kind)._converted, [text.encode() for text in plain])[1]
        assert len(set(values)) >= len(plain) - 1, kind  # 0 and -0 are one


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\ \t\n\u00e9/', max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('k"\\ ', max_size=4), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=scaled(1000), deadline=None)
@given(st.lists(st.one_of(st.none(), _JSON), max_size=6), st.sampled_from([None, 1, "\t", " \r\n"]))
def test_json_loses_its_blanks_alone(documents: list[Any], indent: int | str | None) -> None:
    spelled = [None if d is None else json.dumps(d, indent=indent, ensure_ascii=False) for d in documents]
    compact = [None if d is None else json.dumps(d, separators=(",", ":"), ensure_ascii=False) for d in documents]
    assert compact_json(pa.array(spelled, pa.string())).to_pylist() == compact
