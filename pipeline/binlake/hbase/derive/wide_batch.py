"""Wide rows as a change batch, and prepared as rows of any source are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, TableSchema
from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.rules.wide import wide_schema
from binlake.rows.upsert.prepare import AcceptedRows, TableFacts, prepare
from binlake.tables.lake_table import LakeTable
from hudilake.errors import UnsupportedError


def described(pair: DerivedPair) -> TableSchema:
    """The wide table as a source table would be described: its columns, and the row key as its key."""
    columns = tuple(Column(f.name, "", f.type) for f in wide_schema(pair.declared))
    return TableSchema(pair.wide, columns, (pair.declared.key.name,))


def change_batch(pair: DerivedPair, upserts: pa.Table, gone: pa.Array, order: int) -> ChangeBatch:
    """Whole wide rows as upserts, and the keys of rows without visible cells as deletes.

    Args:
        pair: of the wide table.
        upserts: n rows with the declared columns.
        gone: the keys of m rows.
        order: the ordering value of all n + m rows.
    """
    wide, key = described(pair), pair.declared.key.name
    schema = wide.arrow()
    absent = [gone.cast(f.type) if f.name == key else pa.nulls(len(gone), f.type) for f in schema]
    both = pa.concat_tables([upserts.cast(schema), pa.table(absent, schema=schema)])
    orders = np.full(len(both), order, dtype=np.int64)
    meta = {
        "__op": np.repeat(np.array([Op.UPSERT, Op.DELETE], dtype=np.int8), [len(upserts), len(gone)]),
        "__order": orders,
        "__place": orders,
    }
    for extra in META_FIELDS:
        values = meta.get(extra.name, np.zeros(len(both), dtype=np.int64))
        both = both.append_column(extra, pa.array(values, extra.type))
    return ChangeBatch(wide, "", both)


def accepted(batch: ChangeBatch, pair: DerivedPair, table: LakeTable | None) -> AcceptedRows | None:
    """The batch in the form in which the wide table is written; None if it has no rows.

    Raises UnsupportedError for rows that the table's rules refuse.
    """
    if not len(batch.rows):
        return None
    facts = TableFacts()
    if table is not None:
        facts = TableFacts(
            truncates=table.truncates, columns=table.hudi.schema.names, bucketing=table.rows.own_bucketing
        )
    prepared = prepare(batch, pair.wide_rules, None, facts)
    if rejected := prepared.left_out.rejected:
        raise UnsupportedError(
            f"the wide table's rules refuse rows that are derived for it: {rejected[0].detail}",
            do_next="correct tables.overrides for the wide table, or its columns (tables.cells), and resume the table",
            table=str(pair.wide),
        )
    return prepared.accepted
