"""The unwrapped form: what ExtractNewRecordState leaves of an event."""

from __future__ import annotations

import json
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.decode.schemas.schemas import DeclaredSchemas, NoSchemas, declared_table
from tests.binlake.decode.events import T, cells, declared, decoded, envelope, framed, reasons

SCHEMA = declared({"id": "int", "v": "varchar(9)"}, ("id",))


def flat(row: dict[str, Any], /, **added: object) -> bytes:
    return json.dumps(row | {f"__{name}": value for name, value in added.items()}, separators=(",", ":")).encode()


def place(pos: int, **more: object) -> dict[str, Any]:
    return {"deleted": "false", "op": "c", "source_file": "bin.000002", "source_pos": pos, "source_row": 3} | more


def test_order_deletes_and_snapshot_rows() -> None:
    values: list[bytes | None] = [
        flat({"id": 1, "v": "a"}, **place(10)),
        flat({"id": 1, "v": "a"}, **place(20, op="d", deleted="true", source_ts_ms=5000)),
        flat({"id": 2, "v": "b"}, **place(30, op="r", source_ts_ms=7000)),
        None,
    ]
    found = decoded(values, SCHEMA)
    assert cells(found, "__op") == [0, 1, 0]
    assert cells(found, "__order") == [2 << 32 | 10, 2 << 32 | 20, 7]
    assert cells(found, "__row") == [3, 3, 3]
    assert cells(found, "__source_ms") == [0, 5000, 7000]
    assert found.filtered == {(T, "tombstone"): 1}


def test_short_names_of_added_fields() -> None:
    row = flat({"id": 1, "v": "a"}, op="c", file="bin.000002", pos=10, row=3, ts_ms=9, db="db", table="t")
    found = decoded([row], SCHEMA, topic="routed")
    assert cells(found, "__order") == [2 << 32 | 10]
    assert cells(found, "__row") == [3]


def test_without_a_place_the_kafka_offset_orders() -> None:
    values: list[bytes | None] = [flat({"id": i, "v": "a"}, deleted="false") for i in range(3)]
    found = decoded(values, SCHEMA, epoch=2)
    assert cells(found, "__order") == [2 << 52 | offset for offset in range(3)]


def test_a_null_place_is_no_place() -> None:
    values: list[bytes | None] = [
        flat({"id": 1}, **place(5)),
        flat({"id": 1}, **place(5) | {"source_file": None}),
        flat({"id": 1}, **place(5) | {"source_pos": None}),
        flat({"id": 1}, **place(2**40)),
    ]
    assert reasons(decoded(values, SCHEMA)) == {1: "no_position", 2: "no_position", 3: "order_out_of_range"}


def test_rows_without_any_added_field() -> None:
    values: list[bytes | None] = [b'{"id":1,"v":"a"}', b'{"id":2,"v":null}', b'{"ts_ms":5}', b"{]"]
    found = decoded(values, SCHEMA)
    assert cells(found, "v") == ["a", None]
    assert found.filtered == {(None, "heartbeat"): 1}
    assert reasons(found) == {3: "malformed_json"}
    assert reasons(decoded(values[:1], SCHEMA, topic="elsewhere")) == {0: "unknown_message"}
    mapped = decoded(values[:1], SCHEMA, topic="elsewhere", topic_tables=(("elsewhere", T),))
    assert cells(mapped, "id") == [1]


def test_the_table_by_field_topic_or_settings() -> None:
    other = SourceTable("db", "other")
    schemas = DeclaredSchemas({s: declared_table({"id": "int"}, ["id"]) for s in (T, other)})
    values: list[bytes | None] = [flat({"id": 1}, op="c"), flat({"id": 2}, op="c", table="other")]
    found = decoded(values, schemas, topic="my.prefix.db.t")
    assert {b.schema.source: b.rows["id"].to_pylist() for b in found.changes} == {T: [1], other: [2]}
    assert reasons(decoded(values[:1], schemas, topic="t")) == {0: "unknown_table"}


