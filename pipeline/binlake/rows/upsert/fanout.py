"""Fan-out: renames decoded records from their source table to their lake table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from binlake.decode.changes import ChangeBatch, Control, ControlKind, DecodedRecords, QuarantinedRecord, SourceTable
from binlake.rows.upsert.truncates import NOTHING_TRUNCATED, Truncates
from binlake.settings import TablesSettings
from binlake.settings.fanout import Part, ShardRule


def fan_out(decoded: DecodedRecords, tables: TablesSettings) -> DecodedRecords:
    """The decoded records under the names of their lake tables; the source's own names are kept as ``origin``.

    Tables that are left out keep their names. ``unknown_columns`` and ``inferred`` are those of the source's
    schemas, and are unchanged.
    """
    if not tables.fans_out:
        return decoded
    routed = DecodedRecords(unknown_columns=decoded.unknown_columns, inferred=decoded.inferred)
    routed.changes = [one for batch in decoded.changes for one in _batches(batch, tables)]
    routed.controls = [one for control in decoded.controls for one in _controls(control, tables)]
    routed.quarantined = [_record(record, tables) for record in decoded.quarantined]
    for (source, kind), count in decoded.filtered.items():
        routed.count_filtered(source and destination(source, tables), kind, count)
    return routed


def destination(source: SourceTable, tables: TablesSettings) -> SourceTable:
    """The name of a source table in the lake; its own name where it is left out."""
    lake_table = tables.destination(source) if tables.selects(source) else None
    return SourceTable(lake_table.database, lake_table.table) if lake_table is not None else source


def histories(source: SourceTable, tables: TablesSettings) -> list[SourceTable]:
    """The history tables of a source table that is taken, by their names in the lake."""
    if not tables.history or not tables.selects(source):
        return []
    return [SourceTable(one.database, one.table) for one in tables.histories(source)]


def part_of(origin: SourceTable, tables: TablesSettings) -> Part | None:
    """What a source table is of the lake table of its rows, if several feed that; None for one of its own."""
    lake_table = tables.destination(origin) if tables.fans_out else None
    return lake_table.part if lake_table is not None else None


def shard_of(origin: SourceTable, tables: TablesSettings) -> ShardRule | None:
    """The rule that distinguishes a source table's rows in a merged lake table; None for any other table."""
    part = part_of(origin, tables)
    return part if isinstance(part, ShardRule) else None


def truncates_of(controls: Iterable[Control], tables: TablesSettings) -> dict[SourceTable, Truncates]:
    """The effect of the TRUNCATEs among the (routed) records on each lake table; none on an append table."""
    truncates: dict[SourceTable, Truncates] = {}
    for control in controls:
        rules = tables.rules(control.source)
        if control.kind is not ControlKind.TRUNCATE or rules.kind == "append":
            continue
        known = truncates.get(control.source, NOTHING_TRUNCATED)
        if rules.merge.keeps_versions:
            truncates[control.source] = known.with_end(control.order, control.source_ms)
        else:
            part = part_of(control.origin or control.source, tables)
            truncates[control.source] = known.with_one(control.order, part)
    return truncates


@dataclass(frozen=True)
class AppendSources:
    """The source tables whose lake tables are append tables: only inserts go there. Picklable."""

    tables: TablesSettings

    def __contains__(self, source: object) -> bool:
        if not isinstance(source, SourceTable):
            return False
        return self.tables.rules(destination(source, self.tables)).kind == "append"


@dataclass(frozen=True)
class SourcesWithTransactions:
    """The source tables that feed a table of changes, whose rows name their transactions. Picklable."""

    tables: TablesSettings

    def __contains__(self, source: object) -> bool:
        if not isinstance(source, SourceTable):
            return False
        fed = [destination(source, self.tables), *histories(source, self.tables)]
        return any(self.tables.rules(one).merge.names_transactions for one in fed)


def _batches(batch: ChangeBatch, tables: TablesSettings) -> list[ChangeBatch]:
    origin = batch.schema.source
    lake_tables = [destination(origin, tables), *histories(origin, tables)]
    return [replace(batch, schema=replace(batch.schema, source=one), origin=origin) for one in lake_tables]


def _controls(control: Control, tables: TablesSettings) -> list[Control]:
    """A statement is known once, whatever tables it concerns."""
    origin = control.source
    more = histories(origin, tables) if control.kind is ControlKind.TRUNCATE else []
    return [replace(control, source=one, origin=origin) for one in (destination(origin, tables), *more)]


def _record(record: QuarantinedRecord, tables: TablesSettings) -> QuarantinedRecord:
    return replace(record, source=record.source and destination(record.source, tables), origin=record.source)
