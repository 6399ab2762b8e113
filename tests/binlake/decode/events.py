"""Small hand-made Debezium messages for the tests."""

from __future__ import annotations

import json
from typing import Any

from binlake.decode.changes import DecodedRecords, SourceTable
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import DeclaredSchemas, SchemaSource, declared_table
from tests.binlake.decode.recordings import records

T = SourceTable("db", "t")


def source(pos: int = 100, **more: object) -> dict[str, Any]:
    place = {"db": "db", "table": "t", "file": "bin.000007", "pos": pos, "row": 0, "ts_ms": 1_700_000_000_000}
    return place | {"server_id": 1, "gtid": "0-1-5", "snapshot": "false"} | more


def envelope(after: object, before: object = None, op: str = "c", pos: int = 100, **place: object) -> bytes:
    message = {"before": before, "after": after, "source": source(pos, **place), "op": op, "ts_ms": 1}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def raw_envelope(after: bytes, op: bytes = b"c", before: bytes = b"null", pos: int = 100) -> bytes:
    """With the row image as given, however broken."""
    place = json.dumps(source(pos), separators=(",", ":")).encode()
    return b'{"before":%s,"after":%s,"source":%s,"op":"%s","ts_ms":1}' % (before, after, place, op)


def framed(payload: bytes, schema: dict[str, Any]) -> bytes:
    return b'{"schema":%s,"payload":%s}' % (json.dumps(schema, separators=(",", ":")).encode(), payload)


def declared(columns: dict[str, str], key: tuple[str, ...] | None = None) -> DeclaredSchemas:
    return DeclaredSchemas({T: declared_table(columns, key)})


def decoded(
    values: list[bytes | None],
    schemas: SchemaSource,
    keys: list[bytes | None] | None = None,
    topic: str = "server.db.t",
    **options: Any,  # noqa: ANN401 - those of DecodeOptions
) -> DecodedRecords:
    found = decode(records(keys or [None] * len(values), values, topic), schemas, DecodeOptions(**options))
    assert places(found) == len(values), "every record is in exactly one place"
    return found


def places(found: DecodedRecords) -> int:
    rows: int = sum(batch.rows.num_rows for batch in found.changes)
    return rows + len(found.quarantined) + len(found.controls) + sum(found.filtered.values())


def cells(found: DecodedRecords, name: str) -> list[Any]:
    """A column over all batches, by offset."""
    pairs = [
        (offset, value)
        for batch in found.changes
        for offset, value in zip(batch.rows["__offset"].to_pylist(), batch.rows[name].to_pylist(), strict=True)
    ]
    return [value for _, value in sorted(pairs, key=lambda pair: pair[0])]


def reasons(found: DecodedRecords) -> dict[int, str]:
    return {record.offset: record.reason for record in found.quarantined}