def test_fields_nobody_declared_are_read_over() -> None:
    values: list[bytes | None] = [
        flat({"id": 1}, **place(1), extra=None),
        flat({"id": 2}, **place(2), extra=5),
        flat({"id": 3}, **place(3), extra="five", more=[]),
        flat({"id": 4}, **place(4), extra=True, source_snapshot="first", transaction_total_order=7),
        flat({"id": 5}, **place(5), extra=0.5),
    ]
    found = decoded(values, SCHEMA)
    assert reasons(found) == {2: "bad_value"}, "added fields are scalars"
    assert cells(found, "id") == [1, 2, 4, 5]
    (batch,) = found.changes
    assert batch.rows.column_names[:2] == ["id", "v"]
    assert not any(name.startswith("__extra") for name in batch.rows.column_names)


def test_another_prefix_and_columns_that_have_it() -> None:
    schema = declared({"id": "int", "__v": "int"}, ("id",))
    row = json.dumps({"id": 1, "__v": 2, "cdc.op": "d", "cdc.deleted": True}).encode()
    found = decoded([row], schema, flat_prefix="cdc.")
    assert cells(found, "__v") == [2]
    assert cells(found, "__op") == [1]


def test_rows_with_the_columns_of_other_records() -> None:
    """Tables of outboxes, of batches and of statements have columns that Debezium's own records have, too."""
    texts = ("type", "aggregate_type", "payload", "status", "ddl", "databaseName", "source", "database", "schema")
    types = {"id": "int", "event_count": "int", "ts": "int"} | dict.fromkeys(texts, "varchar(20)")
    outbox: dict[str, Any] = {"id": 1, "type": "Created", "aggregate_type": "Order"}
    rows: list[dict[str, Any]] = [
        outbox,
        outbox | {"payload": "p"},
        {"id": 2, "status": "BEGIN", "event_count": 1},
        {"id": 3, "status": "END", "event_count": 1, "payload": "p"},
        {"id": 4, "ddl": "DROP TABLE t", "databaseName": "db"},
        {"id": 5, "ddl": "DROP TABLE t", "databaseName": "db", "source": "web"},
        {"id": 6, "database": "db", "type": "table-drop", "ts": 1},
    ]
    for fields in ({"op": "c", "deleted": "false"}, {"deleted": "false"}, {"op": "u", **place(5)}):
        values: list[bytes | None] = [flat({"id": 0}, **fields), *(flat(row, **fields) for row in rows)]
        found = decoded(values, declared(types, ("id",)))
        assert cells(found, "id") == [0, 1, 1, 2, 3, 4, 5, 6]
        assert cells(found, "aggregate_type")[1:3] == ["Order", "Order"]
    bare: list[bytes | None] = [flat(row) for row in rows if "payload" in row or "ddl" in row]
    assert cells(decoded(bare, declared(types, ("id",))), "id") == [1, 3, 4, 5]


def test_bad_flat_rows() -> None:
    good = flat({"id": 1, "v": "a"}, **place(1))
    values: list[bytes | None] = [
        good,
        flat({"id": 1, "w": 1}, **place(1)),
        good.replace(b'"__op":"c"', b'"__op":"c","__op":"d"'),
        good.replace(b'"id":1', b'"id":1,"id":2'),
        flat({"id": 1}, **place(1, op="x")),
        flat({"v": "a"}, **place(1)),
        good.replace(b'"v":"a"', b'"v":"\xff"'),
        good.replace(b'"__source_pos":1', b'"__source_pos":"1"'),
        good,
    ]
    found = decoded(values, SCHEMA)
    assert reasons(found) == {
        1: "unknown_column",
        2: "duplicate_key",
        3: "duplicate_key",
        4: "unknown_op",
        5: "missing_key",
        6: "invalid_utf8",
        7: "no_position",
    }
    assert found.unknown_columns == {T: {"w"}}


def test_with_embedded_schema() -> None:
    names = [("int32", "id"), ("string", "v"), ("string", "__deleted"), ("string", "__op"), ("int64", "__source_pos")]
    fields = [{"type": kind, "field": name, "optional": True} for kind, name in names]
    row = flat({"id": 1, "v": "a"}, **place(5))
    found = decoded([framed(row, {"type": "struct", "fields": fields})] * 2, NoSchemas(), [b'{"id":1}'] * 2)
    assert [c.name for c in found.changes[0].schema.columns] == ["id", "v"]
    assert cells(found, "v") == ["a", "a"]


