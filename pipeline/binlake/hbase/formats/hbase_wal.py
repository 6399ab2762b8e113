"""HBase's WAL entries as JSON -> tables of cells. A message is one entry: cells of one table, of one row or of many.

The shape is that of the streaming replication endpoint of awslabs: ``key`` has the table, the write time and the
sequence id, ``edit.cells`` the cells with their exact types; bytes are base64. A message is taken or refused whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from binlake.decode import order
from binlake.decode.cells import CellKind
from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import IGNORED, DecodeChunk, reject_invalid
from binlake.decode.messages.duplicates import with_duplicate_members
from binlake.decode.messages.envelopes import TOMBSTONE, Long
from binlake.decode.options import EventFormat
from binlake.decode.quarantine import Fault, Reason, json_fault
from binlake.decode.types.encoded_bytes import decode_base64
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.hbase.formats.cell_rows import (
    LOGGED_KINDS,
    NOTES,
    CellColumns,
    CellRows,
    RefusedCellError,
    add_cells,
    cell_table,
    in_halves,
    in_order,
    portions,
    require,
    store_table,
)

if TYPE_CHECKING:
    from binlake.hbase.formats.wal_scan import WalScan

_I64 = npt.NDArray[np.int64]
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
#: Cells of messages that are parsed at once, in bytes of JSON. A single message may have more.
_PORTION_BYTES = 32 << 20
#: The last moment that readers show, 9999-12-31, in milliseconds.
_LAST_MS = 253_402_300_799_999
#: HBase's mark for "now", which no stored cell has.
_NO_TIMESTAMP = np.iinfo(np.int64).max
_CELL = pa.struct(
    [
        ("row", pa.string()),
        ("family", pa.string()),
        ("qualifier", pa.string()),
        ("timeStamp", pa.int64()),
        ("type", pa.string()),
        ("value", pa.string()),
    ]
)
_PARSE = pj.ParseOptions(
    explicit_schema=pa.schema([pa.field("cells", pa.list_(_CELL))]), unexpected_field_behavior="ignore"
)
#: The qualifier of HBase's notes about files that were added to a table.
_BULK_LOAD = b"HBASE::BULK_LOAD"
_NO_CELLS = "no_cells"
_MEMBERS = {b'"key":': 1, b'"edit":': 1, b'"cells":': 1, b'"writeTime":': 1, b'"sequenceId":': 1, b'"tablename":': 1}


class _Key(msgspec.Struct, gc=False):
    writeTime: Long
    tablename: str
    sequenceId: Long


class _Edit(msgspec.Struct, gc=False):
    cells: msgspec.Raw


class _Entry(msgspec.Struct, gc=False):
    key: _Key
    edit: _Edit


_ENTRY = msgspec.json.Decoder(_Entry).decode


@dataclass(frozen=True)
class _Entries:
    """n entries of one table.

    Attributes:
        source: the table.
        at: the index of each entry's record, int64.
        sequences, written_ms: the sequence id and the write time of each, int64.
        cells: the JSON list of each one's cells; empty where templates have read them.
    """

    source: SourceTable
    at: _I64
    sequences: _I64
    written_ms: _I64
    cells: list[msgspec.Raw]

    def part(self, chosen: slice) -> _Entries:
        """Some of the entries."""
        columns = (self.at[chosen], self.sequences[chosen], self.written_ms[chosen])
        return _Entries(self.source, *columns, self.cells[chosen])


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    read_cells: dict[SourceTable, list[CellRows]] = {}
    indices, entries = _entries(chunk, _scanned(chunk, chunk.live(), read_cells))
    by_name: dict[str, list[int]] = {}
    for i, entry in enumerate(entries):
        by_name.setdefault(entry.key.tablename, []).append(i)
    for name, chosen in by_name.items():
        source = store_table(name)
        if source is None:
            for i in chosen:
                chunk.refuse(indices[i], Fault(Reason.UNKNOWN_TABLE, f"{name[:100]!r} is no name of a table"))
        elif source in chunk.options.ignored_tables:
            chunk.decoded.count_filtered(source, IGNORED, len(chosen))
        else:
            storable_entries = _in_range(chunk, source, [(indices[i], entries[i]) for i in chosen])
            for part in portions([len(memoryview(cells)) for cells in storable_entries.cells], _PORTION_BYTES):
                _decode(chunk, storable_entries.part(part), read_cells.setdefault(source, []))
    by_source = [(source, parts) for source, parts in read_cells.items() if parts]
    for source, parts in sorted(by_source, key=lambda item: min(int(part.at[0]) for part in item[1])):
        for rows in in_order(parts):
            add_cells(chunk, source, rows)
    if chunk.tombstones:
        chunk.decoded.count_filtered(None, TOMBSTONE, len(chunk.tombstones))


def _scanned(chunk: DecodeChunk, live: list[int], read_cells: dict[SourceTable, list[CellRows]]) -> list[int]:
    """Read entries that look alike by templates, into ``read_cells``; returns the records that are left."""
    from binlake.hbase.formats.wal_scan import WalScan  # here: numba needs half a second

    scan = WalScan.of([chunk.records.values[i] or b"" for i in live], chunk.options.max_nesting)
    if scan is None:
        return live
    indices, left = np.array(live, dtype=np.int64), np.ones(len(live), dtype=bool)
    for name, chosen in scan.by_table():
        source = store_table(name)
        if source is None or source in chunk.options.ignored_tables:
            continue
        storable = np.logical_and(*_storable(scan.sequences(chosen), scan.written_ms(chosen)))
        entries = chosen[storable]
        parts = read_cells.setdefault(source, [])
        for part in portions(scan.sizes(entries).tolist(), _PORTION_BYTES):
            for rows in _read_scanned(chunk, scan, source, entries[part], indices, parts):
                left[rows] = False
    chunk.decoded.by_template += int(len(left) - left.sum())
    rest: list[int] = indices[left].tolist()
    return rest


def _read_scanned(
    chunk: DecodeChunk, scan: WalScan, source: SourceTable, entries: _I64, indices: _I64, parts: list[CellRows]
) -> list[_I64]:
    """Read the cells of some entries into ``parts``; returns the numbers of those that were read. ``indices``: of the
    records, by entry."""
    taken: list[_I64] = []

    def take(some: slice) -> None:
        cells = scan.cells(entries[some])
        good = cells.counts >= 0
        rows = entries[some][good]
        if len(rows):
            portion = _Entries(source, indices[rows], scan.sequences(rows), scan.written_ms(rows), [])
            parts.append(_placed(chunk, portion, cells.counts[good], cells.columns))
            taken.append(rows)

    in_halves(len(entries), take, lambda _, __: None)  # the general decoder says what is wrong with a bad one
    return taken


def _storable(sequences: _I64, written_ms: _I64) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which sequence ids and which write times can be stored."""
    ordered = (sequences >= 0) & (sequences < 1 << order.OFFSET_BITS)
    return ordered, (written_ms >= 0) & (written_ms <= _LAST_MS)


