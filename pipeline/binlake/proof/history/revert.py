"""Reverts selected changes in the lake: a plan for every table, and a commit for every table that changes.

A revert that dies has reverted some tables. The same command finishes it: a row that a revert has set back is
recognised by its ordering value and by its commit. Nothing else remembers how far it came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.position.recorded import NAMED_TRANSACTIONS, Revert
from binlake.proof.history.commits import CommitKind, CommitLog, revert_stream
from binlake.proof.history.opened import refuse_merged
from binlake.proof.history.standing import undo_in_past
from binlake.proof.history.transaction import RowChanges
from binlake.proof.history.undo import Conflict, Present, Undone, undo
from binlake.proof.history.verdicts import Fate, Version, verdicts, versions_of
from binlake.rows.merging.stored_versions import stored_versions
from binlake.rows.merging.write import write_group
from binlake.rows.upsert.merge import Place
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.tables.lake_table import LakeTable
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.errors import BadInputError
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult
from hudilake.read.versions import GroupFiles, group_files
from hudilake.wording import counted


@dataclass(frozen=True)
class RowRevert:
    """What a revert does to one row."""

    row: RowChanges
    undone: Undone

    @property
    def conflicts(self) -> tuple[Conflict, ...]:
        """What is left as it is."""
        return self.undone.conflicts


@dataclass
class TablePlan:
    """What a revert does to one table."""

    source: SourceTable
    rows: list[RowRevert] = field(default_factory=list)

    @property
    def written(self) -> list[RowRevert]:
        """The rows that the revert writes."""
        return [row for row in self.rows if row.undone.is_written]

    @property
    def conflicts(self) -> list[RowRevert]:
        """The rows that are left as they are, wholly or in part."""
        return [row for row in self.rows if row.conflicts]

    @property
    def done_before(self) -> int:
        """How many rows an earlier revert has set back."""
        return sum(row.undone.done_before for row in self.rows)


@dataclass(frozen=True)
class Order:
    """What is to be reverted, and how.

    Args:
        what: the selection in words.
        source: where the before images come from: ``kafka`` or ``lake``.
        transactions: the ids of the transactions.
        by_column: as in ``undo``.
    """

    what: str
    source: str
    transactions: tuple[str, ...]
    by_column: bool


def plan_table(table: LakeTable, log: CommitLog, rows: Sequence[RowChanges], order: Order) -> TablePlan:
    """What reverting does to a table as it is now. Reads the newest file slices of the rows' file groups.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    table.hudi.config.kind.refuse(TableOperation.REVERT, str(table.source))
    refuse_merged(table.hudi)
    presents = _presents(table, log, rows)
    plan = TablePlan(rows[0].source) if rows else TablePlan(table.source or SourceTable("", table.rules.path))
    for row, bucket in zip(rows, _buckets(table, rows), strict=True):
        present = presents[row.path, row.key]
        if row.past is None:
            undone = undo(row.changes, present, by_column=order.by_column)
        else:
            undone = undo_in_past(
                row.changes,
                row.past,
                present,
                log.reverts_of(table.names.of(row.path, bucket), row.path),
                log,
                by_column=order.by_column,
            )
        plan.rows.append(RowRevert(row, undone))
    return plan


def revert_table(
    table: LakeTable, rows: Sequence[RowChanges], order: Order, stream: str, agreed: TablePlan
) -> str | None:
    """Revert changes in one table in one commit. Returns its instant; None if nothing was left to do.

    Args:
        table: open for writing.
        rows: the changes of its rows.
        order: how.
        stream: the stream's name.
        agreed: the plan that was shown: rows that have changed since may not add conflicts.

    Raises BadInputError for a new conflict; the errors of ``LakeTable.commit``. The table is unchanged then.
    """
    try:
        return _revert_table(table, rows, order, stream, agreed)
    except OvertakenError:
        pass
    with table.hudi.exclusively():
        return _revert_table(table, rows, order, stream, agreed)


def _revert_table(
    table: LakeTable, rows: Sequence[RowChanges], order: Order, stream: str, agreed: TablePlan
) -> str | None:
    table.refresh(revert_stream(stream))
    log = CommitLog.of(table.hudi, stream)
    plan = plan_table(table, log, rows, order)
    known = {(row.row.path, row.row.key, row.conflicts) for row in agreed.conflicts}
    if new := [row for row in plan.conflicts if (row.row.path, row.row.key, row.conflicts) not in known]:
        raise BadInputError(
            f"{counted(len(new), 'row', 'was', 'were')} changed since the plan was made",
            do_next="look at the new plan: run binlake revert again",
            table=str(plan.source),
            key=new[0].row.key,
        )
    if not plan.written:
        return None
    context = table.begin(table.hudi.schema, WHOLE_TABLE)
    with table.undone_on_error(context.instant):
        results = _write(table, context, plan.written)
        done = Revert(
            context.instant,
            order.what,
            order.transactions[:NAMED_TRANSACTIONS],
            len(plan.written),
            len(plan.conflicts),
            order.source,
        )
        record = CommitRecord(
            stream=revert_stream(stream),
            batch=0,
            counts=Counts(),
            source=table.source,
            origin=table.origin,
            notes=CommitNotes(reverts=(*log.reverts, done)),
        )
        table.commit(context, results, record)
    return context.instant


