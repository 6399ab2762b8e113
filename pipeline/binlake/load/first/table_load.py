"""One table loaded: read in chunks by several sessions, written as bulk commits that say how far they have come.

The first commit has no rows. It records the position, and that rows up to there are not wanted from elsewhere: so it
does not matter where the stream begins to read, if only all changes after the position come. Each further commit holds
whole chunks and the place up to which all are there. After a kill the next run goes on from this place, at a later
position: its rows have later changes than those before, and the changes in between, which the stream brings to both,
make them equal. Rows that nothing identifies cannot be made equal: such a table is begun anew.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from binlake.load.first.chunks import Place, read_in_order
from binlake.load.first.session import LoadedRows, SnapshotSession
from binlake.load.first.table_plan import LoadPlan
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.recorded import RecordedLoad, load_stream
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.keyless import KeylessState
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import is_keyless
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.settings import Settings
from binlake.settings.database import LoadSettings
from binlake.source.binlog.definitions import StatementPlace, loaded_record
from binlake.source.database.pace import Pace
from binlake.source.database.snapshot import SourcePosition
from binlake.source.database.source_table import describe
from binlake.source.offsets import NO_RANGES
from binlake.stream.definitions.learned import Definitions
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.clock import monotonic_s
from hudilake.commit.intent import Intent
from hudilake.errors import TransientError, UnsupportedError

#: A commit holds no more bytes of rows than this, and one chunk.
_COMMIT_BYTES = 512 << 20


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a table is.

    Args:
        table: its name at the source.
        rows: committed and read so far, of this run.
        before: rows that an earlier run had committed.
        estimate: how many the table has, as the server estimates it.
        seconds: since this run began to read the table.
    """

    table: str
    rows: int
    before: int
    estimate: int
    seconds: float

    @property
    def rows_per_second(self) -> float:
        """Of this run."""
        return self.rows / max(self.seconds, 1e-3)

    @property
    def seconds_left(self) -> float | None:
        """About how long it takes yet; None if nothing is known of it."""
        left = self.estimate - self.before - self.rows
        return left / self.rows_per_second if self.rows and left > 0 else None


@dataclass(frozen=True)
class _ReadRows:
    """Rows that were read, and the place from which the rest goes on; None for the last part."""

    rows: Sequence[LoadedRows]
    high: Place | None = None


