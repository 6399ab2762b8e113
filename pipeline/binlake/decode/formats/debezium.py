"""Debezium JSON -> change batches: envelopes with and without embedded schema, and the unwrapped flat form.

Heads are decoded message by message, row images in bulk. Facts about the order (measured on recorded events): the
number in ``source.file``, ``source.pos`` and ``source.row`` order streamed rows; ``source.ts_ms`` has whole seconds;
``op`` gives the kind of a record, and ``source.snapshot`` does not. A flat record without file and position fields is
ordered by its Kafka offset.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from binlake.decode.changes import ControlKind
from binlake.decode.events import NO_POSITION, Places, RowEvents, places
from binlake.decode.messages.chunk import DecodeChunk, TableEvents
from binlake.decode.messages.part import decode_rows
from binlake.decode.options import BinlogForm, Form
from binlake.decode.order import OUT_OF_RANGE
from binlake.decode.quarantine import Fault, Reason

_I64 = npt.NDArray[np.int64]
_ROW_OPS = frozenset("crud")
_BINLOG = BinlogForm()


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    for group in chunk.tables():
        decode_group(chunk, group)


def read_binlog(chunk: DecodeChunk) -> None:
    """The same for the envelopes that binlake makes of the binlog itself.

    Their values have a form of their own, which loses nothing: Debezium's envelopes have null for a date that no
    calendar has, and an unsigned BIGINT as if it had a sign.
    """
    for group in chunk.tables():
        order = places(group.events, chunk.records.offsets[group.events.at], chunk.options)
        decode_table(chunk, group, order, _BINLOG)


def decode_group(chunk: DecodeChunk, group: TableEvents) -> None:
    """Decode the events of one table by Debezium's order and form."""
    order = places(group.events, chunk.records.offsets[group.events.at], chunk.options)
    decode_table(chunk, group, order, chunk.options.form)


def decode_table(chunk: DecodeChunk, group: TableEvents, order: Places, form: Form) -> None:
    """Decode the events of one table. Events that are not rows by their op or place are settled here."""
    decode_rows(chunk, group, order, _row_indices(chunk, group, order), form=form)


def _row_indices(chunk: DecodeChunk, group: TableEvents, order: Places) -> _I64:
    """The indices of events that change rows; the others are settled here."""
    ops = group.events.ops
    if _ROW_OPS.issuperset(ops) and not (order.orders == OUT_OF_RANGE).any():
        return np.arange(len(ops))
    return np.array([i for i in range(len(ops)) if _changes_row(chunk, group, order, i)], dtype=np.int64)


def _changes_row(chunk: DecodeChunk, group: TableEvents, order: Places, i: int) -> bool:
    events = group.events
    record_index, op = events.at[i], events.ops[i]
    if order.orders[i] == OUT_OF_RANGE:
        chunk.refuse(record_index, _order_fault(events, i), group.source)
    elif op in _ROW_OPS or (op == "" and events.befores is None):
        return True
    elif op == "t":
        chunk.control(
            record_index, ControlKind.TRUNCATE, group.source, int(order.orders[i]), source_ms=events.source_ms[i]
        )
    else:
        chunk.refuse(record_index, Fault(Reason.UNKNOWN_OP, f"op {op[:50]!r} is none of c, r, u, d, t"), group.source)
    return False


def _order_fault(events: RowEvents, i: int) -> Fault:
    file, position = events.files[i], events.positions[i]
    if not file or position == NO_POSITION:
        return Fault(Reason.NO_POSITION, f"file {file!r} and position {position} are no place in a binlog")
    return Fault(Reason.ORDER_OUT_OF_RANGE, f"file {file!r}, position {position} do not fit the ordering value")
