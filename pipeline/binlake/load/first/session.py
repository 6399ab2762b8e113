"""Sessions at the source's server that stand in one snapshot, and the rows that they read, prepared for the lake."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import META_FIELDS, ChangeBatch, Op, ordering_value
from binlake.load.first.table_plan import LoadPlan
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.prepare import TableFacts, prepare
from binlake.settings import Settings
from binlake.source.database.connection import SourceConnection, connect
from binlake.source.database.pace import Pace
from binlake.source.database.plain_cells import compact_json
from binlake.source.database.snapshot import SourcePosition, snapshots
from binlake.source.database.source_table import SourceColumn
from binlake.source.database.values import Unreadable, ValueReader
from hudilake.errors import BadInputError, UnsupportedError

#: The most rows and bytes in memory at once, of one session.
_ROWS, _BYTES = 65_536, 64 << 20
#: The partition of loaded rows, which no topic has.
_PARTITION = -1
_SAVEPOINT = "binlake"


@dataclass(frozen=True)
class LoadedRows:
    """Rows of one table, routed to the file groups of its lake table, and their report."""

    report: TaskTableReport
    parcels: Sequence[Parcel]
    rows: int


@dataclass
class SnapshotSession:
    """One session in a snapshot.

    Args:
        connection: to the server.
        position: of the snapshot.
        place: the same as an ordering value.
        order: the ordering value of the rows: that of a snapshot row, older than any change.
        seconds: the server's time when the snapshot began, since the Unix epoch.
    """

    connection: SourceConnection
    position: SourcePosition
    place: int
    order: int
    seconds: int
    _row: int = 0

    @staticmethod
    def of(connection: SourceConnection, position: SourcePosition, settings: Settings) -> SnapshotSession:
        """A session whose snapshot has begun. Raises ConfigError for a position that has no ordering value."""
        [[seconds]] = connection.rows("SELECT UNIX_TIMESTAMP()")
        connection.rows(f"SAVEPOINT {_SAVEPOINT}")
        source, now = settings.source, int(float(seconds or 0))
        epoch = source.epoch_of_server.get(position.server_id, source.epoch)
        return SnapshotSession(connection, position, position.order(source), ordering_value(epoch, 0, now), now)

    def leave(self) -> None:
        """Let go of the tables that were read, so that they may be altered; the snapshot stays."""
        self.connection.rows(f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")

    def read(self, plan: LoadPlan, where: str, pace: Pace) -> Generator[LoadedRows]:
        """The rows of a table for which a condition holds. Raises BadInputError for a value that no lake type holds,
        UnsupportedError for a row that the table's rules refuse, TransientError."""
        selected = ", ".join(column.selected for column, _ in plan.columns)
        sql = f"SELECT {selected} FROM {plan.described.sql_name}{where}"  # noqa: S608 - identifiers are quoted
        with contextlib.closing(self.connection.blocks(sql, _ROWS, _BYTES)) as blocks:
            for block in blocks:
                cells = block.columns(len(plan.columns))
                values = [_read(*one, array, plan) for one, array in zip(plan.columns, cells, strict=True)]
                yield self._prepared(plan, values)
                pace.passed(len(block))

    def _prepared(self, plan: LoadPlan, values: Sequence[pa.Array]) -> LoadedRows:
        batch = ChangeBatch(plan.schema, "", self._with_meta(plan, values), origin=plan.described.name)
        prepared = prepare(batch, plan.rules, None, TableFacts())
        accepted = prepared.accepted
        if prepared.left_out.rejected or accepted is None:
            rejected = prepared.left_out.rejected
            raise UnsupportedError(
                f"rows of the source cannot be written: {rejected[0].detail if rejected else 'none is left'}",
                do_next="correct the table's rules, or the rows at the source",
                table=str(plan.described.name),
            )
        report = TaskTableReport(
            schema=accepted.schema,
            target=accepted.target,
            columns=accepted.columns,
            origins={plan.described.name},
            counts=accepted.counts,
            oldest_ms=accepted.oldest_ms,
            newest_ms=accepted.newest_ms,
            snapshots=accepted.snapshots,
        )
        return LoadedRows(report, accepted.parcels, len(batch.rows))

    def _with_meta(self, plan: LoadPlan, values: Sequence[pa.Array]) -> pa.Table:
        """The rows as those of a connector's snapshot, each with a number of its own in place of a record's offset."""
        count = len(values[0])
        meta = {
            "__op": int(Op.UPSERT),
            "__order": self.order,
            "__row": 0,
            "__partition": _PARTITION,
            "__offset": np.arange(self._row, self._row + count, dtype=np.int64),
            "__source_ms": self.seconds * 1000,
            "__place": self.place,
        }
        self._row += count
        filled = [
            pa.array(value if isinstance(value, np.ndarray) else np.full(count, value, np.int64)).cast(known.type)
            for known in META_FIELDS
            for value in [meta[known.name]]
        ]
        return pa.Table.from_arrays([*values, *filled], schema=pa.schema([*plan.schema.arrow(), *META_FIELDS]))


def _read(column: SourceColumn, reader: ValueReader, cells: pa.Array, plan: LoadPlan) -> pa.Array:
    unreadable = Unreadable()
    if reader.kind.base == "json":
        return compact_json(cells.cast(pa.string()))
    values = reader.read(cells, unreadable)
    if unreadable.count:
        example = cells.filter(pc.and_(pc.is_null(values), pc.is_valid(cells)))
        raise BadInputError(
            f"column {column.name!r} has values that no lake type holds, such as {str(example[0].as_py())[:60]}",
            do_next="correct them at the source, or leave the column out (columns.exclude)",
            table=str(plan.described.name),
        )
    return values


@dataclass
class Sessions:
    """Several sessions at the server; ``begun`` gives them their snapshots.

    Args:
        settings: of the stream.
        connections: to the server.
    """

    settings: Settings
    connections: list[SourceConnection] = field(default_factory=list)

    @staticmethod
    @contextlib.contextmanager
    def opened(settings: Settings, count: int) -> Iterator[Sessions]:
        """So many sessions for the length of the block. Raises ConfigError, TransientError."""
        with contextlib.ExitStack() as stack:
            database = settings.source.database
            yield Sessions(settings, [stack.enter_context(connect(database)) for _ in range(count)])

    @contextlib.contextmanager
    def begun(self) -> Iterator[list[SnapshotSession]]:
        """The sessions in new snapshots, for the length of the block; those that were lost are opened again. Errors as
        ``snapshots``."""
        for connection in self.connections:
            connection.revive()
        replica = self.settings.source.database.replica is not None
        with snapshots(self.connections, replica=replica) as positions:
            pairs = zip(self.connections, positions, strict=True)
            yield [SnapshotSession.of(connection, position, self.settings) for connection, position in pairs]
