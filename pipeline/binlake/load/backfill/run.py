"""Carries out a backfill: its portions in order, each once, beside the running stream.

Every portion is a commit that names the backfill, its run and the portion's number. A run that died goes on behind the
newest portion in the table. The commits belong to another stream, ``<name>.backfill``: they cover no offsets.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from binlake.load.backfill.inputs import Input
from binlake.load.backfill.pieces import InputPortion
from binlake.load.backfill.portion_commit import PortionCommit, PortionCommitter
from binlake.load.backfill.read_rows import RowCounts
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.stored_plan import StoredPlan
from binlake.load.backfill.work import Work, WorkPlanner
from binlake.load.backfill.workers import LocalWorkers, PortionWorkers
from binlake.position.in_hand import JobProgress
from binlake.position.lease import StreamLease
from binlake.position.recorded import backfill_stream
from binlake.settings import Settings, TableRules
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.catalog import CatalogTable, catalog_table
from binlake.tables.lake import locking
from binlake.tables.lake_table import LakeTable
from binlake.tables.other_rows import refuse_lacking
from hudilake.format.definition.kind_support import TableOperation
from hudilake.storage import Storage, open_storage

#: Creates the workers of a large input; called only if there is work.
OpenWorkers = Callable[[], AbstractContextManager[PortionWorkers]]
#: So many rows are worth a Spark session.
SPARK_FROM_ROWS = 500_000


@dataclass
class BackfillReport:
    """The result of a backfill.

    Args:
        table: its name.
        columns: the columns that were written.
        group: the column group that they belong to.
        portions: how many there are.
        before: how many of them an earlier run had committed.
        rows: of the whole input.
        counts: what became of the rows of this run.
        bytes_written: the size of the files of this run.
        events: the progress events.
        stopped: whether a stop was requested before all portions were committed.
        dry_run: whether nothing was written.
        held: whether the table held all of the input, so that there was nothing to do.
    """

    table: str
    columns: tuple[str, ...]
    group: str = ""
    portions: int = 0
    before: int = 0
    rows: int = 0
    counts: RowCounts = field(default_factory=RowCounts)
    bytes_written: int = 0
    events: list[ProgressEvent] = field(default_factory=list)
    stopped: bool = False
    dry_run: bool = False
    held: bool = False


@dataclass
class Backfill:
    """A backfill of one table.

    Args:
        settings: of the stream that writes the table; it may be running.
        table: its name, as for ``catalog_table``.
        request: what to write.
        workers: creates the workers of a large input; None to use this process alone.
        root: the lake's root; None for the root in the settings.
        on_progress: called after every portion.
        hand: hears how far it is.
        stop: set it to end after the current portion.
    """

    settings: Settings
    table: str
    request: BackfillRequest
    workers: OpenWorkers | None = None
    root: Storage | None = None
    on_progress: Callable[[ProgressEvent], None] = lambda event: None
    hand: JobProgress = field(default_factory=lambda: JobProgress("backfill", "portions"))
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, given: Input) -> BackfillReport:
        """Write the rows of an input that the table does not have yet.

        Raises ConfigError, UnsupportedError, BadInputError for an input that has changed or cannot be converted,
        LostOwnershipError if another backfill of the table is running, StorageError; commits stay, and the same command
        goes on from there.
        """
        self.request.check()
        catalog_entry = self._found()
        state = self._state(catalog_entry)
        with StreamLease(state, f"{backfill_stream(self.settings.name)} of {catalog_entry.name}"):
            own = locking(self.settings.locking, f"stream {backfill_stream(self.settings.name)}")
            table = LakeTable.open(catalog_entry.storage, _rules(catalog_entry), own)
            plans = state.sub(self.request.name(given.text))
            options = self.settings.state_options()
            declared = self._declared(catalog_entry)
            work = WorkPlanner(table, catalog_entry.source, self.request, given, plans, options, declared).left()
            if work is None:
                return BackfillReport(catalog_entry.name, self.request.columns, held=True)
            report = self._carry_out(table, catalog_entry, work)
            if not report.stopped:
                StoredPlan.forget(plans)
            return report

    def dry_run(self, given: Input, scratch: Storage) -> BackfillReport:
        """What ``run`` would write; changes nothing. ``scratch``: for the rows of inputs that are no Parquet files."""
        self.request.check()
        catalog_entry = self._found()
        table = LakeTable.look(catalog_entry.storage, _rules(catalog_entry))
        declared = self._declared(catalog_entry)
        work = WorkPlanner(table, catalog_entry.source, self.request, given, scratch, {}, declared).whole()
        return self._carry_out(table, catalog_entry, work, dry=True)

    def _found(self) -> CatalogTable:
        lake = self.settings.lake
        root = self.root or open_storage(lake.uri, lake.storage_options())
        catalog_entry = catalog_table(self.settings, root, self.table)
        refuse_lacking(catalog_entry.rules, TableOperation.BACKFILL, catalog_entry.name)
        return catalog_entry

    def _declared(self, found: CatalogTable) -> tuple[str, ...]:
        declared = self.settings.source.schemas.get(str(found.source))
        return tuple(declared.columns) if declared is not None else ()

    def _state(self, found: CatalogTable) -> Storage:
        root = open_storage(self.settings.state_uri, self.settings.state_options())
        return root.sub(f"backfills/{hashlib.blake2b(found.rules.path.encode(), digest_size=8).hexdigest()}")

    def _carry_out(self, table: LakeTable, found: CatalogTable, work: Work, *, dry: bool = False) -> BackfillReport:
        report = BackfillReport(
            found.name,
            self.request.columns,
            portions=len(work.portions),
            before=work.first,
            rows=sum(portion.rows for portion in work.portions),
            dry_run=dry,
        )
        stream = backfill_stream(self.settings.name)
        self.hand.begin(found.name, len(work.portions), work.first)
        with self._workers(work.left) as workers:
            committer = PortionCommitter(table, found.name, stream, self.request, work.rows, work.place, workers)
            for portion in work.left:
                if self.stop.is_set():
                    report.stopped = True
                    return report
                recorded = dataclasses.replace(work.recorded, portion=portion.number)
                done = committer.count(portion) if dry else committer.commit(portion, recorded)
                self._note(report, done)
                self.hand.reach(work.first + len(report.events), f"fills {', '.join(self.request.columns)}")
        return report

    def _note(self, report: BackfillReport, done: PortionCommit) -> None:
        report.group = done.group
        report.counts.add(done.counts)
        report.bytes_written += done.bytes_written
        report.events.append(done.event)
        self.on_progress(done.event)

    @contextmanager
    def _workers(self, left: tuple[InputPortion, ...]) -> Iterator[PortionWorkers]:
        if self.workers is None or sum(portion.rows for portion in left) < SPARK_FROM_ROWS:
            yield LocalWorkers()
            return
        with self.workers() as workers:
            yield workers


def _rules(found: CatalogTable) -> TableRules:
    return dataclasses.replace(found.rules, compaction=None, retention=None, schema_changes=SchemaChangeSettings())