@dataclass
class TableLoad:
    """The load of one table.

    Args:
        settings: of the stream.
        limits: how the source is read.
        lake: the tables; those that are being loaded may be opened.
        services: what comes after a commit.
        plan: of the table.
        sessions: in their snapshots.
        readers: runs so many reads side by side as there are sessions.
        pace: the limit of rows a second.
        note: called with how far it is, after every chunk.
        stopped: whether to end after the next commit.
    """

    settings: Settings
    limits: LoadSettings
    lake: Lake
    services: TableServices
    plan: LoadPlan
    sessions: Sequence[SnapshotSession]
    readers: Executor
    pace: Pace
    note: Callable[[LoadProgress], None]
    stopped: Callable[[], bool]
    commits: int = 0
    rows: int = 0
    before: int = 0
    read: int = 0
    _began_s: float = field(default_factory=monotonic_s)

    def run(self, *, anew: bool = False) -> RecordedLoad:
        """Load the table, or the rest of it. Returns how far it is: done, unless it was stopped.

        ``anew``: delete the lake table first, whatever it has.

        Raises UnsupportedError, BadInputError for rows that cannot be written, TransientError where the source breaks
        off or the table was altered meanwhile, StorageError; commits stay.
        """
        self._hold()
        table, load = self._opened(anew=anew)
        self.before = load.rows
        with (
            ThreadPoolExecutor(1, "binlake-load-commit") as one,
            ThreadPoolExecutor(4, "binlake-load-file") as pool,
            contextlib.closing(self._gathered(load.after)) as gathered,
        ):
            commit: Future[None] | None = None
            for held, high, last in gathered:
                if commit is not None:
                    commit.result()
                rows = load.rows + sum(part.rows for part in held)
                reached = self._reached() if last else None
                load = replace(load, rows=rows, after=high if self.plan.by_key else None, done=last, reached=reached)
                commit = one.submit(self._commit, table, held, load, pool)
                if self.stopped():
                    break
            if commit is not None:
                commit.result()
        return load

    # -- begin ---------------------------------------------------------------------------------------------------------

    def _hold(self) -> None:
        """Keep the table from being altered until it is read. Raises TransientError if it was, meanwhile."""
        connection, described = self.sessions[0].connection, self.plan.described
        connection.rows(f"SELECT 1 FROM {described.sql_name} LIMIT 0")  # noqa: S608 - quoted
        now = describe(connection, described.name)
        if (now.columns, now.key) != (described.columns, described.key):
            raise TransientError(
                "the table was altered at the source meanwhile",
                do_next="run the command again",
                table=str(described.name),
            )

    def _opened(self, *, anew: bool) -> tuple[LakeTable, RecordedLoad]:
        """The lake table and how far it is: as an earlier run left it if that can go on, else begun."""
        plan, rules = self.plan, replace(self.plan.rules, compaction=None, retention=None)
        table = self.lake.get(rules)
        if table is not None and table.load is not None and self._goes_on(table.load) and not anew:
            return table, table.load
        if table is not None:
            self.lake.give_up(rules.path)
            self.lake.root.sub(rules.path).delete_tree("")
        table = self.lake.get_or_create(rules, plan.target, plan.lake_columns)
        oldest = min(self._used(), key=lambda session: session.place)
        if self.settings.source.mysql is not None:
            self._keep_definition(oldest.position)
        load = RecordedLoad(oldest.position, plan.definition)
        self._commit_record(table, load, Truncates(whole=oldest.place - 1))
        return table, load

    def _keep_definition(self, position: SourcePosition) -> None:
        """Keep what no statement will say that the stream reads: the table was made before."""
        described = self.plan.described
        connection = self.sessions[0].connection
        created = connection.definition(described.sql_name)
        mariadb = "mariadb" in str(connection.rows("SELECT VERSION()")[0][0]).lower()
        place = StatementPlace(position.file, position.position, 0, position.server_id, None, mariadb, loaded=True)
        Definitions(self.settings).keep([loaded_record(described, created, place)])

    def _goes_on(self, load: RecordedLoad) -> bool:
        return self.plan.by_key and load.definition == self.plan.definition

    def _used(self) -> Sequence[SnapshotSession]:
        """The sessions that read the table. Rows that nothing identifies are read at one position, which must be exact:
        a later change in them would come again. Raises UnsupportedError."""
        one_place = len({session.place for session in self.sessions}) == 1
        used = (
            self.sessions
            if self.plan.chunk_columns is not None and (self.plan.by_key or one_place)
            else self.sessions[:1]
        )
        if not self.plan.by_key and not all(session.position.exact for session in used):
            raise UnsupportedError(
                "the server tells this user no exact position of a snapshot, and rows without a key would be doubled",
                do_next="grant RELOAD, for a lock that lasts milliseconds",
                table=str(self.plan.described.name),
            )
        return used

    def _reached(self) -> SourcePosition | None:
        """The newest position at which rows were read, by an earlier run too; None where snapshots may show more."""
        newest = max(self._used(), key=lambda session: session.place)
        return newest.position if all(session.position.exact for session in self._used()) else None

    # -- read ----------------------------------------------------------------------------------------------------------

    def _gathered(self, after: Place | None) -> Generator[tuple[list[LoadedRows], Place | None, bool]]:
        """The rows of one commit each, the place from which the rest goes on, and whether they are the last ones."""
        held: list[LoadedRows] = []
        parts = self._parts(after)
        part = next(parts, _ReadRows(()))
        while True:
            following = next(parts, None)
            held += part.rows
            size = sum(len(parcel.blob) for rows in held for parcel in rows.parcels)
            if following is None:
                yield held, None, True
                return
            if sum(rows.rows for rows in held) >= self.limits.commit_rows or size >= _COMMIT_BYTES:
                yield held, part.high, False
                held = []
            part = following

    def _parts(self, after: Place | None) -> Iterator[_ReadRows]:
        used, columns = self._used(), self.plan.chunk_columns
        if columns is None or (len(used) == 1 and not self.plan.by_key):
            for rows in used[0].read(self.plan, "", self.pace):
                self._progress(rows.rows)
                yield _ReadRows([rows])
            return
        connections = [session.connection for session in used]

        def read(number: int, where: str) -> list[LoadedRows]:
            return list(used[number].read(self.plan, where, self.pace))

        for chunk, rows_of_chunk in read_in_order(
            columns, connections, self.limits.chunk_rows, after, read, self.readers
        ):
            self._progress(sum(rows.rows for rows in rows_of_chunk))
            yield _ReadRows(rows_of_chunk, chunk.high)

    def _progress(self, rows: int) -> None:
        self.read += rows
        described = self.plan.described
        seconds = monotonic_s() - self._began_s
        self.note(LoadProgress(str(described.name), self.read, self.before, described.rows, seconds))

    # -- write ---------------------------------------------------------------------------------------------------------

    def _commit(self, table: LakeTable, held: Sequence[LoadedRows], load: RecordedLoad, pool: Executor) -> None:
        parcels = [parcel for rows in held for parcel in rows.parcels]
        if not parcels:
            self._commit_record(table, load)
            return
        report = copy.deepcopy(held[0].report)
        for rows in held[1:]:
            report.add(rows.report)
        table_input = TableInput(report, NO_RANGES, parcels, notes=CommitNotes(load=load))
        write_and_commit(table, table_input, load_stream(self.settings.name), 0, pool, self.services)
        self.rows += sum(rows.rows for rows in held)
        self.commits += 1

    def _commit_record(self, table: LakeTable, load: RecordedLoad, truncates: Truncates = NOTHING_TRUNCATED) -> None:
        """Commit the record of a load without rows. Errors as ``LakeTable.commit``."""
        plan = self.plan
        report = TaskTableReport(plan.schema, plan.target, plan.lake_columns, origins={plan.described.name})
        context = table.begin(table.hudi.schema, Intent())
        with table.undone_on_error(context.instant):
            record = CommitRecord(
                load_stream(self.settings.name),
                0,
                Counts(),
                plan.source,
                table.origin_of(report),
                truncates=truncates,
                keyless=KeylessState() if is_keyless(table.hudi.config) and table.keyless is None else table.keyless,
                notes=CommitNotes(load=load),
            )
            table.commit(context, [], record)
        self.commits += 1
