"""Records that are no change events: their types, keys and faults."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from binlake.decode.changes import META_NAMES, DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat, PlainTopics
from binlake.decode.schemas.schemas import DeclaredSchemas, declared_table
from tests.binlake.decode.ways import general, same

T = SourceTable("web", "clicks")
COLUMNS = {
    "id": "bigint",
    "big": "bigint unsigned",
    "ok": "bit(1)",
    "flag": "tinyint(1)",
    "price": "decimal(12,2)",
    "ratio": "double",
    "day": "date",
    "at": "datetime(6)",
    "seen": "timestamp",
    "name": "varchar(40)",
    "doc": "json",
    "raw": "blob",
}
ROW = {
    "id": 7,
    "big": 2**64 - 1,
    "ok": True,
    "flag": 1,
    "price": 12.5,
    "ratio": 0.25,
    "day": "2024-02-29",
    "at": "2024-02-29T10:00:00.123456",
    "seen": "2024-02-29T10:00:00+08:00",
    "name": 'a "quoted" ü',
    "doc": {"b": [1, 2]},
    "raw": "AAE=",
}
READ = {
    "id": 7,
    "big": Decimal(2**64 - 1),
    "ok": True,
    "flag": 1,
    "price": Decimal("12.50"),
    "ratio": 0.25,
    "day": dt.date(2024, 2, 29),
    "at": dt.datetime(2024, 2, 29, 10, 0, 0, 123456, dt.UTC),
    "seen": dt.datetime(2024, 2, 29, 2, 0, tzinfo=dt.UTC),
    "name": 'a "quoted" ü',
    "doc": '{"b": [1, 2]}',
    "raw": b"\0\1",
}


def records(values: list[Any], keys: list[bytes | None] | None = None, topic: str = "clicks-eu") -> RawRecords:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    offsets, times = np.arange(100, 100 + len(raw)), np.full(len(raw), 1_760_000_000_000)
    return RawRecords(topic, 3, offsets, times, keys or [None] * len(raw), raw)


def options(**topics: Any) -> DecodeOptions:  # noqa: ANN401 - any field
    plain = PlainTopics(("clicks-*",), T, **{"key": ("id",), **topics})
    return DecodeOptions(format=EventFormat.JSON, plain=(plain,), epoch=1)


def declared(**columns: str) -> DeclaredSchemas:
    return DeclaredSchemas({T: declared_table(columns, ("id",))})


def rows(found: DecodedRecords) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in META_NAMES} for b in found.changes for row in b.rows.to_pylist()]


def reasons(found: DecodedRecords) -> dict[int, str]:
    return {q.offset: q.reason for q in found.quarantined}


def test_values_of_all_types_by_both_ways_of_reading() -> None:
    given = records([ROW, ROW | {"price": "99999999.990", "at": "2024-02-29 10:00:00"}, dict.fromkeys(ROW) | {"id": 1}])
    found = decode(given, declared(**COLUMNS), options())
    assert not found.quarantined
    first, second, third = rows(found)
    assert first == READ
    assert second["price"] == Decimal("99999999.99")
    assert second["at"] == dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC)
    assert {k for k, v in third.items() if v is not None} == {"id"}
    same(found, general(given, declared(**COLUMNS), options()))


def test_the_order_is_the_offset_below_the_epoch() -> None:
    found = decode(records([{"id": 1}, {"id": 1}]), declared(id="bigint"), options())
    assert found.changes[0].rows.column("__order").to_pylist() == [(1 << 52) + 100, (1 << 52) + 101]
    assert found.changes[0].rows.column("__source_ms").to_pylist() == [1_760_000_000_000] * 2


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"{", "malformed_json"),
        (b"", "malformed_json"),
        (b"[1]", "unknown_message"),
        (b"null", "unknown_message"),
        (b'{"id": 1, "id": 2}', "duplicate_key"),
        (b'{"id": "x"}', "bad_value"),
        (b'{"id": 9223372036854775808}', "bad_value"),
        (b'{"id": 1, "new": 2}', "unknown_column"),
        (b'{"id": null}', "null_key"),
        (b'{"price": 1}', "null_key"),
        (b'{"id": 1, "price": 1.005}', "bad_value"),
        (b'{"id": 1, "price": "1,5"}', "bad_value"),
        (b'{"id": 1, "price": true}', "bad_value"),
        (b'{"id": 1, "price": 12345678901.5}', "bad_value"),
        (b'{"id": 1, "at": "2024-02-30T00:00:00"}', "bad_value"),
        (b'{"id": 1, "at": "0000-00-00 00:00:00"}', "bad_value"),
        (b'{"id": 1, "at": "2024-02-28 10:00:00000"}', "bad_value"),
    ],
)
def test_a_bad_message_alone_is_refused(value: bytes, reason: str) -> None:
    found = decode(records([ROW, value, ROW]), declared(**COLUMNS), options())
    assert reasons(found) == {101: reason}
    assert len(rows(found)) == 2


def test_a_record_without_a_value_deletes_by_its_key() -> None:
    keys = [b'{"id": 1, "more": 2}', b"2", b'"x"', None, b'{"other": 1}', b"7"]
    found = decode(records([None, None, None, None, None, {"id": 7}], keys), declared(id="bigint"), options())
    assert rows(found) == [{"id": 1}, {"id": 2}, {"id": 7}]
    assert found.changes[0].rows.column("__op").to_pylist() == [1, 1, 0]
    assert reasons(found) == {102: "bad_value", 103: "missing_key", 104: "missing_key"}


def test_the_key_of_a_text_column_need_not_be_json() -> None:
    keys: list[bytes | None] = [b"a b", b'"a b"', b"5", b"null"]
    found = decode(records([None] * 4, keys), declared(id="varchar(9)"), options())
    assert [row["id"] for row in rows(found)] == ["a b", "a b", "5", "null"]


def test_without_a_key_a_record_without_a_value_is_counted() -> None:
    found = decode(records([None, {"id": 1}], [b"1", b"1"]), declared(id="bigint"), options(key=()))
    assert (rows(found), found.filtered) == ([{"id": 1}], {(T, "tombstone"): 1})


def test_a_delete_that_cannot_find_its_row_is_refused() -> None:
    found = decode(records([None], [b"1"]), declared(id="bigint"), options(no_delete="why"))
    assert [(q.reason, q.detail) for q in found.quarantined] == [("missing_image", "why")]


def test_what_kafka_knows_is_in_columns() -> None:
    facts = (("topic", "t"), ("partition", "p"), ("offset", "o"), ("timestamp", "at"))
    found = decode(records([{"id": 1}]), declared(id="bigint"), options(metadata=facts, key=("p", "o")))
    at = dt.datetime.fromtimestamp(1_760_000_000, dt.UTC)
    assert rows(found) == [{"id": 1, "t": "clicks-eu", "p": 3, "o": 100, "at": at}]
    assert found.changes[0].schema.key == ("p", "o")


def test_a_topic_that_no_setting_names() -> None:
    found = decode(records([{"id": 1}], topic="other"), declared(id="bigint"), options())
    assert reasons(found) == {100: "unknown_table"}
