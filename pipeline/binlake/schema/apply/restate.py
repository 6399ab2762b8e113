"""Carries out DDL on a lake table's stored rows: one commit restates the rows that a statement changes, and records it.

Rows keep their ordering values; of equal ones the later commit wins, so the restated row replaces the stored one, and
any later event of its key replaces both. A crash leaves a pending instant that is rolled back; the statement stays
pending.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.rows.merging.write import write_anew, write_group
from binlake.rows.upsert.keyless import DIGEST_FIELD, KeylessState, digests
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.schema.apply.rewrite import rewrite
from binlake.schema.apply.stored_rows import (
    OWN,
    PendingStatement,
    after_statements,
    columns_after,
    ddl_stream,
    stored_rows,
)
from binlake.schema.rules.entries import DdlEntry, gone_after
from binlake.schema.rules.evolution import retyped
from binlake.schema.rules.retyping import is_rewritten
from binlake.tables.lake_table import LakeTable
from binlake.tables.services.table_services import TableServices
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.errors import UnsupportedError
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult
from hudilake.format.files.log_rows import Flags
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import read_deletes
from hudilake.write.group_writer import NO_KEYS

#: File slices that are held in memory together.
_AT_ONCE = 2


def carry_out(
    table: LakeTable,
    entries: Sequence[DdlEntry],
    news: Sequence[PendingStatement],
    schema: pa.Schema,
    stream: str,
    pool: Executor,
    services: TableServices,
) -> str | None:
    """Carry out statements on the stored rows of a table. Returns the commit's instant.

    Args:
        table: open and refreshed.
        entries: all statements that the commit records.
        news: the statements to carry out, in order.
        schema: the table's columns after them.
        stream: the stream's name.
        pool: writes file groups.
        services: ends the table's log files first where a column changes its type.

    Raises LakeError; the table is unchanged then.
    """
    if table.merging.functions:
        _refuse_changed_facts(table, news, schema)
    keys = [one.entry.rewrite.columns for one in news if one.entry.rewrite is not None]
    if keys:
        return rewrite(table, entries, news, keys[-1], schema, stream, pool)
    if retyped(table.hudi.schema, schema):
        services.end_logs(table, ddl_stream(stream))
    try:
        return _commit(table, entries, news, schema, stream, pool)
    except OvertakenError:
        pass
    with table.hudi.exclusively():
        table.refresh(stream)
        return _commit(table, entries, news, schema, stream, pool)


def _refuse_changed_facts(table: LakeTable, news: Sequence[PendingStatement], schema: pa.Schema) -> None:
    """Raise UnsupportedError for statements that change facts: what a row has summed up does not tell them any more."""
    if retyped(table.hudi.schema, schema) or any(one.entry.rewrite or one.entry.restatements() for one in news):
        raise UnsupportedError(
            "a statement changes the values of facts that are aggregated already",
            do_next="load the table again under a new path (tables.path)",
            table=str(table.source),
        )


def _commit(
    table: LakeTable,
    entries: Sequence[DdlEntry],
    news: Sequence[PendingStatement],
    schema: pa.Schema,
    stream: str,
    pool: Executor,
) -> str:
    schema = columns_after(table.hudi.schema, schema)
    context = table.begin(schema, WHOLE_TABLE)
    with table.undone_on_error(context.instant):
        keyless = _keyless_after(table, entries, news, schema)
        results = _restate(table, context, news, entries, pool, keyless)
        record = CommitRecord(
            stream=ddl_stream(stream),
            batch=0,
            counts=Counts(),
            source=table.source,
            origin=table.origin,
            keyless=keyless,
            notes=CommitNotes(ddl=tuple(entries)),
        )
        table.commit(context, results, record)
    return context.instant


def _keyless_after(
    table: LakeTable, entries: Sequence[DdlEntry], news: Sequence[PendingStatement], schema: pa.Schema
) -> KeylessState | None:
    """The state of a table without a key after statements, without the outstanding deletes of a dropped table."""
    if table.keyless is None:
        return None
    restates = any(one.entry.restatements() for one in news) or bool(retyped(table.hudi.schema, schema))
    restates |= gone_after(entries) != gone_after(table.ddl)
    state = table.keyless.of_any_content() if restates else table.keyless.copy()
    until = max((one.entry.deleted[0] for one in news if one.entry.deleted is not None), default=-1)
    if until >= 0:
        state.removed_until(until)
    return state


def _restate(
    table: LakeTable,
    context: WriteContext,
    news: Sequence[PendingStatement],
    entries: Sequence[DdlEntry],
    pool: Executor,
    keyless: KeylessState | None,
) -> list[WriteResult]:
    """Write the rows that the statements change. Deletes that ``keyless`` owes are carried out on them: they came with
    the content that the rows have only now. Rows of an append table are never changed."""
    gone, current, writer = gone_after(entries), table.hudi.schema, table.rows.group_writer(context)
    anew = any(
        is_rewritten(current.field(f.name).type, f.type) for f in context.arrow_schema if f.name in current.names
    )
    if not (anew or any(one.entry.restatements() for one in news) or (keyless is not None and gone)):
        return []

    def write(piece: FileSlice) -> Sequence[WriteResult]:
        done = _restated(table, piece, context.arrow_schema, news, gone, keyless)
        deletes = done.before.select([KEY, ORDER_FIELD]).filter(pa.array(done.removed))
        removed.append((piece.partition_path, deletes))
        if anew:
            lived = pa.concat_arrays([NO_KEYS, *deletes.column(KEY).chunks])
            kept = read_deletes(table.hudi, piece)  # older rows that come late must not return
            deletes = pa.concat_tables([kept, deletes.cast(kept.schema)])
            rows = done.after.filter(pa.array(~done.removed)).sort_by(KEY)
            group = FileGroupWrite(piece.partition_path, piece.file_id, rows, _sorted(deletes))
            return write_anew(table.storage, writer, group, lived)
        rows = done.after.filter(pa.array(done.changed & ~done.removed))
        if not len(rows) and not len(deletes):
            return ()
        group = FileGroupWrite(piece.partition_path, piece.file_id, _sorted(rows), _sorted(deletes))
        return write_group(table.storage, writer, group)

    pieces, results = table.rows.changeable(), list[Sequence[WriteResult]]()
    removed: list[tuple[str, pa.Table]] = []
    if keyless is not None and keyless.debts:  # one after the other: each of them may pay a debt
        return [result for piece in pieces for result in write(piece)]
    for start in range(0, len(pieces), _AT_ONCE):
        results += pool.map(write, pieces[start : start + _AT_ONCE])
    table.rows.keep_removed(context.instant, removed)
    return [result for of_piece in results for result in of_piece]


@dataclass(frozen=True, slots=True)
class _RestatedRows:
    """The rows of a file slice ``before`` and ``after`` statements; masks of those that the statements have ``changed``
    and ``removed``."""

    before: pa.Table
    after: pa.Table
    changed: Flags
    removed: Flags


def _restated(
    table: LakeTable,
    piece: FileSlice,
    schema: pa.Schema,
    news: Sequence[PendingStatement],
    gone: frozenset[str],
    keyless: KeylessState | None,
) -> _RestatedRows:
    rows = stored_rows(table, piece)
    values = rows.drop_columns([n for n in rows.column_names if n == KEY or n in OWN])
    after, removed = after_statements(table, rows, news, schema)
    changed = _differs(values, after)
    if keyless is not None:
        live = [n for n in after.column_names if n not in gone]
        # With those that are gone: where all are, the table would have no rows.
        typed = pa.table({n: after.column(n).cast(schema.field(n).type) for n in after.column_names})
        marks = pa.array(digests(typed, live) if len(rows) else [], pa.string())
        changed |= ~pc.fill_null(pc.equal(rows.column(DIGEST_FIELD), marks), False).to_numpy()
        rows = rows.set_column(rows.column_names.index(DIGEST_FIELD), pa.field(DIGEST_FIELD, pa.string()), marks)
        removed |= keyless.pay(marks.to_pylist(), rows.column(ORDER_FIELD).to_pylist(), removed)
    kept = {n: rows.column(n) for n in rows.column_names if n == KEY or n in OWN}
    whole = pa.table({**kept, **{n: after.column(n) for n in after.column_names}})
    return _RestatedRows(rows, whole, changed, removed)


def _sorted(rows: pa.Table) -> pa.Table | None:
    return rows.take(pc.sort_indices(rows.column(KEY))) if len(rows) else None


def _differs(before: pa.Table, after: pa.Table) -> Flags:
    differs = np.zeros(len(before), dtype=bool)
    for name in set(before.column_names) - set(after.column_names):
        differs |= before.column(name).is_valid().to_numpy()
    for name in after.column_names:
        new = after.column(name)
        if name not in before.column_names:
            differs |= new.is_valid().to_numpy()
        elif is_rewritten(before.column(name).type, new.type):
            differs[:] = True
        elif before.column(name) is not new:
            old = before.column(name).cast(new.type)
            same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(old.is_null(), new.is_null()))
            differs |= ~same.to_numpy()
    return differs
