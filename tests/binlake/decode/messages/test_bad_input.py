"""Bad records are quarantined one by one, each with its reason; the records around them go on."""

from __future__ import annotations

import json
import random

import pytest

from binlake.decode.changes import ControlKind
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import NoSchemas
from hudilake.errors import ConfigError
from tests.binlake.decode.events import T, cells, declared, decoded, envelope, raw_envelope, reasons, source
from tests.binlake.decode.mangled import changed_bytes, check_neighbours, check_sound, mangled

SCHEMA = declared(
    {"id": "int", "name": "varchar(50)", "amount": "decimal(10,2)", "big": "bigint", "shape": "point", "f": "double"},
    ("id",),
)
GOOD = envelope({"id": 1, "name": "ok", "amount": "AZA=", "big": 5, "shape": None, "f": 1.5})
DEEP = b"[" * 20_000 + b"]" * 20_000

BAD_ROWS: dict[str, tuple[bytes, str]] = {
    "truncated": (raw_envelope(b'{"id":1}')[:-30], "malformed_json"),
    "empty": (b"", "malformed_json"),
    "not json": (b"\x00\x01\x02", "malformed_json"),
    "bare word": (b"hello", "malformed_json"),
    "byte order mark": (b"\xef\xbb\xbf" + raw_envelope(b'{"id":1}'), "malformed_json"),
    "two documents": (raw_envelope(b'{"id":1}') * 2, "malformed_json"),
    "two documents with a line end": (raw_envelope(b'{"id":1}') + b"\n" + raw_envelope(b'{"id":2}'), "malformed_json"),
    "a list of two": (b"[" + raw_envelope(b'{"id":1}') + b"," + raw_envelope(b'{"id":2}') + b"]", "unknown_message"),
    "invalid utf-8 in a value": (raw_envelope(b'{"id":1,"name":"\xff\xfe"}'), "invalid_utf8"),
    "invalid utf-8 in a name": (raw_envelope(b'{"id":1,"\xff":1}'), "invalid_utf8"),
    "invalid utf-8 in base64": (raw_envelope(b'{"id":1,"amount":"A\xffA="}'), "invalid_utf8"),
    "invalid utf-8 outside": (GOOD.replace(b'"file":"bin', b'"file":"\xff'), "invalid_utf8"),
    "overlong utf-8": (raw_envelope(b'{"id":1,"name":"\xc0\xaf"}'), "invalid_utf8"),
    "surrogate bytes": (raw_envelope(b'{"id":1,"name":"\xed\xa0\x80"}'), "invalid_utf8"),
    "lone surrogate": (raw_envelope(b'{"id":1,"name":"\\ud800"}'), "invalid_utf8"),
    "duplicate column": (raw_envelope(b'{"id":1,"id":2}'), "duplicate_key"),
    "duplicate column, same value": (raw_envelope(b'{"id":1,"name":"x","name":"x"}'), "duplicate_key"),
    "duplicate op": (GOOD.replace(b'"op":"c"', b'"op":"c","op":"d"'), "duplicate_key"),
    "duplicate after": (GOOD.replace(b'"source":', b'"after":{"id":9},"source":'), "duplicate_key"),
    "duplicate before": (GOOD.replace(b'"source":', b'"before":null,"source":'), "duplicate_key"),
    "duplicate source": (
        GOOD.replace(b'"op":', b'"source":%s,"op":' % json.dumps(source(5)).encode()),
        "duplicate_key",
    ),
    "NaN": (raw_envelope(b'{"id":1,"f":NaN}'), "nan"),
    "Infinity": (raw_envelope(b'{"id":1,"f":-Infinity}'), "nan"),
    "too large for a double": (raw_envelope(b'{"id":1,"f":1e999}'), "bad_value"),
    "20,000 deep in a column": (raw_envelope(b'{"id":1,"name":%s}' % DEEP), "too_deep"),
    "20,000 deep in an unknown column": (raw_envelope(b'{"id":1,"x":%s}' % DEEP), "too_deep"),
    "20,000 deep outside": (GOOD[:-1] + b',"x":%s}' % DEEP, "too_deep"),
    "20,000 deep and nothing else": (DEEP, "too_deep"),
    "900 deep in a column": (raw_envelope(b'{"id":1,"name":%s}' % (b"[" * 900 + b"]" * 900)), "too_deep"),
    "900 deep in an unknown column": (raw_envelope(b'{"id":1,"x":%s}' % (b"[" * 900 + b"]" * 900)), "too_deep"),
    "text for a number": (raw_envelope(b'{"id":"1"}'), "bad_value"),
    "number for text": (raw_envelope(b'{"id":1,"name":5}'), "bad_value"),
    "fraction for an integer": (raw_envelope(b'{"id":1.5}'), "bad_value"),
    "boolean for a bigint": (raw_envelope(b'{"id":1,"big":true}'), "bad_value"),
    "list for text": (raw_envelope(b'{"id":1,"name":["a"]}'), "bad_value"),
    "integer beyond its column": (raw_envelope(b'{"id":2147483648}'), "bad_value"),
    "integer beyond 64 bits": (raw_envelope(b'{"id":1,"big":9223372036854775808}'), "bad_value"),
    "no base64": (raw_envelope(b'{"id":1,"amount":"A*A="}'), "bad_value"),
    "base64 of a wrong length": (raw_envelope(b'{"id":1,"amount":"AZA"}'), "bad_value"),
    "padding inside base64": (raw_envelope(b'{"id":1,"amount":"A=A="}'), "bad_value"),
    "no digits at all": (raw_envelope(b'{"id":1,"amount":""}'), "bad_value"),
    "more digits than the column has": (raw_envelope(b'{"id":1,"amount":"AP////////8="}'), "bad_value"),
    "17 bytes of digits": (raw_envelope(b'{"id":1,"amount":"AAAAAAAAAAAAAAAAAAAAAQE="}'), "bad_value"),
    "geometry without wkb": (raw_envelope(b'{"id":1,"shape":{"srid":4326}}'), "bad_value"),
    "geometry as text": (raw_envelope(b'{"id":1,"shape":"POINT(1 1)"}'), "bad_value"),
    "geometry with more in it": (raw_envelope(b'{"id":1,"shape":{"wkb":"AA==","zzz":1}}'), "bad_value"),
    "unknown column": (raw_envelope(b'{"id":1,"surprise":1}'), "unknown_column"),
    "image null": (raw_envelope(b"null"), "missing_image"),
    "image a number": (raw_envelope(b"5"), "missing_image"),
    "image a list": (raw_envelope(b"[]"), "missing_image"),
    "image a text": (raw_envelope(b'"{}"'), "missing_image"),
    "image true": (raw_envelope(b"true"), "missing_image"),
    "key null": (raw_envelope(b'{"id":null,"name":"x"}'), "null_key"),
    "key missing": (raw_envelope(b'{"name":"x"}'), "missing_key"),
    "empty image": (raw_envelope(b"{}"), "missing_key"),
    "delete without image and key": (raw_envelope(b"null", op=b"d"), "missing_image"),
    "unknown op": (raw_envelope(b'{"id":1}', op=b"m"), "unknown_op"),
    "long op": (raw_envelope(b'{"id":1}', op=b"create"), "unknown_op"),
    "op a number": (GOOD.replace(b'"op":"c"', b'"op":5'), "bad_value"),
    "no position": (GOOD.replace(b'"pos":100,', b""), "no_position"),
    "null position": (GOOD.replace(b'"pos":100', b'"pos":null'), "no_position"),
    "no file": (GOOD.replace(b'"file":"bin.000007",', b""), "no_position"),
    "file without number": (GOOD.replace(b"bin.000007", b"binlog"), "order_out_of_range"),
    "position of 2**32": (GOOD.replace(b'"pos":100', b'"pos":4294967296'), "order_out_of_range"),
    "position beyond 64 bits": (GOOD.replace(b'"pos":100', b'"pos":99999999999999999999'), "order_out_of_range"),
    "negative position": (GOOD.replace(b'"pos":100', b'"pos":-1'), "order_out_of_range"),
    "file number of 2**20": (GOOD.replace(b"bin.000007", b"bin.1048576"), "order_out_of_range"),
    "no table": (GOOD.replace(b'"table":"t",', b""), "unknown_table"),
    "null table": (GOOD.replace(b'"table":"t"', b'"table":null'), "unknown_table"),
    "other table": (GOOD.replace(b'"table":"t"', b'"table":"other"'), "no_schema"),
    "no shape": (b'{"hello":"world"}', "unknown_message"),
    "a number": (b"17", "unknown_message"),
    "a text": (b'"text"', "unknown_message"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_one_bad_record_among_good_ones(name: str) -> None:
    value, reason = BAD_ROWS[name]
    found = decoded([GOOD, value, GOOD], SCHEMA, topic="topic")
    assert reasons(found) == {1: reason}
    assert found.quarantined[0].value == value
    assert found.quarantined[0].detail
    assert cells(found, "name") == ["ok", "ok"]


def test_all_bad_records_at_once() -> None:
    values: list[bytes | None] = []
    expected = {}
    for value, reason in BAD_ROWS.values():
        expected[len(values) + 1] = reason
        values += [GOOD, value]
    found = decoded(values, SCHEMA, topic="topic")
    assert reasons(found) == expected
    assert cells(found, "name") == ["ok"] * len(BAD_ROWS)


def test_a_bad_record_alone() -> None:
    for value, reason in BAD_ROWS.values():
        assert reasons(decoded([value], SCHEMA, topic="topic")) == {0: reason}


def test_limits_beyond_what_the_reader_can_do_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_message_bytes"):
        DecodeOptions(max_message_bytes=1 << 31)


def test_too_large_is_not_even_looked_at() -> None:
    found = decoded([GOOD, envelope({"id": 2, "name": "x" * 2000}), GOOD], SCHEMA, max_message_bytes=1000)
    assert reasons(found) == {1: "too_large"}


@pytest.mark.full
def test_a_value_of_ten_megabytes_is_read_whole() -> None:
    text = "é" * 5_000_000
    found = decoded([GOOD, envelope({"id": 2, "name": text}), GOOD], SCHEMA)
    assert cells(found, "name") == ["ok", text, "ok"]


def test_quotes_braces_and_line_ends_inside_values_are_values() -> None:
    text = '}{"id":1}\n{"op":"d","after":,"source":"\\\u2028\x00\t\r🧪'
    found = decoded([GOOD, envelope({"id": 2, "name": text}), GOOD], SCHEMA)
    assert cells(found, "name") == ["ok", text, "ok"]
    assert not found.quarantined


def test_pretty_printed_messages_are_read() -> None:
    message = json.dumps(json.loads(GOOD), indent=2).replace("\n", "\r\n").encode()
    found = decoded([GOOD, message, GOOD], SCHEMA)
    assert cells(found, "id") == [1, 1, 1]


def test_columns_named_like_envelope_members() -> None:
    columns = {"id": "int", "op": "varchar(9)", "source": "int", "after": "int", "before": "int", "schema": "int"}
    row = {"id": 1, "op": "x", "source": 3, "after": 4, "before": 5, "schema": 6}
    good = envelope(row, {**row, "op": "y"}, "u")
    twice = good.replace(b'"op":"u"', b'"op":"u","op":"d"')
    found = decoded([good, twice, good], declared(columns, ("id",)))
    assert reasons(found) == {1: "duplicate_key"}
    assert cells(found, "op") == ["x", "x"]


def test_names_of_our_own_are_refused() -> None:
    found = decoded([envelope({"id": 1, "__op": 2})], declared({"id": "int", "__op": "int"}, ("id",)))
    assert reasons(found) == {0: "reserved_column"}


def test_a_declared_key_that_is_no_column() -> None:
    found = decoded([envelope({"id": 1})], declared({"id": "int"}, ("nr",)))
    assert reasons(found) == {0: "missing_key"}


def test_unknown_columns_are_named() -> None:
    found = decoded([GOOD, envelope({"id": 1, "b": 1, "a": None}), envelope({"id": 1, "c": 1})], SCHEMA)
    assert reasons(found) == {1: "unknown_column", 2: "unknown_column"}
    assert found.unknown_columns == {T: {"a", "b", "c"}}
    assert found.quarantined[0].source == T


def test_no_schema_says_what_to_set() -> None:
    found = decoded([GOOD], NoSchemas())
    assert reasons(found) == {0: "no_schema"}
    for word in ("db.t", "settings", "include.schema.changes", "schemas.enable"):
        assert word in found.quarantined[0].detail


def test_many_bad_among_many_good() -> None:
    values: list[bytes | None] = [
        envelope({"id": i, "name": "x", "amount": "AZA=" if i % 50 else "?"}) for i in range(5000)
    ]
    values[777] = raw_envelope(b'{"id":1,"id":2}')
    found = decoded(values, SCHEMA)
    assert len(found.quarantined) == 101
    assert cells(found, "id") == [i for i in range(5000) if i % 50 and i != 777]


def test_before_images_are_read_as_strictly() -> None:
    values: list[bytes | None] = [
        raw_envelope(b'{"id":1}', b"u", before=b'{"id":1,"name":"old"}'),
        raw_envelope(b'{"id":1}', b"u", before=b'{"id":1,"name":7}'),
        raw_envelope(b'{"id":1}', b"u", before=b"null"),
    ]
    found = decoded(values, SCHEMA, before_of="all")
    assert reasons(found) == {1: "bad_value"}
    (batch,) = found.changes
    assert batch.before is not None
    assert batch.before["name"].to_pylist() == ["old"]
    assert batch.before_at.tolist() == [0]
    assert batch.rows.num_rows == 2
    assert not decoded(values, SCHEMA).quarantined, "nobody asked for the before image"


def test_controls_and_records_that_change_nothing() -> None:
    values: list[bytes | None] = [
        None,
        b"null",
        b'{"ts_ms":5}',
        b'{"status":"BEGIN","id":"x","event_count":null,"data_collections":null,"ts_ms":5}',
        b'{"status":"END","id":"x","event_count":1,"data_collections":[],"ts_ms":5}',
        b'{"id":"a","type":"COMPLETED","aggregate_type":"Initial Snapshot","timestamp":5}',
        raw_envelope(b"null", op=b"t"),
        json.dumps({"source": source(), "databaseName": "db", "ddl": "DROP TABLE t", "tableChanges": []}).encode(),
        json.dumps({"source": source(table=None), "databaseName": "db", "ddl": "USE x", "tableChanges": []}).encode(),
        json.dumps({"source": {"server": "s"}, "position": {}, "databaseName": "db", "ddl": "USE x"}).encode(),
        b'{"schema":null,"payload":null}',
        b'{"schema":{"type":"struct","fields":[]},"payload":{"ts_ms":5}}',
    ]
    found = decoded(values, SCHEMA)
    assert not found.quarantined
    assert {kind: n for (_, kind), n in found.filtered.items()} == {
        "tombstone": 3,
        "heartbeat": 2,
        "transaction": 2,
        "notification": 1,
        "ddl": 2,
    }
    truncate, ddl = found.controls
    assert (truncate.kind, truncate.source, truncate.order) == (ControlKind.TRUNCATE, T, 7 << 32 | 100)
    assert (ddl.kind, ddl.source, ddl.text) == (ControlKind.DDL, T, "DROP TABLE t")


def test_ignored_tables_are_counted_not_read() -> None:
    values: list[bytes | None] = [raw_envelope(b"5"), None]
    found = decoded(values, SCHEMA, ignored_tables=frozenset({T}))
    assert found.filtered == {(T, "ignored"): 1, (None, "tombstone"): 1}


def test_any_changed_byte_is_survived() -> None:
    """Every single-byte change of a good message leaves the decoder standing and its neighbours in place."""
    values = list(changed_bytes(GOOD))
    found = decoded([GOOD, *values, GOOD], SCHEMA)
    check_neighbours(found, len(values))


@pytest.mark.parametrize("seed", range(3))
def test_mangled_messages_are_survived(seed: int) -> None:
    dice = random.Random(seed)
    flat = b'{"id":1,"name":"ok","amount":"AZA=","__op":"u","__source_file":"b.1","__source_pos":5,"__table":"t"}'
    values = mangled(dice, [GOOD, flat])
    found = decoded(values, SCHEMA, before_of="all")
    assert len(found.quarantined) > 500
    assert sum(batch.rows.num_rows for batch in found.changes) > 50
    check_sound(found)


def test_names_with_every_sign_in_them() -> None:
    names = ['q"uote', "back\\slash", "line\nend", "tab\t", "dot.ted", "comma,colon:", "ünï 🧪", "", " "]
    columns = dict.fromkeys(names, "int")
    row = {name: i for i, name in enumerate(names)}
    key = json.dumps({name: row[name] for name in names[:3]}).encode()
    values: list[bytes | None] = [envelope(row), envelope(row | {"new": 1}), envelope(row, op="r")]
    found = decoded(values, declared(columns), [key] * 3)
    assert reasons(found) == {1: "unknown_column"}
    assert found.changes[0].schema.key == tuple(names[:3])
    for name, value in row.items():
        assert cells(found, name) == [value, value]
