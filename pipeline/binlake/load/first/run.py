"""A run of loads: which tables, whether they may be loaded, and one after the other in one snapshot of the source."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from binlake.decode.changes import SourceTable
from binlake.load.first.session import Sessions, SnapshotSession
from binlake.load.first.table_load import LoadProgress, TableLoad
from binlake.load.first.table_plan import LoadPlan
from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.position.record_reader import RecordReader
from binlake.position.recorded import RecordedLoad, load_stream
from binlake.settings import Settings
from binlake.settings.database import LoadSettings
from binlake.source.database.connection import SourceConnection
from binlake.source.database.pace import Pace
from binlake.source.database.source_table import OWN_DATABASES, describe, tables_of
from binlake.tables.catalog import did_you_mean
from binlake.tables.lake import Lake, locking
from binlake.tables.presence import check_free
from binlake.tables.services.table_services import TableServices
from hudilake.clock import monotonic_s, now_ms
from hudilake.errors import ConfigError, LakeError
from hudilake.services.planned import one_by_one
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable

_READERS = "SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"


@dataclass(frozen=True)
class LoadOptions:
    """Options of a run.

    Args:
        replace: whether tables that exist are deleted and loaded anew.
        connector_check: whether somebody must read the server's binlog.
        limits: how the source is read; None for those of the settings.
        rows_per_second: the limit in place of the settings' own.
    """

    replace: bool = False
    connector_check: bool = True
    limits: LoadSettings | None = None
    rows_per_second: int | None = None


@dataclass(frozen=True)
class LoadResult:
    """What became of a table.

    Args:
        table: its name at the source.
        state: loaded; there: it was loaded before; stopped: the same command goes on; failed.
        rows: that this run wrote.
        before: that an earlier run had written.
        commits: of this run.
        position: from which the stream goes on.
        seconds: how long it took.
        error: why it failed.
    """

    table: str
    state: str
    rows: int = 0
    before: int = 0
    commits: int = 0
    position: str = ""
    seconds: float = 0.0
    error: LakeError | None = None


@dataclass
class FirstLoad:
    """Loads tables of the source into a lake.

    Args:
        settings: of the stream, which is not running.
        options: of the run.
        on_progress: called after every chunk.
        stop: set it to end after the next commit.
        root: of the lake; None for that of the settings.
    """

    settings: Settings
    options: LoadOptions = field(default_factory=LoadOptions)
    on_progress: Callable[[LoadProgress], None] = lambda progress: None
    stop: threading.Event = field(default_factory=threading.Event)
    root: Storage | None = None

    def run(self, names: Sequence[str] = ()) -> Iterator[LoadResult]:
        """Load the source tables of these names (``database.table``); without names all that the settings take.

        What cannot be loaded is refused before the first row is written. Raises ConfigError, LostOwnershipError if the
        stream or another load runs, TransientError; an error of one table is its result.
        """
        settings, database = self.settings, self.settings.source.database
        limits = self.options.limits or database.load
        state = open_storage(settings.state_uri, settings.state_options())
        with StreamLease(state, settings.name), Sessions.opened(settings, limits.connections) as sessions:
            ledger = Ledger.load(state, settings.name)
            self._check_stream(sessions.connections[0], ledger)
            root = self.root or open_storage(settings.lake.uri, settings.lake.storage_options())
            own = locking(settings.locking, f"stream {load_stream(settings.name)}", one_run=True)
            lake = Lake(root, own, base_from_rows=1, loads=True)
            plans: deque[LoadPlan] = deque()
            for name in self._chosen(sessions.connections[0], names):
                planned = self._planned(sessions.connections[0], lake, name)
                if isinstance(planned, LoadResult):
                    yield planned
                else:
                    plans.append(planned)
            if self.options.replace and ledger is not None:
                self._forget(ledger, plans)
                ledger.save(state)
            pace = Pace(self.options.rows_per_second or database.rows_per_second)
            services = TableServices(one_by_one)
            with ThreadPoolExecutor(limits.connections, "binlake-load") as readers:
                while plans and not self.stop.is_set():
                    with sessions.begun() as begun:
                        while plans and not self.stop.is_set() and all(c.is_open for c in sessions.connections):
                            load = TableLoad(
                                settings,
                                limits,
                                lake,
                                services,
                                plans.popleft(),
                                begun,
                                readers,
                                pace,
                                self.on_progress,
                                self.stop.is_set,
                            )
                            yield self._loaded(load, begun)
            services.close()
            yield from (LoadResult(str(plan.described.name), "stopped") for plan in plans)

    def _chosen(self, connection: SourceConnection, names: Sequence[str]) -> list[SourceTable]:
        if not names:
            tables = tables_of(connection)
            return [t for t in tables if t.database.lower() not in OWN_DATABASES and self.settings.tables.selects(t)]
        return [self._named(connection, name) for name in names]

    def _named(self, connection: SourceConnection, name: str) -> SourceTable:
        database, dot, table = name.partition(".")
        source = SourceTable.named(database, table) if dot else None
        if source is None:
            do_next = did_you_mean(name, map(str, self._chosen(connection, ()))) or "write database.table"
            raise ConfigError("this is no name of a table", do_next=do_next, table=name)
        if not self.settings.tables.selects(source):
            raise ConfigError(
                "the settings leave this table out, so the stream would not go on with it",
                do_next="take it in (tables.include, tables.exclude)",
                table=name,
            )
        return source

    def _check_stream(self, connection: SourceConnection, ledger: Ledger | None) -> None:
        """Raise ConfigError if the stream would miss changes that come after the position of the load. A stream that
        reads the binlog itself begins at this position."""
        if self.settings.source.mysql is not None:
            return
        if self.settings.kafka.start == "latest" and ledger is None:
            raise ConfigError(
                "kafka.start: latest would leave out the changes between this load and the stream's start",
                do_next="set kafka.start: earliest; changes from before the load are left out by themselves",
            )
        if not self.options.connector_check:
            return
        [[readers]] = connection.rows(_READERS)
        if not int(readers or 0):
            raise ConfigError(
                "nobody reads the server's binlog, as far as this user sees: changes between this load and the "
                "connector's start would be lost",
                do_next="start the connector first (snapshot.mode: no_data) and grant PROCESS; or, if it has a "
                "position already and only rests, --no-connector-check",
                server=connection.place,
            )

    def _planned(self, connection: SourceConnection, lake: Lake, name: SourceTable) -> LoadPlan | LoadResult:
        try:
            plan = LoadPlan.of(self.settings, describe(connection, name))
            there = self._there(lake, plan)
        except LakeError as error:
            return LoadResult(str(name), "failed", error=error)
        if there is not None and not self.options.replace:
            return LoadResult(str(name), "there", before=there.rows, position=str(there.position))
        return plan

    def _there(self, lake: Lake, plan: LoadPlan) -> RecordedLoad | None:
        """How the table was loaded before; None if it was not, or not to its end. Raises ConfigError for a table that
        rows of another writer are in."""
        storage = lake.root.sub(plan.rules.path)
        if not HudiTable.exists(storage):
            check_free(storage)
            return None
        table = HudiTable.open(storage)
        load, begun = RecordReader.newest_of(table).load, bool(table.timeline.completed())
        if load is None and begun and not self.options.replace:
            raise ConfigError(
                "the lake has this table, and it was not loaded: its rows came from the stream",
                do_next="nothing, if its rows are those of the source (binlake verify); --replace deletes the table "
                "and loads it anew; binlake table resync brings it anew while the stream runs",
                table=str(plan.described.name),
                path=storage.uri,
            )
        return load if load is not None and load.done else None

    def _forget(self, ledger: Ledger, plans: Sequence[LoadPlan]) -> None:
        for plan in plans:
            if plan.source in ledger.tables:
                ledger.forget(plan.source, now_ms())

    def _loaded(self, load: TableLoad, begun: Sequence[SnapshotSession]) -> LoadResult:
        name, started = str(load.plan.described.name), monotonic_s()
        try:
            recorded = load.run(anew=self.options.replace)
            for session in begun:
                session.leave()
        except LakeError as error:
            return LoadResult(name, "failed", load.rows, load.before, load.commits, "", monotonic_s() - started, error)
        state = "loaded" if recorded.done else "stopped"
        position, seconds = str(recorded.position), monotonic_s() - started
        return LoadResult(name, state, load.rows, load.before, load.commits, position, seconds)
