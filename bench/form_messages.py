"""Messages of each format in the forms of ``bench.form_cases``."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np

from bench.form_cases import ABSENT, CANAL, DEBEZIUM, MAXWELL, Case
from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.schemas.schemas import DeclaredSchemas, SchemaSource, declared_table

SOURCE = SourceTable("db", "t")
COLUMNS = 4
_Row = dict[str, Any]


@dataclass
class Messages:
    """The messages of a case, and the arguments for decoding them."""

    case: Case
    records: RawRecords
    schemas: SchemaSource
    options: DecodeOptions

    def decode(self) -> int:
        """Decode all messages; returns the number of rows."""
        return sum(batch.rows.num_rows for batch in decode(self.records, self.schemas, self.options).changes)


def rows(case: Case, count: int, seed: int = 1) -> Iterator[_Row]:
    """Rows of ``id`` and columns c0 to c3."""
    dice = random.Random(seed)
    for i in range(count):
        values = {f"c{n}": case.value(dice) for n in range(COLUMNS)}
        yield {"id": i} | {name: value for name, value in values.items() if value is not ABSENT}


def types(case: Case) -> dict[str, str]:
    """The MySQL types of the columns."""
    return {"id": "int"} | {f"c{n}": case.kind for n in range(COLUMNS)}


def _place(i: int) -> _Row:
    source = {"version": "3.4.0.Final", "connector": "mysql", "name": "shop", "ts_ms": 1_795_242_654_000 + i}
    source |= {"snapshot": "false", "db": SOURCE.database, "table": SOURCE.table, "server_id": 1, "gtid": None}
    return source | {"file": "mysql-bin.000003", "pos": 4 + i * 300, "row": 0, "thread": 7}


def envelope(row: _Row, i: int, *, update: bool) -> _Row:
    """Debezium's message about a row."""
    before = {"id": row["id"]} if update else None
    op = "u" if update else "c"
    return {"before": before, "after": row, "source": _place(i), "op": op, "ts_ms": 1_795_242_655_236}


def flat(row: _Row, i: int) -> _Row:
    """The same row unwrapped, with the fields that ExtractNewRecordState adds."""
    place = _place(i)
    added = {f"__source_{name}": place[name] for name in ("file", "pos", "row", "ts_ms")}
    return row | {"__deleted": "false", "__op": "c", "__table": SOURCE.table} | added


def canal(case: Case, row: _Row, i: int) -> _Row:
    """Canal's message about a row."""
    message: _Row = {"data": [row | {"id": str(row["id"])}], "database": SOURCE.database, "es": 1_795_241_823_000 + i}
    message |= {"gtid": "", "id": i, "isDdl": False, "mysqlType": types(case), "old": None, "pkNames": ["id"]}
    message |= {"sql": "", "sqlType": {}, "table": SOURCE.table, "ts": 1_795_241_823_835, "type": "INSERT"}
    return message | ({"old": [{"c0": "1"}], "type": "UPDATE"} if case.update else {})


def maxwell(row: _Row, i: int, *, update: bool) -> _Row:
    """Maxwell's message about a row."""
    message = {"database": SOURCE.database, "table": SOURCE.table, "type": "insert", "ts": 1_795_241_823, "xid": i}
    message |= {"xoffset": 0, "position": f"mariadb-bin.000001:{4 + i * 300}", "server_id": 4711, "data": row}
    return message | ({"old": {"c0": 1}, "type": "update"} if update else {})


def connect_schema(case: Case) -> _Row:
    """The Connect schema of a case's envelope."""
    columns = [{"optional": True, "field": f"c{n}", **(case.connect or {})} for n in range(COLUMNS)]
    row = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": "id"}, *columns]}
    return {"type": "struct", "fields": [row | {"field": "before"}, row | {"field": "after"}]}


_AVRO = {"int8": "int", "int16": "int", "int32": "int", "int64": "long"}


@dataclass(frozen=True)
class Registry:
    """A registry with one schema."""

    text: str

    def schema(self, schema_id: int, subject: str) -> str | None:
        """The schema, for every id."""
        return self.text

    def describe(self) -> str:
        """The registry's address."""
        return "memory"


