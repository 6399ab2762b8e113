"""Kafka keys: the names of the key columns, and key values for deletes without a before image."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.changes import Column, TableSchema
from binlake.decode.messages.frames import Frames, open_loose
from binlake.decode.quarantine import Buffer

if TYPE_CHECKING:
    from binlake.decode.messages.chunk import Chunk, TableEvents

KeyFields = tuple[str, ...]
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_ROUTING_PREFIX = "__dbz__"
_FRAME = ("schema", "payload")
#: Characters that the typed decoder does not accept in a name.
_UNUSABLE = re.compile(r'["\\\x00-\x1f]')


@dataclass(frozen=True)
class Keys:
    """The keys of a chunk: payloads (None for a null key), and the field names: one tuple for all, or one for each key.

    The names are None for a null key, or a key that is not a JSON object.
    """

    payloads: list[Buffer | None]
    fields: KeyFields | list[KeyFields | None] | None

    def fields_at(self, at: int) -> KeyFields | None:
        """The field names of one key."""
        return self.fields[at] if isinstance(self.fields, list) else self.fields


def read_keys(keys: Sequence[bytes | None]) -> Keys:
    """Parse all keys of a chunk; the names are decoded once where all keys have the same ones."""
    first = next((key for key in keys if key is not None), None)
    if first is None:
        return Keys(list(keys), None)
    names = _names(first)
    if names is not None and _all_have(names, keys):
        return Keys(list(keys), names)
    frames = Frames()
    payloads = [None if key is None else frames.open(key)[0] for key in keys]
    names = next((_names(payload) for payload in payloads if payload is not None), None)
    if names is not None and _all_have(names, payloads):
        return Keys(payloads, names)
    return Keys(payloads, [None if payload is None else _names(payload) for payload in payloads])


def _all_have(names: KeyFields, payloads: Sequence[Buffer | None]) -> bool:
    if names == _FRAME or None in payloads or any(_UNUSABLE.search(name) for name in names):
        return False
    try:
        deque(map(_exact_decoder(names), cast("Sequence[Buffer]", payloads)), maxlen=0)
    except _BAD:
        return False
    return True


@lru_cache(maxsize=256)
def _exact_decoder(names: KeyFields) -> Callable[[Buffer], Any]:
    """A decoder for an object of exactly these names, in any order."""
    fields = [(f"f{i}", msgspec.Raw) for i in range(len(names))]
    renamed = {f"f{i}": name for i, name in enumerate(names)}
    kind = msgspec.defstruct("KeyFields", fields, rename=renamed, forbid_unknown_fields=True, gc=False)
    return msgspec.json.Decoder(kind).decode


def _names(payload: Buffer) -> KeyFields | None:
    try:
        key = _ANY(payload)
    except _BAD:
        return None
    if not isinstance(key, dict):
        return None
    return tuple(name for name in key if not name.startswith(_ROUTING_PREFIX)) or None


# BIT columns of the Kafka key: Debezium writes their bytes in one order in a snapshot, in another one otherwise.
#
# Its converter turns a value's bytes around in place, and the key and the row image share them (recorded with the
# MariaDB connector 3.4.0, BIT(1) to BIT(64)):
#
# - rows that an initial or blocking snapshot has read (``op`` r): turned around twice, big-endian in key and image;
# - rows of incremental snapshots (turned around three times) and of the binlog, and columns outside of the key:
#   little-endian.

_I64 = npt.NDArray[np.int64]
_BITS = "bits"
_SNAPSHOT = frozenset({"true", "first", "first_in_data_collection", "last_in_data_collection", "last"})


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
