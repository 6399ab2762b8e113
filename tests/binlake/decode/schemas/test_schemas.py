"""Schemas from the DDL topic and the settings, by position, and the key."""

from __future__ import annotations

import json
import pickle
from decimal import Decimal
from typing import Any

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schema_change import ChangeKind, schema_changes
from binlake.decode.schemas.schemas import DeclaredSchemas, LayeredSchemas, SchemaHistory, SchemaSource, declared_table
from binlake.decode.types.mysql_types import parse_type
from tests.binlake.decode import recordings
from tests.binlake.decode.events import T, cells, declared, decoded, envelope, framed, raw_envelope, reasons, source


def change(pos: int, columns: dict[str, dict[str, Any]] | None, kind: str = "ALTER", **more: object) -> bytes:
    """A record of the DDL topic about db.t. ``columns`` None: DROP."""
    listed = [{"name": n, "typeName": "INT", "typeExpression": "INT"} | c for n, c in (columns or {}).items()]
    table = None if columns is None else {"columns": listed, "primaryKeyColumnNames": ["id"]}
    changes = [{"type": "DROP" if columns is None else kind, "id": '"db"."t"', "table": table}]
    record = {"source": source(pos), "databaseName": "db", "ddl": "ALTER ...", "tableChanges": changes} | more
    return json.dumps(record).encode()


def learned(*records: bytes, **options: Any) -> SchemaHistory:  # noqa: ANN401 - those of DecodeOptions
    history = SchemaHistory()
    for record in records:
        history.learn(record, DecodeOptions(**options))
    return history


WIDE = {"typeName": "DECIMAL", "typeExpression": "DECIMAL", "length": 10, "scale": 3}
NARROW = {"typeName": "DECIMAL", "typeExpression": "DECIMAL", "length": 10, "scale": 1}
ID: dict[str, Any] = {"id": {}}


def test_an_event_gets_the_schema_in_force_at_its_position() -> None:
    history = learned(change(100, ID | {"v": NARROW}, "CREATE"), change(200, ID | {"v": WIDE}))
    values: list[bytes | None] = [
        envelope({"id": i, "v": "BA=="}, pos=pos) for i, pos in enumerate((100, 199, 200, 201, 150, 10**6))
    ]
    found = decoded(values, history)
    tenth, thousandth = Decimal("0.4"), Decimal("0.004")
    assert cells(found, "v") == [tenth, tenth, thousandth, thousandth, tenth, thousandth]
    assert {batch.schema.key for batch in found.changes} == {("id",)}


def test_snapshot_rows_use_the_place_they_were_read_at() -> None:
    history = learned(change(100, ID | {"v": NARROW}, "CREATE"), change(200, ID | {"v": WIDE}))
    found = decoded([envelope({"id": 1, "v": "BA=="}, op="r", pos=150)], history)
    assert cells(found, "v") == [Decimal("0.4")]
    assert cells(found, "__order") == [1_700_000_000]


def test_redelivered_statements_change_nothing() -> None:
    stream = [change(100, None), change(100, ID, "CREATE"), change(200, ID | {"v": {}}), change(300, None)]
    history = learned(*stream)
    before = (history.versions(T), history.revision)
    for record in stream + stream[::-1]:
        history.learn(record, DecodeOptions())
    assert (history.versions(T), history.revision) == before
    assert history.revision == 4


def test_statements_learned_in_any_order() -> None:
    stream = [change(100, ID, "CREATE"), change(200, ID | {"v": {}}), change(300, ID | {"w": {}})]
    assert learned(*stream[::-1]).versions(T) == learned(*stream).versions(T)


def test_drop_and_create_at_one_position() -> None:
    history = learned(change(100, None), change(100, ID, "CREATE"))
    assert cells(decoded([envelope({"id": 1}, pos=100)], history), "id") == [1]


def test_after_a_drop_there_is_no_schema() -> None:
    history = learned(change(100, ID, "CREATE"), change(200, None))
    found = decoded([envelope({"id": 1}, pos=150), envelope({"id": 1}, pos=250)], history)
    assert reasons(found) == {1: "no_schema"}


def test_before_the_first_version() -> None:
    early: list[bytes | None] = [envelope({"id": 1, "v": "BA=="}, pos=50)]
    assert cells(decoded(early, learned(change(100, ID | {"v": WIDE}))), "v") == [Decimal("0.004")]
    contradictory = learned(change(100, ID | {"v": WIDE}), change(200, ID | {"v": NARROW}))
    assert reasons(decoded(early, contradictory)) == {0: "no_schema"}


