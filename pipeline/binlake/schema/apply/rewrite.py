"""Writes a lake table anew under another record key, in one commit.

Every file group gets a base file with all rows that now belong to its bucket; the file slices of before stay for time
travel. The properties name no key fields while this happens (``hudilake.format.definition.key_change``). What a death
leaves:

- before the commit: the pending instant is rolled back, and the properties get the former key back;
- after it: the commit's record names the key, and the properties get it.

In between both judges read the table right: they merge by the key that each row holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.position.commit_record import CommitNotes, CommitRecord
from binlake.rows.merging.write import write_anew
from binlake.rows.upsert.keyless import DIGEST_FIELD, KeylessState, digests
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import ORDER_FIELD, ROW_FIELD
from binlake.schema.apply.stored_rows import PendingStatement, columns_after, ddl_stream, rows_after
from binlake.schema.rules.entries import DdlEntry, gone_after
from binlake.tables.lake_table import LakeTable
from hudilake.commit.intent import WHOLE_TABLE
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import bucket_or_none, buckets_of
from hudilake.format.definition.key_change import with_key, without_key
from hudilake.format.definition.keys import record_keys, shared_keys
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult
from hudilake.format.files.view import FileSlice

#: Bytes of files whose rows are held in memory together, decoded about six times as many.
_BYTES_AT_ONCE = 64 << 20


def rewrite(
    table: LakeTable,
    entries: Sequence[DdlEntry],
    news: Sequence[PendingStatement],
    key: tuple[str, ...],
    schema: pa.Schema,
    stream: str,
    pool: Executor,
) -> str:
    """Carry out statements on the stored rows of a table, and give it another key. Returns the commit's instant.

    ``key``: the new key's columns; none to keep whole rows. Other arguments as ``backfill.carry_out``. Raises
    LakeError; the table is unchanged then, or its next opening brings it in order.
    """
    table.hudi.config.kind.refuse(TableOperation.KEY_CHANGE, str(table.source))
    with table.hudi.exclusively():
        table.refresh(stream)
        if not key:
            schema = _with_fields(schema)
        table.hudi.state.adopt(without_key(table.hudi.config))
        context = table.begin(columns_after(table.hudi.schema, schema), WHOLE_TABLE)
        fields = key or (ROW_FIELD,)
        with table.undone_on_error(context.instant):
            results = list(_written(table, context, news, key, gone_after(entries), pool))
            record = CommitRecord(
                stream=ddl_stream(stream),
                batch=0,
                counts=Counts(),
                source=table.source,
                origin=table.origin,
                keyless=None if key else KeylessState(),
                notes=CommitNotes(ddl=tuple(entries), key=(fields, context.instant)),
            )
            table.commit(context, results, record)
        table.keyless = record.keyless
        table.hudi.state.adopt(with_key(table.hudi.config, fields, context.instant))
    return context.instant


def _with_fields(schema: pa.Schema) -> pa.Schema:
    """The schema with the columns that identify whole rows."""
    for name in (ROW_FIELD, DIGEST_FIELD):
        schema = schema if name in schema.names else schema.append(pa.field(name, pa.string()))
    return schema


def _written(
    table: LakeTable,
    context: WriteContext,
    news: Sequence[PendingStatement],
    key: tuple[str, ...],
    gone: frozenset[str],
    pool: Executor,
) -> Iterator[WriteResult]:
    """Write every file group: partition by partition, and of a large one some buckets at a time."""
    by_path: dict[str, list[FileSlice]] = {}
    for piece in table.hudi.file_slices():
        by_path.setdefault(piece.partition_path, []).append(piece)
    bucketing, writer = table.hudi.config.bucketing, table.rows.group_writer(context)
    for path, pieces in by_path.items():
        size = sum(piece.base_size + piece.log_size for piece in pieces)
        count = bucketing.count(path)
        rounds = min(count, 1 + size // _BYTES_AT_ONCE)
        for turn in range(rounds):
            wanted = [bucket for bucket in range(count) if bucket % rounds == turn]
            rows = _rows_of(table, context, pieces, news, key, gone, wanted, pool)
            held = {bucket_or_none(bucketing, path, piece.file_id) for piece in pieces}
            groups = [
                FileGroupWrite(path, table.names.of(path, bucket), rows.get(bucket, _empty(context)))
                for bucket in wanted
                if bucket in rows or bucket in held
            ]
            for written in pool.map(lambda group: write_anew(table.storage, writer, group), groups):
                yield from written


def _empty(context: WriteContext) -> pa.Table:
    """The rows of a file group that has none."""
    return pa.schema([pa.field(KEY, pa.string()), *context.arrow_schema]).empty_table()


def _rows_of(
    table: LakeTable,
    context: WriteContext,
    pieces: Sequence[FileSlice],
    news: Sequence[PendingStatement],
    key: tuple[str, ...],
    gone: frozenset[str],
    wanted: Sequence[int],
    pool: Executor,
) -> Mapping[int, pa.Table]:
    """The rows of a partition whose keys belong to some buckets, by bucket, sorted by key."""

    def read(piece: FileSlice) -> tuple[pa.Table, np.ndarray]:
        rows = _keyed(rows_after(table, piece, context.arrow_schema, news), key, gone)
        buckets = buckets_of(table.hudi.config.bucketing, rows.column(KEY), key, piece.partition_path)
        mask = np.isin(buckets, wanted)
        return rows.filter(pa.array(mask)), buckets[mask]

    parts = list(pool.map(read, pieces))
    rows = pa.concat_tables([part for part, _ in parts], promote_options="default")
    buckets = np.concatenate([numbers for _, numbers in parts])
    return {b: _newest(rows.filter(pa.array(buckets == b))) for b in np.unique(buckets).tolist()}


def _keyed(rows: pa.Table, key: tuple[str, ...], gone: frozenset[str]) -> pa.Table:
    """The rows with the record keys of the new key."""
    if key:
        if any(rows.column(name).null_count for name in key):
            raise UnsupportedError(
                f"stored rows have no value in the new key ({', '.join(key)})",
                do_next="load the table again under a new path, or set schema_changes.key to refuse",
            )
        if shared_keys(rows, key).any():
            raise UnsupportedError(
                f"stored rows have texts in the new key ({', '.join(key)}) that share their record key with others",
                do_next="load the table again under a new path, or set schema_changes.key to refuse",
            )
        kept = rows.drop_columns([n for n in (KEY, ROW_FIELD, DIGEST_FIELD) if n in rows.column_names])
        return kept.add_column(0, pa.field(KEY, pa.string()), record_keys(kept, key))
    values = [n for n in rows.column_names if n not in (KEY, ORDER_FIELD, ROW_FIELD, DIGEST_FIELD, *gone)]
    marks = pa.array(digests(rows, values) if len(rows) else [], pa.string())
    keys = pc.binary_join_element_wise("r", rows.column(KEY), "-") if len(rows) else rows.column(KEY)
    rows = rows.drop_columns([n for n in (KEY, ROW_FIELD, DIGEST_FIELD) if n in rows.column_names])
    for name, column in ((DIGEST_FIELD, marks), (ROW_FIELD, keys), (KEY, keys)):
        rows = rows.add_column(0, pa.field(name, pa.string()), column)
    return rows


def _newest(rows: pa.Table) -> pa.Table:
    """The rows sorted by key, of each key the row with the highest ordering value."""
    ranked = rows.sort_by([(KEY, "ascending"), (ORDER_FIELD, "ascending")])
    keys = ranked.column(KEY).combine_chunks()
    if len(keys) < 2:
        return ranked
    is_last = pc.not_equal(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    return ranked.filter(pa.array(np.append(is_last, True)))
