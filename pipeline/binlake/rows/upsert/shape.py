"""Shapes the columns of a change batch for its lake table: spells them as the table does, takes those of its column
group, adds computed ones, leaves out some, masks others.

Before images are shaped in the same way, so that a row is found again where it was stored. All rows stay: which of them
cannot be shaped is said beside them.

MySQL and the readers of a lake table ignore the case of column names. Two columns that differ in nothing else would be
one column for them, so rows that come with ``A`` go to the column ``a`` that the table has: a lake table keeps the
spelling of its first rows.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import META_NAMES, ChangeBatch, Column, Mask, TableSchema
from binlake.rows.upsert.column_group import as_group
from binlake.rows.upsert.computed import NO_COLUMNS, BatchColumns, evaluate
from binlake.settings import TableRules
from binlake.settings.fanout import ColumnsRule, MaskRule, Part, ShardRule
from binlake.settings.merging import GroupRule
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import known_as, lake_name, respelled


def spelled(batch: ChangeBatch, known: Collection[str]) -> ChangeBatch:
    """The batch with its columns in the case of the ``known`` lake names; the same object if it has them so."""
    names = {}
    for column in batch.rows.column_names if known else ():
        lake = known_as(column, known) if column not in META_NAMES else None
        if lake is not None and lake != lake_name(column):
            names[column] = respelled(column, lake)
    if not names:
        return batch

    def renamed(rows: pa.Table) -> pa.Table:
        return rows.rename_columns([names.get(name, name) for name in rows.column_names])

    columns = tuple(replace(c, name=names.get(c.name, c.name)) for c in batch.schema.columns)
    key = tuple(names.get(name, name) for name in batch.schema.key)
    schema = replace(batch.schema, columns=columns, key=key)
    before = None if batch.before is None else renamed(batch.before)
    return replace(batch, schema=schema, rows=renamed(batch.rows), before=before)


def first_spellings(known: Iterable[str], come: Iterable[str]) -> tuple[str, ...] | None:
    """The lake names by which rows are to come; None if all that have ``come`` do.

    Args:
        known: the table's columns, or the spellings that were decided before; they take precedence.
        come: the lake names of the rows that came.
    """
    first, differs = {name.lower(): name for name in known}, False
    for name in come:
        differs |= first.setdefault(name.lower(), name) != name
    return tuple(first.values()) if differs else None


@dataclass(frozen=True, slots=True)
class ShapeResult:
    """``batch``: n shaped rows. ``bad``: bool of n, the rows for which an expression fails: their computed columns have
    no meaning. ``why``: the error of one of them."""

    batch: ChangeBatch
    bad: Mask
    why: str = ""


def shape(batch: ChangeBatch, rules: TableRules, part: Part | None) -> ShapeResult:
    """The batch as its lake table keeps it, under the source's names.

    Raises UnsupportedError where a rule cannot hold for this table: a computed or shard column has the name of another
    column, an expression names a missing column, a key column is left out or redacted, merged tables have no key, a
    table that is stitched from others has rows of its own; and as ``as_group``.
    """
    columns = rules.columns
    if isinstance(part, GroupRule):
        made, computed = as_group(batch, part)
    elif rules.groups:
        raise UnsupportedError(
            "its lake table is stitched from other source tables",
            do_next="add it to their sources, send it to another table (tables.routes), or exclude it",
            table=str(batch.origin or batch.schema.source),
        )
    else:
        if part is not None:
            _check_shard(batch, rules)
        made, computed = _with_computed(batch, columns.computed) if columns is not None else (batch, NO_COLUMNS)
    if columns is not None:
        made = _masked(_selected(made, columns), columns.masks)
    if isinstance(part, ShardRule):
        made = _with_shard(made, part)
    bad: Mask = np.zeros(len(batch.rows), dtype=np.bool_)
    bad[list(computed.bad)] = True
    return ShapeResult(made, bad, computed.why)


def _check_shard(batch: ChangeBatch, rules: TableRules) -> None:
    """Raise UnsupportedError for a source of a merged table without a key."""
    if not (rules.key or batch.schema.key):
        raise UnsupportedError(
            "tables without a key cannot be merged into one",
            do_next="name a key in tables.overrides, or send the table to a lake table of its own",
            table=str(batch.origin),
        )


def _with_computed(batch: ChangeBatch, expressions: Sequence[tuple[str, str]]) -> tuple[ChangeBatch, BatchColumns]:
    if not expressions:
        return batch, NO_COLUMNS
    schema = batch.schema
    for name, _ in expressions:
        _refuse_taken(schema, name)
    added = evaluate(batch, expressions)
    fields = [Column(f.name, "", f.type) for f in added.rows.schema]
    whole = replace(
        batch,
        schema=replace(schema, columns=(*schema.columns, *fields)),
        rows=_beside(batch.rows, added.rows),
        before=None if batch.before is None else _beside(batch.before, added.before),
    )
    return whole, added


def _beside(rows: pa.Table, added: pa.Table) -> pa.Table:
    """The value columns, then the added columns, then the meta columns of the change batch."""
    first = len([n for n in rows.column_names if n not in META_NAMES])
    for number, (field, column) in enumerate(zip(added.schema, added.columns, strict=True), first):
        rows = rows.add_column(number, field, column)
    return rows


def _refuse_taken(schema: TableSchema, name: str) -> None:
    if name.lower() in {c.name.lower() for c in schema.columns}:
        raise UnsupportedError(
            f"the settings add a column {name!r}, which the table has already",
            do_next="give it another name (columns.computed, or shard.column of the route)",
            table=str(schema.source),
        )


def _selected(batch: ChangeBatch, rule: ColumnsRule) -> ChangeBatch:
    gone = [c.name for c in batch.schema.columns if not rule.keeps(c.name)]
    if not gone:
        return batch
    if lacking := [name for name in batch.schema.key if name in gone]:
        raise UnsupportedError(
            f"columns.include and exclude leave out {', '.join(lacking)}, which the table's key needs",
            do_next="keep the key's columns, or name another key",
            table=str(batch.schema.source),
        )
    kept = tuple(c for c in batch.schema.columns if c.name not in gone)
    before = None if batch.before is None else batch.before.drop_columns(gone)
    return replace(batch, schema=replace(batch.schema, columns=kept), rows=batch.rows.drop_columns(gone), before=before)


def _masked(batch: ChangeBatch, masks: Sequence[MaskRule]) -> ChangeBatch:
    by_name = {m.column.lower(): m for m in masks}
    for column in batch.schema.columns:
        mask = by_name.get(column.name.lower())
        if mask is None:
            continue
        if mask.how != "hash" and column.name in batch.schema.key:
            raise UnsupportedError(
                f"key column {column.name!r} cannot be made the same for all rows (mask: {mask.how})",
                do_next="use how: hash for a key column",
                table=str(batch.schema.source),
            )
        batch = _replaced(batch, column, mask)
    return batch


def _replaced(batch: ChangeBatch, column: Column, mask: MaskRule) -> ChangeBatch:
    kind = pa.string() if mask.how == "hash" else column.lake_type
    columns = tuple(replace(c, lake_type=kind, wire="") if c is column else c for c in batch.schema.columns)

    def table(rows: pa.Table) -> pa.Table:
        column_index = rows.column_names.index(column.name)
        return rows.set_column(
            column_index, pa.field(column.name, kind), _mask(rows.column(column_index).combine_chunks(), mask)
        )

    before = None if batch.before is None else table(batch.before)
    return replace(batch, schema=replace(batch.schema, columns=columns), rows=table(batch.rows), before=before)


def _mask(values: pa.Array, mask: MaskRule) -> pa.Array:
    """Masked values; null stays null. Each distinct value is hashed once."""
    if mask.how == "redact" and pa.types.is_string(values.type):
        return pc.if_else(pc.is_valid(values), mask.text, pa.scalar(None, pa.string()))
    if mask.how != "hash":
        return pa.nulls(len(values), values.type)
    encoded = values.dictionary_encode()
    salt = mask.salt.encode()
    hashes = [hmac.new(salt, data, hashlib.sha256).hexdigest() for data in _as_bytes(encoded.dictionary)]
    return pa.array(hashes, pa.string()).take(encoded.indices)


def _as_bytes(values: pa.Array) -> list[bytes]:
    if pa.types.is_binary(values.type):
        return [bytes(value) for value in values.to_pylist()]
    return [text.encode() for text in values.cast(pa.string()).to_pylist()]


def _with_shard(batch: ChangeBatch, shard: ShardRule) -> ChangeBatch:
    _refuse_taken(batch.schema, shard.column)

    def added(rows: pa.Table) -> pa.Table:
        return _beside(rows, pa.table({shard.column: pa.repeat(pa.scalar(shard.value, pa.string()), len(rows))}))

    schema = batch.schema
    key = (shard.column, *schema.key) if shard.in_key and schema.key else schema.key
    schema = replace(schema, columns=(*schema.columns, Column(shard.column, "", pa.string())), key=key)
    before = None if batch.before is None else added(batch.before)
    return replace(batch, schema=schema, rows=added(batch.rows), before=before)