def test_tombstones_that_are_the_only_sign_of_a_delete() -> None:
    values: list[bytes | None] = [flat({"id": 1, "v": "a"}, op="c", source_file="bin.000001", source_pos=9), None, None]
    keys: list[bytes | None] = [b'{"id":1}', b'{"id":1}', None]
    found = decoded(values, SCHEMA, keys, flat_tombstone_deletes=True)
    assert cells(found, "__op") == [0, 1]
    assert cells(found, "id") == [1, 1]
    assert cells(found, "__order") == [0, 1]
    assert found.filtered == {(T, "tombstone"): 1}
    alone = decoded([None], SCHEMA, [b'{"id":1}'], flat_tombstone_deletes=True)
    assert cells(alone, "__op") == [1]


def test_tombstones_that_may_be_deletes() -> None:
    """ExtractNewRecordState as Debezium delivers it drops the delete and leaves the tombstone behind it."""
    key = b'{"id":1}'
    silent: list[bytes | None] = [flat({"id": 1, "v": "a"}, op="c"), None]
    said: list[bytes | None] = [flat({"id": 1, "v": "a"}, op="d", deleted="true"), None]
    envelopes: list[bytes | None] = [envelope(None, {"id": 1, "v": "a"}, op="d"), None]
    lone: list[bytes | None] = [None]
    for values, doubted in ((silent, {1}), (said, set()), (envelopes, set()), (lone, set())):
        found = decoded(values, SCHEMA, [key] * len(values))
        assert reasons(found) == dict.fromkeys(doubted, "unknown_op")
        assert sum(found.filtered.values()) == 1 - len(doubted)
    bare: list[bytes | None] = [b'{"id":1,"v":"a"}', None]
    assert reasons(decoded(bare, SCHEMA, [key, key])) == {1: "unknown_op"}
    assert reasons(decoded([None, None], SCHEMA, [key, b'{"id":2}'])) == {1: "unknown_op"}, "no delete between them"
    assert not reasons(decoded([None, None], SCHEMA)), "records without key and value say nothing"
    again = decoded([None], SCHEMA, [key], doubts_tombstones=True)
    assert reasons(again) == {0: "unknown_op"}
    taken = decoded([None], SCHEMA, [key], doubts_tombstones=True, flat_tombstone_deletes=True)
    assert cells(taken, "__op") == [1]
    beside = decoded(envelopes, SCHEMA, [key, key], flat_tombstone_deletes=True)
    assert sum(beside.filtered.values()) == 1, "a tombstone behind an envelope says nothing more"


def test_lone_tombstones_of_a_topic_that_is_known_or_not() -> None:
    key = b'{"id":1}'
    topic = "prefix.db.t"
    for unsaid, doubted in ((frozenset[str](), {1}), (frozenset({"other"}), {1}), (frozenset({topic}), {0, 1})):
        found = decoded([None, None], SCHEMA, [key, b'{"id":2}'], deletes_unsaid_in=unsaid, topic=topic)
        assert set(reasons(found)) == doubted
        assert found.lone_tombstones == (topic not in unsaid)
        assert found.says_deletes is None
    said = decoded([flat({"id": 1}, deleted="true"), None], SCHEMA, [key, key], deletes_unsaid_in=frozenset({topic}))
    assert (said.says_deletes, reasons(said)) == (True, {})
    silent = decoded([flat({"id": 1}, op="c"), flat({"id": 1}, op="c")], SCHEMA, [key, key])
    assert silent.says_deletes is False


def test_a_tombstone_whose_key_names_no_row_is_not_passed_over() -> None:
    bare = decoded([flat({"id": 1}, op="c"), None], SCHEMA, [b"1", b"1"], flat_tombstone_deletes=True)
    assert reasons(bare) == {1: "missing_key"}
    keyless = declared({"id": "int", "v": "varchar(9)"}, ())
    for told in (False, True):
        found = decoded([flat({"id": 1}, op="c"), None], keyless, [None, None], flat_tombstone_deletes=told)
        assert set(reasons(found)) == {1}, "all that says a delete of a table without a key"
    emptied = decoded([flat({"id": 1}, op="c"), None], keyless, [None, None], has_emptied=True)
    assert not reasons(emptied), "a dump from which a row was erased has such records"
