"""A table of an SQL query: its rows at a moment, and the plan to read them."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from hudilake.query.sql.text import Name
from hudilake.read.plan import ScanPlan
from hudilake.read.query import Query, Snapshot
from hudilake.read.slice import readable_schema
from hudilake.read.table_reader import TableReader


@dataclass(frozen=True, eq=False)
class SqlTable:
    """A table of a query, and which of its rows the query reads."""

    reader: TableReader
    query: Query = field(default_factory=Snapshot)

    @property
    def schema(self) -> pa.Schema:
        """The columns at that time, the meta fields first. Raises UnsupportedError, CorruptDataError, StorageError."""
        as_of = self.query.as_of if isinstance(self.query, Snapshot) else None
        return self.reader.schema if as_of is None else readable_schema(self.reader.table, as_of)


@dataclass(frozen=True, eq=False)
class PlannedTable:
    """A table of a query.

    ``names``: what the query calls it, as (database or "", name) in lower case. ``plan``: its rows and columns.
    """

    names: tuple[Name, ...]
    table: SqlTable
    plan: ScanPlan