def _entries(chunk: DecodeChunk, left: list[int]) -> tuple[list[int], list[_Entry]]:
    """The records of ``left`` that are WAL entries: their indices, and the entries. All others are settled."""
    indices: list[int] = []
    entries: list[_Entry] = []
    values = chunk.records.values
    for i in left:
        value = values[i] or b""
        try:
            entries.append(_ENTRY(value))
            indices.append(i)
        except _BAD as error:
            if not reject_invalid(chunk, i, value, EventFormat.HBASE_WAL):
                reason = Reason.NO_POSITION if "sequenceId" in str(error) else Reason.UNKNOWN_MESSAGE
                chunk.refuse(i, Fault(reason, f"no WAL entry: {error}"))
    payloads = [values[i] or b"" for i in indices]
    doubled = set(with_duplicate_members(payloads, entries, _MEMBERS, lambda entry: (entry.edit.cells,)))
    for i in doubled:
        chunk.refuse(indices[i], Fault(Reason.DUPLICATE_KEY, "a member of the entry occurs twice"))
    once = [i for i in range(len(indices)) if i not in doubled] if doubled else range(len(indices))
    return [indices[i] for i in once], [entries[i] for i in once]


def _in_range(chunk: DecodeChunk, source: SourceTable, found: Sequence[tuple[int, _Entry]]) -> _Entries:
    """The entries whose sequence id and write time can be stored; the others are refused."""
    indices = np.array([i for i, _ in found], dtype=np.int64)
    sequences = np.array([entry.key.sequenceId for _, entry in found], dtype=np.int64)
    written = np.array([entry.key.writeTime for _, entry in found], dtype=np.int64)
    ordered, timely = _storable(sequences, written)
    for i in np.flatnonzero(~ordered).tolist():
        fault = Fault(Reason.ORDER_OUT_OF_RANGE, f"sequenceId {sequences[i]} does not fit the ordering value")
        chunk.refuse(int(indices[i]), fault, source)
    for i in np.flatnonzero(ordered & ~timely).tolist():
        fault = Fault(Reason.BAD_VALUE, f"writeTime {written[i]} is no time in milliseconds")
        chunk.refuse(int(indices[i]), fault, source)
    good = ordered & timely
    cells = [entry.edit.cells for (_, entry), fine in zip(found, good.tolist(), strict=True) if fine]
    return _Entries(source, indices[good], sequences[good], written[good], cells)


