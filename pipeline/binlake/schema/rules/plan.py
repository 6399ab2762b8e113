"""The DDL plan for tasks: to which table the rows of a name belong, and what the statements make of rows."""

from __future__ import annotations

import bisect
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from binlake.decode.changes import ChangeBatch, Control, ControlKind, DecodedRecords, SourceTable, rows_where
from binlake.decode.options import DecodeOptions
from binlake.schema.rules.restatement import NO_DDL, SourceDdl
from binlake.schema.rules.row_places import RowPlaces

#: A record of a table that a schema change tool made, counted as filtered.
SHADOW_TABLE = "shadow_table"


@dataclass(frozen=True, slots=True)
class Name:
    """After a statement rows of a name go to the table ``identity``; if it is None, they go to no table, and ``why`` is
    the reason. ``since``, ``seconds``: the statement's ordering value and time, as in ``RowPlaces.before``."""

    since: int
    identity: SourceTable | None
    why: str = ""
    seconds: int | None = None


@dataclass(frozen=True)
class DdlPlan:
    """The DDL for a batch. ``names``: names of tables that were ever renamed, ascending by ordering value. ``tables``:
    by the first name of the source table."""

    names: Mapping[SourceTable, Sequence[Name]] = field(default_factory=dict)
    shadows: Collection[SourceTable] = frozenset()
    tables: Mapping[SourceTable, SourceDdl] = field(default_factory=dict)

    def of(self, source: SourceTable) -> SourceDdl:
        """The DDL for the rows of a table."""
        return self.tables.get(source, NO_DDL)

    def decoding(self, options: DecodeOptions) -> DecodeOptions:
        """Options that name tables by their first names, for records that come under all names of these tables."""
        if not self.names:
            return options
        tables = {name: frozenset(n.identity for n in names if n.identity) for name, names in self.names.items()}

        def under_all_names(sources: frozenset[SourceTable]) -> frozenset[SourceTable]:
            return sources.union(name for name, firsts in tables.items() if firsts & sources)

        before_of = options.before_of if options.before_of == "all" else under_all_names(options.before_of)
        inserts_of, transactions_of = (
            UnderAllNames(given, tuple(tables.items())) for given in (options.inserts_of, options.transactions_of)
        )
        return replace(options, before_of=before_of, inserts_of=inserts_of, transactions_of=transactions_of)


@dataclass(frozen=True)
class UnderAllNames:
    """Tables that are given by their first names, under all names that they ever had. Picklable.

    ``tables``: pairs (name, the first names of the tables that it was the name of).
    """

    sources: Container[SourceTable]
    tables: tuple[tuple[SourceTable, frozenset[SourceTable]], ...]

    def __contains__(self, source: object) -> bool:
        return source in self.sources or any(
            first in self.sources for name, firsts in self.tables if name == source for first in firsts
        )


def name_at(names: Sequence[Name], order: int) -> Name | None:
    """The meaning of a name after the statements up to an ordering value; None before its first change."""
    index = bisect.bisect_right(names, order, key=lambda name: name.since)
    return names[index - 1] if index else None


@dataclass
class NamedRecords:
    """Decoded records under the names of their tables. ``refused``: batches that belong to no table, and the reason."""

    decoded: DecodedRecords
    refused: list[tuple[ChangeBatch, str]] = field(default_factory=list)


def named(decoded: DecodedRecords, plan: DdlPlan) -> NamedRecords:
    """Remove records of shadow tables, and give records of renamed tables the table's first name."""
    if not (plan.names or plan.shadows):
        return NamedRecords(decoded)
    named_records = NamedRecords(DecodedRecords(filtered=dict(decoded.filtered), inferred=decoded.inferred))
    mine = named_records.decoded
    mine.unknown_columns = {s: names for s, names in decoded.unknown_columns.items() if s not in plan.shadows}
    for record in decoded.quarantined:
        if record.source in plan.shadows:
            mine.count_filtered(record.source, SHADOW_TABLE)
        else:
            mine.quarantined.append(record)
    for control in decoded.controls:
        _take_control(control, plan, mine)
    for batch in decoded.changes:
        if batch.schema.source in plan.shadows:
            mine.count_filtered(batch.schema.source, SHADOW_TABLE, len(np.unique(batch.rows.column("__offset"))))
        else:
            _take_batch(batch, plan.names.get(batch.schema.source, ()), named_records)
    return named_records


def _take_control(control: Control, plan: DdlPlan, mine: DecodedRecords) -> None:
    if control.kind is ControlKind.TRUNCATE and control.source in plan.shadows:
        mine.count_filtered(control.source, SHADOW_TABLE)
        return
    name = name_at(plan.names.get(control.source, ()), control.order)
    if control.kind is ControlKind.TRUNCATE and name is not None and name.identity is not None:
        control = replace(control, source=name.identity)
    mine.controls.append(control)


def _take_batch(batch: ChangeBatch, names: Sequence[Name], found: NamedRecords) -> None:
    if not names:
        found.decoded.changes.append(batch)
        return
    for name, part in _parted(batch, names):
        if name is None:
            found.decoded.changes.append(part)
        elif name.identity is None:
            found.refused.append((part, name.why))
        else:
            schema = replace(part.schema, source=name.identity)
            found.decoded.changes.append(replace(part, schema=schema))


def _parted(batch: ChangeBatch, names: Sequence[Name]) -> Iterator[tuple[Name | None, ChangeBatch]]:
    """The rows by the meaning that the name of their table had: the later one for a snapshot row of which it cannot be
    said."""
    places = RowPlaces.incoming(batch.rows)
    changes = np.zeros(len(batch.rows), dtype=np.int64)
    for number, name in enumerate(names, 1):
        changes[~places.before(name.since, name.seconds)[0]] = number
    for number in np.unique(changes).tolist():
        mask = changes == number
        yield names[number - 1] if number else None, batch if mask.all() else rows_where(batch, mask)
