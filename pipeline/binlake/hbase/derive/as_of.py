"""Reads of a table of cells as of a timestamp of the store: the visible cells, and the wide rows of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW
from binlake.hbase.derive.cell_runs import STORED_SCHEMA
from binlake.hbase.derive.row_cells import RowCells
from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.rules.wide import wide_rows
from binlake.hbase.settings.rules import CellsRule, WideRule
from hudilake.errors import UnsupportedError
from hudilake.read.slice import read_file_slice
from hudilake.services.compaction.completion import recorded_horizon
from hudilake.table.table import HudiTable


def visible_cells(
    table: HudiTable, rule: CellsRule, moment: Moment, rows: pa.Array | None = None
) -> Iterator[pa.Table]:
    """The cells that a read of the store at that moment has, with the columns of ``STORED_SCHEMA``.

    Args:
        table: a table of cells, as of its last refresh.
        rule: its rule.
        moment: of the read.
        rows: string array of distinct rows in text form; None for all rows. Then a file slice at a time is in memory.

    Raises UnsupportedError for a timestamp that lies before the table's horizon, CorruptDataError, StorageError.
    """
    _refuse_lost(table, moment)
    parts = _slices(table) if rows is None else iter([RowCells(table).of(rows)])
    for cells in parts:
        yield cells.filter(visible(cells, rule, moment))


def wide_rows_as_of(
    table: HudiTable, rule: CellsRule, wide: WideRule, moment: Moment, rows: pa.Array | None = None
) -> Iterator[pa.Table]:
    """The wide rows at that moment, by the declaration of now. Arguments and errors as ``visible_cells``; cells that
    have no place in a wide row are left out."""
    for cells in visible_cells(table, rule, moment, rows):
        row_keys = pc.unique(cells.column(ROW)).cast(pa.string())
        yield wide_rows(cells, row_keys, wide).upserts


def _slices(table: HudiTable) -> Iterator[pa.Table]:
    """All cells, slice by slice: those of a row are in one."""
    for piece in table.file_slices():
        yield read_file_slice(table, piece, columns=STORED_SCHEMA.names).cast(STORED_SCHEMA)


def _refuse_lost(table: HudiTable, moment: Moment) -> None:
    horizon = recorded_horizon(table)
    if horizon is None or moment.as_of_ms is None or moment.as_of_ms >= horizon:
        return
    raise UnsupportedError(
        "compactions have dropped cells that were visible as of that timestamp",
        do_next="ask for a later timestamp; raise lateness_hours to keep more from now on",
        table=table.config.name,
        as_of=_text(moment.as_of_ms),
        kept_from=_text(horizon),
    )


def _text(epoch_ms: int) -> str:
    """Returns a moment as date and time in UTC to the millisecond; the number where no calendar has it."""
    try:
        return f"{datetime.fromtimestamp(epoch_ms / 1000, tz=UTC):%Y-%m-%d %H:%M:%S.%f}"[:-3]
    except (OverflowError, ValueError, OSError):
        return str(epoch_ms)
