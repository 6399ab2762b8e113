"""BIT columns of the Kafka key: Debezium writes their bytes in one order in a snapshot, in another one otherwise.

Its converter turns a value's bytes around in place, and the key and the row image share them (recorded with the MariaDB
connector 3.4.0, BIT(1) to BIT(64)):

- rows that an initial or blocking snapshot has read (``op`` r): turned around twice, big-endian in key and image;
- rows of incremental snapshots (turned around three times) and of the binlog, and columns outside of the key:
  little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.changes import Column, TableSchema
from binlake.decode.messages.chunk import Chunk, TableEvents
from binlake.decode.messages.frames import open_loose

_I64 = npt.NDArray[np.int64]
_BITS = "bits"
_SNAPSHOT = frozenset({"true", "first", "first_in_data_collection", "last_in_data_collection", "last"})
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode


def by_byte_order(
    chunk: Chunk, group: TableEvents, schema: TableSchema, chosen: _I64
) -> Iterator[tuple[TableSchema, _I64]]:
    """The events ``chosen`` of a table, each part with the schema by which its row images are read."""
    columns = _columns_in_key(schema, group.key_fields or schema.key)
    ops = group.events.ops
    snapshot = [i for i in chosen.tolist() if ops[i] == "r" or not ops[i]] if columns else []
    if not snapshot:
        yield schema, chosen
        return
    wires: dict[str, list[int]] = {}
    for i in snapshot:
        wires.setdefault(_wire(chunk, group.events.at[i]), []).append(i)
    for wire, some in wires.items():
        yield _read_as(schema, columns, wire), np.array(some, dtype=np.int64)
    rest = np.setdiff1d(chosen, snapshot, assume_unique=True)
    if len(rest):
        yield schema, rest


def _columns_in_key(schema: TableSchema, key: tuple[str, ...]) -> frozenset[str]:
    """The columns of the key whose bytes have an order."""
    return frozenset(c.name for c in schema.columns if c.wire == _BITS and c.length > 8 and c.name in key)


def _read_as(schema: TableSchema, columns: frozenset[str], wire: str) -> TableSchema:
    def read(column: Column) -> Column:
        return replace(column, wire=wire) if column.name in columns else column

    return replace(schema, columns=tuple(map(read, schema.columns)))


def _wire(chunk: Chunk, at: int) -> str:
    """How a row that a snapshot has read, or may have read, writes the BIT columns of its key."""
    said = _snapshot_of(chunk, at)
    if said in _SNAPSHOT:
        return "bits_big_endian"
    return _BITS if said in ("incremental", "false") else "bits_any_order"


def _snapshot_of(chunk: Chunk, at: int) -> object:
    """What a record says of its snapshot; None if it says nothing."""
    try:
        message: Any = _ANY(chunk.opened.get(at) or open_loose(chunk.records.values[at] or b"")[0])
    except _BAD:
        return None
    if not isinstance(message, dict):
        return None
    if isinstance(message.get("source"), dict) and "op" in message:
        return message["source"].get("snapshot")
    prefix = chunk.options.flat_prefix
    return message.get(f"{prefix}source_snapshot", message.get(f"{prefix}snapshot"))
