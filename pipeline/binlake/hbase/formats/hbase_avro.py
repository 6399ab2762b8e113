"""Events of HBase's Kafka proxy (hbase-connectors) -> tables of cells. A message is one cell.

An event has neither the kind of a delete nor a sequence id. A delete without a qualifier is taken for that of a family,
any other for that of a column: a delete of one version is not told apart from it. The order is that of arrival (the
Kafka offset below the epoch; the topic's key is the row). docs/hbase-formats.md says what that loses.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode import order
from binlake.decode.cells import CellKind
from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import IGNORED, Chunk
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.hbase.formats.cell_rows import CellRows, OneCellReader, Refused, add_cells, cell_table, store_table
from binlake.hbase.formats.hbase_event import Events, read_events


def read(chunk: Chunk) -> None:
    """Decode the chunk's records."""

    def refuse(at: int, fault: Fault) -> None:
        chunk.refuse(at, _named(fault, chunk.records.values[at] or b""))

    OneCellReader(lambda at: _take(chunk, at), refuse).read(chunk)


def _take(chunk: Chunk, at: list[int]) -> None:
    """Add the cells of some records. Raises one of BAD_CELLS if one of them is bad."""
    try:
        events = read_events([chunk.records.values[i] or b"" for i in at])
    except ValueError as error:
        raise Refused(Reason.MALFORMED_AVRO, "the message is no HBaseKafkaEvent of hbase-connectors") from error
    rows = _rows(chunk, events, np.array(at, dtype=np.int64))
    tables = events.fields["table"].dictionary_encode()
    sources = [_source(name) for name in tables.dictionary.to_pylist()]
    of = tables.indices.to_numpy()
    for number, source in enumerate(sources):
        if source in chunk.options.ignored_tables:
            chunk.decoded.count_filtered(source, IGNORED, int((of == number).sum()))
        else:
            add_cells(chunk, source, rows if len(sources) == 1 else rows.where(of == number))


def _rows(chunk: Chunk, events: Events, at: np.ndarray[tuple[int], np.dtype[np.int64]]) -> CellRows:
    fields, n = events.fields, len(at)
    of_family = pc.equal(pc.binary_length(fields["qualifier"]), 0)
    deletes = pc.if_else(of_family, CellKind.DELETE_FAMILY.value, CellKind.DELETE_COLUMN.value)
    kinds = pc.if_else(pa.array(events.deletes), deletes, CellKind.PUT.value)
    key, family, qualifier = (fields[name] for name in ("key", "family", "qualifier"))
    unknown = pa.nulls(n, UTC_MICROSECONDS)
    cells = cell_table(key, family, qualifier, pa.array(events.timestamps), kinds, fields["value"], unknown)
    orders = order.offset_orders(np.full(n, chunk.options.epoch), chunk.records.offsets[at])
    if (orders == order.OUT_OF_RANGE).any():
        raise Refused(Reason.ORDER_OUT_OF_RANGE, "the offset does not fit the ordering value")
    millis = np.maximum(chunk.records.timestamps_ms[at], 0)
    return CellRows(cells, at, np.zeros(n, dtype=np.int32), orders, millis)


def _source(name: bytes) -> SourceTable:
    try:
        source = store_table(name.decode())
    except UnicodeDecodeError:
        source = None
    if source is None:
        raise Refused(Reason.UNKNOWN_TABLE, f"{name[:100]!r} is no name of a table")
    return source


def _named(fault: Fault, value: bytes) -> Fault:
    """The fault of one message; a hint at another format where its first byte shows it."""
    if value[:1] == b"\0":
        return Fault(fault.reason, f"{fault.detail}; it begins with a zero byte, as messages with a schema id do")
    return fault