def _decode(chunk: DecodeChunk, portion: _Entries, parts: list[CellRows]) -> None:
    """Add the cells of the entries to ``parts``; bad entries are refused."""

    def take(part: slice) -> None:
        rows = _rows(chunk, portion.part(part))
        if len(rows.at):
            parts.append(rows)
        if empty := part.stop - part.start - len(np.unique(rows.at)):
            chunk.decoded.count_filtered(portion.source, _NO_CELLS, empty)

    def refuse(number: int, fault: Fault) -> None:
        index = int(portion.at[number])
        of_text = json_fault(chunk.records.values[index] or b"", chunk.options.max_nesting)
        chunk.refuse(index, of_text or fault, portion.source)

    in_halves(len(portion.at), take, refuse)


def _rows(chunk: DecodeChunk, portion: _Entries) -> CellRows:
    """The cells of the entries. Raises one of BAD_CELLS if one of them is bad."""
    counts, parsed = _parsed(portion.cells)
    _check(parsed)
    row, family, qualifier, timestamps, kinds, value = parsed
    families, qualifiers = decode_base64(family), decode_base64(qualifier)
    noted = pc.equal(families, pa.scalar(NOTES))
    if pc.any(pc.and_(noted, pc.starts_with(qualifiers, _BULK_LOAD))).as_py():
        raise RefusedCellError(
            Reason.UNKNOWN_MESSAGE, "files were added to the table by a bulk load; no event has their cells"
        )
    columns = CellColumns(decode_base64(row), families, qualifiers, timestamps, kinds, decode_base64(value))
    return _placed(chunk, portion, counts, columns).where(~noted.to_numpy(zero_copy_only=False))


def _placed(chunk: DecodeChunk, portion: _Entries, counts: _I64, columns: CellColumns) -> CellRows:
    """The cells of n entries in their places.

    Args:
        chunk: the entries' records.
        portion: the entries.
        counts: the cells of each.
        columns: of all cells.

    Raises as ``cell_table``.
    """
    of = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    written = portion.written_ms[of]
    cells = cell_table(*columns, pa.array(written * 1000).cast(UTC_MICROSECONDS))
    orders = order.offset_orders(np.full(len(counts), chunk.options.epoch), portion.sequences)
    numbers = (np.arange(len(of)) - starts[of]).astype(np.int32)
    return CellRows(cells, portion.at[of], numbers, orders[of], written)


def _parsed(cells: list[msgspec.Raw]) -> tuple[_I64, list[pa.Array]]:
    """How many cells each entry has, and the columns of _CELL of all cells. Raises as ``_rows``."""
    texts = b'{"cells":' + b'}\n{"cells":'.join(cells) + b"}"
    reading = pj.ReadOptions(use_threads=False, block_size=len(texts) + 1)
    table = pj.read_json(pa.BufferReader(texts), reading, _PARSE)
    lists = table.column("cells").combine_chunks()
    if len(lists) != len(cells) or lists.null_count:
        raise RefusedCellError(Reason.UNKNOWN_MESSAGE, "edit.cells is no list")
    counts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    return counts, lists.flatten().flatten()


def _check(columns: list[pa.Array]) -> None:
    """Raise Refused for cells that lack a member, or whose timestamp or type does not exist."""
    *_, timestamps, kinds, values = columns
    for column, field in zip(columns[:-1], _CELL, strict=False):
        require(column.is_valid(), Reason.UNKNOWN_MESSAGE, f"a cell has no {field.name}")
    puts = pc.equal(kinds, CellKind.PUT.value)
    require(pc.or_(pc.invert(puts), values.is_valid()), Reason.UNKNOWN_MESSAGE, "a Put has no value")
    require(pc.not_equal(timestamps, pa.scalar(_NO_TIMESTAMP)), Reason.BAD_VALUE, "a timestamp is out of range")
    require(pc.is_in(kinds, pa.array(LOGGED_KINDS)), Reason.UNKNOWN_OP, "a cell has an unknown type", kinds)
