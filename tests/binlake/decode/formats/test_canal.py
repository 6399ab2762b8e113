"""Canal's messages: every type exactly or not at all, keys that change, and bad input of every kind."""

from __future__ import annotations

import datetime as dt
import json
import random
from decimal import Decimal
from typing import Any

import pytest

from binlake.decode.changes import ControlKind, DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import NoSchemas, SchemaSource
from tests.binlake.decode.events import T, cells, declared, reasons
from tests.binlake.decode.mangled import changed_bytes, check_neighbours, check_sound, mangled
from tests.binlake.decode.recordings import records

TYPES = {"id": "int(11)", "name": "varchar(50)", "amount": "decimal(10,2)", "f": "double", "data": "text"}
UTC = dt.UTC


def message(
    data: list[dict[str, Any]] | None,
    kind: str = "INSERT",
    old: list[dict[str, Any]] | None = None,
    types: dict[str, str] | None = TYPES,
    key: list[str] | None = None,
    **more: Any,  # noqa: ANN401 - members of the message
) -> bytes:
    found = {
        "data": data,
        "database": "db",
        "es": 1_700_000_000_000,
        "gtid": "",
        "id": 3,
        "isDdl": False,
        "mysqlType": types,
        "old": old,
        "pkNames": ["id"] if key is None else key,
        "sql": "",
        "sqlType": None if types is None else dict.fromkeys(types, 12),
        "table": "t",
        "ts": 1_700_000_000_123,
        "type": kind,
    }
    return json.dumps(found | more, separators=(",", ":"), ensure_ascii=False).encode()


def decoded(values: list[bytes | None], schemas: SchemaSource | None = None, **options: Any) -> DecodedRecords:  # noqa: ANN401
    options = {"format": EventFormat.CANAL} | options
    found = decode(records([None] * len(values), values), schemas or NoSchemas(), DecodeOptions(**options))
    rows = {o for batch in found.changes for o in batch.rows["__offset"].to_pylist()}
    refused = [q.offset for q in found.quarantined]
    others = [c.offset for c in found.controls]
    assert len(rows) + len(refused) + len(others) + sum(found.filtered.values()) == len(values)
    assert len({*rows, *refused, *others}) == len(rows) + len(refused) + len(others), "every record is in one place"
    return found


def value_of(kind: str, text: object, **options: Any) -> Any:  # noqa: ANN401 - any lake value, or the reason
    """One cell of a type; the reason where it is refused."""
    found = decoded([message([{"id": "1", "c": text}], types={"id": "int(11)", "c": kind})], **options)
    return found.quarantined[0].reason if found.quarantined else cells(found, "c")[0]


