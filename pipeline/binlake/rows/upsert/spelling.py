"""The case of column names: a lake table keeps the spelling of its first rows, whatever case the source changes to.

MySQL and the readers of a lake table ignore the case of column names. Two columns that differ in nothing else would be
one column for them, so rows that come with ``A`` go to the column ``a`` that the table has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch
from hudilake.format.definition.column_names import known_as, lake_name, respelled


def spelled(batch: ChangeBatch, known: Collection[str]) -> ChangeBatch:
    """The batch with its columns in the case of the ``known`` lake names; the same object if it has them so."""
    names = {}
    for column in batch.rows.column_names if known else ():
        found = known_as(column, known) if column not in META_NAMES else None
        if found is not None and found != lake_name(column):
            names[column] = respelled(column, found)
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