def avro_schema(case: Case) -> _Row:
    """The Avro schema of a case's envelope, as Connect's converter writes it."""
    field_ = dict(case.connect or {})
    kind: _Row = {"type": _AVRO.get(field_["type"], field_["type"])}
    if field_["type"] == "struct":
        parts = [("x", "double"), ("y", "double"), ("wkb", "bytes"), ("srid", ["null", "int"])]
        kind = {"type": "record", "name": "Point", "fields": [{"name": name, "type": t} for name, t in parts]}
    if "name" in field_:
        kind |= {"connect.name": field_["name"], "connect.parameters": field_["parameters"]}
    others = [kind if n == 0 or kind["type"] != "record" else "Point" for n in range(COLUMNS)]
    columns = [{"name": f"c{n}", "type": ["null", other]} for n, other in enumerate(others)]
    row = {"type": "record", "name": "Value", "fields": [{"name": "id", "type": "int"}, *columns]}
    facts = {name: fact for name, fact in _place(0).items() if fact is not None}
    place = [{"name": name, "type": "string" if isinstance(fact, str) else "long"} for name, fact in facts.items()]
    source = {"type": "record", "name": "Source", "fields": place}
    envelope_parts = {"before": ["null", row], "after": ["null", "Value"], "source": source, "op": "string"}
    fields = [{"name": name, "type": part} for name, part in envelope_parts.items()]
    return {"type": "record", "name": "Envelope", "fields": [*fields, {"name": "ts_ms", "type": "long"}]}


def _binary(case: Case, row: _Row) -> _Row:
    if (case.connect or {}).get("type") == "bytes":
        return {n: base64.b64decode(v) if isinstance(v, str) else v for n, v in row.items()}
    return {n: v | {"wkb": base64.b64decode(v["wkb"])} if isinstance(v, dict) else v for n, v in row.items()}


def _avro_messages(case: Case, count: int) -> list[bytes]:
    parsed = fastavro.parse_schema(avro_schema(case))
    values = []
    for i, row in enumerate(rows(case, count)):
        out = io.BytesIO()
        out.write(b"\0\0\0\0\1")
        fastavro.schemaless_writer(out, parsed, envelope(_binary(case, row), i, update=False))
        values.append(out.getvalue())
    return values


def _json_messages(case: Case, count: int, form: str) -> list[bytes]:
    make: dict[str, Callable[[_Row, int], _Row]] = {
        "plain": lambda row, i: envelope(row, i, update=case.update),
        "schema": lambda row, i: envelope(row, i, update=case.update),
        "flat": flat,
        "canal": lambda row, i: canal(case, row, i),
        "maxwell": lambda row, i: maxwell(row, i, update=case.update),
    }
    texts = (json.dumps(make[form](row, i), separators=(",", ":")).encode() for i, row in enumerate(rows(case, count)))
    if form != "schema":
        return list(texts)
    schema = json.dumps(connect_schema(case), separators=(",", ":")).encode()
    return [b'{"schema":%s,"payload":%s}' % (schema, text) for text in texts]


def cases(form: str) -> list[Case]:
    """The cases of a format."""
    if form in ("canal", "maxwell"):
        return CANAL if form == "canal" else MAXWELL
    if form in ("schema", "avro"):
        return [case for case in DEBEZIUM if case.connect is not None]
    return [case for case in DEBEZIUM if form == "plain" or not case.update]


FORMATS = {
    "plain": EventFormat.DEBEZIUM,
    "schema": EventFormat.DEBEZIUM,
    "flat": EventFormat.DEBEZIUM,
    "avro": EventFormat.DEBEZIUM_AVRO,
    "canal": EventFormat.CANAL,
    "maxwell": EventFormat.MAXWELL,
}


def messages(form: str, case: Case, count: int) -> Messages:
    """The messages of a case in a format."""
    made = _avro_messages(case, count) if form == "avro" else _json_messages(case, count, form)
    values: list[bytes | None] = [*made]
    keys: list[bytes | None] = [b'{"id":%d}' % i for i in range(count)]
    records = RawRecords("s.db.t", 0, np.arange(count), np.zeros(count, dtype=np.int64), keys, values)
    registry = Registry(json.dumps(avro_schema(case))) if form == "avro" else None
    options = DecodeOptions(format=FORMATS[form], registry=registry, **case.options)
    schemas = DeclaredSchemas({SOURCE: declared_table(types(case), ["id"])})
    return Messages(case, records, schemas, options)
