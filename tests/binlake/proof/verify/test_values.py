"""The server's texts become lake values, and lake values become literals that the server compares."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.types.mysql_types import parse_type
from binlake.proof.verify.columns import common_type
from binlake.settings import SourceSettings
from binlake.source.database.values import Unreadable, ValueReader, normalised_json, sql_literal, time_text

CASES = [
    ("int(5) unsigned zerofill", b"00012", 12),
    ("bigint unsigned", b"18446744073709551615", Decimal((1 << 64) - 1)),
    ("decimal(12,2)", b"-1234567890.05", Decimal("-1234567890.05")),
    ("decimal(50,20)", b"1.10000000000000000000", "1.10000000000000000000"),
    ("double", b"-0", -0.0),
    ("float", b"0.10000000149011612", 0.10000000149011612),
    ("date", b"2024-02-29", dt.date(2024, 2, 29)),
    ("date", b"0000-00-00", None),
    ("datetime(6)", b"1969-12-31 23:59:59.000001", dt.datetime(1969, 12, 31, 23, 59, 59, 1, tzinfo=dt.UTC)),
    ("time(3)", b"-838:59:59.001", -(838 * 3600 + 59 * 60 + 59) * 1_000_000 - 1000),
    ("bit(1)", b"1", True),
    ("bit(10)", b"\x02\x01", b"\x02\x01"),
    ("varbinary(4)", b"\x00\xff ", b"\x00\xff "),
    ("varchar(9)", "é ".encode(), "é "),
    ("json", b'{"b": [1, 2.5], "a": null}', '{"a":null,"b":[1,2.5]}'),
]


def reader(kind: str, *, nullable: bool = True, **source: Any) -> ValueReader:  # noqa: ANN401 - any YAML value
    settings = SourceSettings.model_validate(source)
    return ValueReader.of("c", parse_type(kind), settings, nullable=nullable, in_key=False)


@pytest.mark.parametrize(("kind", "text", "value"), CASES)
def test_a_text_of_the_server_is_a_value_of_the_lake(kind: str, text: bytes, value: object) -> None:
    unreadable = Unreadable()
    found = reader(kind).read(pa.array([text, None], pa.binary()), unreadable).to_pylist()
    assert [repr(v) for v in found][1] == "None"
    assert str(found[0]).replace("zoneinfo.ZoneInfo(key='UTC')", "UTC") == str(value)
    assert unreadable.count == 0


def test_a_day_that_no_calendar_has_is_counted_and_spoils_no_other() -> None:
    unreadable = Unreadable()
    texts = pa.array([b"2024-02-28", b"2024-02-31", None, b"2024-00-10"], pa.binary())
    assert reader("date").read(texts, unreadable).to_pylist() == [dt.date(2024, 2, 28), None, None, None]
    assert unreadable.count == 1  # the 31st of February; a month of zero is what Debezium sends as null


ZERO = b"2024-00-10"
#: A stream that reads the binlog itself.
BINLOG = {"mysql": {}, "database": {"host": "db", "user": "u"}}
SENT: list[tuple[dict[str, Any], bool, object]] = [
    ({}, True, None),
    ({}, False, dt.date(1970, 1, 1)),
    ({"zero_dates": "epoch"}, True, None),
    ({"zero_dates": "text"}, True, None),
    ({"zero_dates": "text"}, False, "1970-01-01"),
    ({"zero_dates": "text", "format": "canal"}, True, "2024-00-10"),
    ({"zero_dates": "epoch", "format": "maxwell"}, True, dt.date(1970, 1, 1)),
    ({**BINLOG}, False, None),
    ({"zero_dates": "epoch", **BINLOG}, True, dt.date(1970, 1, 1)),
    ({"zero_dates": "text", **BINLOG}, False, "2024-00-10"),
]


@pytest.mark.parametrize(("source", "nullable", "value"), SENT)
def test_a_zero_date_is_what_the_connector_sends_for_it(source: dict[str, Any], nullable: bool, value: object) -> None:
    read = reader("date", nullable=nullable, **source)
    assert read.read(pa.array([ZERO], pa.binary()), Unreadable()).to_pylist() == [value]


def test_json_is_compared_by_its_content() -> None:
    assert normalised_json(pa.array(['{"a":1,"b":2}', '{"b": 2, "a": 1}', "no json", None])).to_pylist() == [
        '{"a":1,"b":2}',
        '{"a":1,"b":2}',
        "no json",
        None,
    ]


LITERALS = [
    ("bigint", 5, "5"),
    ("bit(1)", True, "1"),
    ("decimal(5,2)", Decimal("1.50"), "'1.50'"),
    ("varbinary(2)", b"\x00'", "x'0027'"),
    ("varchar(5)", "a", "'a'"),
    ("time(6)", -3_600_000_001, "'-01:00:00.000001'"),
    ("datetime(6)", dt.datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=dt.UTC), "'2024-01-02 03:04:05.000006'"),
    ("date", dt.date(2024, 1, 2), "'2024-01-02'"),
]


@pytest.mark.parametrize(("kind", "value", "literal"), LITERALS)
def test_a_key_is_a_literal_of_its_type(kind: str, value: object, literal: str) -> None:
    assert sql_literal(value, parse_type(kind), lambda text: f"'{text}'") == literal


def test_times_of_more_than_a_day_keep_their_hours() -> None:
    assert time_text(838 * 3_600_000_000 + 5) == "838:00:00.000005"


def test_types_that_hold_the_same_values_are_compared_in_the_wider_one() -> None:
    assert common_type(pa.int32(), pa.int64()) == pa.int64()
    assert common_type(pa.decimal128(20, 0), pa.int64()) == pa.decimal256(76, 0)
    assert common_type(pa.decimal128(12, 2), pa.decimal128(14, 4)) == pa.decimal256(76, 4)
    assert common_type(pa.float32(), pa.float64()) == pa.float64()
    assert common_type(pa.string(), pa.int32()) is None
    assert common_type(pa.binary(), pa.string()) is None