def test_a_column_the_history_does_not_know_yet() -> None:
    history = learned(change(100, ID, "CREATE"))
    row: list[bytes | None] = [envelope({"id": 1, "v": "BA=="}, pos=300)]
    found = decoded(row, history)
    assert found.unknown_columns == {T: {"v"}}
    history.learn(change(200, ID | {"v": WIDE}), DecodeOptions())
    assert cells(decoded(row, history), "v") == [Decimal("0.004")]


def test_epochs_part_the_history() -> None:
    options: dict[str, Any] = {"epoch": 0, "epoch_of_server": ((9, 1),)}
    old = change(500, ID | {"v": NARROW}, "CREATE")
    new = change(50, ID | {"v": WIDE}, source=source(50, server_id=9, file="other.000001"))
    history = learned(old, new, **options)
    values: list[bytes | None] = [
        envelope({"id": 1, "v": "BA=="}, pos=600),
        envelope({"id": 1, "v": "BA=="}, pos=60, server_id=9, file="other.000001"),
    ]
    found = decoded(values, history, **options)
    assert cells(found, "v") == [Decimal("0.4"), Decimal("0.004")]
    assert cells(found, "__order") == [7 << 32 | 600, 1 << 52 | 1 << 32 | 60]


def test_unsupported_types_are_named() -> None:
    history = learned(change(100, ID | {"v": {"typeName": "VECTOR", "typeExpression": "VECTOR", "length": 3}}))
    found = decoded([envelope({"id": 1, "v": [1]})], history)
    assert reasons(found) == {0: "unsupported_type"}
    assert "v" in found.quarantined[0].detail
    assert not found.unknown_columns


def test_history_travels_small() -> None:
    history = recordings.history_of("shop", "plain")
    assert pickle.loads(pickle.dumps(history)) == history
    one = history.only([SourceTable("shop", "orders")])
    assert set(one.tables) == {SourceTable("shop", "orders")}
    assert one.versions(SourceTable("shop", "orders")) == history.versions(SourceTable("shop", "orders"))
    assert len(pickle.dumps(one)) < len(pickle.dumps(history)) / 2


def test_the_recorded_ddl_topics_with_and_without_schema_say_the_same() -> None:
    plain, schema = (recordings.history_of("shop", variant) for variant in ("plain", "schema"))

    def definitions(history: SchemaHistory) -> dict[SourceTable, list[Any]]:
        return {table: [(v.columns, v.key, v.dropped) for v in versions] for table, versions in history.tables.items()}

    assert definitions(plain) == definitions(schema)
    orders = plain.versions(SourceTable("shop", "orders"))
    assert [len(version.columns) for version in orders] == [0, 16, 15, 15]
    assert orders[1].key == ("id",)


def test_the_connectors_own_history_says_the_same() -> None:
    history = SchemaHistory()
    (part,) = recordings.topics("shop", "plain")["_history.shop_plain"].values()
    for value in part.values:
        assert value is not None
        history.learn(value, DecodeOptions())
    public = recordings.history_of("shop", "plain")
    for table, versions in public.tables.items():
        assert [v.columns for v in history.versions(table)] == [v.columns for v in versions]


def test_rename_names_both_tables() -> None:
    joined = change(100, ID, source=source(100, table="old,t"))
    (renamed,) = schema_changes(joined)
    assert (renamed.kind, renamed.source, renamed.previous) == (ChangeKind.ALTER, T, SourceTable("db", "old"))
    record = json.loads(change(100, ID))
    record["tableChanges"][0]["previousId"] = '"db"."ol""d"'
    assert schema_changes(json.dumps(record).encode())[0].previous == SourceTable("db", 'ol"d')
    assert schema_changes(change(100, ID))[0].previous is None
    assert cells(decoded([envelope({"id": 5})], learned(joined)), "id") == [5]


@pytest.mark.parametrize(
    ("column", "text"),
    [
        ({"typeName": "BIGINT UNSIGNED", "typeExpression": "BIGINT UNSIGNED", "length": 20}, "bigint(20) unsigned"),
        ({"typeName": "DECIMAL UNSIGNED", "length": 9, "scale": 4}, "decimal(9,4) unsigned"),
        ({"typeExpression": "TINYINT", "length": 1}, "tinyint(1)"),
        ({"typeExpression": "DATETIME", "length": 6}, "datetime(6)"),
        ({"typeExpression": "DATETIME"}, "datetime"),
        ({"typeExpression": "ENUM", "length": 1, "enumValues": ["'a'", "'b,c'", "'it''s'"]}, "enum('a','b,c','it''s')"),
        ({"typeExpression": "BINARY", "charsetName": "binary", "length": 4}, "binary(4)"),
        ({"typeExpression": "DOUBLE PRECISION", "length": 7, "scale": 3}, "double(7,3)"),
        ({"typeExpression": "BIT", "length": 10}, "bit(10)"),
        ({"typeExpression": "BOOL"}, "bool"),
    ],
)
def test_types_of_table_changes(column: dict[str, Any], text: str) -> None:
    (found,) = schema_changes(change(1, {"c": {"typeName": "", "typeExpression": None} | column}))
    assert found.columns == (("c", parse_type(text)),)


