"""What is loaded of a source table, and into which lake table: decided, or refused, before anything is written."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from binlake.decode.changes import META_FIELDS, META_NAMES, ChangeBatch, SourceTable, TableSchema
from binlake.load.first.chunks import ChunkColumns
from binlake.rows.upsert.fanout import destination, part_of
from binlake.rows.upsert.place import place_rows
from binlake.rows.upsert.shape import shape
from binlake.rows.upsert.target import Target, target_and_names
from binlake.schema.rules.row_places import RowPlaces
from binlake.settings import Settings, TableRules
from binlake.source.binlog.definitions import unreadable_types
from binlake.source.database.source_table import DescribedTable, SourceColumn
from binlake.source.database.values import ValueReader
from hudilake.errors import UnsupportedError

#: Storage engines whose snapshots show one position. Others show each row as of its reading.
_ENGINES = frozenset({"innodb", "rocksdb", "tokudb", "ndbcluster", "ndb"})
_SNAPSHOT = "fetch it by the connector's snapshot (Debezium: snapshot.mode initial)"


@dataclass(frozen=True)
class LoadPlan:
    """One table of a load.

    Args:
        described: the source table.
        source: its name in the lake.
        rules: of the lake table.
        columns: what is read, each with its reader.
    """

    described: DescribedTable
    source: SourceTable
    rules: TableRules
    columns: tuple[tuple[SourceColumn, ValueReader], ...]

    @staticmethod
    def of(settings: Settings, described: DescribedTable) -> LoadPlan:
        """The plan for a source table. Raises UnsupportedError for a table that cannot be loaded in this way."""
        origin, source = described.name, destination(described.name, settings.tables)
        rules = settings.table_rules(source)
        _refuse(settings, described, rules)
        key = rules.key or described.key
        columns = []
        for column in described.columns:
            kept = rules.columns is None or rules.columns.keeps(column.name)
            if column.type is not None:
                in_key, nullable = column.name in key, column.nullable
                reader = ValueReader.of(column.name, column.type, settings.source, nullable=nullable, in_key=in_key)
                columns.append((column, reader))
            elif kept:
                raise UnsupportedError(
                    f"column {column.name!r} has the type {column.type_text}, which is not known",
                    do_next="leave it out (tables.overrides, columns.exclude), or the table (tables.exclude)",
                    table=str(origin),
                )
        plan = LoadPlan(described, source, rules, tuple(columns))
        _ = plan.placed  # what the rules refuse is refused here
        return plan

    @property
    def schema(self) -> TableSchema:
        """The columns of the rows as they are read, under the lake's name of the table."""
        return TableSchema(self.source, tuple(reader.column for _, reader in self.columns), self.described.key)

    @property
    def target(self) -> Target:
        """The lake table."""
        return self.placed[0]

    @property
    def lake_columns(self) -> pa.Schema:
        """The value columns of the lake table."""
        return self.placed[1]

    @cached_property
    def placed(self) -> tuple[Target, pa.Schema]:
        """The lake table of these columns, and its value columns. Raises UnsupportedError."""
        schema = pa.schema([*self.schema.arrow(), *META_FIELDS])
        shaped = shape(ChangeBatch(self.schema, "", schema.empty_table()), self.rules, None).batch
        target, names = target_and_names(shaped.schema, self.rules)
        rows = place_rows(shaped, target, names, RowPlaces.incoming(shaped.rows)).rows
        return target, pa.schema([field.with_nullable(True) for field in rows.schema if field.name not in META_NAMES])

    @property
    def chunk_columns(self) -> ChunkColumns | None:
        """The columns by whose values the table is cut into chunks; None for a table that is read in one piece."""
        return ChunkColumns.of(self.described)

    @property
    def by_key(self) -> bool:
        """Whether a row that comes again replaces itself, so that an interrupted load goes on where it was."""
        return bool(self.target.key)

    @cached_property
    def definition(self) -> str:
        """A digest of the source's columns and key."""
        columns = [(column.name, column.type_text, column.nullable) for column, _ in self.columns]
        return hashlib.blake2b(repr((columns, self.described.key)).encode(), digest_size=8).hexdigest()


def _refuse(settings: Settings, described: DescribedTable, rules: TableRules) -> None:
    name, source = str(described.name), settings.source
    if source.mysql is not None and (error := unreadable_types(described.columns)) is not None:
        raise error
    if source.format not in ("auto", "debezium", "debezium_avro") and not (
        source.format == "maxwell" and source.maxwell.order == "position"
    ):
        raise UnsupportedError(
            f"events of format {source.format} are not ordered by places in the binlog, so that a row of the source "
            "has no place among them",
            do_next="fetch the table by the tool that writes the events (its bootstrap or dump)",
            table=name,
        )
    if rules.cells is not None or rules.wide is not None:
        raise UnsupportedError(
            "the source of a table of cells is no database that answers SQL",
            do_next="load a scan: binlake replay --scan",
            table=name,
        )
    if rules.groups or part_of(described.name, settings.tables) is not None:
        raise UnsupportedError(
            "several source tables feed its lake table, and a load begins a table for one",
            do_next=_SNAPSHOT,
            table=name,
        )
    if (why := rules.merge.refusal("its rows are made by the merge engine {}, of events")) is not None:
        raise UnsupportedError(why, do_next=_SNAPSHOT, table=name)
    if described.versioned:
        raise UnsupportedError(
            "the server keeps former versions of its rows in it, and how the binlog tells of them was not tried",
            do_next="leave the table out (tables.exclude)",
            table=name,
        )
    if described.engine.lower() not in _ENGINES:
        what = f"the engine {described.engine}" if described.engine else "a view"
        raise UnsupportedError(
            f"{what} has no consistent snapshot", do_next="ALTER TABLE ... ENGINE=InnoDB, or exclude it", table=name
        )
