"""One checked question to a table: query, columns, conditions and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.extras import require_extra
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.filters.arrow_filter import from_arrow
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import TRUE, Filter, columns_of, normalised
from hudilake.read.plan import SliceScan
from hudilake.read.query import Incremental, Query, Snapshot
from hudilake.read.slice import readable_schema, reader_of
from hudilake.read.window import COMMIT_TIME_FIELD, CommitWindow, timeline_until
from hudilake.table.table import HudiTable

#: A filter, the text of an SQL condition, or a pyarrow expression.
Condition: TypeAlias = Filter | str | pc.Expression | None


@dataclass(frozen=True)
class ResolvedQuery:
    """A question, resolved against the table.

    Args:
        query: snapshot, read optimized or incremental.
        condition: normalised.
        expression: the pyarrow expression that the condition stands for, or None.
        columns: the columns to return.
        schema: the table's columns at that time, the meta fields first.
        until: the timeline as of the query's end, small when pickled.
    """

    query: Query
    condition: Filter
    expression: pc.Expression | None
    columns: tuple[str, ...]
    schema: pa.Schema
    until: Timeline

    @property
    def as_of(self) -> str | None:
        """The instant of a time travel."""
        return self.query.as_of if isinstance(self.query, Snapshot) else None

    def window(self) -> CommitWindow | None:
        """The commits of an incremental read."""
        if not isinstance(self.query, Incremental):
            return None
        return CommitWindow(self.until, self.query.begin, self.query.end)

    def scan(self, table: HudiTable, batch_rows: int) -> SliceScan:
        """The scan of each slice: with the returned columns, and those of the condition."""
        window = self.window()
        needed = dict.fromkeys([*self.columns, *columns_of(self.condition)])
        if window is not None:
            needed[COMMIT_TIME_FIELD] = None
        if self.expression is not None:
            needed = dict.fromkeys(self.schema.names)  # it may name columns in unsupported forms
        schema = pa.schema([self.schema.field(name) for name in needed])
        reader = reader_of(table, schema, self.until, self.as_of)
        return SliceScan(reader, self.columns, self.condition, self.expression, window, batch_rows)


def ask(table: HudiTable, query: Query, condition: Condition, columns: Sequence[str] | None) -> ResolvedQuery:
    """Resolve a question. Arguments and errors as ``TableReader.plan``."""
    as_of = query.as_of if isinstance(query, Snapshot) else None
    if isinstance(query, Incremental):
        table.config.refuse_older("an incremental read")
    schema = readable_schema(table, as_of)
    part = normalised(_filter(condition, schema))
    selected = tuple(schema.names if columns is None else columns)
    if unknown := [name for name in (*selected, *columns_of(part)) if name not in schema.names]:
        raise UnsupportedError(
            f"the table has no columns {unknown}",
            do_next="correct the column names",
            table=table.config.name,
        )
    matches(part, schema.empty_table())  # refuses literals that cannot be compared
    expression = condition if isinstance(condition, pc.Expression) else None
    end = query.end if isinstance(query, Incremental) else None
    return ResolvedQuery(query, part, expression, selected, schema, timeline_until(table.storage, table.timeline, end))


def _filter(condition: Condition, schema: pa.Schema) -> Filter:
    if condition is None:
        return TRUE
    if isinstance(condition, pc.Expression):
        return from_arrow(condition, schema)
    if isinstance(condition, str):
        require_extra("hudilake", "sql", "sqlglot")
        from hudilake.read.filters.sql_filter import parse_filter  # tasks that only read need no SQL parser

        return parse_filter(condition, schema)
    return condition
