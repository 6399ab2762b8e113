"""One run of a derivation: the wide rows of the rows that commits of the table of cells have touched.

position -> touched rows -> all cells of these rows, as stored now -> visible cells -> wide rows -> commit with the new
position. A run of several portions commits the new position with the last one, so a crash in the middle leaves the old
one, and the next run derives the same rows again: a wide row is written whole, so that changes nothing.

Two processes may derive at the same time. Each commit names the note that it follows (``DerivedPosition``), and is
refused under the table's lock if another one has come between. The refused run begins again on the new position.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.cells import ROW
from binlake.hbase.derive.cell_store import CellStore, store_of
from binlake.hbase.derive.faults import quarantined_cells
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.derive.row_cells import RowCells
from binlake.hbase.derive.run import (
    PORTION_ROWS,
    DerivationResult,
    DerivationRun,
    every_row,
    in_pieces,
    portions,
    rows_before,
    with_last,
)
from binlake.hbase.derive.touched import TouchedRows, newest_moment, touched_since
from binlake.hbase.derive.wide_batch import accepted, change_batch, described
from binlake.hbase.rules.rules import Moment, visible
from binlake.hbase.rules.wide import WideRows, wide_rows, wide_schema
from binlake.position.commit_record import CommitNotes
from binlake.position.derived_position import DerivedPosition
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import make_target
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake, locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, commit_without_rows, write_and_commit
from hudilake.clock import monotonic_s, now_ms
from hudilake.commit.commit import OvertakenError
from hudilake.errors import BadInputError, TransientError
from hudilake.services.planned import one_by_one
from hudilake.storage import Storage, open_storage
from hudilake.storage.base import StorageNotFoundError

_log = logging.getLogger(__name__)

_ATTEMPTS: Final = 4


def derive_stream(name: str) -> str:
    """The stream name in the commits of wide tables. No stream of the settings can have this name."""
    return f"{name}.derive"


@dataclass
class Deriver:
    """Derives the wide tables of a stream. Not for the same table from several threads at once.

    Args:
        stream: of the settings.
        lake: the tables.
        services: compaction, cleaning and archival of the wide tables.
        quarantine: takes cells that have no place in a wide table.
        pool: reads and writes files.
        kept: what this process keeps of tables of cells; None to read them anew each time.
        max_faults: more entries for the quarantine than this in one portion end the run.
    """

    stream: str
    lake: Lake
    services: TableServices
    quarantine: QuarantineTable
    pool: Executor
    kept: CellStore | None = None
    max_faults: int = 10_000
    portion_rows: int = PORTION_ROWS

    def derive(self, pair: DerivedPair, *, anew: str = "") -> DerivationResult:
        """Bring a wide table up to date with its table of cells.

        Args:
            pair: the wide table.
            anew: why every row shall be derived; empty to derive the rows that were touched.

        Raises TransientError if other processes derive the table too, and as ``write_and_commit``.
        """
        return self._attempts(pair, lambda: self._derive(pair, anew))

    def derive_rows(self, pair: DerivedPair, rows: Iterable[pa.Array], swept_ms: int | None = None) -> DerivationResult:
        """Derive some rows again, though nothing has touched them. The position stays.

        Args:
            pair: the wide table.
            rows: portions of rows, string arrays in text form; those of an array are distinct.
            swept_ms: up to when expired cells are taken out of all rows after this; None to leave what is recorded.

        A table that is not derived yet, or by another declaration, is derived anew instead. Errors as ``derive``.
        """
        return self._attempts(pair, lambda: self._derive_rows(pair, rows, swept_ms))

    def _attempts(self, pair: DerivedPair, attempt: Callable[[], DerivationResult]) -> DerivationResult:
        started = monotonic_s()
        for left in reversed(range(_ATTEMPTS)):
            try:
                return dataclasses.replace(attempt(), took_ms=(monotonic_s() - started) * 1000)
            except (OvertakenError, StorageNotFoundError) as error:  # a reader's file may have been cleaned
                if not left:
                    raise
                _log.info("%s is derived again: %s", pair.wide, error.what)
                wide = self.lake.opened(pair.wide_rules.path)
                if wide is not None:
                    wide.refresh(derive_stream(self.stream))
        raise AssertionError("unreachable")

    def _derive(self, pair: DerivedPair, anew: str) -> DerivationResult:
        cells = self.lake.get(pair.cells_rules)
        if cells is None:
            return DerivationResult(pair.wide)
        cells.hudi.refresh()
        if newest_moment(cells.hudi) is None:
            return DerivationResult(pair.wide)
        run = self._begin(pair, cells)
        known = run.note
        if not anew and known is not None and known.until is not None and known.fingerprint != pair.fingerprint:
            anew = "the declaration of the wide table has changed"
        since = known.until if known is not None and not anew else None
        touched_rows = touched_since(cells.hudi, since, self.pool)
        if touched_rows is None:
            return run.done
        run.order = max(run.order, int(touched_rows.until.completed))
        run.done = dataclasses.replace(run.done, source_ms=touched_rows.source_ms)
        if touched_rows.rows is None:
            self._every_row(run, dataclasses.replace(touched_rows, why=anew or touched_rows.why))
        else:
            self._rows(run, touched_rows)
        return run.done

    def _begin(self, pair: DerivedPair, cells: LakeTable) -> DerivationRun:
        wide = self._wide(pair)
        note, began_ms = wide.recorded.derived, now_ms()
        if note is not None and not note.is_left(began_ms):
            raise TransientError(
                "another process derives this wide table anew",
                do_next="none needed: it is tried again until that process has ended",
                table=str(pair.wide),
            )
        return DerivationRun(pair, cells, wide, note.order if note is not None else 0, began_ms, note)

    def _wide(self, pair: DerivedPair) -> LakeTable:
        known = self.lake.get(pair.wide_rules)
        schema = described(pair)
        target = make_target(schema, pair.wide_rules, None, known.rows.own_bucketing if known is not None else None)
        return self.lake.get_or_create(pair.wide_rules, target, schema.arrow())

    def _rows(self, run: DerivationRun, found: TouchedRows) -> None:
        """Derive the rows that commits have touched. Rows are none only where commits wrote none."""
        assert found.rows is not None
        parts = with_last(portions(found.rows, self.portion_rows))
        for rows, last in parts if len(found.rows) else [(found.rows, True)]:
            self._commit(run, len(rows), self._made(run, rows), run.next(found if last else None))

    def _every_row(self, run: DerivationRun, found: TouchedRows) -> None:
        fields = {"event": "derived_anew", "table": str(run.pair.wide), "why": found.why}
        _log.warning("every row of %s is derived: %s", run.pair.wide, found.why, extra=fields)
        run.done = dataclasses.replace(run.done, why=found.why)
        for rows in every_row(run.cells.hudi, self.portion_rows):
            self._commit(run, len(rows), self._made(run, rows), run.next(None))
        first = run.done.instants[0] if run.done.instants else None
        nothing = wide_schema(run.pair.declared).empty_table()
        for keys in rows_before(run.wide.hudi, run.pair, first, self.portion_rows):
            self._commit(run, len(keys), [(nothing, keys)], run.next(None))
        self._commit(run, 0, [], run.next(found))

    def _derive_rows(self, pair: DerivedPair, rows: Iterable[pa.Array], swept_ms: int | None) -> DerivationResult:
        cells = self.lake.get(pair.cells_rules)
        if cells is None:
            return DerivationResult(pair.wide)
        cells.hudi.refresh()
        run = self._begin(pair, cells)
        if run.note is None or run.note.until is None or run.note.fingerprint != pair.fingerprint:
            return self._derive(pair, "")
        run.single = True
        for some, last in with_last(iter(rows)):
            note = run.next(None)
            if last:
                swept = note.swept_ms if swept_ms is None else swept_ms
                note = dataclasses.replace(note, worker=None, swept_ms=swept)
            self._commit(run, len(some), self._made(run, some), note)
        return run.done

    def _made(self, run: DerivationRun, rows: pa.Array) -> list[tuple[pa.Table, pa.Array]]:
        """The wide rows of some rows, as (upserts, keys of rows without visible cells); faults are quarantined."""
        made = list(self._wide_rows(run, rows))
        self._check_faults(run, made)
        faults = [entry for one in made for entry in quarantined_cells(one.faults, run.pair)]
        self.quarantine.write(faults, NO_RANGES, 0, self.pool)
        run.faulty(faults)
        return [(one.upserts, one.gone) for one in made]

    def _check_faults(self, run: DerivationRun, made: Sequence[WideRows]) -> None:
        """Raise BadInputError, before anything is written, if too many cells have no place in the wide table."""
        count = sum(len(one.faults) for one in made)
        if count <= self.max_faults:
            return
        first = next(one.faults.slice(0, 1).to_pylist()[0] for one in made if len(one.faults))
        raise BadInputError(
            f"{count} cells have no place in the wide table; the first, {first['family']}:{first['qualifier']}: "
            f"{first['reason']}",
            do_next="correct its columns, take undeclared: drop, or raise quarantine.max_records_per_batch",
            table=str(run.pair.wide),
        )

    def _wide_rows(self, run: DerivationRun, rows: pa.Array) -> Iterator[WideRows]:
        cells = RowCells(run.cells.hudi, self.kept).of(rows)
        for some in in_pieces(rows, cells.nbytes):
            mine = cells if len(some) == len(rows) else cells.filter(pc.is_in(cells.column(ROW), value_set=some))
            shown = mine.filter(visible(mine, run.pair.kept, Moment(run.began_ms)))
            yield wide_rows(shown, some, run.pair.declared)

    def _commit(
        self, run: DerivationRun, count: int, made: list[tuple[pa.Table, pa.Array]], note: DerivedPosition
    ) -> None:
        """Commit wide rows with a note. Errors as ``write_and_commit``."""
        pair, wide, stream = run.pair, run.wide, derive_stream(self.stream)
        nothing = wide_schema(pair.declared).empty_table()
        upserts = pa.concat_tables([nothing, *(table for table, _ in made)])
        key = nothing.schema.field(pair.declared.key.name)
        gone = pa.concat_arrays([pa.array([], key.type), *(keys for _, keys in made)])
        accepted_changes = accepted(change_batch(pair, upserts, gone, run.order), pair, wide)
        report = wide.report(pair.wide)
        parcels: Sequence[Parcel] = ()
        if accepted_changes is not None:
            counts = dataclasses.replace(accepted_changes.counts, read=len(upserts) + len(gone))
            report = TaskTableReport(
                accepted_changes.schema, accepted_changes.target, accepted_changes.columns, counts=counts
            )
            report.oldest_ms, report.newest_ms = run.done.source_ms or (0, 0)
            parcels = accepted_changes.parcels
        table_input = TableInput(report, NO_RANGES, parcels, notes=CommitNotes(derived=note))
        outcome = write_and_commit(wide, table_input, stream, 0, self.pool, self.services)
        if outcome.instant is None:
            commit_without_rows(wide, table_input, Counts(), stream, 0)
        run.committed(note, outcome, count, len(upserts), len(gone))


# Wide tables derived by a process of its own, beside the stream: by commands and by replays.

_THREADS = 8


@contextlib.contextmanager
def deriving(settings: Settings, root: Storage | None = None) -> Iterator[Deriver]:
    """A deriver with a view of the lake of its own.

    Args:
        settings: of the stream; it may be running.
        root: of the lake; None for that of the settings.
    """
    where = root or open_storage(settings.lake.uri, settings.lake.storage_options())
    lake = Lake(where, locking(settings.locking, f"derive {settings.name}"))
    services = TableServices(one_by_one)
    quarantine = settings.quarantine.model_copy(update={"path": settings.quarantine_path})
    own = settings.model_copy(update={"name": derive_stream(settings.name), "quarantine": quarantine})
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="binlake-derive") as pool:
        try:
            table, kept = QuarantineTable(own, lake, services), store_of(settings)
            yield Deriver(settings.name, lake, services, table, pool, kept, settings.quarantine.max_records_per_batch)
        finally:
            services.close()