EXACT: list[tuple[str, str | None, Any]] = [
    ("tinyint(1)", "1", 1),
    ("tinyint(4)", "-128", -128),
    ("int(11) unsigned", "4294967295", 4294967295),
    ("bigint(20)", "-9223372036854775808", -9223372036854775808),
    ("bigint(20) unsigned", "18446744073709551615", Decimal(18446744073709551615)),
    ("int(11)", None, None),
    ("year(4)", "2026", 2026),
    ("decimal(65,30)", "-" + "9" * 35 + "." + "9" * 30, "-" + "9" * 35 + "." + "9" * 30),
    ("decimal(12,2)", "1000.0", Decimal("1000.00")),
    (
        "decimal(38,38)",
        "-0.00000000000000000000000000000215164969",
        Decimal("-0.00000000000000000000000000000215164969"),
    ),
    ("double", "3.9850704117939904E7", 39850704.117939904),
    ("double", "-0.0", -0.0),
    ("double", "4.9E-324", 5e-324),
    ("float", "3.4028235E38", 3.4028234663852886e38),
    ("date", "2024-02-29", dt.date(2024, 2, 29)),
    ("date", "0001-01-01", dt.date(1, 1, 1)),
    ("date", "0000-00-00", None),
    ("datetime", "9999-12-31 23:59:59", dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("datetime(6)", "2026-11-21 06:17:03.709866", dt.datetime(2026, 11, 21, 6, 17, 3, 709866, tzinfo=UTC)),
    ("datetime", "0000-00-00 00:00:00", None),
    ("timestamp(3)", "2026-11-21 06:17:00.947", dt.datetime(2026, 11, 21, 6, 17, 0, 947000, tzinfo=UTC)),
    ("time", "-838:59:59", -3020399000000),
    ("time(3)", "400:59:24.644", 1443564644000),
    ("time(6)", "00:00:00.000001", 1),
    ("enum('new','pa,id','it''s')", "3", "it's"),
    ("enum('new','pa,id','it''s')", "2", "pa,id"),
    ("enum('1','2')", "2", "2"),
    ("enum('b','a')", "0", ""),
    ("set('a','b','c')", "5", "a,c"),
    ("set('a','b','c')", "0", ""),
    ("bit(1)", "1", True),
    ("bit(9)", "257", b"\x01\x01"),
    ("bit(64)", "18446744073709551615", b"\xff" * 8),
    ("binary(4)", "\x00\xff", b"\x00\xff\x00\x00"),
    ("binary(2)", "", b"\x00\x00"),
    ("varbinary(9)", "\x00\xff", b"\x00\xff"),
    ("blob", "".join(map(chr, range(256))), bytes(range(256))),
    ("blob", "", b""),
    ("point", "\0\0\0\0\x01\x01\0\0\0" + "\0" * 16, b"\0\0\0\0\x01\x01\0\0\0" + b"\0" * 16),
    ("text", '🧪 "quoted" \\ \n\t\u2028', '🧪 "quoted" \\ \n\t\u2028'),
    ("longtext", '{"a":"\\"x\\""}', '{"a":"\\"x\\""}'),
    ("char(8)", "a.b:c,d", "a.b:c,d"),
]


@pytest.mark.parametrize(("kind", "text", "expected"), EXACT)
def test_values_are_exact(kind: str, text: str | None, expected: object) -> None:
    found = value_of(kind, text)
    assert found == expected
    assert type(found) is type(expected)
    assert not isinstance(found, float) or repr(found) == repr(expected), "the sign of zero too"


REFUSED: list[tuple[str, object]] = [
    ("int(11)", "0x10"),
    ("int(11)", " 12"),
    ("int(11)", "+12"),
    ("int(11)", "1e3"),
    ("int(11)", ""),
    ("int(11)", "2147483648"),
    ("int(11)", 12),
    ("int(11)", {"a": 1}),
    ("bigint(20)", "9223372036854775808"),
    ("bigint(20) unsigned", "18446744073709551616"),
    ("bigint(20) unsigned", "-1"),
    ("decimal(5,2)", "1.005"),
    ("decimal(5,2)", "1000.00"),
    ("decimal(5,2)", "NaN"),
    ("double", "NaN"),
    ("double", "Infinity"),
    ("double", "1e999"),
    ("double", "0x1p3"),
    ("float", "1e39"),
    ("date", "2024-02-30"),
    ("date", "2020-13-10"),
    ("datetime", "2024-02-30 00:00:00"),
    ("datetime", "2024-02-29 00:00:00Z"),
    ("datetime", "2024-02-29 00:00:00+08:00"),
    ("datetime(6)", "2024-02-29 00:00:00.1234567"),
    ("datetime", "10000-01-01 00:00:00"),
    ("time", "24:60:00"),
    ("time", "1:00:00"),
    ("enum('a','b')", "3"),
    ("enum('a','b')", "c"),
    ("enum('a','b')", "-1"),
    ("set('a','b')", "4"),
    ("set('a','b')", "a,c"),
    ("bit(1)", "2"),
    ("bit(9)", "512"),
    ("bit(64)", "18446744073709551616"),
    ("binary(1)", "ab"),
    ("blob", "Ā"),
    ("blob", "🧪"),
]


@pytest.mark.parametrize(("kind", "text"), REFUSED)
def test_what_cannot_be_exact_is_refused(kind: str, text: object) -> None:
    assert value_of(kind, text) == "bad_value"


def test_an_unknown_type_is_refused() -> None:
    assert value_of("vector(3)", "x") == "unsupported_type"


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "+08:00"])
def test_timestamps_are_in_the_zone_of_the_session(zone: str) -> None:
    at = "2026-11-21 14:17:00"
    assert value_of("timestamp", at, time_zone=zone) == dt.datetime(2026, 11, 21, 6, 17, tzinfo=UTC)
    assert value_of("datetime", at, time_zone=zone) == dt.datetime(2026, 11, 21, 14, 17, tzinfo=UTC), (
        "DATETIME has none"
    )
    assert value_of("timestamp", "0000-00-00 00:00:00", time_zone=zone) is None


