"""Maxwell's messages: every type exactly or not at all, its own DDL, keys that change, and bad input of every kind."""

from __future__ import annotations

import datetime as dt
import json
import random
import struct
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from binlake.decode.changes import ControlKind, DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode, table_changes
from binlake.decode.formats.trace import trace_of
from binlake.decode.options import DecodeOptions, EventFormat, MaxwellOrder
from binlake.decode.schemas.schemas import NoSchemas, SchemaHistory, SchemaSource
from tests.binlake.decode.events import T, cells, declared, places, reasons
from tests.binlake.decode.mangled import changed_bytes, check_neighbours, check_sound, mangled
from tests.binlake.decode.recordings import records

SCHEMA = declared({"id": "int", "name": "varchar(50)", "amount": "decimal(10,2)", "f": "double"}, ("id",))
UTC = dt.UTC


def raw(data: bytes, kind: str = "insert", old: bytes | None = None, **more: Any) -> bytes:  # noqa: ANN401 - members
    """A message with its row as given, however broken."""
    head = {"database": "db", "table": "t", "type": kind, "ts": 1_700_000_000, "xid": 5, "commit": True}
    head |= {"position": "bin.000007:100", "server_id": 1} | more
    text = json.dumps({k: v for k, v in head.items() if v is not ...}, separators=(",", ":")).encode()
    return text[:-1] + b',"data":%s' % data + (b"" if old is None else b',"old":%s' % old) + b"}"


def message(data: object, kind: str = "insert", old: object = None, **more: Any) -> bytes:  # noqa: ANN401 - members
    def text(value: object) -> bytes:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    return raw(text(data), kind, None if old is None else text(old), **more)


def decoded(
    values: list[bytes | None],
    schemas: SchemaSource = SCHEMA,
    keys: list[bytes | None] | None = None,
    **options: Any,  # noqa: ANN401 - those of DecodeOptions
) -> DecodedRecords:
    options = {"format": EventFormat.MAXWELL} | options
    found = decode(records(keys or [None] * len(values), values, "maxwell"), schemas, DecodeOptions(**options))
    assert places(found) == len(values), "every record is in exactly one place"
    return found


def value_of(kind: str, json_text: str, **options: Any) -> Any:  # noqa: ANN401 - any lake value, or the reason
    """One cell of a type; the reason where it is refused."""
    found = decoded(
        [raw(b'{"id":1,"c":%s}' % json_text.encode())], declared({"id": "int", "c": kind}, ("id",)), **options
    )
    return found.quarantined[0].reason if found.quarantined else cells(found, "c")[0]


def wkb(code: int, *parts: float | bytes) -> bytes:
    body = b"".join(part if isinstance(part, bytes) else struct.pack("<d", part) for part in parts)
    return struct.pack("<BI", 1, code) + body


def count(n: int) -> bytes:
    return struct.pack("<I", n)


