"""The façade of a table: reading, writing, time travel and services of one open Hudi table."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

import pyarrow as pa

from hudilake.api import upkeep
from hudilake.api.history import Commit, Moment, commits_of, completed_at, requested_at
from hudilake.api.reader import Reader
from hudilake.api.rows import Rows, rows_of, schema_of
from hudilake.api.transaction import Transaction, refuse_unwritten
from hudilake.commit.commit import OvertakenError
from hudilake.commit.savepoint_record import Savepoint, savepoints
from hudilake.errors import ConfigError
from hudilake.policies import ClusteringPolicy, CompactionPolicy, FileSizePolicy, RetentionPolicy
from hudilake.query.changes.feed import ChangeFeed
from hudilake.query.changes.position import ChangePosition, position_at
from hudilake.read.query import Incremental, Query, ReadOptimized, Snapshot
from hudilake.read.question import Condition
from hudilake.read.table_reader import TableReader
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.erasure.erase import ErasureReport, erase
from hudilake.services.erasure.search import ErasurePlan, plan_erasure
from hudilake.services.fsck import Report, fsck
from hudilake.services.rebucket.steps import RebucketResult
from hudilake.services.rebucket.units import wanted_buckets
from hudilake.services.repair import plan_repair, repair
from hudilake.services.restore import finish_pending_restores, restore
from hudilake.services.savepoint import create_savepoint, delete_savepoint
from hudilake.table.table import HudiTable

#: How often a single write is done again on the table's newer state before its conflict is an error.
_ATTEMPTS: Final = 5


class Table:
    """An open Hudi table: one writer's view of it. ``open_table`` and ``create_table`` make it.

    Reads see the table as of the last ``refresh``, the last write of this object, or when it was opened. Writes are
    commits: whole or not at all, with the metadata table up to date. Other writers may write at the same time, Hudi's
    included, if all use the same kind of lock. Not for use from several threads at once.

    Example:
        >>> orders.name, orders.uri.startswith("file://")
        ('orders', True)
        >>> orders.upsert([{"id": 1, "qty": 9, "day": "d1", "updated_at": 5}]) == orders.history()[0].requested
        True
        >>> orders.scan(["qty"], "id = 1").to_arrow().to_pylist()
        [{'qty': 9}]
    """

    def __init__(self, table: HudiTable) -> None:
        """``open_table`` calls it."""
        self._table = table
        self._settled = False

    def __repr__(self) -> str:
        return f"hudilake.Table({self.uri!r})"

    @property
    def internal(self) -> HudiTable:
        """The table of the second layer, ``hudilake.table``: it may change between versions."""
        return self._table

    @property
    def uri(self) -> str:
        """The absolute URI of its root."""
        return self._table.storage.uri

    @property
    def name(self) -> str:
        """Its name, as ``hoodie.properties`` has it."""
        return self._table.config.name

    @property
    def schema(self) -> pa.Schema:
        """Its columns, without Hudi's meta fields (``_hoodie_...``)."""
        return self._table.schema

    @property
    def key(self) -> tuple[str, ...]:
        """The columns of its record key; none for an append table."""
        return self._table.config.record_key_fields

    @property
    def order_by(self) -> str:
        """The column whose greatest value wins among rows of one key; "" for an append table."""
        return self._table.config.ordering_field

    @property
    def partition_by(self) -> tuple[str, ...]:
        """The columns whose values are the directories of rows."""
        return self._table.config.partition_fields

    @property
    def properties(self) -> Mapping[str, str]:
        """Its ``hoodie.properties``."""
        return self._table.config.properties()

    def refresh(self) -> bool:
        """Take in what others have committed. True if there was something. Raises CorruptDataError, StorageError."""
        return self._table.refresh()

    def scan(
        self,
        columns: Sequence[str] | None = None,
        filter: Condition = None,
        *,
        as_of: Moment | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        read_optimized: bool = False,
    ) -> Reader:
        """Plan a read: find the file slices that may hold the rows. Data files are read by the Reader.

        Args:
            columns: to return, meta fields among them if named; None for all but the meta fields.
            filter: the rows to return: the text of an SQL condition, an expression of pyarrow, or a ``Filter``.
            as_of: time travel: the rows of the commits requested at or before a moment.
            since: an incremental read: rows that commits completed after this moment wrote ("" for all), in their state
                at ``until``. Deleted rows are not among them.
            until: the end of an incremental read; None for now.
            read_optimized: the rows of base files alone: as of each file group's last compaction.

        A moment is a ``Commit``, an instant of 17 digits, ``"2024-02-29 12:34:56.789"`` in UTC, or a datetime with a
        time zone.

        Raises ConfigError for a condition that cannot be parsed and arguments that exclude each other, UnsupportedError
        for columns that the table lacks and moments whose files may have been cleaned, CorruptDataError, StorageError.
        """
        if columns is None:
            columns = (self._table.schema if as_of is None else self._table.schema_as_of(requested_at(as_of))).names
        plan = TableReader(self._table).plan(_query(as_of, since, until, read_optimized), filter, columns)
        plan.require_exact()
        return Reader(plan)

    def count(self, filter: Condition = None, *, as_of: Moment | None = None) -> int:
        """The number of rows that pass. Files whose rows all pass are counted by the metadata table and not read.
        Arguments and errors as ``scan``."""
        return TableReader(self._table).count(_query(as_of, None, None, False), filter)

    def changes(
        self,
        since: Moment | ChangePosition,
        until: Moment | None = None,
        columns: Sequence[str] | None = None,
        *,
        batch_rows: int = 8192,
        follow: bool = False,
    ) -> ChangeFeed:
        """The rows that commits inserted, updated and deleted, each with its values before and afterwards.

        Args:
            since: where to begin: behind the commits that completed up to a moment ("" for all commits), or at a
                position of another feed.
            until: no commits that completed later; None for no limit.
            columns: the compared and returned columns; None for all but those of the writer.
            batch_rows: the largest number of changes of a batch.
            follow: whether the feed waits for new commits.

        Raises UnsupportedError for columns that the table lacks and rows without keys, PositionExpiredError where
        commits since then are archived, cleaned or taken back, ConfigError, CorruptDataError, StorageError.
        """
        self._table.refresh()
        position = since if isinstance(since, ChangePosition) else position_at(self._table, completed_at(since))
        limit = None if until is None else completed_at(until)
        return ChangeFeed(self._table, columns, position, limit, batch_rows, follow)

    def transaction(self, extra: Mapping[str, str] | None = None, *, isolated: bool = False) -> Transaction:
        """Begin several writes that become one commit.

        Args:
            extra: keys that the commit records.
            isolated: refuse the commit if anything else is committed from now on: for rows that follow from what was
                read.

        Raises UnsupportedError for a table of a kind that hudilake does not write, CorruptDataError, StorageError.
        """
        self._settle()
        self._table.refresh()
        return Transaction(self._table, extra, isolated=isolated)

    def append(self, rows: Rows) -> str | None:
        """Add n rows to a table without a key, as one commit; returns its requested time, None for no rows. Arguments
        and errors as ``Transaction.append`` and ``Transaction.commit``."""
        return self._once(lambda transaction, given: transaction.append(given), rows)

    def upsert(self, rows: Rows) -> str | None:
        """Add n rows or replace those of the same key, as one commit; returns its requested time, None for no rows.
        Arguments and errors as ``Transaction.upsert`` and ``Transaction.commit``."""
        return self._once(lambda transaction, given: transaction.upsert(given), rows)

    def delete(self, rows: Rows = None, *, where: Condition = None) -> str | None:
        """Delete rows by their keys or by a condition, as one commit; returns its requested time, None if there was
        nothing to delete. Arguments and errors as ``Transaction.delete`` and ``Transaction.commit``."""
        return self._once(lambda transaction, given: transaction.delete(given, where=where), rows)

    def evolve(self, schema: Rows) -> str:
        """Commit other columns: new ones (nullable) and wider types; columns that are left out are dropped. Returns the
        requested time of the commit.

        ``schema``: all columns, as for ``create_table``.

        Raises UnsupportedError for columns under which older files cannot be read, and as ``Transaction.commit``.
        """
        self._settle()
        self._table.refresh()
        return upkeep.evolve(self._table, schema_of(schema))

    def plan_erasure(self, rows: Rows) -> ErasurePlan:
        """What ``erase`` would do: the files that hold one of the rows. Changes nothing. Arguments and errors as
        ``erase``."""
        self._table.refresh()
        return plan_erasure(self._table, upkeep.record_keys_of(self._table, rows))

    def erase(self, rows: Rows, *, release_savepoints: bool = False) -> ErasureReport:
        """Take rows and all their versions out of every byte of the table, in every partition, and look for them again.

        Args:
            rows: the columns of the record key; others are not looked at. Of an append table any columns: all rows that
                have the values of one of them are erased.
            release_savepoints: delete the savepoints that hold one of them.

        Raises ConfigError for savepoints that hold a row, UnsupportedError for a table of another kind, TransientError
        while others compact, cluster or restore, CorruptDataError, StorageError. After an error the same call goes
        on.
        """
        self._settle()
        rewrite = upkeep.erasing(self._table)
        keys = upkeep.record_keys_of(self._table, rows)
        return erase(rewrite, keys, release_savepoints=release_savepoints)

    def history(self, limit: int | None = None) -> list[Commit]:
        """The completed writes of the active timeline, newest first; at most ``limit``. Those that ``archive`` has
        moved are not among them. Raises CorruptDataError, StorageError."""
        return list(islice(commits_of(self._table.timeline), limit))

    def compact(self, policy: CompactionPolicy | None = None, *, now: bool = True) -> int:
        """Merge log files into base files; returns how many compactions completed, also those that others had begun.

        Args:
            policy: when it is due and how base files are written; None for the defaults.
            now: compact even if it is not due.

        Raises UnsupportedError for a copy-on-write table, TransientError while others write, CorruptDataError,
        StorageError.
        """
        self._settle()
        return len(upkeep.compact(self._table, policy, now=now))

    def cluster(
        self, policy: ClusteringPolicy | None = None, sizes: FileSizePolicy | None = None
    ) -> ClusteringResult | None:
        """Lay rows out anew across file groups; returns what was done, None if no file would become better.

        Args:
            policy: which file groups, and the order of the rows; None joins small files and keeps the order.
            sizes: of files, in bytes.

        Raises UnsupportedError for a table with buckets, whose rows may not leave them, OvertakenError for a conflict,
        CorruptDataError, StorageError.
        """
        self._settle()
        policy = policy or ClusteringPolicy(select="small")
        return upkeep.cluster(self._table, policy, sizes or FileSizePolicy())

    def rebucket(self, buckets: int, *, partition: str | None = None) -> RebucketResult:
        """Move the rows to another number of buckets, in one commit. Others may write meanwhile.

        Args:
            buckets: of each partition.
            partition: only partitions whose path matches, as ``day=2026-*``; ``*`` is any text, ``?`` any character.
                None for all, and for those that come.

        Raises UnsupportedError for a table without a fixed number of buckets, and for one whose writer keeps deleted
        rows in a place of its own, ConfigError for a pattern with a comma or a semicolon, TransientError while others
        replace files or hold the lock, CommitUnknownError, CorruptDataError, StorageError.
        """
        self._settle()
        refuse_unwritten(self._table)
        wanted = wanted_buckets(self._table.config.bucketing, buckets, partition)
        return upkeep.rebucket(self._table, wanted)

    def clean(self, retention: RetentionPolicy | None = None) -> str | None:
        """Delete file slices that the retention does not need; returns the instant of the clean, None if there are
        none. Time travel does not reach further back afterwards.

        ``retention``: how many commits, or how many hours, stay readable; None for 300 commits.

        Raises TransientError while the lock is held, CorruptDataError, StorageError.
        """
        self._settle()
        done = clean(self._table, CleaningConfig.of(retention or RetentionPolicy()))
        return None if done is None else done.requested_time

    def archive(self, keep: int = 320, most: int = 370) -> int:
        """Move old instants out of the active timeline once it holds more than ``most`` writes, down to ``keep``;
        returns how many. What savepoints, pending instants and the metadata table need stays. Raises ConfigError unless
        ``1 <= keep < most``, CorruptDataError, StorageError."""
        self._settle()
        return archive(self._table, ArchivalConfig(keep, most))

    def savepoint(self, at: Moment | None = None, comment: str = "") -> str:
        """Hold the state of the table after a commit until ``delete_savepoint``; returns the commit's requested time.

        Args:
            at: the commit, or its requested time; None for the newest.
            comment: what it is for.

        Raises ConfigError for no such commit, StorageError.
        """
        self._settle()
        if at is None:
            newest = next(iter(self.history(1)), None)
            if newest is None:
                raise ConfigError("the table has no commit yet", do_next="write rows first", table=self.name)
            at = newest
        return create_savepoint(self._table, requested_at(at), getpass.getuser(), comment).instant

    def savepoints(self) -> list[Savepoint]:
        """The savepoints, oldest first. Raises CorruptDataError, StorageError."""
        return savepoints(self._table.storage, self._table.timeline)

    def delete_savepoint(self, at: Moment) -> bool:
        """Let the savepoint ``at`` a commit go; False if there was none. Raises StorageError."""
        return delete_savepoint(self._table, requested_at(at))

    def restore(self, to: Moment) -> bool:
        """Take back every later write, for good; False if there was none. No other process may write meanwhile.

        ``to``: a commit of the active timeline, or its requested time.

        Raises ConfigError for no such commit and one whose files may have been cleaned, LostOwnershipError while others
        write, CommitUnknownError, StorageError.
        """
        self._settle()
        return restore(self._table, requested_at(to)) is not None

    def fsck(self, *, with_data: bool = True) -> Report:
        """Check the consistency of timeline, files and metadata table; changes nothing.

        ``with_data``: read every data file; False checks names, sizes and the timeline alone. Raises StorageError.
        """
        return fsck(self._table.storage, with_data=with_data)

    def repair(self, report: Report) -> list[str]:
        """Do the safe repairs of a ``report`` of ``fsck``; returns what was done, a line for each step.

        No other process may write meanwhile. Raises LostOwnershipError if one does, UnsupportedError, CorruptDataError,
        StorageError.
        """
        lines = list(repair(self._table.storage, plan_repair(report.findings)))
        self._table = HudiTable.open(self._table.storage, locking=self._table.ownership.locking, conflicts="row")
        return lines

    def _settle(self) -> None:
        """Before the first change: finish or take back what dead writers left."""
        if not self._settled:
            self._table.state.check_writable()
            finish_pending_restores(self._table)
            self._table.rollback_pending()
            self._settled = True

    def _once(self, write: Callable[[Transaction, Rows], None], rows: Rows) -> str | None:
        """A write as a commit of its own, done again on the newer state where another writer was first."""
        given = None if rows is None else rows_of(rows, self.schema)  # a stream can be read once
        for attempt in range(_ATTEMPTS):
            try:
                with self.transaction() as transaction:
                    write(transaction, given)
                return transaction.instant
            except OvertakenError:
                if attempt == _ATTEMPTS - 1:
                    raise
        return None


def _query(as_of: Moment | None, since: Moment | None, until: Moment | None, read_optimized: bool) -> Query:
    if (as_of is not None) + (since is not None) + read_optimized > 1 or (until is not None and since is None):
        raise ConfigError(
            "as_of, since and read_optimized exclude each other, and until needs since",
            do_next="ask one question at a time",
        )
    if since is not None:
        return Incremental(completed_at(since), None if until is None else completed_at(until))
    return ReadOptimized() if read_optimized else Snapshot(None if as_of is None else requested_at(as_of))