@pytest.mark.parametrize("kind", ["CHAR", "VARCHAR", "TEXT"])
def test_texts_of_the_character_set_binary_are_not_known(kind: str) -> None:
    """Debezium sends them as text, which may look like base64 (recorded)."""
    column = {"typeName": kind, "typeExpression": None, "charsetName": "binary", "length": 4}
    others = {"e": column | {"charsetName": "BINARY"}, "d": column | {"charsetName": "latin1"}}
    (found,) = schema_changes(change(1, {"c": column, **others}))
    assert (found.unsupported, [name for name, _ in found.columns]) == (("c", "e"), ["d"])


def test_key_by_settings_then_message_then_schema() -> None:
    history = learned(change(1, {"id": {}, "b": {}, "c": {}}))
    row: list[bytes | None] = [envelope({"id": 1, "b": 2, "c": 3})]
    settings = DeclaredSchemas({T: declared_table(None, ["c"])})
    by_message: list[bytes | None] = [b'{"b":2,"id":1}']

    def key(schemas: SchemaSource, keys: list[bytes | None]) -> tuple[str, ...]:
        return decoded(row, schemas, keys).changes[0].schema.key

    assert key(LayeredSchemas((settings, history)), by_message) == ("c",)
    assert key(history, by_message) == ("b", "id")
    assert key(history, [None]) == ("id",)
    assert key(history, [b"Struct{id=1}"]) == ("id",)
    assert key(history, [b'{"other":1}']) == ("id",)
    assert key(history, [b'{"b":2,"__dbz__physicalTableIdentifier":"x"}']) == ("b",)
    assert key(declared({"id": "int", "b": "int", "c": "int"}), [None]) == ()


def test_keys_with_embedded_schema() -> None:
    schema = {"type": "struct", "fields": [{"type": "int32", "field": "id"}], "name": "Key"}
    keys: list[bytes | None] = [framed(b'{"id":1}', schema), framed(b'{"id":2}', schema)]
    values: list[bytes | None] = [envelope({"id": 1}), raw_envelope(b"null", op=b"d")]
    found = decoded(values, declared({"id": "int", "v": "int"}), keys)
    assert found.changes[0].schema.key == ("id",)
    assert cells(found, "id") == [1, 2]


def test_deletes_without_before_image_take_the_kafka_key() -> None:
    kinds = {"id": "bigint unsigned", "d": "decimal(5,2)", "v": "int"}
    values: list[bytes | None] = [raw_envelope(b"null", op=b"d"), envelope(None, {"id": 2, "d": "AQ==", "v": 7}, "d")]
    keys: list[bytes | None] = [b'{"id":-1,"d":"AZA="}', b'{"id":2,"d":"AQ=="}']
    found = decoded(values, declared(kinds), keys)
    assert cells(found, "id") == [Decimal(2**64 - 1), Decimal(2)]
    assert cells(found, "d") == [Decimal("4.00"), Decimal("0.01")]
    assert cells(found, "v") == [None, 7]
    assert cells(found, "__op") == [1, 1]


def test_key_names_may_change_within_a_chunk() -> None:
    keys: list[bytes | None] = [b'{"a":1}', b'{"a":1,"b":2}', b'{"a":1}', None]
    values: list[bytes | None] = [envelope({"a": 1, "b": i}) for i in range(4)]
    found = decoded(values, declared({"a": "int", "b": "int"}, None), keys)
    assert {batch.schema.key: batch.rows["b"].to_pylist() for batch in found.changes} == {
        ("a",): [0, 2],
        ("a", "b"): [1],
        (): [3],
    }


def test_tables_that_share_a_topic() -> None:
    spaced, scored = SourceTable("db", "Line Item"), SourceTable("db", "Line_Item")
    schemas = DeclaredSchemas(
        {s: declared_table({"id": kind}, ["id"]) for s, kind in ((spaced, "int"), (scored, "text"))}
    )
    values: list[bytes | None] = [
        envelope({"id": 1}, table="Line Item"),
        envelope({"id": "x"}, table="Line_Item"),
        envelope({"id": 2}, table="Line Item"),
        envelope({"id": 2}, table="line_item"),
    ]
    found = decoded(values, schemas, topic="server.db.Line_Item")
    assert {batch.schema.source: batch.rows["id"].to_pylist() for batch in found.changes} == {
        spaced: [1, 2],
        scored: ["x"],
    }
    assert reasons(found) == {3: "no_schema"}
