"""A run over the tables of a lake: which source tables feed each of them, and their comparison one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.compared import ComparedTables
from binlake.position.record_reader import RecordReader
from binlake.position.state_document import StateDocument
from binlake.proof.verify.coverage import AsItIs, LakeCoverage, StreamCoverage
from binlake.proof.verify.repair import Repairer
from binlake.proof.verify.result import TableResult
from binlake.proof.verify.resync import ResyncResult, resync_from_source
from binlake.proof.verify.table_check import CheckOptions, TableCheck
from binlake.settings import Settings
from binlake.settings.database import ReplicaSettings
from binlake.source.database.connection import SourceConnection, connect
from binlake.source.database.pace import Pace
from binlake.source.database.source_table import tables_of
from binlake.tables.catalog import CatalogTable
from binlake.tables.ddl_topics import with_heard_topics
from binlake.tables.feeds import Feeds, SourceOf
from binlake.tables.other_rows import lacks, refuse_lacking
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

# The progress of a run, kept beside the stream's ledger, so that ``--resume`` goes on after what was compared.

PROGRESS = "verify.json"
_DOCUMENT = StateDocument(PROGRESS, "the progress of the last run", "run the command without --resume")


@dataclass
class Progress:
    """What a run has compared.

    Args:
        done: path and first name of a source table -> result, of tables that were compared whole.
        begun: the same -> (result so far, first key of the next portion), of at most one table.
    """

    done: dict[str, TableResult] = field(default_factory=dict)
    begun: dict[str, tuple[TableResult, int]] = field(default_factory=dict)

    @staticmethod
    def load(state: Storage) -> Progress:
        """The stored progress; an empty one if there is none. Raises CorruptDataError, StorageError."""

        def parse(fields: dict[str, Any]) -> Progress:
            return Progress(
                {table: TableResult.from_json(result) for table, result in fields["done"].items()},
                {table: (TableResult.from_json(result), low) for table, (result, low) in fields["begun"].items()},
            )

        return _DOCUMENT.read(state, parse) or Progress()

    def save(self, state: Storage) -> None:
        """Replace the stored progress."""
        data = {
            "version": _DOCUMENT.version,
            "done": {table: result.to_json() for table, result in self.done.items()},
            "begun": {table: (result.to_json(), low) for table, (result, low) in self.begun.items()},
        }
        state.write(PROGRESS, json.dumps(data, separators=(",", ":")).encode())


_STITCHED = "the table is stitched from several source tables, and each of them has only some columns of its rows"


@dataclass(frozen=True)
class VerifyOptions:
    """Options of a run.

    Args:
        repair: whether to write the source's rows where the lake differs.
        resume: whether to go on after what the last run compared.
        wait_s: how long to wait for the stream, in seconds; None takes the lake as it is.
        quiet_s: as ``StreamCoverage``.
        replica: a replica in place of the settings' own.
        rows_per_second: the limit in place of the settings' own.
        listed: the most differences of a table that are kept to be shown.
    """

    repair: bool = False
    resume: bool = False
    wait_s: float | None = 120.0
    quiet_s: float = 10.0
    replica: ReplicaSettings | None = None
    rows_per_second: int | None = None
    listed: int = 100


@dataclass
class Verifier:
    """Compares tables of one lake with their source. Use it as a context manager.

    Args:
        settings: of the stream; it may be running.
        options: of the run.
        check_options: of each comparison.
    """

    settings: Settings
    options: VerifyOptions = field(default_factory=VerifyOptions)
    check_options: CheckOptions = field(default_factory=CheckOptions)

    def __post_init__(self) -> None:
        root = open_storage(self.settings.lake.uri, self.settings.lake.storage_options())
        self.settings = with_heard_topics(self.settings, root)
        database = self.settings.source.database
        if self.options.replica is not None:
            database = database.model_copy(update={"replica": self.options.replica})
        self.check_options = replace(
            self.check_options, replica=database.replica is not None, listed=self.options.listed
        )
        self._pace = Pace(self.options.rows_per_second or database.rows_per_second)
        self._connection: SourceConnection = connect(database)
        self._coverage = self._chosen_coverage()
        self._repairer = Repairer(self.settings) if self.options.repair else None
        self._state: Storage = open_storage(self.settings.state_uri, self.settings.state_options())
        self._progress = Progress.load(self._state) if self.options.resume else Progress()
        self._seen: list[SourceTable] | None = None

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *exc: object) -> None:
        self._connection.close()
        if self._repairer is not None:
            self._repairer.close()

    def _chosen_coverage(self) -> LakeCoverage:
        if self.options.wait_s is None:
            return AsItIs(self.settings)
        return StreamCoverage(self.settings, self.options.wait_s, self.options.quiet_s)

    def tables(self, table: CatalogTable, *, named: bool) -> Iterator[TableResult]:
        """Compare a lake table with each source table that feeds it.

        ``named``: the user asked for this table; then a source table that cannot be compared is an error.
        """
        if table.rules.groups and not named:
            yield TableResult(table.name, skipped=_STITCHED)
            return
        if not named and (refused := lacks(table.rules, TableOperation.VERIFY)) is not None:
            yield TableResult(table.name, skipped=refused.why, derived=self._follows(table))
            return
        results, carried_out = list[TableResult](), _newest_statement(table)  # a later one may change rows yet
        for origin in self.origins(table):
            results.append(self._known(_key(table, origin)) or self._checked(table, origin, named=named))
            yield results[-1]
        compared = [result for result in results if not result.skipped]
        if compared:
            left = sum(max(0, result.total - result.repaired) + len(result.wrong) for result in compared)
            ComparedTables.load(self._state).note_differing(self._state, table.rules.path, left)
        whole = bool(results) and not self.options.resume  # a run before noted what it compared
        if whole and all(result.proven for result in results):
            self._note_compared(table, min(carried_out, *(result.order for result in results)))

    def _follows(self, table: CatalogTable) -> bool:
        """Whether the rows of a table follow from those of another one of the lake, which is compared by itself."""
        return table.rules.wide is not None or self.settings.tables.is_history(table.source)

    def resync(self, table: CatalogTable) -> list[ResyncResult]:
        """Bring a lake table anew from each source table that feeds it. Raises as ``resync_from_source``."""
        refuse_lacking(table.rules, TableOperation.RESYNC, table.name)
        repairer = self._repairer or Repairer(self.settings)
        origins = self.origins(table)
        there = [origin for origin in origins if not origin.gone] or origins
        checks = [self.check(table, origin) for origin in there]  # before the first row is written
        done = [resync_from_source(check, repairer) for check in checks]
        if len(done) == len(origins):
            self._note_compared(table, min(one.order for one in done))
        return done

    def _note_compared(self, table: CatalogTable, order: int) -> None:
        if order >= 0:
            ComparedTables.load(self._state).note(self._state, table.rules.path, order)

    def check(self, table: CatalogTable, origin: SourceOf) -> TableCheck:
        """The comparison of one source table. Raises as ``TableCheck.of``."""
        self._connection.revive()
        return TableCheck.of(
            self.settings,
            self._connection,
            table,
            origin,
            self._coverage,
            self._pace,
            self.check_options,
            partial(Feeds.load, self.settings),
        )

    def origins(self, table: CatalogTable) -> list[SourceOf]:
        """The source tables whose rows a lake table holds. Raises UnsupportedError for a stitched table."""
        if table.rules.groups:
            raise UnsupportedError(
                _STITCHED,
                do_next="compare the table with a join of its sources",
                table=table.name,
            )
        if self.settings.tables.routes and self._seen is None:
            self._seen = tables_of(self._connection)
        return Feeds.load(self.settings).of(table.source, self._seen or ())

    def _known(self, key: str) -> TableResult | None:
        """The result that an earlier run kept; a repair looks again at what differs."""
        known = self._progress.done.get(key)
        return None if known is None or (self.options.repair and known.different) else known

    def _checked(self, table: CatalogTable, origin: SourceOf, *, named: bool) -> TableResult:
        name, key = origin.name, _key(table, origin)
        if origin.missing:
            return self._kept(key, TableResult(name, skipped=origin.missing))
        try:
            check = self.check(table, origin)
        except (ConfigError, UnsupportedError) as error:
            if named or (isinstance(error, ConfigError) and error.where.get("error") is not None):
                raise
            return self._kept(key, TableResult(name, skipped=error.what))
        whole, low = self._progress.begun.pop(key, (TableResult(name), None))
        for portion in check.portions(low):
            whole.add(check.run(portion, self._repairer), self.check_options.listed)
            if portion.high is not None:
                self._progress.begun[key] = whole, portion.high
                self._progress.save(self._state)
        self._progress.begun.pop(key, None)
        return self._kept(key, whole)

    def _kept(self, key: str, result: TableResult) -> TableResult:
        self._progress.done[key] = result
        self._progress.save(self._state)
        return result


def _newest_statement(table: CatalogTable) -> int:
    """The ordering value of the newest statement that a lake table has carried out, -1 for none."""
    if not HudiTable.exists(table.storage):
        return -1
    recorded = RecordReader.newest_of(HudiTable.open(table.storage)).ddl or ()
    return max((entry.order for entry in recorded), default=-1)


def _key(table: CatalogTable, origin: SourceOf) -> str:
    """What progress is noted under: the name that rows had at first, which no other table takes over."""
    return f"{table.rules.path} {origin.first}"
