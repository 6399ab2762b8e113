"""The reference event in each wire format: 12 columns, among them a decimal and times, the same rows everywhere."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Iterator
from typing import Any

import fastavro
import numpy as np

from bench import form_messages
from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.options import DecodeOptions, EventFormat

SOURCE = SourceTable("shop", "orders")
TYPES = {
    "id": "int",
    "customer_id": "int",
    "status": "enum('new','paid','shipped')",
    "total": "decimal(12,2)",
    "qty": "int",
    "prio": "tinyint",
    "note": "varchar(40)",
    "placed_at": "datetime(6)",
    "flag": "tinyint(1)",
    "weight": "double",
    "country": "char(2)",
    "updated": "timestamp(6)",
}
_Row = dict[str, Any]
_CONNECT: dict[str, _Row] = {
    "status": {"type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "new,paid,shipped"}},
    "total": {
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2", "connect.decimal.precision": "12"},
    },
    "note": {"type": "string"},
    "placed_at": {"type": "int64", "name": "io.debezium.time.MicroTimestamp"},
    "weight": {"type": "double"},
    "country": {"type": "string"},
    "updated": {"type": "string", "name": "io.debezium.time.ZonedTimestamp"},
}
_INT: _Row = {"type": "int32"}
_FIELDS: list[_Row] = [{"optional": True, "field": name} | _CONNECT.get(name, _INT) for name in TYPES]
_IMAGE: _Row = {"type": "struct", "fields": _FIELDS, "optional": True}
SCHEMA = {
    "type": "struct",
    "fields": [{"field": "before"} | _IMAGE, {"field": "after"} | _IMAGE, {"field": "op", "type": "string"}],
}
_STATUSES = ["new", "paid", "shipped"]
_SQL_TYPES = dict.fromkeys(TYPES, 4)
_AVRO = {"int32": "int", "int64": "long"}
_CELLS = 4


def rows(count: int) -> Iterator[_Row]:
    """Rows as numbers and texts that every format spells in its own way."""
    dice = random.Random(1)
    for _ in range(count):
        yield {
            "id": dice.randrange(200_000),
            "customer_id": dice.randrange(10**6),
            "status": dice.choice(_STATUSES),
            "total": dice.randrange(-(10**6), 10**9),
            "qty": dice.randrange(1000),
            "prio": dice.randrange(5),
            "note": f"note {dice.randrange(10**9)}",
            "placed_at": 1_700_000_000 + dice.randrange(10**7),
            "fraction": dice.randrange(10**6),
            "flag": dice.randrange(2),
            "weight": dice.random(),
            "country": dice.choice(["de", "fr"]),
            "updated": f"{dice.randrange(60):02d}.{dice.randrange(1, 10**6):06d}",
        }


def _decimal(unscaled: int) -> bytes:
    return unscaled.to_bytes((unscaled.bit_length() + 8) // 8, "big", signed=True)


def _typed(row: _Row) -> _Row:
    """The row as Debezium's JSON has it."""
    typed = {name: row[name] for name in TYPES}
    typed["total"] = base64.b64encode(_decimal(row["total"])).decode()
    typed["placed_at"] = row["placed_at"] * 1_000_000 + row["fraction"]
    typed["updated"] = f"2026-11-21T06:31:{row['updated'].rstrip('0')}Z"
    return typed


def _printed(row: _Row) -> _Row:
    """The row as MySQL prints it; numbers stay numbers."""
    printed = {name: row[name] for name in TYPES}
    printed["total"] = f"{row['total'] / 100:.2f}"
    minute, second = divmod(row["placed_at"] % 3600, 60)
    printed["placed_at"] = f"2025-11-{row['id'] % 28 + 1:02d} 06:{minute:02d}:{second:02d}.{row['fraction']:06d}"
    printed["updated"] = f"2026-11-21 06:31:{row['updated']}"
    return printed


def _place(i: int) -> _Row:
    return {"file": "mysql-bin.000003", "pos": 4 + i * 300, "row": 0}


def _source(i: int) -> _Row:
    source = {"version": "3.4.0.Final", "connector": "mysql", "name": "shop", "ts_ms": 1_795_242_654_000 + i}
    source |= {"snapshot": "false", "db": SOURCE.database, "table": SOURCE.table, "server_id": 1, "gtid": None}
    return source | _place(i) | {"thread": 7}


def _envelope(row: _Row, i: int) -> _Row:
    return {"before": None, "after": row, "source": _source(i), "op": "u", "ts_ms": 1_795_242_655_236}


def _flat(row: _Row, i: int) -> _Row:
    added = {f"__source_{name}": value for name, value in _place(i).items()}
    return row | {"__deleted": "false", "__op": "u", "__table": SOURCE.table} | added


def _canal(row: _Row, i: int) -> _Row:
    texts: _Row = {name: str(value) for name, value in row.items()}
    texts["status"] = str(_STATUSES.index(row["status"]) + 1)
    old = [{"total": "1.00", "updated": "2026-11-21 06:31:00.000000"}] if i % 2 else None
    message: _Row = {"data": [texts], "database": SOURCE.database, "es": 1_795_241_823_000 + i, "gtid": "", "id": i}
    message |= {"isDdl": False, "mysqlType": TYPES, "old": old, "pkNames": ["id"], "sql": "", "sqlType": _SQL_TYPES}
    return message | {"table": SOURCE.table, "ts": 1_795_241_823_835 + i, "type": "UPDATE" if old else "INSERT"}