def test_what_a_change_of_clocks_makes_ambiguous_is_refused() -> None:
    zone = "America/New_York"
    assert value_of("timestamp", "2024-11-03 01:30:00", time_zone=zone) == "bad_value"
    assert value_of("timestamp", "2024-03-10 02:30:00", time_zone=zone) == "bad_value"
    assert value_of("timestamp", "2024-11-03 02:30:00", time_zone=zone) == dt.datetime(2024, 11, 3, 7, 30, tzinfo=UTC)


def row(key: int, **more: object) -> dict[str, Any]:
    return {"id": str(key), "name": "ok", "amount": "1.00", "f": "1.5", "data": None} | more


GOOD = message([row(1), row(2)])
DEEP = b"[" * 20_000 + b"]" * 20_000


def changed(old: bytes, new: bytes) -> bytes:
    assert GOOD.count(old) >= 1
    return GOOD.replace(old, new, 1)


BAD: dict[str, tuple[bytes, str]] = {
    "truncated": (GOOD[:-9], "malformed_json"),
    "empty": (b"", "malformed_json"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, "malformed_json"),
    "two documents": (GOOD * 2, "malformed_json"),
    "two documents with a line end": (GOOD + b"\n" + GOOD, "malformed_json"),
    "not json": (b"\x00\x01\x02", "malformed_json"),
    "a number": (b"17", "unknown_message"),
    "a list": (b"[%s]" % GOOD, "unknown_message"),
    "an object": (b'{"hello":"world"}', "unknown_message"),
    "invalid utf-8 in a value": (changed(b'"name":"ok"', b'"name":"\xff\xfe"'), "invalid_utf8"),
    "invalid utf-8 in a name": (changed(b'"name":"ok"', b'"\xff":"ok"'), "invalid_utf8"),
    "invalid utf-8 in the sql": (changed(b'"sql":""', b'"sql":"\xff"'), "invalid_utf8"),
    "lone surrogate": (changed(b'"name":"ok"', b'"name":"\\ud800"'), "invalid_utf8"),
    "duplicate column": (changed(b'"name":"ok"', b'"name":"ok","name":"no"'), "duplicate_key"),
    "duplicate data": (changed(b'"database":', b'"data":[],"database":'), "duplicate_key"),
    "duplicate type": (changed(b'"es":', b'"type":"DELETE","es":'), "duplicate_key"),
    "duplicate old": (changed(b'"old":null', b'"old":null,"old":null'), "duplicate_key"),
    "duplicate table": (changed(b'"ts":', b'"table":"x","ts":'), "duplicate_key"),
    "duplicate types": (changed(b'"ts":', b'"mysqlType":{},"ts":'), "duplicate_key"),
    "duplicate type of a column": (changed(b'"mysqlType":{', b'"mysqlType":{"id":"text",'), "duplicate_key"),
    "NaN": (changed(b'"f":"1.5"', b'"f":NaN'), "nan"),
    "a number for text": (changed(b'"name":"ok"', b'"name":5'), "bad_value"),
    "20,000 deep in a column": (changed(b'"name":"ok"', b'"name":%s' % DEEP), "too_deep"),
    "20,000 deep in an unknown column": (changed(b'"name":"ok"', b'"x":%s' % DEEP), "too_deep"),
    "20,000 deep outside": (changed(b'"sql":""', b'"sql":%s' % DEEP), "too_deep"),
    "900 deep in a column": (changed(b'"name":"ok"', b'"name":%s' % (b"[" * 900 + b"]" * 900)), "too_deep"),
    "an unknown column": (message([row(1), row(2, surprise="1")]), "unknown_column"),
    "a row that is null": (message([row(1), None]), "missing_image"),  # type: ignore[list-item]
    "a row that is a list": (message([row(1), []]), "missing_image"),  # type: ignore[list-item]
    "no rows": (message([]), "missing_image"),
    "rows null": (message(None), "missing_image"),
    "rows an object": (changed(b'"data":[', b'"data":{},"x":['), "bad_value"),
    "update without old": (message([row(1)], "UPDATE"), "missing_image"),
    "update with too few old": (message([row(1), row(2)], "UPDATE", [{"name": "x"}]), "missing_image"),
    "key null": (message([row(1, id=None)]), "null_key"),
    "key missing": (message([{"name": "x"}]), "missing_key"),
    "empty row": (message([{}]), "missing_key"),
    "unknown type": (message([row(1)], "MERGE"), "unknown_op"),
    "type a number": (changed(b'"type":"INSERT"', b'"type":5'), "bad_value"),
    "no type": (changed(b',"type":"INSERT"', b""), "unknown_message"),
    "no table": (message([row(1)], table=None), "unknown_table"),
    "empty table": (message([row(1)], table=""), "unknown_table"),
    "no database": (message([row(1)], database=None), "unknown_table"),
    "types a list": (message([row(1)], mysqlType=[]), "bad_value"),
    "no types": (message([row(1)], types=None), "no_schema"),
    "empty types": (message([row(1)], types={}), "no_schema"),
    "a name of our own": (message([{"id": "1"}], types={"id": "int", "__op": "int"}), "reserved_column"),
}


