"""Change logs: what a commit of a copy-on-write table changed in a file group, for Hudi's own CDC query.

A change log is a log file of one block, beside the base file that the commit wrote. Its rows are Avro: the operation
(``i``, ``u``, ``d``), and by the table's mode the record key, the row before and the row afterwards; Hudi's query takes
what is left out from the base files (``HoodieCDCExtractor``). A base file that begins a file group needs none: all of
its rows are inserted.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import fastavro
import numpy as np
import pyarrow as pa

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD, avro_schema
from hudilake.format.files.log_file import BlockType, Header, encode_block, whole_blocks
from hudilake.format.files.log_rows import Longs
from hudilake.format.files.varint import write_varint
from hudilake.policies import ChangeLog

_INT = struct.Struct(">i")
_AVRO_VERSION: Final = 3
_ROWS_AT_ONCE: Final = 4_096
#: The index of a branch of ``["null", type]``, and of ``["string", "null"]``, as Avro has it.
_NULL, _VALUE, _FIRST = b"\x00", b"\x02", b"\x00"
_TEXT: Final[dict[str, Any]] = {"type": ["null", "string"], "doc": "", "default": None}


@dataclass(frozen=True)
class ChangedRows:
    """Rows of one operation, with the meta fields. ``before`` and ``after`` have as many rows; ``before`` is None for
    inserted rows, ``after`` for deleted ones."""

    before: pa.Table | None
    after: pa.Table | None

    @property
    def operation(self) -> str:
        """``i`` for inserted rows, ``u`` for updated ones, ``d`` for deleted ones."""
        if self.before is None:
            return "i"
        return "d" if self.after is None else "u"

    @property
    def keys(self) -> pa.ChunkedArray:
        """The record keys."""
        rows = self.before if self.before is not None else self.after
        assert rows is not None
        return rows.column(RECORD_KEY_FIELD)

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class MergeChanges:
    """The changed rows of a merge, in the order in which it met them. They are copies: the merge's own tables go."""

    rows: list[ChangedRows] = field(default_factory=list)

    def note(self, base: pa.Table, merged: pa.Table, owner: Longs, fresh: Longs, deleted: Longs) -> None:
        """Take in a stretch of rows.

        Args:
            base: as it was.
            merged: as it is afterwards.
            owner: of each merged row, the index of the row of ``base`` in whose place it is; -1 for a new one.
            fresh: the indexes of the merged rows that are of the commit.
            deleted: the indexes of the rows of ``base`` that it deletes.
        """
        owners = owner[fresh]
        updated = owners >= 0
        if updated.any():
            self.rows.append(ChangedRows(_some(base, owners[updated]), _some(merged, fresh[updated])))
        if not updated.all():
            self.inserted(_some(merged, fresh[~updated]))
        if len(deleted):
            self.rows.append(ChangedRows(_some(base, deleted), None))

    def inserted(self, rows: pa.Table) -> None:
        """Take in new rows."""
        if rows.num_rows:
            self.rows.append(ChangedRows(None, rows))

    def forget(self) -> None:
        """Begin again."""
        self.rows.clear()


def _some(rows: pa.Table, places: Longs) -> pa.Table:
    return rows.take(pa.array(np.asarray(places, dtype=np.int64)))


def encode_change_log(
    instant: str, mode: ChangeLog, columns: pa.Schema, table_name: str, changes: Iterable[ChangedRows]
) -> bytes:
    """The bytes of a change log.

    Args:
        instant: of the commit.
        mode: what it has of a row.
        columns: the table's, without the meta fields.
        table_name: gives the rows their Avro name.
        changes: the changed rows, which have the columns.
    """
    row = json.loads(avro_schema(columns, table_name, with_meta=False))
    data = _Encoder(instant, mode, columns, row).encoded(changes)
    parts = [_INT.pack(_AVRO_VERSION), _INT.pack(len(data))]
    for one in data:
        parts += (_INT.pack(len(one)), one)
    header: dict[int, str] = {
        Header.INSTANT_TIME: instant,
        Header.SCHEMA: json.dumps(_schema(mode, row), separators=(",", ":")),
    }
    return encode_block(BlockType.CDC_DATA, header, b"".join(parts))