def _maxwell(row: _Row, i: int) -> bytes:
    """Half are the last of their transaction. Decimals are JSON numbers with all their digits."""
    place = '"commit":true' if i % 4 > 1 else f'"xoffset":{i % 4}'
    data = json.dumps(row, separators=(",", ":")).replace(f'"{row["total"]}"', row["total"])
    old = ',"old":{"total":1.00,"updated":"2026-11-21 06:31:00.000000"}' if i % 2 else ""
    what = "update" if i % 2 else "insert"
    head = f'"database":"{SOURCE.database}","table":"{SOURCE.table}","type":"{what}","ts":1795241823,"xid":{i},{place}'
    head += f',"position":"mysql-bin.000003:{4 + i * 300}","server_id":4711,"thread_id":0,"primary_key":[{row["id"]}]'
    return f'{{{head},"primary_key_columns":["id"],"data":{data}{old}}}'.encode()


def _wal(row: _Row, i: int) -> bytes:
    key = base64.b64encode(b"%010d" % row["id"]).decode()
    names = ["customer_id", "status", "note", "country"][:_CELLS]
    encoded = [(base64.b64encode(name.encode()).decode(), base64.b64encode(str(row[name]).encode())) for name in names]
    cells = ",".join(
        f'{{"row":"{key}","family":"ZA==","qualifier":"{name}","timeStamp":{1_795_241_823_000 + i},'
        f'"type":"Put","value":"{value.decode()}"}}'
        for name, value in encoded
    )
    head = f'{{"writeTime":{1_795_241_823_000 + i},"sequenceId":{i},"tablename":"shop:orders"}}'
    return f'{{"key":{head},"edit":{{"cells":[{cells}]}}}}'.encode()


def _avro_schema() -> _Row:
    columns = []
    for name in TYPES:
        connect = _CONNECT.get(name, _INT)
        kind: _Row = {"type": _AVRO.get(connect["type"], connect["type"])}
        if "name" in connect:
            kind |= {"connect.name": connect["name"], "connect.parameters": connect.get("parameters", {})}
        columns.append({"name": name, "type": ["null", kind], "default": None})
    image = {"type": "record", "name": "Value", "fields": columns}
    names = {name: "string" if isinstance(value, str) else "long" for name, value in _source(0).items()}
    place = [{"name": name, "type": kind if name != "gtid" else ["null", "string"]} for name, kind in names.items()]
    source = {"type": "record", "name": "Source", "fields": place}
    members = {"before": ["null", image], "after": ["null", "Value"], "source": source, "op": "string", "ts_ms": "long"}
    return {"type": "record", "name": "Envelope", "fields": [{"name": n, "type": t} for n, t in members.items()]}


def _avro(count: int) -> Iterator[bytes]:
    parsed = fastavro.parse_schema(_avro_schema())
    for i, row in enumerate(rows(count)):
        out = io.BytesIO()
        out.write(b"\0\0\0\0\1")
        fastavro.schemaless_writer(out, parsed, _envelope(_typed(row) | {"total": _decimal(row["total"])}, i))
        yield out.getvalue()


_AVRO_KEY: _Row = {"type": "record", "name": "Key", "fields": [{"name": "id", "type": "int"}]}


def _avro_keys(count: int) -> Iterator[bytes]:
    parsed = fastavro.parse_schema(_AVRO_KEY)
    for row in rows(count):
        out = io.BytesIO()
        out.write(b"\0\0\0\0\2")
        fastavro.schemaless_writer(out, parsed, {"id": row["id"]})
        yield out.getvalue()


class _Schemas:
    """The registry of the schemas of values and keys."""

    def schema(self, schema_id: int, subject: str) -> str | None:
        """The schema of an id."""
        return json.dumps(_avro_schema() if schema_id == 1 else _AVRO_KEY)

    def describe(self) -> str:
        """Its address."""
        return "memory"


def _json(form: str, count: int) -> Iterator[bytes]:
    schema = json.dumps(SCHEMA, separators=(",", ":")).encode()
    for i, row in enumerate(rows(count)):
        if form in ("maxwell", "hbase_wal"):
            yield _maxwell(_printed(row), i) if form == "maxwell" else _wal(_printed(row), i)
            continue
        message = {"flat": _flat, "canal": _canal}.get(form, _envelope)(
            _printed(row) if form == "canal" else _typed(row), i
        )
        text = json.dumps(message, separators=(",", ":")).encode()
        yield b'{"schema":%s,"payload":%s}' % (schema, text) if form == "schema" else text


#: By name: the format as the decoder's options have it.
FORMATS = form_messages.FORMATS | {"hbase_wal": EventFormat.HBASE_WAL}


def events(form: str, count: int) -> tuple[RawRecords, DecodeOptions]:
    """``count`` messages of one table, of one event each, and how to decode them."""
    values: list[bytes | None] = [*(_avro(count) if form == "avro" else _json(form, count))]
    keys: list[bytes | None] = [b'{"id":%d}' % row["id"] for row in rows(count)]
    if form == "canal":  # its producer sends none
        keys = [None] * count
    if form == "maxwell":
        head = b'{"database":"shop","table":"orders","pk.id":'
        keys = [head + b"%d}" % row["id"] for row in rows(count)]
    if form == "avro":
        keys = [*_avro_keys(count)]
    records = RawRecords("shop.shop.orders", 0, np.arange(count), np.zeros(count, dtype=np.int64), keys, values)
    registry = _Schemas() if form == "avro" else None
    return records, DecodeOptions(format=FORMATS[form], registry=registry)
