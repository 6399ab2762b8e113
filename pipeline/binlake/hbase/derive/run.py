"""A derivation under way, and what it has done."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW
from binlake.decode.changes import Quarantined, SourceTable
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.derive.touched import Touched
from binlake.hbase.rules.wide import wide_schema
from binlake.position.derived_position import DerivedPosition
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.table_services import TableServicesOutcome
from binlake.tables.table_commit import TableOutcome
from hudilake.clock import now_ms
from hudilake.locking.process_identity import this_process
from hudilake.read.slice import read_file_slice
from hudilake.read.window import COMMIT_TIME_FIELD
from hudilake.table.table import HudiTable


@dataclass(frozen=True)
class Derived:
    """What a derivation did.

    Args:
        wide: the wide table.
        rows: the rows that were derived.
        upserts: the wide rows that were written.
        gone: the deletes that were written, of rows without visible cells.
        faults: cells and rows that went to the quarantine.
        entries: partition and offset of their entries there, if single rows were derived (``derive_rows``).
        instants: the commits with rows.
        why: why every row was derived; empty if only touched rows were.
        bytes_written: the size of the commits' files.
        visible_ms: when the newest commit became visible, in ms since the epoch; 0 for none.
        services: the outcome of the table services after the newest commit.
        took_ms: the time in milliseconds.
        source_ms: the source's times (ms since the epoch) of the oldest and the newest change; None if they are not
            known.
    """

    wide: SourceTable
    rows: int = 0
    upserts: int = 0
    gone: int = 0
    faults: int = 0
    entries: frozenset[tuple[int, int]] = frozenset()
    instants: tuple[str, ...] = ()
    why: str = ""
    bytes_written: int = 0
    visible_ms: int = 0
    services: TableServicesOutcome = field(default_factory=TableServicesOutcome)
    took_ms: float = 0.0
    source_ms: tuple[int, int] | None = None


@dataclass
class Run:
    """A run under way. ``note``: of its newest commit, or of the commit before it; None for a new table. ``single``:
    whether single rows are derived that nothing has touched."""

    pair: DerivedPair
    cells: LakeTable
    wide: LakeTable
    order: int
    began_ms: int
    note: DerivedPosition | None
    single: bool = False
    done: Derived = field(init=False)

    def __post_init__(self) -> None:
        self.done = Derived(self.pair.wide)

    def next(self, ended: Touched | None) -> DerivedPosition:
        """The note of the run's next commit; ``ended``: what is derived with it, for the last one."""
        before = self.note
        derived_ms = max(now_ms(), before.derived_ms + 1 if before is not None else 0)
        swept_ms = before.swept_ms if before is not None else 0
        if ended is None:
            until, declared = (before.until, before.fingerprint) if before is not None else (None, "")
        else:
            until, declared = ended.until, self.pair.fingerprint
            swept_ms = self.began_ms if ended.rows is None else swept_ms
        follows = before.derived_ms if before is not None else None
        worker = this_process() if ended is None else None
        return DerivedPosition(until, declared, self.order, derived_ms, follows, swept_ms, worker)

    def committed(self, note: DerivedPosition, outcome: TableOutcome, rows: int, upserts: int, gone: int) -> None:
        """Take in a commit: its note, and the number of rows that were derived, written and deleted."""
        done, instant = self.done, outcome.instant
        self.note = note
        self.done = dataclasses.replace(
            done,
            rows=done.rows + rows,
            upserts=done.upserts + upserts,
            gone=done.gone + gone,
            instants=(*done.instants, *([instant] if instant is not None else [])),
            bytes_written=done.bytes_written + outcome.bytes_written,
            visible_ms=outcome.visible_ms or done.visible_ms,
            services=outcome.services,
        )

    def faulty(self, entries: Sequence[Quarantined]) -> None:
        """Take in entries of the quarantine."""
        places = frozenset((one.partition, one.offset) for one in entries) if self.single else frozenset()
        done = self.done
        self.done = dataclasses.replace(done, faults=done.faults + len(entries), entries=done.entries | places)


# The rows of a derivation in portions of bounded size.

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
