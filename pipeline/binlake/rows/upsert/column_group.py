"""The rows of one source of a stitched table: its key and its columns, under the names that the lake gives them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch, Column, TableSchema
from binlake.rows.upsert.computed import NO_COLUMNS, BatchColumns, evaluate
from binlake.settings.merging import GroupRule
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

#: Column in the lake -> the source's column, or an SQL expression over its columns.
_Wanted = Mapping[str, Column | str]


def as_group(batch: ChangeBatch, group: GroupRule) -> tuple[ChangeBatch, BatchColumns]:
    """The batch with the columns of its group, the key's first, and the values of the expressions among them.

    The schema's key is the lake's where it identifies a row of the source too. Otherwise the schema has no key: a
    change may then move a row, so its before image is needed.

    Raises UnsupportedError for a source without a key, or without a column that the settings name, for a column that
    the key or another group has, and as ``compute``.
    """
    key = _key(batch, group)
    wanted: _Wanted = {**key, **_columns(batch, group, key)}
    expressions = [(lake, one) for lake, one in wanted.items() if isinstance(one, str)]
    computed = evaluate(batch, expressions) if expressions else NO_COLUMNS
    columns = [_column(lake, one, computed.rows) for lake, one in wanted.items()]
    same = {c.name for c in key.values()} == set(batch.schema.key)
    schema = TableSchema(batch.schema.source, tuple(columns), tuple(key) if same else ())
    before = None if batch.before is None else _named(batch.before, wanted, computed.before)
    return replace(batch, schema=schema, rows=_named(batch.rows, wanted, computed.rows), before=before), computed


def _key(batch: ChangeBatch, group: GroupRule) -> dict[str, Column]:
    schema = batch.schema
    if not schema.key:
        raise UnsupportedError(
            "a table without a key cannot be a source of a stitched table",
            do_next="declare its key in source.schemas, or take it from the sources in tables.stitched",
            table=str(batch.origin or schema.source),
        )
    by_name = {c.name.lower(): c for c in schema.columns}
    if lacking := [column for _, column in group.key if column.lower() not in by_name]:
        raise UnsupportedError(
            f"source {group.name!r} of the stitched table lacks the key column {', '.join(lacking)}",
            do_next="correct key of this source in tables.stitched",
            table=str(batch.origin or schema.source),
        )
    return {lake: by_name[column.lower()] for lake, column in group.key}


def _columns(batch: ChangeBatch, group: GroupRule, key: Mapping[str, Column]) -> _Wanted:
    columns = batch.schema.columns
    if group.columns is not None:
        by_name = {c.name.lower(): c for c in columns}
        return {lake: by_name.get(text.lower(), text) for lake, text in group.columns}
    used = {c.name for c in key.values()}
    taken = {lake_name(name).lower() for name in (*group.others, *key)}
    if clashing := [c.name for c in columns if c.name not in used and lake_name(c.name).lower() in taken]:
        raise UnsupportedError(
            f"source {group.name!r} has the column {', '.join(clashing)}, which the stitched table has from elsewhere",
            do_next="name the columns of this source in tables.stitched",
            table=str(batch.origin or batch.schema.source),
        )
    return {c.name: c for c in columns if c.name not in used}


def _column(lake: str, wanted: Column | str, computed: pa.Table) -> Column:
    if isinstance(wanted, Column):
        return replace(wanted, name=lake)
    return Column(lake, "", computed.schema.field(lake).type)


def _named(images: pa.Table, wanted: _Wanted, computed: pa.Table) -> pa.Table:
    """The wanted columns of rows or before images, and the meta columns if there are any. Nothing is copied."""
    fields: list[pa.Field] = []
    arrays: list[pa.ChunkedArray] = []
    for lake, one in wanted.items():
        array = images.column(one.name) if isinstance(one, Column) else computed.column(lake)
        fields.append(pa.field(lake, array.type))
        arrays.append(array)
    for name in images.column_names:
        if name in META_NAMES:
            fields.append(images.schema.field(name))
            arrays.append(images.column(name))
    return pa.table(arrays, schema=pa.schema(fields))