@pytest.mark.parametrize("format_", [EventFormat.CANAL, EventFormat.AUTO])
@pytest.mark.parametrize("name", BAD)
def test_one_bad_message_among_good_ones(name: str, format_: EventFormat) -> None:
    value, reason = BAD[name]
    found = decoded([GOOD, value, GOOD], format=format_)
    if format_ is EventFormat.AUTO and name == "rows an object":
        reason = "unknown_op"  # as Maxwell's, whose data is one
    assert reasons(found) == {1: reason}
    assert found.quarantined[0].value == value
    assert found.quarantined[0].detail
    assert cells(found, "id") == [1, 2, 1, 2]


def test_all_bad_messages_at_once() -> None:
    values: list[bytes | None] = []
    expected = {}
    for value, reason in BAD.values():
        expected[len(values) + 1] = reason
        values += [GOOD, value]
    found = decoded(values)
    assert reasons(found) == expected
    assert cells(found, "id") == [1, 2] * len(BAD)


def test_one_bad_row_of_many_takes_its_message_and_no_other() -> None:
    rows = [row(i) for i in range(300)]
    bad = [*rows[:150], row(150, amount="?"), *rows[151:299], row(299, name=7)]
    found = decoded([message(rows), message(bad), message(rows)])
    (refused,) = found.quarantined
    assert refused.detail.startswith("rows 150, 299 of 300 (from 0), the first: column amount")
    (batch,) = found.changes
    assert batch.rows["__row"].to_pylist() == [*range(300), *range(300)]
    assert set(batch.rows["__offset"].to_pylist()) == {0, 2}


def test_many_bad_among_many_good() -> None:
    values: list[bytes | None] = [
        message([row(2 * i, amount="1.0" if i % 50 else "x"), row(2 * i + 1)]) for i in range(3000)
    ]
    found = decoded(values)
    assert len(found.quarantined) == 60
    assert cells(found, "id") == [n for i in range(3000) if i % 50 for n in (2 * i, 2 * i + 1)]


