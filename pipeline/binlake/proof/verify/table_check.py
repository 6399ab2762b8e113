"""The comparison of one source table with its rows in the lake, portion by portion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.position.binlog_height import Heights, place_of
from binlake.position.ledger import Ledger
from binlake.proof.verify.canonical import is_in
from binlake.proof.verify.columns import ColumnPlan, plan_columns
from binlake.proof.verify.compare import compare
from binlake.proof.verify.coverage import LakeCoverage
from binlake.proof.verify.lake_rows import LakeRows
from binlake.proof.verify.places import FileGroups, GroupName
from binlake.proof.verify.result import TableResult, row_differences
from binlake.proof.verify.rows import EVERYTHING, NO_ORDERS, KeyRange, KnownRows, Longs
from binlake.proof.verify.settle import Look, settle
from binlake.proof.verify.source_rows import SourceRows
from binlake.rows.upsert.target import kind_of
from binlake.settings import Settings
from binlake.settings.fanout import ShardRule
from binlake.source.database.connection import SourceConnection
from binlake.source.database.pace import Pace
from binlake.source.database.snapshot import SourcePosition, snapshot
from binlake.source.database.source_table import DescribedTable, describe, quoted
from binlake.tables.catalog import CatalogTable
from binlake.tables.feeds import Feeds, SourceOf
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, TransientError, UnsupportedError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from hudilake.wording import counted

#: Rows of a portion: so long the source keeps its snapshot, and so much is lost when a run ends in between.
PORTION_ROWS = 20_000_000
_WHOLE_BASES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
#: MySQL: the table's definition has changed since the snapshot began.
_DEFINITION_CHANGED = 1412
_ATTEMPTS = 3
_REPAIR = "write the source's rows over these (binlake verify --repair)"
_STAYS = (
    "repair them again; if they stay, a stored delete that is ahead of the source stands in their way: load the table "
    "again under a new path"
)
_NEW_PATH = (
    "a table without a key is neither repaired row by row nor fetched anew: give it a key in tables.overrides, or load "
    "it again under a new path"
)

#: Repairs the rows of a look; returns how many rows it wrote and deleted.
Repair = Callable[["TableCheck", Look], int]


@dataclass(frozen=True)
class CheckOptions:
    """Options of a comparison.

    Args:
        replica: whether the connection leads to a replica.
        most_looks: further looks at what differs.
        listed: the most differences of a table that are kept to be shown.
        portion_rows: rows of a portion.
    """

    replica: bool = False
    most_looks: int = 10
    listed: int = 100
    portion_rows: int = PORTION_ROWS


@dataclass
class TableCheck:
    """One source table and its rows in the lake.

    Args:
        settings: of the stream.
        connection: to the source.
        table: the lake table.
        fed_by: the source table, by its first name and by the one that it has now.
        shard: the rule that marks its rows where the lake table holds several source tables.
        described: the source table as the server describes it.
        plan: the compared columns.
        coverage: brings the lake to a position.
        pace: the limit of rows a second.
        options: of the comparison.
        groups: numbers of the lake table's file groups.
        doubtful: the file groups with rows that a look at their keys may not find.
        impossible: ordering values of stored rows that no change of the source has, ascending.
        newest: the greatest ordering value in the lake besides these, as far as it was read; -1 if it was not.
        feeds: asks anew what feeds which lake table.
    """

    settings: Settings
    connection: SourceConnection
    table: CatalogTable
    fed_by: SourceOf
    shard: ShardRule | None
    described: DescribedTable
    plan: ColumnPlan
    coverage: LakeCoverage
    pace: Pace
    options: CheckOptions
    feeds: Callable[[], Feeds]
    groups: FileGroups = field(default_factory=FileGroups)
    doubtful: set[GroupName] = field(default_factory=set)
    impossible: Longs = field(default_factory=NO_ORDERS.copy)
    newest: int = -1

    @classmethod
    def of(
        cls,
        settings: Settings,
        connection: SourceConnection,
        table: CatalogTable,
        fed_by: SourceOf,
        coverage: LakeCoverage,
        pace: Pace,
        options: CheckOptions,
        feeds: Callable[[], Feeds],
    ) -> TableCheck:
        """Ask both sides for their columns. Raises as ``describe`` and ``plan_columns``, UnsupportedError for a table
        whose rows are not those of the source."""
        name, shard = fed_by.known(), fed_by.part if isinstance(fed_by.part, ShardRule) else None
        text = "its rows are made by the merge engine {}, and are not those of the source"
        if (why := table.rules.merge.refusal(text)) is not None:
            raise UnsupportedError(
                why,
                do_next="compare it with a query at the source",
                table=str(name),
            )
        kind_of(table.rules).refuse(TableOperation.VERIFY, str(name))
        described, lake = describe(connection, name), HudiTable.open(table.storage)
        key_fields = lake.config.record_key_fields
        plan = plan_columns(described, lake.schema, key_fields, table.rules, shard, settings.source)
        return cls(settings, connection, table, fed_by, shard, described, plan, coverage, pace, options, feeds)

    @property
    def origin(self) -> SourceTable:
        """The source table by the name that it has now."""
        return self.fed_by.known()

    def refuse_renamed(self, order: int) -> None:
        """Raise TransientError if the source table had another name at an ordering value at which it was read."""
        if not self.feeds().still_feeds(self.fed_by, order):
            raise TransientError(
                "the table was renamed at the source while it was read: nothing of it was written",
                do_next="run the command again",
                table=str(self.origin),
            )

    def refuse_unsure(self, order: int) -> None:
        """The same where rows are written: raise it also if the stream does not know all statements up to there."""
        if not self.coverage.hears(order):
            raise TransientError(
                f"the stream does not know all statements of the source up to {place_of(order)}, so the table may have "
                "another name by then: nothing of it was written",
                do_next="start the stream, or wait until it is through, and run the command again",
                table=str(self.origin),
            )
        self.refuse_renamed(order)

    def lake(self, portion: KeyRange = EVERYTHING) -> LakeRows:
        """The rows of the lake as of now. Errors as ``LakeRows.open``."""
        return LakeRows.open(self.table.storage, self.plan, portion, self.groups, self.impossible)

    @property
    def key(self) -> list[str]:
        """The source's names of the columns by which a row is known."""
        return [c.source.name for c in self.plan.key]

    def portions(self, low: int | None = None) -> Iterator[KeyRange]:
        """The portions from ``low`` on; one for tables whose key does not begin with a whole number."""
        first, most = self.plan.key[0].source, self.options.portion_rows
        kind = first.type
        whole = kind is not None and kind.base in _WHOLE_BASES and pa.types.is_integer(kind.lake_type)
        if not self.plan.keys or not whole or (self.described.rows <= most and low is None):
            yield EVERYTHING
            return
        name, bound = quoted(first.name), low
        while True:
            where = "" if bound is None else f" WHERE {name} >= {bound}"
            boundary_rows = self.connection.rows(
                f"SELECT {name} FROM {self.described.sql_name}{where} ORDER BY {name} LIMIT 1 OFFSET {most}"  # noqa: S608
            )
            after = int(boundary_rows[0][0] or 0) if boundary_rows else None
            if after is not None and after == bound:
                after += 1  # so many rows share the first key column
            yield KeyRange(bound, after)
            if after is None:
                return
            bound = after

    def run(self, portion: KeyRange, repair: Repair | None = None) -> TableResult:
        """Compare a portion, settle what differs, and repair it if asked to.

        Raises TransientError if the table's definition keeps changing, and as the parts do.
        """
        for _ in range(_ATTEMPTS - 1):
            try:
                return self._run(portion, repair)
            except TransientError as error:
                if error.where.get("error") != _DEFINITION_CHANGED:
                    raise
        return self._run(portion, repair)

    def _run(self, portion: KeyRange, repair: Repair | None) -> TableResult:
        began_s, source = monotonic_s(), self._source(portion)
        result = TableResult(str(self.origin))
        first, changed = self._compared(source, portion, result, proven=False)
        if result.wrong and not first.covered:  # the lake may only be behind
            result.wrong.clear()
            first, changed = self._compared(source, portion, result, proven=True)
            if not first.covered:
                result.wrong.clear()
                result.unsettled, result.behind = result.source_rows, True

        def again(keys: pa.Table) -> Look:
            if self.plan.keys:
                return self.look(keys, source)
            return self._compared(source, portion, TableResult(""), proven=True)[0]

        done = settle(first, changed, again, self.key, self.options.most_looks)
        result.positions.append(str(first.position))
        result.order = first.order
        for look in done.differences:
            for difference in row_differences(look, self.plan, self.groups):
                result.note(difference, self.options.listed)
            if repair is not None:
                repair(self, look)
                result.repaired += self._equal_now(look, source)
        if result.total > result.repaired:
            result.advice = _NEW_PATH if not self.plan.keys else _REPAIR if repair is None else _STAYS
        result.unsettled += done.unsettled
        result.changing, result.behind = done.changing, result.behind or done.behind
        result.fetched = source.fetched
        result.notes = [str(note) for note in self.plan.notes if not note.wrong]
        result.notes += [
            f"{n}: {counted(u.count, 'value')} that no calendar has" for n, u in source.unreadable.items() if u.count
        ]
        result.wrong += [str(note) for note in self.plan.notes if note.wrong]
        result.seconds = monotonic_s() - began_s
        return result

    def _source(self, portion: KeyRange = EVERYTHING) -> SourceRows:
        described = replace(self.described, rows=min(self.described.rows, self.options.portion_rows))
        return SourceRows(self.connection, described, self.plan, self.pace, portion)

    def _compared(
        self, source: SourceRows, portion: KeyRange, result: TableResult, *, proven: bool
    ) -> tuple[Look, pa.Table]:
        """Compare a portion at a new position, and note the figures. Returns what differs, and the keys of rows that
        were changed since (none of a table without a key)."""
        with snapshot(self.connection, replica=self.options.replica) as position:
            order = position.order(self.settings.source)
            covered = self.coverage.reach(self.table, order, proven=proven)
            self.refuse_renamed(order)
            comparison = compare(source, self.lake(portion), order)
        if self.learn_impossible(comparison.newer):
            return self._compared(source, portion, result, proven=proven)
        self.doubtful |= self.groups.of(comparison.doubtful)
        self.newest = max(self.newest, comparison.newest)
        result.source_rows, result.changed_since = comparison.source_rows, comparison.changed_since
        result.ranges, result.ranges_differing = comparison.ranges, comparison.ranges_differing
        result.wrong += [comparison.too_many] if comparison.too_many else []
        changed = comparison.changed if self.plan.keys else comparison.changed.slice(0, 0)
        return Look(position, order, comparison.source, comparison.lake, covered, not self.plan.keys), changed

    def learn_impossible(self, orders: Longs) -> bool:
        """Note which ordering values of stored rows lie behind the end of the server's binlog, where the stream has
        read nothing either: no change of the source has them. Returns whether there are any.

        Args:
            orders: of rows that the lake held a moment ago.

        Raises ConfigError if the stream has read changes from behind that end: it is another server's, or was reset,
        and all rows would count as changed. TransientError for a replica: it may only be behind.
        """
        read = self._highest_read()  # before the server is asked: both go on
        with snapshot(self.connection, replica=self.options.replica) as position:
            stands = position.order(self.settings.source)
        ahead = orders[orders > stands]
        if not len(ahead):
            return False
        newest = place_of(int(ahead.max()))
        if self.options.replica:
            raise TransientError(
                f"the replica stands at {position}, and the lake is ahead of it ({newest})",
                do_next="wait until the replica has caught up, or read the primary",
                table=str(self.origin),
            )
        if read < 0 or read > stands:
            raise self._other_server(position, f"the lake holds rows from {newest}")
        self.impossible = np.union1d(self.impossible, ahead)
        return True

    def refuse_other_server(self) -> None:
        """Raise ConfigError if the stream has read changes from behind the end of the server's binlog: rows of that
        server would lose to those of the lake. A replica may only be behind."""
        read = self._highest_read()
        with snapshot(self.connection, replica=self.options.replica) as position:
            stands = position.order(self.settings.source)
        if read > stands and not self.options.replica:
            raise self._other_server(position, f"the stream has read {place_of(read)}")

    def _other_server(self, position: SourcePosition, ahead: str) -> ConfigError:
        return ConfigError(
            f"the server's binlog stands at {position}, and {ahead}",
            do_next="name the server that writes the binlog; after a failover raise source.epoch_of_server for it",
            table=str(self.origin),
        )

    @property
    def has_places(self) -> bool:
        """Whether the stream has read changes of the source table that have places in the binlog."""
        return self.fed_by.first in self._heights()

    def _heights(self) -> Heights:
        state = open_storage(self.settings.state_uri, self.settings.state_options())
        ledger = Ledger.load(state, self.settings.name)
        return ledger.heights if ledger is not None else {}

    def _highest_read(self) -> int:
        """The newest ordering value that the stream has read, of any table; -1 if it has read none."""
        heights = self._heights().values()
        return max(
            (order for topics in heights for parts in topics.values() for order, _ in parts.values()), default=-1
        )

    def look(self, keys: pa.Table, source: SourceRows | None = None) -> Look:
        """Some rows on both sides at a new position. ``keys``: the key columns of n rows, in canonical types."""
        rows = source or self._source()
        with snapshot(self.connection, replica=self.options.replica) as position:
            order = position.order(self.settings.source)
            source_rows = rows.of_keys(keys)
        covered = self.coverage.reach(self.table, order, proven=True)
        self.refuse_renamed(order)
        wanted = KnownRows.of(keys, self.plan).keys
        wanted.sort()
        held = [part.where(is_in(part.keys, wanted)) for part in self.lake().of_keys(keys, self.doubtful)]
        stored = KnownRows.joined(held, self.plan)
        return Look(
            position, order, source_rows.where(is_in(source_rows.keys, wanted)), stored, covered, not self.plan.keys
        )

    def _equal_now(self, look: Look, source: SourceRows) -> int:
        """How many keys of a look do not differ any more."""
        keys = pa.concat_tables([look.source.rows.select(self.key), look.lake.rows.select(self.key)])
        wanted = np.union1d(look.source.keys, look.lake.keys)
        left = settle(self.look(keys, source), keys.slice(0, 0), lambda some: self.look(some, source), self.key, 2)
        differ = [np.union1d(d.source.keys, d.lake.keys) for d in left.differences]
        return len(wanted) - left.unsettled - sum(map(len, differ))
