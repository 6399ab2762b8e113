"""Cells of HBase-like stores -> change batches: each cell, also each delete marker, is one row of a table of cells.

A reader builds the cells of many messages at once, and raises if one of them is bad. ``in_halves`` then finds the bad
messages, so that only these are quarantined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_FIELDS, CELL_KEY, CELL_SCHEMA, CELL_WIRE, CellKind
from binlake.decode.changes import META_FIELDS, UNKNOWN_PLACE, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.envelopes import TOMBSTONE
from binlake.decode.quarantine import Fault, Reason
from binlake.decode.types.cell_text import text_of

_I64 = npt.NDArray[np.int64]
#: The namespace of HBase tables that are named without one.
DEFAULT_NAMESPACE = "default"
#: What a build of cells raises if one of them is bad.
BAD_CELLS = (ValueError, pa.ArrowException)
#: The kinds of cells that HBase's WAL has; a Put is the first.
LOGGED_KINDS = tuple(kind.value for kind in CellKind if kind is not CellKind.DELETE_RANGE)
#: The family of HBase's own notes in the WAL.
NOTES = b"METAFAMILY"
_FAMILY_MARKERS = (CellKind.DELETE_FAMILY.value, CellKind.DELETE_FAMILY_VERSION.value)
_MAX_DETAIL = 300


class RefusedCellError(ValueError):
    """A cell that cannot be applied."""

    def __init__(self, reason: Reason, detail: str) -> None:
        self.fault = Fault(reason, detail)
        super().__init__(detail)


@dataclass(frozen=True)
class CellRows:
    """n cells of one table, in the order of their records.

    Attributes:
        cells: of CELL_SCHEMA.
        at: the index of each cell's record in the chunk, int64.
        number: of the cell in its record, int32.
        orders: the ordering value of each cell, int64.
        source_ms: when the store logged the cell, milliseconds, int64; 0 if unknown.
    """

    cells: pa.Table
    at: _I64
    number: npt.NDArray[np.int32]
    orders: _I64
    source_ms: _I64

    def where(self, kept: npt.NDArray[np.bool_]) -> CellRows:
        """Some of the cells: ``kept`` is a mask of n."""
        columns = (self.at[kept], self.number[kept], self.orders[kept], self.source_ms[kept])
        return CellRows(self.cells.filter(pa.array(kept)), *columns)


class CellColumns(NamedTuple):
    """The columns of n cells that ``cell_table`` takes, in its order."""

    rows: pa.Array
    families: pa.Array
    qualifiers: pa.Array
    timestamps: pa.Array
    kinds: pa.Array
    values: pa.Array


def table_of_cells(source: SourceTable) -> TableSchema:
    """The schema of a store's table as a table of cells."""
    return TableSchema(source, tuple(Column(field.name, CELL_WIRE, field.type) for field in CELL_FIELDS), CELL_KEY)


def store_table(name: str) -> SourceTable | None:
    """The table that HBase calls ``namespace:table`` or ``table``; None if that is no name of a table."""
    namespace, colon, table = name.rpartition(":")
    if not table or (colon and not namespace) or ":" in namespace:
        return None
    return SourceTable(namespace or DEFAULT_NAMESPACE, table)


def cell_table(
    rows: pa.Array,
    families: pa.Array,
    qualifiers: pa.Array,
    timestamps: pa.Array,
    kinds: pa.Array,
    values: pa.Array,
    written: pa.Array,
) -> pa.Table:
    """n cells as a table of CELL_SCHEMA; the values of markers become null.

    Args:
        rows, families, qualifiers: binary arrays without nulls.
        timestamps: int64 array without nulls, of which negative ones are refused.
        kinds: string array of ``CellKind``.
        values: binary array, without nulls for values.
        written: of the column's type.

    Raises Refused for what no cell of a store has.
    """
    for column, name in ((rows, "row"), (families, "family")):
        require(pc.greater(pc.binary_length(column), 0), Reason.MISSING_KEY, f"a cell has an empty {name}")
    require(pc.greater_equal(timestamps, 0), Reason.BAD_VALUE, "a timestamp is negative", timestamps)
    try:
        names = families.cast(pa.string())
    except pa.ArrowException as error:
        raise RefusedCellError(Reason.BAD_VALUE, "a family is no text") from error
    require(pc.invert(pc.match_substring(names, ":")), Reason.BAD_VALUE, "a family has a colon in its name", names)
    of_family = pc.is_in(kinds, pa.array(_FAMILY_MARKERS))
    whole = pc.or_(pc.invert(of_family), pc.equal(pc.binary_length(qualifiers), 0))
    require(whole, Reason.BAD_VALUE, "a delete marker of a family names a qualifier")
    values = pc.if_else(pc.equal(kinds, CellKind.PUT.value), values, pa.scalar(None, pa.binary()))
    columns = [text_of(rows), names, text_of(qualifiers), timestamps, kinds, values, written]
    return pa.Table.from_arrays([c.cast(f.type) for c, f in zip(columns, CELL_FIELDS, strict=True)], schema=CELL_SCHEMA)


