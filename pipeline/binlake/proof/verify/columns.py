"""Which columns of a table are compared and in what type, and which are left out and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from binlake.rows.upsert.keyless import DIGEST_FIELD
from binlake.rows.upsert.target import ORDER_FIELD, ROW_FIELD
from binlake.settings import SourceSettings, TableRules
from binlake.settings.fanout import ShardRule
from binlake.source.database.source_table import DescribedTable, SourceColumn
from binlake.source.database.values import Unreadable, ValueReader, normalised_json
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import known_as, lake_name

_HIDDEN = frozenset({ORDER_FIELD, ROW_FIELD, DIGEST_FIELD})
_WIDEST = 76


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that is compared: at the source, its name in the lake, and the type that both sides are brought to."""

    source: SourceColumn
    reader: ValueReader
    lake_name: str
    canonical: pa.DataType

    def of_source(self, cells: pa.Array, unreadable: Unreadable) -> pa.Array:
        """The server's cells in the canonical type."""
        return self.reader.read(cells, unreadable).cast(self.canonical)

    def of_lake(self, values: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The lake's values in the canonical type."""
        array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if self.reader.kind.base == "json":
            array = normalised_json(array)
        return array.cast(self.canonical)


@dataclass(frozen=True, slots=True)
class ColumnNote:
    """A column that is not compared, and why. ``wrong``: the two sides differ in it already."""

    name: str
    why: str
    wrong: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The columns of a comparison.

    Args:
        columns: the compared ones, those of the key first and in the key's order.
        keys: how many of them are the key; 0 for a table without a key, whose rows are known by their content.
        notes: the others.
        shard: the rule that marks these rows among those of other source tables in the lake table.
    """

    columns: tuple[ComparedColumn, ...]
    keys: int
    notes: tuple[ColumnNote, ...]
    shard: ShardRule | None = None

    @property
    def key(self) -> tuple[ComparedColumn, ...]:
        """The columns by which a row is known: the key's, or all."""
        return self.columns[: self.keys] or self.columns

    @property
    def lake_columns(self) -> list[str]:
        """The lake's names of what is read there."""
        return [*(c.lake_name for c in self.columns), ORDER_FIELD]

    def of_lake(self, rows: pa.RecordBatch | pa.Table) -> pa.Table:
        """Lake rows as canonical columns, under the source's names."""
        arrays = [c.of_lake(rows.column(c.lake_name)) for c in self.columns]
        return pa.table(arrays, names=[c.source.name for c in self.columns])


def plan_columns(
    described: DescribedTable,
    lake: pa.Schema,
    record_key: tuple[str, ...],
    rules: TableRules,
    shard: ShardRule | None,
    source: SourceSettings,
) -> ColumnPlan:
    """Decide about each column of either side.

    Args:
        described: the source table.
        lake: the lake table's columns, without Hudi's.
        record_key: the lake table's key fields.
        rules: of the lake table.
        shard: as in ``ColumnPlan``.
        source: how the stream reads the source.

    Raises UnsupportedError if the key cannot be compared: then no row can be distinguished from another.
    """
    by_lake_name = {_stored(c.name, lake): c for c in described.columns}
    keyed = record_key != (ROW_FIELD,)
    key = [name for name in record_key if keyed and not (shard is not None and name == lake_name(shard.column))]
    decisions = {
        c.name: _decided(c, lake, rules, source, in_key=_stored(c.name, lake) in key) for c in described.columns
    }
    for name in key:
        column = by_lake_name.get(name)
        why = decisions[column.name] if column is not None else ColumnNote(name, "the source has no such column", True)
        if isinstance(why, ColumnNote):
            raise UnsupportedError(
                f"the lake table's key cannot be compared: {why}",
                do_next="leave the table out of the command; binlake table resync brings the source's own key",
                table=str(described.name),
            )
    order = [by_lake_name[name].name for name in key]
    compared = [*order, *(c.name for c in described.columns if c.name not in order)]
    columns = tuple(c for name in compared if isinstance(c := decisions[name], ComparedColumn))
    notes = [n for n in decisions.values() if isinstance(n, ColumnNote)]
    return ColumnPlan(columns, len(key), (*notes, *_only_in_lake(by_lake_name, lake, rules, shard)), shard)


def _decided(
    column: SourceColumn, lake: pa.Schema, rules: TableRules, source: SourceSettings, *, in_key: bool
) -> ComparedColumn | ColumnNote:
    rule, name = rules.columns, _stored(column.name, lake)
    if rule is not None and not rule.keeps(column.name):
        return ColumnNote(column.name, "left out by the settings")
    if rule is not None and column.name.lower() in {mask.column.lower() for mask in rule.masks}:
        return ColumnNote(column.name, "masked by the settings")
    if column.type is None:
        return ColumnNote(column.name, f"its type {column.type_text} is not known")
    if name not in lake.names:
        return ColumnNote(column.name, "the lake table does not have it", wrong=True)
    reader = ValueReader.of(column.name, column.type, source, nullable=column.nullable, in_key=in_key)
    canonical = common_type(reader.lake_type, lake.field(name).type)
    if canonical is None:
        types = f"{column.type_text} at the source, {lake.field(name).type} in the lake"
        return ColumnNote(column.name, f"its types have nothing in common: {types}", wrong=True)
    return ComparedColumn(column, reader, name, canonical)


def _stored(column: str, lake: pa.Schema) -> str:
    """The lake's name of a source column; the lake table may not have it."""
    return known_as(column, lake.names) or lake_name(column)


def _only_in_lake(
    by_lake_name: dict[str, SourceColumn], lake: pa.Schema, rules: TableRules, shard: ShardRule | None
) -> Iterator[ColumnNote]:
    computed = {lake_name(name) for name, _ in rules.columns.computed} if rules.columns is not None else set()
    made = {lake_name(shard.column)} if shard is not None else set()
    if rules.partition is not None and rules.partition.transform != "identity":
        made.add(rules.partition.field)
    for name in lake.names:
        if name in by_lake_name or name in _HIDDEN:
            continue
        why = "computed by the settings" if name in computed else "the source has it no more"
        yield ColumnNote(name, "made by the settings" if name in made else why)


def common_type(source: pa.DataType, lake: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of both exactly; None if there is none."""
    if source == lake:
        return source
    if _is_whole(source) and _is_whole(lake):
        return pa.int64()
    if _is_number(source) and _is_number(lake):
        scale = max(t.scale if pa.types.is_decimal(t) else 0 for t in (source, lake))
        return pa.decimal256(_WIDEST, scale)
    if pa.types.is_floating(source) and pa.types.is_floating(lake):
        return pa.float64()
    if _is_day_or_time(source) and _is_day_or_time(lake):
        return pa.timestamp("us", tz="UTC")
    return None


def _is_whole(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def _is_day_or_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