def decode_change_log(data: bytes, path: str = "") -> Iterator[dict[str, Any]]:
    """The changes of a change log in any mode, each with what that has: ``record_key``, or the rows ``before`` and
    ``after``. Raises CorruptDataError."""
    for block in whole_blocks(data, path):
        if block.block_type is not BlockType.CDC_DATA:
            continue
        try:
            schema = fastavro.parse_schema(json.loads(block.header[Header.SCHEMA]))
            content, position = bytes(block.content), 2 * _INT.size
            for _ in range(_INT.unpack_from(content, _INT.size)[0]):
                (size,) = _INT.unpack_from(content, position)
                position += _INT.size
                change: Any = fastavro.schemaless_reader(io.BytesIO(content[position : position + size]), schema, None)
                position += size
                yield change
        except (struct.error, ValueError, EOFError, LookupError, TypeError, OverflowError) as error:
            raise CorruptDataError(
                f"a change log cannot be read: {error}", do_next="run binlake fsck", path=path
            ) from error


def _schema(mode: ChangeLog, row: dict[str, Any]) -> dict[str, Any]:
    """The Avro schema of a change; ``row``: that of the table's rows."""
    if mode == "op_key_only":
        texts = [{"name": name, "type": ["string", "null"]} for name in ("op", "record_key")]
        return {"type": "record", "name": "Record", "fields": texts}
    before = {"name": "before", "type": ["null", row], "doc": "", "default": None}
    after = {"name": "after", "type": ["null", f"{row['namespace']}.{row['name']}"], "doc": "", "default": None}
    op: dict[str, Any] = {"name": "op", **_TEXT}
    fields: list[dict[str, Any]] = [op, {"name": "record_key", **_TEXT}, before]
    if mode == "data_before_after":
        fields = [op, {"name": "ts_ms", **_TEXT}, before, after]
    return {"type": "record", "name": "CDC", "namespace": row["namespace"], "doc": "", "fields": fields}


class _Encoder:
    """Encodes changes one by one, in the order of the fields of their schema."""

    def __init__(self, instant: str, mode: ChangeLog, columns: pa.Schema, row: dict[str, Any]) -> None:
        self._mode = mode
        self._time = _VALUE + _text(instant)
        self._columns = columns
        self._stored = pa.schema([pa.field(f.name, _stored_as(f.type), f.nullable) for f in columns])
        self._schema: Any = fastavro.parse_schema(_plain(row))

    def encoded(self, changes: Iterable[ChangedRows]) -> list[bytes]:
        return [one for rows in changes for one in self._of_rows(rows)]

    def _of_rows(self, rows: ChangedRows) -> Iterator[bytes]:
        if self._mode == "op_key_only":
            start = _FIRST + _text(rows.operation) + _FIRST
            for key in rows.keys.to_pylist():
                yield start + _text(key)
            return
        start = _VALUE + _text(rows.operation)
        befores = self._images(rows.before, len(rows))
        if self._mode == "data_before":
            for key, before in zip(rows.keys.to_pylist(), befores, strict=True):
                yield b"".join((start, _VALUE, _text(key), before))
            return
        for before, after in zip(befores, self._images(rows.after, len(rows)), strict=True):
            yield b"".join((start, self._time, before, after))

    def _images(self, rows: pa.Table | None, count: int) -> Iterator[bytes]:
        """The rows as values of a union with null."""
        if rows is None:
            for _ in range(count):
                yield _NULL
            return
        values = rows.select(self._columns.names).cast(self._stored)
        for batch in values.to_batches(max_chunksize=_ROWS_AT_ONCE):
            for row in batch.to_pylist(maps_as_pydicts="strict"):
                into = io.BytesIO(_VALUE)
                into.seek(1)
                fastavro.schemaless_writer(into, self._schema, row)
                yield into.getvalue()


def _text(value: str) -> bytes:
    """An Avro string."""
    data = value.encode()
    return write_varint(len(data) << 1) + data


def _stored_as(kind: pa.DataType) -> pa.DataType:
    """The type whose values are what Avro stores: Python has no value for some moments that Arrow has."""
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_stored_as(kind.item_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored_as(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        made = pa.list_ if pa.types.is_list(kind) else pa.large_list
        return made(kind.value_field.with_type(_stored_as(kind.value_type)))
    return kind


def _plain(schema: Any) -> Any:  # noqa: ANN401 - any part of a schema
    """An Avro schema without the logical types of moments; those of decimals say how bytes are made."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {
        name: _plain(part) if name in ("type", "items", "values", "fields") else part for name, part in schema.items()
    }
    if made.get("logicalType", "decimal") != "decimal":
        del made["logicalType"]
    return made
