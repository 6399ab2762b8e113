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
    routed.changes = [_batch(batch, tables) for batch in decoded.changes]
    routed.controls = [_control(control, tables) for control in decoded.controls]
    routed.quarantined = [_record(record, tables) for record in decoded.quarantined]
    for (source, kind), count in decoded.filtered.items():
        routed.count_filtered(source and destination(source, tables), kind, count)
    return routed


def destination(source: SourceTable, tables: TablesSettings) -> SourceTable:
    """The name of a source table in the lake; its own name where it is left out."""
    lake_table = tables.destination(source) if tables.selects(source) else None
    return SourceTable(lake_table.database, lake_table.table) if lake_table is not None else source


def part_of(origin: SourceTable, tables: TablesSettings) -> Part | None:
    """What a source table is of a lake table that several feed; None for a lake table of its own."""
    lake_table = tables.destination(origin) if tables.fans_out else None
    return lake_table.part if lake_table is not None else None


def shard_of(origin: SourceTable, tables: TablesSettings) -> ShardRule | None:
    """The rule that distinguishes a source table's rows in a merged lake table; None for any other table."""
    part = part_of(origin, tables)
    return part if isinstance(part, ShardRule) else None


def truncates_of(controls: Iterable[Control], tables: TablesSettings) -> dict[SourceTable, Truncates]:
    """The effect of the TRUNCATEs among the (routed) records on each lake table."""
    truncates: dict[SourceTable, Truncates] = {}
    for control in controls:
        if control.kind is ControlKind.TRUNCATE:
            part = part_of(control.origin or control.source, tables)
            truncates[control.source] = truncates.get(control.source, NOTHING_TRUNCATED).with_one(control.order, part)
    return truncates


@dataclass(frozen=True)
class AppendSources:
    """The source tables whose lake tables are append tables: only inserts go there. Picklable."""

    tables: TablesSettings

    def __contains__(self, source: object) -> bool:
        if not isinstance(source, SourceTable):
            return False
        return self.tables.rules(destination(source, self.tables)).kind == "append"


def _batch(batch: ChangeBatch, tables: TablesSettings) -> ChangeBatch:
    origin = batch.schema.source
    return replace(batch, schema=replace(batch.schema, source=destination(origin, tables)), origin=origin)


def _control(control: Control, tables: TablesSettings) -> Control:
    return replace(control, source=destination(control.source, tables), origin=control.source)


def _record(record: QuarantinedRecord, tables: TablesSettings) -> QuarantinedRecord:
    return replace(record, source=record.source and destination(record.source, tables), origin=record.source)
