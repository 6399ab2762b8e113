"""What is known of a table's columns before its next statement: of the lake table, of the source's definitions, and of
a table that does not exist yet, whose rows come in the columns of their own time.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

from binlake.decode.changes import SourceTable, ZeroDates
from binlake.decode.ddl.clauses import names_after
from binlake.decode.ddl.foreign_keys import Cascade
from binlake.decode.schemas.schemas import SchemaVersion
from binlake.decode.types.mysql_types import MysqlType
from binlake.decode.types.zero_dates import lake_form
from binlake.rows.upsert.target import key_columns, merging_of
from binlake.schema.rules.collations import CollationHistory
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.created import CreatedDefinition
from binlake.schema.rules.ddl_effects import DdlHistory
from binlake.schema.rules.ddl_log import DdlLog
from binlake.schema.rules.definitions import DefinitionHistory
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.generated_columns import GeneratedHistory
from binlake.schema.rules.judged import TableSchemaState
from binlake.schema.rules.key_indexes import KeyIndexHistory
from binlake.schema.rules.partitions.known import KnownPartitions
from binlake.schema.rules.undetermined import UndeterminedEffect, undetermined_by
from binlake.settings import Settings, TableRules
from binlake.settings.fanout import ShardRule
from binlake.tables.lake_table import LakeTable
from hudilake.format.definition.column_names import lake_name
from hudilake.format.definition.kind_support import TableOperation


class KnownSchemas(Protocol):
    """The statements and the definitions of tables that a stream has met."""

    ddl: DdlLog

    def sources(self) -> set[SourceTable]:
        """The tables with a known definition."""
        ...

    def sources_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Those of them whose records come from these topics, judged by the topics' names."""
        ...

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """All definitions of a table, ordered by position."""
        ...


class SchemaStates:
    """The schema states of tables before their statements. ``history``: what the known statements do to names."""

    def __init__(
        self,
        settings: Settings,
        schemas: KnownSchemas,
        history: Callable[[], DdlHistory] = DdlHistory,
    ) -> None:
        self._settings, self._schemas, self._history = settings, schemas, history
        self._zero_dates = ZeroDates(settings.source.zero_dates)

    def of_table(
        self, table: LakeTable, schema: pa.Schema, origin: SourceTable, shard: ShardRule | None
    ) -> TableSchemaState:
        """The state of a lake table for the statements of one of its source tables. ``schema``: its columns."""
        state = schema_state_of(table, schema, shard)
        self._describe(state, origin)
        return state

    def of_source(self, origin: SourceTable, rules: TableRules) -> TableSchemaState:
        """The state of a table that is not in the lake yet, as the source first defined it."""
        versions = self._defined(origin)
        defined = versions[0].columns if versions else ()
        policy = self._zero_dates
        columns = pa.schema([(lake_name(name), lake_form(kind, policy).lake_type) for name, kind in defined])
        key = rules.key or (versions[0].key if versions else ())
        state = TableSchemaState(columns, tuple(map(lake_name, key)), None, rules, merging=merging_of(rules))
        self._describe(state, origin)
        return state

    def cascades(self, source: SourceTable, entries: Iterable[DdlEntry] = ()) -> list[UndeterminedEffect]:
        """What the foreign keys of a source table change without an event, by its newest known CREATE TABLE.

        ``entries``: the statements that commits record, in order: columns may have other names since.
        """
        made = [version for version in self._versions(source) if version.created]
        keys = [one for one in made[-1].defined if isinstance(one, Cascade)] if made else []
        for entry in entries if keys else ():
            if entry.source == source and entry.order > made[-1].since:
                keys = [replace(one, columns=tuple(names_after(one.columns, entry.renames))) for one in keys]
        return [undetermined_by(one) for one in keys if one.removes or one.columns]

    def _defined(self, origin: SourceTable) -> list[SchemaVersion]:
        """Those definitions of a table that have columns."""
        return [version for version in self._versions(origin) if version.columns]

    def _versions(self, origin: SourceTable) -> list[SchemaVersion]:
        """The definitions of a table under all its names, ordered by position."""
        return self._history().versions(origin, self._schemas.versions)

    def _describe(self, state: TableSchemaState, origin: SourceTable) -> None:
        """Give a state what is known of the source's types and sessions."""
        described = self._versions(origin)
        versions = [version for version in described if version.columns]
        since = [version.since for version in versions]

        def types_before(order: int) -> Mapping[str, MysqlType]:
            place = bisect.bisect_left(since, order)
            columns = versions[place - 1].columns if place else ()
            return {name.lower(): lake_form(kind, self._zero_dates) for name, kind in columns or ()}

        rule = state.rules.columns
        state.definitions = DefinitionHistory(rule.keeps if rule is not None else lambda name: True, types_before)
        state.types_before = types_before
        created = CreatedDefinition(described, self._zero_dates)
        state.generated = GeneratedHistory(created.generated)
        state.collations = CollationHistory(created.collations)
        state.indexes = KeyIndexHistory(created.indexes)
        state.partitions = KnownPartitions(created.partitions)
        state.zero_dates = self._zero_dates
        state.session = Session(self._settings.source.time_zone)


def schema_state_of(table: LakeTable, schema: pa.Schema, shard: ShardRule | None) -> TableSchemaState:
    """The schema state of a lake table before its next statement."""
    config = table.hudi.config
    partition = table.rules.partition.column if table.rules.partition is not None else None
    column = lake_name(shard.column) if shard is not None else None
    refused = config.kind.refusal(TableOperation.KEY_CHANGE)
    return TableSchemaState(
        schema,
        key_columns(config),
        partition and lake_name(partition),
        table.rules,
        shard=column,
        merging=config.merging,
        keeps_key=refused.why if refused is not None else None,
    )


@dataclass(frozen=True, slots=True)
class FreshTable:
    """``entries``: the statements that the first commit records. ``added``: the columns that they add and that the
    source still has: rows from before them lack those that are null."""

    entries: tuple[DdlEntry, ...] = ()
    added: tuple[pa.Field, ...] = ()

    def with_origin(self, entries: Iterable[DdlEntry], first: pa.Schema, last: TableSchemaState) -> FreshTable:
        """With the statements about one source table, which had the columns ``first`` before them."""
        rule = last.rules.columns
        added = [f for f in last.schema if f.name not in first.names and f.name not in last.gone]
        added = [f for f in added if rule is None or rule.keeps(f.name)]
        return FreshTable((*self.entries, *entries), (*self.added, *added))

    def columns(self, known: pa.Schema) -> pa.Schema:
        """The columns that the table is created with: ``known`` in its rows, and the added ones that these lack."""
        names = {name.lower() for name in known.names}
        more = {field.name.lower(): field for field in self.added if field.name.lower() not in names}
        return pa.schema([*known, *more.values()])