def require(good: pa.Array, reason: Reason, what: str, shown: pa.Array | None = None) -> None:
    """Raise Refused for the first cell that is not good; ``shown``: a column whose value the message shows."""
    if len(good) and not pc.all(good).as_py():
        index = pc.index(good, pa.scalar(False)).as_py()
        value = "" if shown is None else f": {str(shown[index].as_py())[:100]}"
        place = f" (cell {index} of {len(good)}, from 0)" if len(good) > 1 else ""
        raise RefusedCellError(reason, f"{what}{value}{place}")


@dataclass(frozen=True)
class OneCellReader:
    """How messages of one cell each are taken.

    Attributes:
        take: takes some records, by their indices, as a whole, or raises one of BAD_CELLS and takes none.
        refuse: is given the index of a bad record, and what is wrong with it.
        sign: bytes that every message has; "" for none. Messages without them are not tried.
        most: bytes of messages that are taken at once; a single message may have more.
    """

    take: Callable[[list[int]], None]
    refuse: Callable[[int, Fault], None]
    sign: bytes = b""
    most: int = 8 << 20

    def read(self, chunk: DecodeChunk) -> None:
        """Take the records of a chunk; settle the tombstones."""
        values, tried = chunk.records.values, list[int]()
        for index in chunk.live():
            if self.sign in (values[index] or b""):
                tried.append(index)
            else:
                self.refuse(index, Fault(Reason.UNKNOWN_MESSAGE, f"the message has no {self.sign.decode()}"))
        for portion in portions([len(values[index] or b"") for index in tried], self.most):
            self._take(tried[portion])
        if chunk.tombstones:
            chunk.decoded.count_filtered(None, TOMBSTONE, len(chunk.tombstones))

    def _take(self, at: list[int]) -> None:
        in_halves(len(at), lambda part: self.take(at[part]), lambda number, fault: self.refuse(at[number], fault))


def portions(sizes: Sequence[int], most: int) -> Iterator[slice]:
    """Things of some sizes in parts of at most ``most``; a part of one may have more."""
    start = size = 0
    for index, one in enumerate(sizes):
        if index > start and size + one > most:
            yield slice(start, index)
            start, size = index, 0
        size += one
    if len(sizes):
        yield slice(start, len(sizes))


def in_halves(count: int, take: Callable[[slice], None], refuse: Callable[[int, Fault], None]) -> None:
    """Take n messages together; if one of them is bad, each half by itself, until the bad ones are alone.

    Args:
        count: n.
        take: takes some of the messages as a whole, or raises one of BAD_CELLS and takes none.
        refuse: is given the number of a bad message, and what is wrong with it.
    """
    waiting = [slice(0, count)] if count else []
    while waiting:
        part = waiting.pop()
        try:
            take(part)
        except BAD_CELLS as error:
            if part.stop - part.start == 1:
                fault = (
                    error.fault
                    if isinstance(error, RefusedCellError)
                    else Fault(Reason.BAD_VALUE, str(error)[:_MAX_DETAIL])
                )
                refuse(part.start, fault)
            else:
                half = (part.start + part.stop) // 2
                waiting += [slice(half, part.stop), slice(part.start, half)]


def in_order(parts: Sequence[CellRows]) -> list[CellRows]:
    """Cells of one table in the order of their records: the parts themselves if they follow each other, else one."""
    if all(one.at[-1] < other.at[0] for one, other in pairwise(parts)):
        return list(parts)
    at = np.concatenate([part.at for part in parts])
    by_record = np.argsort(at, kind="stable")  # the cells of a record are all in one part, in their order
    cells = pa.concat_tables([part.cells for part in parts]).take(pa.array(by_record))
    numbers, orders, source_ms = (
        np.concatenate(columns)[by_record]
        for columns in zip(*((part.number, part.orders, part.source_ms) for part in parts), strict=True)
    )
    return [CellRows(cells, at[by_record], numbers, orders, source_ms)]


def add_cells(chunk: DecodeChunk, source: SourceTable, rows: CellRows) -> None:
    """Append a change batch of the cells of one table; none for no cells."""
    n = len(rows.at)
    if not n:
        return
    meta = (
        np.full(n, Op.UPSERT, dtype=np.int8),
        rows.orders,
        rows.number,
        np.full(n, chunk.records.partition, dtype=np.int32),
        chunk.records.offsets[rows.at],
        rows.source_ms,
        np.full(n, UNKNOWN_PLACE, dtype=np.int64),
    )
    table = rows.cells
    for field, values in zip(META_FIELDS, meta, strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    chunk.decoded.changes.append(ChangeBatch(table_of_cells(source), chunk.records.topic, table))
