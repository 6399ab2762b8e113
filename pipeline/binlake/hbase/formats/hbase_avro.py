"""Events of HBase's Kafka proxy (hbase-connectors) -> tables of cells. A message is one cell.

An event has neither the kind of a delete nor a sequence id. A delete without a qualifier is taken for that of a family,
any other for that of a column: a delete of one version is not distinguished from it. The order is that of arrival (the
Kafka offset below the epoch; the topic's key is the row). docs/hbase-formats.md says what that loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode import order
from binlake.decode.cells import CellKind
from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import IGNORED, DecodeChunk
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.templates.avro_kernel import zigzag
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.hbase.formats.byte_slices import sliced
from binlake.hbase.formats.cell_rows import (
    CellRows,
    OneCellReader,
    RefusedCellError,
    add_cells,
    cell_table,
    store_table,
)
from hudilake.compiled import BYTES, LONG, LONG_ROWS, LONGS, OUT_BYTES, compiled

# The Avro binary of HBase's Kafka proxy (``HBaseKafkaEvent`` of hbase-connectors), n messages at once.
#
# The messages have neither a schema id nor a magic byte, and their schema has never changed: key, timestamp, delete,
# value, qualifier, family, table, in this order.

_U8 = npt.NDArray[np.uint8]
_I64 = npt.NDArray[np.int64]
#: The fields of bytes, in their order. ``timestamp`` and ``delete`` stand behind the first.
FIELDS = ("key", "value", "qualifier", "family", "table")
_BAD = -1


@dataclass(frozen=True)
class Events:
    """n events.

    Attributes:
        fields: by name (``FIELDS``) a binary array of n.
        timestamps: milliseconds, int64.
        deletes: a mask.
    """

    fields: dict[str, pa.Array]
    timestamps: _I64
    deletes: npt.NDArray[np.bool_]


def read_events(messages: Sequence[bytes]) -> Events:
    """The events of n messages. Raises ValueError if one of them is none."""
    n = len(messages)
    bounds = np.zeros(n + 1, dtype=np.int64)
    np.cumsum([len(message) for message in messages], out=bounds[1:])
    data = np.frombuffer(b"".join(messages), dtype=np.uint8)
    starts, lengths = (np.zeros((len(FIELDS), n), dtype=np.int64) for _ in range(2))
    timestamps, deletes = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.uint8)
    bad = _scan(data, bounds, starts, lengths, timestamps, deletes)
    if bad != _BAD:
        raise ValueError(f"message {bad} of {n} is no HBaseKafkaEvent")
    fields = {name: sliced(data, starts[i], lengths[i]) for i, name in enumerate(FIELDS)}
    return Events(fields, timestamps, deletes.astype(bool))


@compiled(LONG(BYTES, LONGS, LONG_ROWS, LONG_ROWS, LONGS, OUT_BYTES))
def _scan(data: _U8, bounds: _I64, starts: _I64, lengths: _I64, timestamps: _I64, deletes: _U8) -> int:
    """Fills the places of the fields of each message. Returns the first message that is no event; _BAD for none."""
    for one in range(len(bounds) - 1):
        cursor, end = bounds[one], bounds[one + 1]
        for field in range(starts.shape[0]):
            length, cursor = zigzag(data, cursor, end)
            if cursor == _BAD or length < 0 or length > end - cursor:
                return one
            starts[field, one], lengths[field, one] = cursor, length
            cursor += length
            if field == 0:
                timestamps[one], cursor = zigzag(data, cursor, end)
                if cursor == _BAD or cursor >= end or data[cursor] > 1:
                    return one
                deletes[one] = data[cursor]
                cursor += 1
        if cursor != end:
            return one
    return _BAD


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records."""

    def refuse(at: int, fault: Fault) -> None:
        chunk.refuse(at, _named(fault, chunk.records.values[at] or b""))

    OneCellReader(lambda at: _take(chunk, at), refuse).read(chunk)


def _take(chunk: DecodeChunk, at: list[int]) -> None:
    """Add the cells of some records. Raises one of BAD_CELLS if one of them is bad."""
    try:
        events = read_events([chunk.records.values[i] or b"" for i in at])
    except ValueError as error:
        raise RefusedCellError(
            Reason.MALFORMED_AVRO, "the message is no HBaseKafkaEvent of hbase-connectors"
        ) from error
    rows = _rows(chunk, events, np.array(at, dtype=np.int64))
    tables = events.fields["table"].dictionary_encode()
    sources = [_source(name) for name in tables.dictionary.to_pylist()]
    of = tables.indices.to_numpy()
    for number, source in enumerate(sources):
        if source in chunk.options.ignored_tables:
            chunk.decoded.count_filtered(source, IGNORED, int((of == number).sum()))
        else:
            add_cells(chunk, source, rows if len(sources) == 1 else rows.where(of == number))


def _rows(chunk: DecodeChunk, events: Events, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> CellRows:
    fields, n = events.fields, len(at)
    of_family = pc.equal(pc.binary_length(fields["qualifier"]), 0)
    deletes = pc.if_else(of_family, CellKind.DELETE_FAMILY.value, CellKind.DELETE_COLUMN.value)
    kinds = pc.if_else(pa.array(events.deletes), deletes, CellKind.PUT.value)
    key, family, qualifier = (fields[name] for name in ("key", "family", "qualifier"))
    unknown = pa.nulls(n, UTC_MICROSECONDS)
    cells = cell_table(key, family, qualifier, pa.array(events.timestamps), kinds, fields["value"], unknown)
    orders = order.offset_orders(np.full(n, chunk.options.epoch), chunk.records.offsets[at])
    if (orders == order.OUT_OF_RANGE).any():
        raise RefusedCellError(Reason.ORDER_OUT_OF_RANGE, "the offset does not fit the ordering value")
    millis = np.maximum(chunk.records.timestamps_ms[at], 0)
    return CellRows(cells, at, np.zeros(n, dtype=np.int32), orders, millis)


def _source(name: bytes) -> SourceTable:
    try:
        source = store_table(name.decode())
    except UnicodeDecodeError:
        source = None
    if source is None:
        raise RefusedCellError(Reason.UNKNOWN_TABLE, f"{name[:100]!r} is no name of a table")
    return source


def _named(fault: Fault, value: bytes) -> Fault:
    """The fault of one message; a hint at another format where its first byte shows it."""
    if value[:1] == b"\0":
        return Fault(fault.reason, f"{fault.detail}; it begins with a zero byte, as messages with a schema id do")
    return fault