NO_SRID = b"\0\0\0\0"
EXACT: list[tuple[str, str, Any]] = [
    ("tinyint(1)", "1", 1),
    ("int unsigned", "4294967295", 4294967295),
    ("bigint", "-9223372036854775808", -9223372036854775808),
    ("bigint unsigned", "18446744073709551615", Decimal(18446744073709551615)),
    ("int", "null", None),
    ("year", "2026", 2026),
    (
        "decimal(65,30)",
        "-15705083843274449827943023.323618658802339989369491943868",
        "-15705083843274449827943023.323618658802339989369491943868",
    ),
    ("decimal(38,38)", "-2.15164969E-30", Decimal("-2.15164969E-30")),
    ("decimal(65,0)", "9" * 65, "9" * 65),
    ("decimal(12,2)", "1E+2", Decimal("100.00")),
    ("decimal(12,2)", "1000.0", Decimal("1000.00")),
    ("double", "3.9850704117939904E7", 39850704.117939904),
    ("double", "-0.0", -0.0),
    ("float", "3.4028235E38", 3.4028234663852886e38),
    ("date", '"2024-02-29"', dt.date(2024, 2, 29)),
    ("date", '"0000-00-00"', None),
    ("datetime(6)", '"2026-11-21 06:17:03.709866"', dt.datetime(2026, 11, 21, 6, 17, 3, 709866, tzinfo=UTC)),
    ("datetime(6)", '"2026-11-21 06:17:03"', dt.datetime(2026, 11, 21, 6, 17, 3, tzinfo=UTC)),
    ("datetime", '"0000-00-00 00:00:00"', None),
    ("timestamp", '"9999-12-31 23:59:59"', dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ("time(3)", '"16:59:24.644"', 61164644000),
    ("enum('new','pa,id')", '"pa,id"', "pa,id"),
    ("set('a','b','c')", '["a","c"]', "a,c"),
    ("set('a','b','c')", "[]", ""),
    ("set('a','b','c')", "null", None),
    ("bit(1)", "1", True),
    ("bit(1)", "false", False),
    ("bit(9)", "257", b"\x01\x01"),
    ("bit(64)", "18446744073709551615", b"\xff" * 8),
    ("binary(4)", '"AP8="', b"\x00\xff\x00\x00"),
    ("varbinary(9)", '"AP8="', b"\x00\xff"),
    ("blob", '""', b""),
    ("text", '"\\uD83E\\uDDEA \\"q\\" \\\\"', '🧪 "q" \\'),
    ("json", '{"a":[1,2.50,null,"x\\u00e9"]}', '{"a":[1,2.50,null,"x\\u00e9"]}'),
    ("json", '"text"', '"text"'),
    ("json", "1.10", "1.10"),
    ("json", "null", None),
    ("point", '"POINT(1.5 -2)"', NO_SRID + wkb(1, 1.5, -2.0)),
    ("geometry", '"LINESTRING(0 0,1 1e2)"', NO_SRID + wkb(2, count(2), 0.0, 0.0, 1.0, 100.0)),
    (
        "polygon",
        '"POLYGON ((0 0, 1 0, 0 1, 0 0))"',
        NO_SRID + wkb(3, count(1), count(4), 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0),
    ),
    ("multipoint", '"MULTIPOINT(1 2,3 4)"', NO_SRID + wkb(4, count(2), wkb(1, 1.0, 2.0), wkb(1, 3.0, 4.0))),
    ("multipoint", '"MULTIPOINT((1 2),(3 4))"', NO_SRID + wkb(4, count(2), wkb(1, 1.0, 2.0), wkb(1, 3.0, 4.0))),
    (
        "geometrycollection",
        '"GEOMETRYCOLLECTION(POINT(1 2),MULTILINESTRING((0 0,1 1)))"',
        NO_SRID + wkb(7, count(2), wkb(1, 1.0, 2.0), wkb(5, count(1), wkb(2, count(2), 0.0, 0.0, 1.0, 1.0))),
    ),
]


@pytest.mark.parametrize(("kind", "text", "expected"), EXACT)
def test_values_are_exact(kind: str, text: str, expected: object) -> None:
    found = value_of(kind, text)
    assert found == expected
    assert type(found) is type(expected)
    assert not isinstance(found, float) or repr(found) == repr(expected), "the sign of zero too"


REFUSED: list[tuple[str, str, str]] = [
    ("int", "2147483648", "bad_value"),
    ("int", "1.5", "bad_value"),
    ("int", '"1"', "bad_value"),
    ("bigint", "9223372036854775808", "bad_value"),
    ("bigint unsigned", "18446744073709551616", "bad_value"),
    ("bigint unsigned", "-1", "bad_value"),
    ("decimal(5,2)", "1.005", "bad_value"),
    ("decimal(5,2)", "1000.00", "bad_value"),
    ("decimal(5,2)", "1e400", "bad_value"),
    ("double", "1e999", "bad_value"),
    ("double", "NaN", "nan"),
    ("date", '"2024-02-30"', "bad_value"),
    ("datetime", '"2024-02-30 00:00:00"', "bad_value"),
    ("datetime", '"2024-02-29T00:00:00"', "bad_value"),
    ("time", '"25:61:00"', "bad_value"),
    ("set('a','b')", '["a",null]', "bad_value"),
    ("set('a','b')", '"a"', "bad_value"),
    ("bit(9)", "512", "bad_value"),
    ("bit(9)", "-1", "bad_value"),
    ("binary(1)", '"AAA="', "bad_value"),
    ("blob", '"A*=="', "bad_value"),
    ("point", '"POINT(1)"', "bad_value"),
    ("point", '"POINT(1 2 3)"', "bad_value"),
    ("point", '"POINT(1 2) POINT(1 2)"', "bad_value"),
    ("point", '"CIRCLE(1 2)"', "bad_value"),
    ("json", '"\\ud800"', "invalid_utf8"),
]


@pytest.mark.parametrize(("kind", "text", "reason"), REFUSED)
def test_what_cannot_be_exact_is_refused(kind: str, text: str, reason: str) -> None:
    assert value_of(kind, text) == reason


def test_timestamps_are_in_the_zone_of_the_session() -> None:
    at = '"2026-11-21 14:17:00"'
    assert value_of("timestamp", at, time_zone="Asia/Shanghai") == dt.datetime(2026, 11, 21, 6, 17, tzinfo=UTC)
    assert value_of("datetime", at, time_zone="Asia/Shanghai") == dt.datetime(2026, 11, 21, 14, 17, tzinfo=UTC)


GOOD = message({"id": 1, "name": "ok", "amount": 1.5, "f": 1.5})
DEEP = b"[" * 20_000 + b"]" * 20_000


def changed(old: bytes, new: bytes) -> bytes:
    assert GOOD.count(old) == 1
    return GOOD.replace(old, new)


BAD: dict[str, tuple[bytes, str]] = {
    "truncated": (GOOD[:-9], "malformed_json"),
    "empty": (b"", "malformed_json"),
    "byte order mark": (b"\xef\xbb\xbf" + GOOD, "malformed_json"),
    "two documents": (GOOD * 2, "malformed_json"),
    "not json": (b"\x00\x01\x02", "malformed_json"),
    "a list": (b"[%s]" % GOOD, "unknown_message"),
    "an object": (b'{"hello":"world"}', "unknown_message"),
    "invalid utf-8": (raw(b'{"id":1,"name":"\xff"}'), "invalid_utf8"),
    "lone surrogate": (raw(b'{"id":1,"name":"\\ud800"}'), "invalid_utf8"),
    "duplicate column": (raw(b'{"id":1,"id":2}'), "duplicate_key"),
    "duplicate data": (changed(b'"xid":5', b'"data":{"id":9}'), "duplicate_key"),
    "duplicate type": (changed(b'"xid":5', b'"type":"delete"'), "duplicate_key"),
    "duplicate position": (changed(b'"xid":5', b'"position":"bin.000001:4"'), "duplicate_key"),
    "NaN": (raw(b'{"id":1,"f":NaN}'), "nan"),
    "20,000 deep in a column": (raw(b'{"id":1,"name":%s}' % DEEP), "too_deep"),
    "900 deep in an unknown column": (raw(b'{"id":1,"x":%s}' % (b"[" * 900 + b"]" * 900)), "too_deep"),
    "20,000 deep outside": (changed(b'"xid":5', b'"x":%s' % DEEP), "too_deep"),
    "text for a number": (raw(b'{"id":"1"}'), "bad_value"),
    "number for text": (raw(b'{"id":1,"name":5}'), "bad_value"),
    "too many digits": (raw(b'{"id":1,"amount":1.005}'), "bad_value"),
    "unknown column": (raw(b'{"id":1,"surprise":1}'), "unknown_column"),
    "no data": (GOOD[: GOOD.index(b',"data"')] + b"}", "bad_value"),
    "data null": (raw(b"null"), "bad_value"),
    "data a list": (raw(b"[]"), "bad_value"),
    "key null": (raw(b'{"id":null}'), "null_key"),
    "key missing": (raw(b'{"name":"x"}'), "missing_key"),
    "empty row": (raw(b"{}"), "missing_key"),
    "unknown type": (raw(b'{"id":1}', "merge"), "unknown_op"),
    "type a number": (changed(b'"insert"', b"5"), "bad_value"),
    "no table": (raw(b'{"id":1}', table=...), "unknown_table"),
    "table null": (raw(b'{"id":1}', table=None), "unknown_table"),
    "no position": (raw(b'{"id":1}', position=...), "no_position"),
    "position without file": (raw(b'{"id":1}', position="100"), "no_position"),
    "position no number": (raw(b'{"id":1}', position="bin.000007:x"), "no_position"),
    "file without number": (raw(b'{"id":1}', position="bin:100"), "order_out_of_range"),
    "position of 2**32": (raw(b'{"id":1}', position="bin.000007:4294967296"), "order_out_of_range"),
    "time beyond 64 bits": (raw(b'{"id":1}', ts=10**30), "bad_value"),
    "other table": (raw(b'{"id":1}', table="other"), "no_schema"),
    "a definition that is none": (raw(b"{}", "table-create", position="bin.000007:5"), "bad_value"),
}


@pytest.mark.parametrize("format_", [EventFormat.MAXWELL, EventFormat.AUTO])
@pytest.mark.parametrize("name", BAD)
def test_one_bad_message_among_good_ones(name: str, format_: EventFormat) -> None:
    value, reason = BAD[name]
    if format_ is EventFormat.AUTO and name in ("no data", "data null", "data a list"):
        reason = "unknown_message"  # without a row nothing tells whose it is
    found = decoded([GOOD, value, GOOD], format=format_)
    assert reasons(found) == {1: reason}
    assert found.quarantined[0].value == value
    assert found.quarantined[0].detail
    assert cells(found, "name") == ["ok", "ok"]


def test_all_bad_messages_at_once() -> None:
    values: list[bytes | None] = []
    expected = {}
    for value, reason in BAD.values():
        expected[len(values) + 1] = reason
        values += [GOOD, value]
    assert reasons(decoded(values)) == expected


def test_no_schema_says_what_to_do() -> None:
    found = decoded([GOOD], NoSchemas())
    assert reasons(found) == {0: "no_schema"}
    for word in ("db.t", "settings", "output_ddl"):
        assert word in found.quarantined[0].detail


# -- order, keys, before images ---------------------------------------------------------------------------------------


def test_rows_are_ordered_by_position_and_xoffset() -> None:
    values: list[bytes | None] = [
        message({"id": 1}, commit=..., xoffset=0),
        message({"id": 2}, commit=..., xoffset=1),
        message({"id": 3}),
        message({"id": 4}, "bootstrap-insert", position=..., commit=..., xid=...),
    ]
    (batch,) = decoded(values, epoch=1).changes
    assert batch.rows["__order"].to_pylist() == [1 << 52 | 7 << 32 | 100] * 3 + [1 << 52 | 1_700_000_000]
    assert batch.rows["__row"].to_pylist() == [0, 1, (1 << 31) - 1, 0]
    assert batch.rows["__source_ms"].to_pylist() == [1_700_000_000_000] * 4


def test_epochs_of_servers_hold() -> None:
    values: list[bytes | None] = [message({"id": 1}, server_id=1), message({"id": 2}, server_id=2)]
    found = decoded(values, epoch_of_server=((2, 3),))
    orders = [order for batch in found.changes for order in batch.rows["__order"].to_pylist()]
    assert [order >> 52 for order in orders] == [0, 3]


def test_by_offset_where_told() -> None:
    values: list[bytes | None] = [
        message({"id": 1}, position=...),
        message({"id": 2}, "bootstrap-insert", position=...),
        message({"id": 3}),
    ]
    (batch,) = decoded(values, maxwell_order=MaxwellOrder.OFFSET, epoch=1).changes
    assert batch.rows["__order"].to_pylist() == [1 << 52, 1 << 52 | 1, 1 << 52 | 2]


def test_a_table_without_a_key_needs_row_numbers() -> None:
    schema = declared({"id": "int"}, ())
    values: list[bytes | None] = [
        message({"id": 1}, commit=..., xoffset=0, primary_key_columns=[]),
        message({"id": 1}, commit=..., primary_key_columns=[]),
        message({"id": 1}, primary_key_columns=[]),
    ]
    found = decoded(values, schema)
    assert reasons(found) == {1: "no_position"}
    assert "output_xoffset" in found.quarantined[0].detail
    assert not decoded(values, schema, maxwell_order=MaxwellOrder.OFFSET).quarantined


def test_the_key_comes_from_the_message_or_from_kafkas() -> None:
    schema = declared({"id": "int", "line": "int"}, None)
    row = {"id": 1, "line": 2}
    found = decoded([message(row, primary_key_columns=["id", "line"])], schema)
    assert found.changes[0].schema.key == ("id", "line")
    key = b'{"database":"db","table":"t","pk.id":1,"pk.line":2}'
    found = decoded([message(row)], schema, [key])
    assert found.changes[0].schema.key == ("id", "line")


def test_before_images() -> None:
    values: list[bytes | None] = [
        message({"id": 1, "name": "a"}, "update", {"name": None}),
        message({"id": 2, "name": "b"}, "update", {"id": 20}),
        message({"id": 3, "name": "c"}, "update"),
    ]
    (unasked,) = decoded(values).changes
    assert unasked.before is not None
    assert unasked.before.select(["id", "name"]).to_pylist() == [{"id": 20, "name": "b"}]
    assert unasked.before_at.tolist() == [1]
    (asked,) = decoded(values, before_of="all").changes
    assert asked.before is not None
    assert asked.before["id"].to_pylist() == [1, 20, 3]
    assert asked.before["name"].to_pylist() == [None, "b", "c"]


WHOLE = {"name": "b", "amount": 1.5, "f": 1.5}
HIDING: dict[str, tuple[bytes, bool | None, bool]] = {
    "all columns, and nulls are written": (message({"id": 1, **WHOLE}, "update", {"f": 2.5}), True, True),
    "all columns, as far as messages tell": (message({"id": 1, **WHOLE}, "update", {"f": 2.5}), None, True),
    "all columns, and nulls are left out": (message({"id": 1, **WHOLE}, "update", {"f": 2.5}), False, False),
    "nothing has changed": (message({"id": 1, "name": "b"}, "update"), False, True),
    "all have changed": (message({"id": 1, "f": 1.5}, "update", {"f": 2.5, "name": "a"}), False, True),
    "only nulls were replaced": (message({"id": 1, **WHOLE}, "update", {}), None, False),
    "a value became null": (message({"id": 1, "f": 1.5, "amount": 1}, "update", {"name": "a"}), None, False),
    "a column is in neither": (message({"id": 1, "name": "b"}, "update", {"name": "a"}), None, False),
    "a column is in neither, and nulls are written": (
        message({"id": 1, "name": "b"}, "update", {"name": "a"}),
        True,
        True,
    ),
}


@pytest.mark.parametrize("alike", [1, 40])
@pytest.mark.parametrize("name", HIDING)
def test_what_was_null_is_not_guessed(name: str, alike: int) -> None:
    """Without ``output_nulls`` an old value that was null is left out of ``old``, as one that has not changed is."""
    value, nulls, known = HIDING[name]
    found = decoded([value] * alike, before_of=frozenset({T}), maxwell_nulls=nulls)
    assert set(reasons(found).values()) == (set() if known else {"missing_image"})
    assert len(found.quarantined) == (0 if known else alike)
    assert known or "output_nulls" in found.quarantined[0].detail
    unasked = decoded([value] * alike, maxwell_nulls=nulls)
    assert not unasked.quarantined, "the row itself is known"
    told = trace_of(value, DecodeOptions(format=EventFormat.MAXWELL, maxwell_nulls=nulls)).before
    assert known or not (told and told >= {"id", *WHOLE}), "who reads all images is told what they lack"


def test_a_changed_key_needs_no_other_old_value() -> None:
    (batch,) = decoded([message({"id": 1, "name": "b"}, "update", {"id": 2})], maxwell_nulls=False).changes
    assert batch.before is not None
    assert batch.before["id"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("old", "reason"),
    [
        (b'{"id":9,"id":8}', "duplicate_key"),
        (b'{"id":"9"}', "bad_value"),
        (b'{"id":9,"surprise":1}', "unknown_column"),
        (b"5", "missing_image"),
    ],
)
def test_before_images_are_read_as_strictly(old: bytes, reason: str) -> None:
    good = raw(b'{"id":1}', "update", b'{"id":9}')
    assert reasons(decoded([good, raw(b'{"id":1}', "update", old), good])) == {1: reason}


def test_messages_that_change_nothing() -> None:
    values: list[bytes | None] = [
        None,
        b"null",
        raw(b"{}", "bootstrap-start", position=...),
        raw(b"{}", "bootstrap-complete", position=...),
        raw(b'{"id":1}', database="maxwell", table="bootstrap"),
        b'{"type":"database-create","database":"db","ts":1700000000000,"sql":"CREATE DATABASE db"}',
        b'{"type":"database-alter","database":"db","ts":1700000000000,"sql":"ALTER DATABASE db"}',
    ]
    found = decoded(values)
    assert not found.quarantined
    assert not found.changes
    assert found.filtered == {(None, "tombstone"): 2, (T, "bootstrap"): 2, (None, "bootstrap"): 1, (None, "ddl"): 2}


# -- Maxwell's own DDL ------------------------------------------------------------------------------------------------


def ddl(kind: str, sql: str, position: int, columns: dict[str, dict[str, Any]] | None = None, **more: Any) -> bytes:  # noqa: ANN401
    place = {"ts": 1_700_000_000_000, "position": f"bin.000007:{position}", "sql": sql}
    found: dict[str, Any] = {"type": f"table-{kind}", "database": "db", "table": "t", **place}
    if columns is not None:
        listed = [{"name": name, **column} for name, column in columns.items()]
        found["def"] = {"database": "db", "charset": "utf8", "table": "t", "columns": listed, "primary-key": ["id"]}
    return json.dumps(found | more).encode()


ID: dict[str, Any] = {"type": "int", "signed": True}
DECIMAL: dict[str, Any] = {"type": "decimal"}


def learned(*statements: bytes) -> SchemaHistory:
    history, options = SchemaHistory(), DecodeOptions()
    for statement in statements:
        for change in table_changes(statement, options):
            history.apply(change, options)
    return history


def types(history: SchemaHistory, source: SourceTable = T) -> dict[str, str]:
    version = history.versions(source)[-1]
    assert not version.dropped
    return {name: str(kind.lake_type) for name, kind in version.columns} | dict.fromkeys(version.unsupported, "?")


def test_a_definition_gives_the_types() -> None:
    columns: dict[str, dict[str, Any]] = {
        "id": ID,
        "u": {"type": "bigint", "signed": False},
        "at": {"type": "timestamp", "column-length": 6},
        "e": {"type": "enum", "enum-values": ["it's", "b\\c", "d,e"]},
        "b": {"type": "varchar", "charset": "binary"},
        "j": {"type": "json"},
        "x": {"type": "vector"},
        "d": DECIMAL,
        "bits": {"type": "bit"},
        "pad": {"type": "binary"},
    }
    sql = "CREATE TABLE `t` (id INT, `d` DECIMAL(30,10) NOT NULL, BITS bit(9), pad BINARY(16), PRIMARY KEY (id))"
    history = learned(ddl("create", sql, 10, columns))
    assert types(history) == {
        "id": "int32",
        "u": "decimal128(20, 0)",
        "at": "timestamp[us, tz=UTC]",
        "e": "string",
        "b": "binary",
        "j": "string",
        "x": "?",
        "d": "decimal128(30, 10)",
        "bits": "binary",
        "pad": "binary",
    }
    kinds = dict(history.versions(T)[-1].columns)
    assert (kinds["bits"].length, kinds["pad"].length, kinds["e"].options) == (9, 16, ("it's", "b\\c", "d,e"))
    assert history.versions(T)[-1].key == ("id",)


def test_digits_come_from_the_statement_or_from_before() -> None:
    create = ddl(
        "create", "CREATE TABLE t (id int, a decimal(5,2), b decimal(6,3))", 10, {"id": ID, "a": DECIMAL, "b": DECIMAL}
    )
    alter = ddl(
        "alter",
        "ALTER TABLE t MODIFY a DECIMAL(9,4), CHANGE b c NUMERIC(7,3) NULL, ADD d DEC(4)",
        20,
        {"id": ID, "a": DECIMAL, "c": DECIMAL, "d": DECIMAL},
    )
    rename = ddl("alter", "ALTER TABLE t RENAME COLUMN c TO e, DROP a", 30, {"id": ID, "e": DECIMAL, "d": DECIMAL})
    history = learned(create, alter, rename)
    assert types(history) == {"id": "int32", "e": "decimal128(7, 3)", "d": "decimal128(4, 0)"}
    assert learned(create, alter, rename, create, alter).revision == history.revision, "said again it is no news"
    unknown = types(learned(ddl("alter", "ALTER TABLE t ADD x INT", 20, {"id": ID, "a": DECIMAL})))
    assert unknown == {"id": "int32", "a": "?"}
    found = decoded(
        [message({"id": 1, "a": 1}, position="bin.000007:99")],
        learned(ddl("alter", "ALTER TABLE t ADD x INT", 20, {"id": ID, "a": DECIMAL})),
    )
    assert reasons(found) == {0: "unsupported_type"}
    assert "types of columns a are not known: declare" in found.quarantined[0].detail


def test_create_like_rename_and_drop() -> None:
    create = ddl("create", "CREATE TABLE t (id int, a decimal(5,2))", 10, {"id": ID, "a": DECIMAL})
    definition = json.loads(create)["def"]
    like = (
        ddl("create", "CREATE TABLE u LIKE t", 20, table="u")[:-1]
        + b',"def":%s}' % json.dumps(definition | {"table": "u"}).encode()
    )
    old, new = definition | {"table": "u"}, definition | {"table": "v"}
    rename = ddl("alter", "RENAME TABLE u TO v", 30, table="u", old=old, **{"def": new})
    drop = ddl("drop", "DROP TABLE `t` /* generated by server */", 40)
    history = learned(create, like, rename, drop)
    u, v = SourceTable("db", "u"), SourceTable("db", "v")
    assert types(history, v) == {"id": "int32", "a": "decimal128(5, 2)"}
    assert [version.dropped for version in history.versions(u)] == [False, True]
    assert [version.dropped for version in history.versions(T)] == [False, True]
    found = decoded([create, like, rename, drop], NoSchemas())
    assert [(c.kind, c.source, c.order - (7 << 32)) for c in found.controls] == [
        (ControlKind.DDL, T, 10),
        (ControlKind.DDL, u, 20),
        (ControlKind.DDL, v, 30),
        (ControlKind.DDL, T, 40),
    ]
    assert [table_changes(c.record, DecodeOptions())[-1].source for c in found.controls] == [T, u, v, T]


def test_rows_are_read_by_the_definition_in_force_at_their_position() -> None:
    create = ddl("create", "CREATE TABLE t (id int, a decimal(5,2))", 50, {"id": ID, "a": DECIMAL})
    alter = ddl("alter", "ALTER TABLE t MODIFY a decimal(6,3), ADD b int", 150, {"id": ID, "a": DECIMAL, "b": ID})
    values: list[bytes | None] = [
        message({"id": 1, "a": 1.5}, position="bin.000007:100"),
        message({"id": 2, "a": 1.125, "b": 2}, position="bin.000007:200"),
        message({"id": 3, "a": 1.125}, position="bin.000007:100"),
    ]
    found = decoded(values, learned(create, alter))
    assert reasons(found) == {2: "bad_value"}
    assert cells(found, "a") == [Decimal("1.50"), Decimal("1.125")]


def test_a_dropped_database_is_told() -> None:
    drop = {"type": "database-drop", "database": "db", "ts": 1, "sql": "DROP DATABASE db", "position": "bin.000007:9"}
    (control,) = decoded([json.dumps(drop).encode()]).controls
    assert (control.source, control.order) == (SourceTable("db", ""), 7 << 32 | 9)
    assert control.text == "DROP DATABASE db"


def test_records_that_are_no_ddl_teach_nothing() -> None:
    assert table_changes(GOOD, DecodeOptions()) == []
    with pytest.raises(msgspec.MsgspecError):
        table_changes(b'{"type":"table-create","database":"db","table":"t","ts":1}', DecodeOptions())


@pytest.mark.full
def test_a_value_of_ten_megabytes_is_read_whole() -> None:
    text = "é" * 5_000_000
    assert cells(decoded([GOOD, message({"id": 2, "name": text}), GOOD]), "name") == ["ok", text, "ok"]


# -- fuzz -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", [EventFormat.MAXWELL, EventFormat.AUTO])
def test_any_changed_byte_is_survived(format_: EventFormat) -> None:
    base = raw(b'{"id":1,"name":"ok"}', "update", b'{"id":9,"name":null}')
    values = list(changed_bytes(base))
    found = decoded([GOOD, *values, GOOD], format=format_)
    check_neighbours(found, len(values))


@pytest.mark.parametrize("seed", range(3))
def test_mangled_messages_are_survived(seed: int) -> None:
    dice = random.Random(seed)
    create = ddl("create", "CREATE TABLE t (id int, a decimal(5,2))", 50, {"id": ID, "a": DECIMAL})
    base = [GOOD, raw(b'{"id":1}', "update", b'{"id":9}'), create]
    values = mangled(dice, base)
    found = decoded(values, before_of="all", format=dice.choice([EventFormat.MAXWELL, EventFormat.AUTO]))
    assert len(found.quarantined) > 500
    assert sum(batch.rows.num_rows for batch in found.changes) > 20
    check_sound(found)
