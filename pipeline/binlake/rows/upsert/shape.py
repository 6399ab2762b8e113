"""Shapes the columns of a change batch for its lake table: takes those of its column group, adds computed ones, leaves
out some, masks others.

Before images are shaped in the same way, so that a row is found again where it was stored.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import ChangeBatch, Column, TableSchema, rows_where
from binlake.rows.upsert.column_group import as_group
from binlake.rows.upsert.evaluation import Evaluated, beside, evaluate
from binlake.settings import TableRules
from binlake.settings.fanout import ColumnsRule, MaskRule, Part, ShardRule
from binlake.settings.merging import GroupRule
from hudilake.errors import UnsupportedError


@dataclass(frozen=True)
class Shaped:
    """``good``: the shaped rows. ``bad``: the other rows, unchanged, and the reason; None if there are none."""

    good: ChangeBatch
    bad: ChangeBatch | None = None
    why: str = ""


def shape(batch: ChangeBatch, rules: TableRules, part: Part | None) -> Shaped:
    """The batch as its lake table keeps it.

    Raises UnsupportedError where a rule cannot hold for this table: a computed or shard column has the name of another
    column, an expression names a missing column, a key column is left out or redacted, merged tables have no key, a
    table that is stitched from others has rows of its own; and as ``as_group``.
    """
    if isinstance(part, GroupRule):
        return _of_group(batch, rules.columns, part)
    if rules.groups:
        raise UnsupportedError(
            "its lake table is stitched from other source tables",
            do_next="add it to their sources, send it to another table (tables.routes), or exclude it",
            table=str(batch.origin or batch.schema.source),
        )
    return _of_table(batch, rules, part)


def _of_group(batch: ChangeBatch, columns: ColumnsRule | None, group: GroupRule) -> Shaped:
    grouped, evaluated = as_group(batch, group)
    good, bad = _split(grouped, batch, evaluated)
    if columns is not None:
        good = _masked(_selected(good, columns), columns.masks)
    return Shaped(good, bad, evaluated.why)


def _of_table(batch: ChangeBatch, rules: TableRules, shard: ShardRule | None) -> Shaped:
    columns = rules.columns
    if columns is None and shard is None:
        return Shaped(batch)
    if shard is not None and not (rules.key or batch.schema.key):
        raise UnsupportedError(
            "tables without a key cannot be merged into one",
            do_next="name a key in tables.overrides, or send the table to a lake table of its own",
            table=str(batch.origin),
        )
    bad, why = None, ""
    if columns is not None and columns.computed:
        batch, bad, why = _with_computed(batch, columns.computed)
    if columns is not None:
        batch = _masked(_selected(batch, columns), columns.masks)
    return Shaped(_with_shard(batch, shard) if shard is not None else batch, bad, why)


def _with_computed(
    batch: ChangeBatch, computed: Sequence[tuple[str, str]]
) -> tuple[ChangeBatch, ChangeBatch | None, str]:
    schema = batch.schema
    for name, _ in computed:
        _refuse_taken(schema, name)
    added = evaluate(batch, computed)
    fields = [Column(f.name, "", f.type) for f in added.rows.schema]
    whole = replace(
        batch,
        schema=replace(schema, columns=(*schema.columns, *fields)),
        rows=beside(batch.rows, added.rows),
        before=None if batch.before is None else beside(batch.before, added.before),
    )
    good, bad = _split(whole, batch, added)
    return good, bad, added.why


def _split(made: ChangeBatch, given: ChangeBatch, evaluated: Evaluated) -> tuple[ChangeBatch, ChangeBatch | None]:
    """The rows of ``made`` whose expressions could be evaluated, and the other rows as they were given."""
    if not evaluated.bad:
        return made, None
    mask = np.ones(len(given.rows), dtype=bool)
    mask[list(evaluated.bad)] = False
    return rows_where(made, mask), rows_where(given, ~mask)


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
        at = rows.column_names.index(column.name)
        return rows.set_column(at, pa.field(column.name, kind), _mask(rows.column(at).combine_chunks(), mask))

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
        return beside(rows, pa.table({shard.column: pa.repeat(pa.scalar(shard.value, pa.string()), len(rows))}))

    schema = batch.schema
    key = (shard.column, *schema.key) if shard.in_key and schema.key else schema.key
    schema = replace(schema, columns=(*schema.columns, Column(shard.column, "", pa.string())), key=key)
    before = None if batch.before is None else added(batch.before)
    return replace(batch, schema=schema, rows=added(batch.rows), before=before)