# -- the rows now -----------------------------------------------------------------------------------------------------


def _presents(table: LakeTable, log: CommitLog, rows: Sequence[RowChanges]) -> dict[tuple[str, str], Present]:
    """The rows now, by (partition path, record key)."""
    wanted: dict[Place, list[RowChanges]] = {}
    for row, bucket in zip(rows, _buckets(table, rows), strict=True):
        wanted.setdefault((row.path, bucket), []).append(row)
    paths = sorted({path for path, _ in wanted})
    groups = {
        table.rows.place_of(files.newest): files
        for files in group_files(
            table.hudi, lambda path: {b for wanted_path, b in wanted if wanted_path == path}, paths
        )
    }
    presents: dict[tuple[str, str], Present] = {}
    for place, mine in wanted.items():
        current = _current(table, log, groups[place], [row.key for row in mine]) if place in groups else {}
        for row in mine:
            presents[row.path, row.key] = _present(table, log, row, current.get(row.key))
    return presents


def _buckets(table: LakeTable, rows: Sequence[RowChanges]) -> list[int]:
    config, keys = table.hudi.config, pa.array([row.key for row in rows], pa.string())
    paths = pa.array([row.path for row in rows], pa.string()).dictionary_encode()
    buckets: list[int] = config.bucketing.buckets(keys, config.hash_fields, paths).tolist()
    return buckets


def _current(table: LakeTable, log: CommitLog, files: GroupFiles, keys: Sequence[str]) -> dict[str, Version]:
    """The winning version of each key in the newest file slice."""
    piece = files.newest
    bases = (piece.base_file,) if piece.base_file is not None else ()
    newest = GroupFiles(files.partition_path, files.file_id, bases, piece.log_files, piece)
    columns = [name for name in table.hudi.schema.names if name != ORDER_FIELD]
    rows = stored_versions(table.hudi, newest, pa.array(sorted(set(keys)), pa.string()), columns).to_pylist()
    completed = {instant: commit.completed for instant, commit in log.commits.items()}
    by_key: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        by_key.setdefault(row[KEY], []).append(row)
    current = {}
    for key, mine in by_key.items():
        versions = versions_of(mine, files.partition_path, files.newest_paths, completed)
        judged = zip(versions, verdicts(versions), strict=True)
        current[key] = next(v for v, verdict in judged if verdict.fate in (Fate.LIVE, Fate.DELETED))
    return current


def _present(table: LakeTable, log: CommitLog, row: RowChanges, version: Version | None) -> Present:
    last = row.changes[-1]
    dropped = max((entry.deleted[0] for entry in table.ddl if entry.deleted is not None), default=-1)
    removed = max(table.truncates.order_for(last.after or last.before or {}), dropped)
    if version is None:
        return Present(None, None, removed_until=removed)
    commit = log.commits.get(version.instant)
    reverted = commit is not None and commit.kind is CommitKind.REVERT
    return Present(version.values, version.order, reverted, removed, row.reread)


# -- the write --------------------------------------------------------------------------------------------------------


def _write(table: LakeTable, context: WriteContext, rows: Sequence[RowRevert]) -> list[WriteResult]:
    by_place: dict[Place, list[RowRevert]] = {}
    for row, bucket in zip(rows, _buckets(table, [row.row for row in rows]), strict=True):
        by_place.setdefault((row.row.path, bucket), []).append(row)
    writer = table.rows.group_writer(context)
    groups = [_group(table, place, mine) for place, mine in by_place.items()]
    return [result for group in groups for result in write_group(table.storage, writer, group)]


def _group(table: LakeTable, place: Place, rows: Sequence[RowRevert]) -> FileGroupWrite:
    ordered = sorted(rows, key=lambda row: row.row.key)
    upserts = [row for row in ordered if row.undone.then is not None]
    deletes = [row for row in ordered if row.undone.then is None]
    name = table.names.of(*place)
    return FileGroupWrite(
        place[0],
        name,
        _upserts(upserts, table.hudi.schema) if upserts else None,
        _deletes(deletes) if deletes else None,
    )


def _upserts(rows: Sequence[RowRevert], schema: pa.Schema) -> pa.Table:
    values = [{**(row.undone.then or {}), ORDER_FIELD: row.undone.order} for row in rows]
    table = pa.Table.from_pylist(values, schema=schema)
    return table.add_column(0, pa.field(KEY, pa.string()), pa.array([row.row.key for row in rows], pa.string()))


def _deletes(rows: Sequence[RowRevert]) -> pa.Table:
    keys, orders = [row.row.key for row in rows], [row.undone.order for row in rows]
    return pa.table({KEY: pa.array(keys, pa.string()), ORDER_FIELD: pa.array(orders, pa.int64())})
