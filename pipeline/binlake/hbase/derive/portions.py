"""The rows of a derivation in portions of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.rules.wide import wide_schema
from hudilake.read.slice import read_file_slice
from hudilake.read.window import COMMIT_TIME_FIELD
from hudilake.table.table import HudiTable

#: The rows of a commit. A row of ten cells of 100 bytes each makes that 50 MB of cells.
PORTION_ROWS: Final = 50_000
#: The cells that the rules take at once. Their values must have less than 2 GiB together.
PIECE_BYTES: Final = 512 << 20


def in_pieces(rows: pa.Array, size_bytes: int) -> Iterator[pa.Array]:
    """Rows in pieces whose cells have about ``PIECE_BYTES``, if all of them have ``size_bytes``; a piece has a row at
    least, or none if there are none."""
    count = min(max(1, -(-size_bytes // PIECE_BYTES)), max(1, len(rows)))
    step = -(-len(rows) // count)
    for start in range(0, max(1, len(rows)), max(1, step)):
        yield rows.slice(start, step)


def portions(rows: pa.Array, size: int = PORTION_ROWS) -> Iterator[pa.Array]:
    """Rows in portions of at most ``size``; none for no rows."""
    for start in range(0, len(rows), size):
        yield rows.slice(start, size)


def every_row(cells: HudiTable, size: int = PORTION_ROWS) -> Iterator[pa.Array]:
    """All rows of a table of cells, each once: a row's cells are all in one file group. One column of one file slice
    is in memory at a time. Raises CorruptDataError, StorageError."""
    for piece in cells.file_slices():
        column = read_file_slice(cells, piece, columns=[ROW]).column(ROW)
        yield from portions(pc.unique(column), size)


def rows_before(
    wide: HudiTable, pair: DerivedPair, instant: str | None, size: int = PORTION_ROWS
) -> Iterator[pa.Array]:
    """The keys of the wide rows that were written before an instant; all for None. After every row of the table of
    cells was derived since, the table of cells has no such rows. Errors as ``every_row``."""
    key = pair.declared.key.name
    kind = wide_schema(pair.declared).field(key).type
    for piece in wide.file_slices():
        rows = read_file_slice(wide, piece, columns=[key, COMMIT_TIME_FIELD])
        if instant is not None:
            rows = rows.filter(pc.less(rows.column(COMMIT_TIME_FIELD).cast(pa.string()), instant))
        yield from portions(rows.column(key).combine_chunks().cast(kind), size)


def with_last(parts: Iterator[pa.Array]) -> Iterator[tuple[pa.Array, bool]]:
    """Each portion, and whether it is the last one."""
    held = next(parts, None)
    while held is not None:
        following = next(parts, None)
        yield held, following is None
        held = following
