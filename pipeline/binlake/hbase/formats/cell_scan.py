"""Exported scans of HBase-like stores -> tables of cells: JSON lines, and ``Result`` messages of HBase's Export.

A scan does not say in which sequence its cells were written. They get orders below those of the stream: the first put
of a region has sequence id 4 (measured with HBase 2.5.12). An event of the stream for the same cell wins, whichever of
the two comes first. That is right if the stream begins before the scan: what was written since the stream's begin is in
the stream, and what was written before is older than all of the stream.

In families whose markers mask by sequence (NEW_VERSION_BEHAVIOR), the masked puts of a raw scan cannot be distinguished
from the visible ones. Records with markers of such families are refused. A plain scan has the visible puts only. The
versions of a column get orders of their own there, the newest the highest, because HBase counts versions by
their sequence ids.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import CELL_SCHEMA, CellKind
from binlake.decode.changes import SourceTable
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.quarantine import Fault, Reason, json_fault
from binlake.decode.types.cell_text import text_of
from binlake.decode.types.mysql_types import UTC_MICROSECONDS
from binlake.hbase.formats.cell_rows import CellRows, add_cells
from binlake.hbase.formats.scanned_cells import ScannedCells

#: The highest order of a scanned cell: below the sequence ids of puts.
NEWEST_SCANNED: Final = 3
#: Begins the topic of records of scans; no topic of Kafka has a colon.
_SCAN: Final = "scan:"
#: HBase's mark for "now", which no stored cell has.
_NO_TIMESTAMP: Final = (1 << 63) - 1
_BAD: Final = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_US_PER_MS: Final = 1000
_FAMILY_MARKERS: Final = (CellKind.DELETE_FAMILY.value, CellKind.DELETE_FAMILY_VERSION.value)
_KINDS: Final = (
    CellKind.PUT.value,
    CellKind.DELETE.value,
    CellKind.DELETE_COLUMN.value,
    *_FAMILY_MARKERS,
)

_Stamp = Annotated[int, msgspec.Meta(ge=-_NO_TIMESTAMP, le=_NO_TIMESTAMP)]
_Cell = tuple[bytes, bytes, _Stamp, bytes | None]
_RawCell = tuple[bytes, bytes, _Stamp, str, bytes | None]


#: A cell with the index of its record and its row, and the types of these.
_Found = tuple[int, bytes, bytes, bytes, int, str, bytes | None]
_FOUND: Final = (pa.int64(), pa.binary(), pa.binary(), pa.binary(), pa.int64(), pa.string(), pa.binary())
_BY_SEQUENCE: Final = (
    "a raw scan does not tell which cells of a family with new_version_behavior are visible: "
    "load a plain scan of this family, and a raw one of the others"
)


class _ScanRow(msgspec.Struct, gc=False):
    row: bytes
    cells: list[_Cell]


class _RawRow(msgspec.Struct, gc=False):
    row: bytes
    cells: list[_RawCell]


_PLAIN_ROW = msgspec.json.Decoder(_ScanRow).decode
_RAW_ROW = msgspec.json.Decoder(_RawRow).decode


def scan_topic(source: SourceTable, path: str) -> str:
    """What stands in place of a topic for records of a scan of a table in the file ``path``."""
    return f"{_SCAN}{source}/{path}"


def scanned_table(topic: str) -> SourceTable | None:
    """The table that ``scan_topic`` names; None for any other topic."""
    if not topic.startswith(_SCAN):
        return None
    database, _, table = topic.removeprefix(_SCAN).partition("/")[0].partition(".")
    return SourceTable.named(database, table)


def read(chunk: DecodeChunk, source: SourceTable) -> None:
    """Decode a chunk of records of scans of one table."""
    lines, messages = list[int](), list[int]()
    for index in chunk.live():
        (lines if (chunk.records.values[index] or b"").lstrip()[:1] == b"{" else messages).append(index)
    for scanned_cells in (_lines(chunk, source, lines), _messages(chunk, source, messages)):
        faults = _faults(chunk, source, scanned_cells)
        for index, fault in faults.items():
            chunk.refuse(index, fault, source)
        cells = scanned_cells.without(list(faults)) if faults else scanned_cells
        if len(cells):
            add_cells(chunk, source, _rows(chunk, source, cells))


def _lines(chunk: DecodeChunk, source: SourceTable, chosen: list[int]) -> ScannedCells:
    """The cells of lines. A line that is no row of a scan is refused."""
    cell_entries = list[_Found]()
    for index in chosen:
        value = chunk.records.values[index] or b""
        row = _row_of(value)
        if isinstance(row, _ScanRow):
            cell_entries += [(index, row.row, *cell[:3], CellKind.PUT.value, cell[3]) for cell in row.cells]
        elif isinstance(row, _RawRow):
            cell_entries += [(index, row.row, *cell) for cell in row.cells]
        else:
            fault = json_fault(value, chunk.options.max_nesting)
            chunk.refuse(index, fault or Fault(Reason.UNKNOWN_MESSAGE, f"no row of a scan: {row}"), source)
            continue
        if not row.cells:
            chunk.decoded.count_filtered(source, "empty")
    columns = list(zip(*cell_entries, strict=True)) or [()] * len(_FOUND)
    at_, rows, families, qualifiers, stamps, kinds, values = (
        pa.array(column, type_) for column, type_ in zip(columns, _FOUND, strict=True)
    )
    return ScannedCells(at_.to_numpy(), rows, families, qualifiers, stamps.to_numpy(), kinds, values)


def _row_of(line: bytes) -> _ScanRow | _RawRow | str:
    """A line as the row of a plain or a raw scan; what is wrong with it if it is neither."""
    try:
        return _PLAIN_ROW(line)
    except _BAD as plain:
        try:
            return _RAW_ROW(line)
        except _BAD as raw:
            return f"{raw}; read without types: {plain}"


def _messages(chunk: DecodeChunk, source: SourceTable, chosen: list[int]) -> ScannedCells:
    """The cells of ``Result`` messages. A message that is none is refused."""
    from binlake.hbase.formats.hbase_result import read_results  # needs compiled loops, seconds to import

    cells, bad = read_results([chunk.records.values[index] or b"" for index in chosen], chosen)
    for index in bad:
        chunk.refuse(index, Fault(Reason.UNKNOWN_MESSAGE, "neither a JSON object nor a Result of HBase"), source)
    return cells


def _faults(chunk: DecodeChunk, source: SourceTable, cells: ScannedCells) -> dict[int, Fault]:
    """What is wrong with records, by their index. A record is refused as a whole."""
    marked = _among(cells.families, _by_sequence(chunk, source).__contains__)
    checks = (
        (pc.invert(pc.is_in(cells.kinds, pa.array(_KINDS))), Reason.UNKNOWN_OP, "a cell has an unknown type"),
        (pc.equal(pc.binary_length(cells.rows), 0), Reason.MISSING_KEY, "the row is empty"),
        (_out_of_range(cells.timestamps), Reason.BAD_VALUE, "a timestamp is out of range"),
        (_among(cells.families, _is_no_name), Reason.BAD_VALUE, "a family is no text, is empty or has a colon"),
        (pc.and_(_marks(cells), marked), Reason.BAD_VALUE, _BY_SEQUENCE),
    )
    return {
        int(index): Fault(reason, detail)
        for bad, reason, detail in reversed(checks)
        for index in np.unique(cells.at[np.asarray(bad)])
    }


def _out_of_range(timestamps: npt.NDArray[np.int64]) -> pa.Array:
    return pa.array((timestamps < 0) | (timestamps == _NO_TIMESTAMP))


def _among(families: pa.Array, chosen: Callable[[bytes], bool]) -> pa.Array:
    """Which of the families are chosen, by their names."""
    return pc.is_in(families, pa.array([name for name in pc.unique(families).to_pylist() if chosen(name)], pa.binary()))


def _is_no_name(family: bytes) -> bool:
    try:
        name = family.decode()
    except UnicodeDecodeError:
        return True
    return not name or ":" in name


def _marks(cells: ScannedCells) -> pa.Array:
    return pc.not_equal(cells.kinds, CellKind.PUT.value)


def _by_sequence(chunk: DecodeChunk, source: SourceTable) -> set[bytes]:
    """The families of a table whose markers mask by sequence."""
    return {name.encode() for of, name in chunk.options.by_sequence if of == source}


def _orders(cells: ScannedCells, by_sequence: set[bytes]) -> npt.NDArray[np.int64]:
    """The orders of cells, int64, n: 0, and in the given families by age of the version."""
    orders = np.zeros(len(cells), dtype=np.int64)
    chosen = np.flatnonzero(pc.is_in(cells.families, pa.array(sorted(by_sequence), pa.binary())))
    if not len(chosen):
        return orders
    codes = [
        column.take(pa.array(chosen)).dictionary_encode().indices.to_numpy()
        for column in (cells.qualifiers, cells.families, cells.rows)
    ]
    sort = np.lexsort((-cells.timestamps[chosen], *codes))
    columns = np.array(codes)[:, sort]
    first = np.r_[True, (columns[:, 1:] != columns[:, :-1]).any(axis=0)]
    numbers = np.arange(len(sort))
    age = numbers - np.maximum.accumulate(np.where(first, numbers, 0))
    orders[chosen[sort]] = np.maximum(NEWEST_SCANNED - age, 0)
    return orders


def _rows(chunk: DecodeChunk, source: SourceTable, cells: ScannedCells) -> CellRows:
    """The cells as rows of a table of cells; the time of writing is that of the scan, at the latest."""
    whole = pc.is_in(cells.kinds, pa.array(_FAMILY_MARKERS))
    scanned_ms = chunk.records.timestamps_ms[cells.at]
    columns = (
        text_of(cells.rows),
        cells.families.cast(pa.string()),
        text_of(pc.if_else(whole, pa.scalar(b""), cells.qualifiers)),
        pa.array(cells.timestamps),
        cells.kinds,
        pc.if_else(_marks(cells), pa.scalar(None, pa.binary()), pc.fill_null(cells.values, b"")),
        pa.array(scanned_ms * _US_PER_MS).cast(UTC_MICROSECONDS),
    )
    orders = _orders(cells, _by_sequence(chunk, source))
    table = pa.table(list(columns), schema=CELL_SCHEMA)
    return CellRows(table, cells.at, cells.numbers(), orders, scanned_ms)
