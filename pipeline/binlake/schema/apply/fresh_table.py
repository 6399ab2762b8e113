"""What statements say about a lake table that does not exist yet: its rows come in the columns of their own time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from binlake.schema.rules.entries import Entry
from binlake.schema.rules.judged import TableSchemaState


@dataclass(frozen=True, slots=True)
class FreshTable:
    """``entries``: the statements that the first commit records. ``added``: the columns that they add and that the
    source still has: rows from before them lack those that are null."""

    entries: tuple[Entry, ...] = ()
    added: tuple[pa.Field, ...] = ()

    def with_origin(self, entries: Iterable[Entry], first: pa.Schema, last: TableSchemaState) -> FreshTable:
        """With the statements about one source table, which had the columns ``first`` before them."""
        rule = last.rules.columns
        added = [f for f in last.schema if f.name not in first.names and f.name not in last.gone]
        added = [f for f in added if rule is None or rule.keeps(f.name)]
        return FreshTable((*self.entries, *entries), (*self.added, *added))

    def columns(self, found: pa.Schema) -> pa.Schema:
        """The columns that the table is created with: ``found`` in its rows, and the added ones that these lack."""
        names = {name.lower() for name in found.names}
        more = {field.name.lower(): field for field in self.added if field.name.lower() not in names}
        return pa.schema([*found, *more.values()])
