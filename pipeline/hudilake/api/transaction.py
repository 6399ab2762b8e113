"""Several writes to a table as one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, TypeVar

import pyarrow as pa

from hudilake.api.changes import (
    PendingChanges,
    at_stored_orders,
    by_partition,
    deletes_have_orders,
    unconditional,
)
from hudilake.api.rows import Rows, conformed, rows_of
from hudilake.errors import CommitUnknownError, ConfigError, LakeError, LostOwnershipError, UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.append import open_groups
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.policies import FileSizePolicy
from hudilake.read.question import Condition
from hudilake.read.slice import SliceReader
from hudilake.read.table_reader import TableReader
from hudilake.table.group_names import group_names
from hudilake.table.table import HudiTable
from hudilake.write.append import AppendWriter
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter

#: File groups that are written side by side.
_WRITERS: Final = 4
T = TypeVar("T")


class Transaction:
    """Several writes to one table that become visible together, as one commit, or not at all.

    ``Table.transaction`` makes it; it is a context manager. At the end of the block it commits; an error inside the
    block rolls it back. Rows are in memory until then. Upserts and deletes of a transaction apply in the order in which
    they were asked for.

    What others commit meanwhile is checked when it commits: OvertakenError where both write the same file group, or, in
    an ``isolated`` transaction, where anything was committed since it began. Then nothing is left of it: do it again.

    Example:
        >>> with orders.transaction() as transaction:
        ...     transaction.upsert([{"id": 7, "qty": 1, "day": "d1", "updated_at": 9}])
        ...     transaction.delete([{"id": 1, "day": "d1"}])
        >>> sorted(orders.scan(["id"]).to_arrow().column("id").to_pylist())
        [2, 3, 7]
        >>> orders.history()[0].requested == transaction.instant
        True
    """

    def __init__(self, table: HudiTable, extra: Mapping[str, str] | None = None, *, isolated: bool = False) -> None:
        """``Table.transaction`` calls it, with an open table that is refreshed."""
        refuse_unwritten(table)
        self._table = table
        self._extra = dict(extra or {})
        self._isolated = isolated
        self._appended: list[pa.Table] = []
        self._changes = PendingChanges(table.config, table.schema)
        self._instant: str | None = None
        self._ended = False
        #: The requested time of the commit, 17 digits; None until it is committed, and if there was nothing to commit.
        self.instant: str | None = None
        if isolated:
            self._begin()

    def append(self, rows: Rows) -> None:
        """Add n rows to a table without a key.

        Args:
            rows: columns of the table by name, in types that fit; nullable ones may be missing. A value that its
                column cannot hold is refused; FLOAT and DOUBLE take the nearest number.

        Raises ConfigError for rows that do not fit and for a table with a key.
        """
        self._check_open()
        if not self._table.config.kind.appends:
            raise ConfigError(
                "rows can be appended only to a table without a key",
                do_next="use upsert, or create a table without key=",
                table=self._table.config.name,
            )
        self._appended.append(conformed(rows_of(rows, self._table.schema), self._table.schema))

    def upsert(self, rows: Rows) -> None:
        """Add n rows or replace those of the same record key (and partition): the greatest ordering value of a key
        wins, of equal ones the row that was written last.

        Args:
            rows: columns of the table by name, in types that fit; nullable ones may be missing and are null then. Key
                and ordering column without nulls. Values as in ``append``.

        Raises ConfigError for rows that do not fit and for a table without a key.
        """
        self._check_keyed("upsert")
        self._changes.upsert(rows)

    def delete(self, rows: Rows = None, *, where: Condition = None) -> None:
        """Delete rows. A key that has no row is no error.

        In a merge-on-read table with an int64 ordering column the row stays deleted until one of at least its ordering
        value is upserted; after a compaction, for ``tombstone_retention_hours`` (24 by default) from the delete on.
        Elsewhere Hudi's readers forget the order of a deleted row: an older one brings it back.

        Args:
            rows: the columns of the record key and the partition; others are not looked at.
            where: instead of ``rows``, a condition: the rows of the table as of now that pass.

        With ``where``, the commit is refused if anything else is committed meanwhile. Raises ConfigError for rows that
        do not fit, for a table without a key, and unless one of the two is given.
        """
        self._check_keyed("delete")
        if (rows is None) == (where is None):
            raise ConfigError("delete takes rows or where", do_next="give one of the two")
        if where is None:
            self._changes.delete(rows)
            return
        self._begin()
        self._isolated = True
        names = dict.fromkeys((*self._table.config.record_key_fields, *self._table.config.partition_fields))
        self._changes.delete(TableReader(self._table).read(None, where, list(names)))

    def commit(self) -> str | None:
        """Commit now; returns the requested time of the commit, None if nothing was written.

        Raises OvertakenError for a conflict with another writer's commit, LockHeldError, CommitUnknownError if the
        store gave no answer, LostOwnershipError, CorruptDataError, StorageError. After any but CommitUnknownError
        nothing of it is visible.
        """
        self._check_open()
        self._ended = True
        if not (self._appended or self._changes.writes):
            self._withdraw()
            return None
        instant = self._instant or self._begin()
        try:
            results = self._written(instant)
            self._table.commit(instant, results, self._extra, whole=self._isolated)
        except (CommitUnknownError, LostOwnershipError):
            raise
        except BaseException:
            self._withdraw()
            raise
        self.instant, self._instant = instant, None
        self._table.maintain()
        return instant

    def rollback(self) -> None:
        """End it without a commit. Raises StorageError."""
        self._check_open()
        self._ended = True
        self._withdraw()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ended:
            return
        if error is None:
            self.commit()
        else:
            self._ended = True
            self._withdraw()

    def _begin(self) -> str:
        if self._instant is None:
            self._table.refresh(begins=True)
            self._instant = self._table.begin()
        return self._instant

    def _withdraw(self) -> None:
        """Roll back what began; if that fails, the table's next writer does it."""
        if self._instant is not None:
            with suppress(LakeError):
                self._table.abort(self._instant)
            self._instant = None

    def _check_open(self) -> None:
        if self._ended:
            raise ConfigError("the transaction has ended", do_next="begin another one with Table.transaction")

    def _check_keyed(self, what: str) -> None:
        self._check_open()
        if self._table.config.kind.appends:
            raise ConfigError(
                f"{what} needs a record key, and the table has none",
                do_next="use append, or create a table with key=",
                table=self._table.config.name,
            )

    def _written(self, instant: str) -> list[WriteResult]:
        context = self._table.write_context(instant)
        if self._table.config.kind.appends:
            return self._append(context)
        slices = self._table.file_slices()
        existing = frozenset((piece.partition_path, piece.file_id) for piece in slices)
        writer: GroupWriter = LogWriter(replace(context, base_from_rows=1), existing)
        if self._table.config.kind.copies:
            bases = {piece.file_id: piece.base_file for piece in slices if piece.base_file is not None}
            writer = BaseWriter(context, bases)
        names = group_names(self._table, self._table.config.name)
        held = {(piece.partition_path, piece.file_id): piece for piece in slices}

        def write(group: FileGroupWrite) -> list[WriteResult]:
            return writer.write(
                self._table.storage, self._ordered(group, held.get((group.partition_path, group.file_id)))
            )

        return _side_by_side(write, list(self._changes.groups(names.of)))

    def _ordered(self, group: FileGroupWrite, piece: FileSlice | None) -> FileGroupWrite:
        """The write with the orders of its deletes. Base files forget deletes, and only whole numbers can be the order
        of a delete for Hudi's readers: elsewhere deletes take their rows whatever the order is."""
        table, ordering = self._table, self._table.config.ordering_field
        if group.deletes is None:
            return group
        if not deletes_have_orders(table.config, table.schema):
            return replace(group, deletes=None) if piece is None else unconditional(group, ordering)
        columns = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string()), table.schema.field(ordering)])
        if piece is None:  # what the transaction itself has upserted before
            return at_stored_orders(group, columns.empty_table(), ordering)
        stored = SliceReader(table.storage, columns, ordering, table.timeline).read(piece)
        return at_stored_orders(group, stored, ordering)

    def _append(self, context: WriteContext) -> list[WriteResult]:
        rows, config, sizes = pa.concat_tables(self._appended), self._table.config, FileSizePolicy()
        groups = open_groups(self._table.state.slices_to_fill(), sizes)
        writer = AppendWriter(context, sizes, groups, config.kind.copies)
        parts = writer.keyed(0, by_partition(config, rows))
        return _side_by_side(lambda part: writer.write(self._table.storage, part), parts)


def _side_by_side(write: Callable[[T], list[WriteResult]], items: list[T]) -> list[WriteResult]:
    with ThreadPoolExecutor(_WRITERS) as pool:
        pending = [pool.submit(write, item) for item in items]
        wait(pending)  # if one fails, the instant is rolled back: none may write a file after that
        return [result for one in pending for result in one.result()]


def refuse_unwritten(table: HudiTable) -> None:
    """Raise UnsupportedError for a table of a kind that this surface does not write."""
    config = table.config
    config.check_writable()
    if config.merging.by_writer:
        raise UnsupportedError(
            "the table is merged by its writer, whose engine needs the change events",
            do_next="write to it through binlake's stream, replay or backfill",
            table=config.name,
        )
    if not (config.kind.computed or config.kind.appends):
        raise UnsupportedError(
            f"hudilake writes to tables of a bucket index and to append tables, not to the index {config.kind.index}",
            do_next="write to it through binlake or Hudi, or create one with index='bucket'",
            table=config.name,
        )