def test_names_of_members_may_be_names_of_columns() -> None:
    names = ("id", "data", "old", "type", "table", "database", "mysqlType", "pkNames", "sql", "es")
    line = dict.fromkeys(names, "1")
    good = message([line], "UPDATE", [line], dict.fromkeys(names, "int(11)"))
    twice = good.replace(b'"es":17', b'"type":"DELETE","es":17')
    assert twice != good
    found = decoded([good, twice, good])
    assert reasons(found) == {1: "duplicate_key"}
    assert cells(found, "type") == [1, 1]


def test_a_pretty_printed_message_is_read() -> None:
    pretty = json.dumps(json.loads(message([row(1)], "UPDATE", [{"id": "7"}])), indent=2).encode()
    found = decoded([GOOD, pretty])
    assert not found.quarantined
    before = [batch.before for batch in found.changes if batch.before is not None]
    assert [b["id"].to_pylist() for b in before] == [[7]]


# -- before images and keys -------------------------------------------------------------------------------------------


def befores(found: DecodedRecords) -> list[tuple[int, Any, Any]]:
    """(row, key before, name before)."""
    (batch,) = found.changes
    if batch.before is None:
        return []
    ids, names = batch.before["id"].to_pylist(), batch.before["name"].to_pylist()
    return list(zip(batch.before_at.tolist(), ids, names, strict=True))


UPDATES = message(
    [row(1, name="a"), row(2, name="b"), row(3, name="c"), row(4, name=None)],
    "UPDATE",
    [{"name": "x"}, {"id": "20", "name": None}, {"id": "30"}, None],  # type: ignore[list-item]
)


def test_a_changed_key_brings_its_before_image_unasked() -> None:
    assert befores(decoded([UPDATES])) == [(1, 20, None), (2, 30, "c")]


def test_all_before_images_where_they_are_asked_for() -> None:
    expected = [(0, 1, "x"), (1, 20, None), (2, 30, "c"), (3, 4, None)]
    assert befores(decoded([UPDATES], before_of="all")) == expected
    assert befores(decoded([UPDATES], before_of=frozenset({T}))) == expected


def test_the_key_is_the_declared_one() -> None:
    found = decoded([UPDATES], declared({"id": "int", "name": "varchar(9)"}, ("name",)))
    assert reasons(found) == {0: "null_key"}
    found = decoded([message([row(1, name="a")], "UPDATE", [{"name": "x"}])], declared({"id": "int"}, ("name",)))
    assert befores(found) == [(0, 1, "x")]


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (b'{"id":"9","id":"8"}', "duplicate_key"),
        (b'{"id":9}', "bad_value"),
        (b'{"id":"9","surprise":"1"}', "unknown_column"),
        (b"5", "missing_image"),
        (b'{"id":"\xff"}', "invalid_utf8"),
        (b'{"id":null}', ""),
    ],
)
def test_before_images_are_read_as_strictly(old: bytes, reason: str) -> None:
    good = message([row(1)], "UPDATE", [{"id": "9"}])
    found = decoded([good, good.replace(b'{"id":"9"}', old), good])
    assert reasons(found) == ({1: reason} if reason else {})


# -- what is no row ---------------------------------------------------------------------------------------------------


def test_controls_and_messages_that_change_nothing() -> None:
    none: dict[str, Any] = {"types": None, "data": None}
    values: list[bytes | None] = [
        None,
        b"null",
        message(kind="QUERY", database="", table="", sql="INSERT", **none),
        message(kind="QUERY", database="`d`", table="", isDdl=True, sql="DROP DATABASE d", **none),
        message(kind="TRUNCATE", isDdl=True, sql="TRUNCATE t", **none),
        message(kind="ERASE", isDdl=True, database="`D``b`", table="`t`", sql="DROP TABLE t", **none),
        message(kind="CINDEX", isDdl=True, sql="CREATE INDEX i ON t(id)", **none),
        message(kind="GTID", database="", table="", **none),
        message(kind="MHEARTBEAT", database="", table="", **none),
    ]
    found = decoded(values, epoch=2)
    assert not found.quarantined
    assert {kind: n for (_, kind), n in found.filtered.items()} == {
        "tombstone": 2,
        "query": 1,
        "transaction": 1,
        "heartbeat": 1,
    }
    assert [(c.kind, c.source, c.order, c.text) for c in found.controls] == [
        (ControlKind.DDL, SourceTable("d", ""), 2 << 52 | 3, "DROP DATABASE d"),
        (ControlKind.TRUNCATE, T, 2 << 52 | 4, "TRUNCATE t"),
        (ControlKind.DDL, SourceTable("D`b", "t"), 2 << 52 | 5, "DROP TABLE t"),
        (ControlKind.DDL, T, 2 << 52 | 6, "CREATE INDEX i ON t(id)"),
    ]
    assert [c.source_ms for c in found.controls if c.kind is ControlKind.TRUNCATE] == [1_700_000_000_000]


def test_rows_are_ordered_by_offset_and_place_in_the_message() -> None:
    found = decoded([GOOD, GOOD], epoch=1)
    (batch,) = found.changes
    assert batch.rows["__order"].to_pylist() == [1 << 52, 1 << 52, 1 << 52 | 1, 1 << 52 | 1]
    assert batch.rows["__row"].to_pylist() == [0, 1, 0, 1]
    assert batch.rows["__source_ms"].to_pylist() == [1_700_000_000_000] * 4


def test_types_from_the_settings_where_the_message_has_none() -> None:
    found = decoded([message([row(1)], types=None, key=[])], declared(TYPES, ("id",)))
    assert found.changes[0].schema.key == ("id",)
    assert cells(found, "amount") == [Decimal("1.00")]


def test_ignored_tables_are_counted_not_read() -> None:
    found = decoded([message([{"x": 1}]), GOOD], ignored_tables=frozenset({T}))
    assert found.filtered == {(T, "ignored"): 2}


def test_too_large_is_not_even_looked_at() -> None:
    found = decoded([GOOD, message([row(1, name="x" * 2000)])], max_message_bytes=1000)
    assert reasons(found) == {1: "too_large"}


def test_a_value_of_ten_megabytes_is_read_whole() -> None:
    text = "é" * 5_000_000
    found = decoded([GOOD, message([row(3, name=text), row(4)]), GOOD])
    assert cells(found, "name") == ["ok", "ok", text, "ok", "ok", "ok"]


def test_very_many_rows_come_in_several_batches() -> None:
    many = message([{"id": str(i)} for i in range(60_000)], types={"id": "int"})
    found = decoded([many] * 5)
    assert [batch.rows.num_rows for batch in found.changes] == [120_000, 120_000, 60_000]


# -- fuzz -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", [EventFormat.CANAL, EventFormat.AUTO])
def test_any_changed_byte_is_survived(format_: EventFormat) -> None:
    base = message([row(1)], "UPDATE", [{"id": "9", "name": None}])
    values = list(changed_bytes(base))
    found = decoded([GOOD, *values, GOOD], format=format_)
    check_neighbours(found, len(values))


@pytest.mark.parametrize("seed", range(3))
def test_mangled_messages_are_survived(seed: int) -> None:
    dice = random.Random(seed)
    base = [GOOD, message([row(1)], "UPDATE", [{"id": "9"}]), message(None, "TRUNCATE", types=None, isDdl=True)]
    values = mangled(dice, base)
    found = decoded(values, before_of="all", format=dice.choice([EventFormat.CANAL, EventFormat.AUTO]))
    assert len(found.quarantined) > 500
    assert sum(batch.rows.num_rows for batch in found.changes) > 30
    check_sound(found)
