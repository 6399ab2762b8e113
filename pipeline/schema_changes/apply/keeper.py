"""Brings DDL into the lake: judges it table by table, carries it out before a batch is planned, passes it to the tasks.

A statement may be known long before the data topics reach it, or only after rows that follow it have been stored. It
acts on rows by their ordering values, so both cases give the same table.
"""

from __future__ import annotations

import bisect
import contextlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.clock import monotonic_s
from pipeline.decode.changes import Control, ControlKind, SourceTable
from pipeline.decode.ddl.foreign_keys import Cascade
from pipeline.decode.ddl.partitions import ChangePartitions
from pipeline.decode.types.mysql_types import MysqlType
from pipeline.errors import BinlakeError
from pipeline.hudi.definition.column_names import lake_name
from pipeline.hudi.definition.merging import Merging
from pipeline.lake.lake import Lake
from pipeline.lake.lake_table import LakeTable
from pipeline.lake.names import LakeName
from pipeline.lake.table_services import TableServices
from pipeline.schema_changes.apply.backfill import carry_out
from pipeline.schema_changes.apply.fresh_table import FreshTable
from pipeline.schema_changes.apply.known_schemas import KnownSchemas
from pipeline.schema_changes.apply.stored_rows import Pending
from pipeline.schema_changes.rules.conversion.session import Session
from pipeline.schema_changes.rules.ddl_log import Called, DdlEvent, DdlHistory, place_of, shadowed
from pipeline.schema_changes.rules.judged import TableSchemaState
from pipeline.schema_changes.rules.partitions.known import Defined, KnownPartitions
from pipeline.schema_changes.rules.plan import DdlPlan, SourceDdl
from pipeline.schema_changes.rules.table_ddl import Entry, TableDdl, judge_table
from pipeline.schema_changes.rules.undetermined import Undetermined, undetermined_by
from pipeline.settings import Settings
from pipeline.settings.fanout import ShardRule
from pipeline.settings.schema_changes import SchemaChangeSettings
from pipeline.source.topic_names import topic_suffix
from pipeline.upsert.fanout import destination, part_of
from pipeline.upsert.keyless import ROW_FIELD
from pipeline.upsert.merging_rules import merging_of

#: How long no statement is tried again on a table after a failure.
_PAUSE_S = 30.0


@dataclass(frozen=True, slots=True)
class DdlOutcome:
    """The outcome of a table's statements: the commit that carried them out, or the error that prevented it."""

    table: SourceTable
    entries: tuple[Entry, ...]
    instant: str | None = None
    error: str | None = None


class DdlKeeper:
    """The DDL of all tables of a stream, on the driver.

    ``holds``: whether a statement may wait until all rows before it are applied. If not, it is carried out at once, and
    rows from before it are brought to its key one by one.
    """

    def __init__(self, settings: Settings, lake: Lake, schemas: KnownSchemas, *, holds: bool = False) -> None:
        self._settings = settings
        self._lake = lake
        self._schemas = schemas
        self._history = DdlHistory()
        self._built_from: tuple[int, int] = (-1, -1)
        self._taken_over: set[str] = set()
        self._recorded: dict[tuple[str, str, int | None], int] = {}
        self._quiet: tuple[int, int, int, int, frozenset[SourceTable]] | None = None
        self._known: set[SourceTable] = set()
        self._mine: set[SourceTable] = set()
        self._plans: dict[SourceTable, SourceDdl] = {}
        self._settled: dict[str, tuple[int, int, int]] = {}
        self._paused_until: dict[str, float] = {}
        self._fresh: dict[SourceTable, FreshTable] = {}
        self._holds = holds
        self._held: dict[SourceTable, int] = {}
        self._reached: dict[SourceTable, int] = {}

    @property
    def held(self) -> Collection[SourceTable]:
        """The lake tables with a statement that waits until all rows before it are applied."""
        return self._held.keys()

    def release(self, source: SourceTable) -> None:
        """Note that all rows before the held statement of a lake table are applied."""
        self._reached[source] = self._held.pop(source)
        self._settled.pop(self._settings.table_rules(source).path, None)
        self._quiet = None

    def names_of(self, source: SourceTable) -> set[SourceTable]:
        """All names under which rows of a lake table come."""
        tables = self._settings.tables
        names = {
            name
            for name, meanings in self._history.names.items()
            for one in meanings
            if one.identity is not None and destination(one.identity, tables) == source
        }
        return names | {origin for origin in self._history.effects if destination(origin, tables) == source} | {source}

    def take_in(self, known: Iterable[SourceTable]) -> None:
        """Note which lake tables there are now."""
        self._mine = set(known)

    def names(self) -> list[LakeName]:
        """The lake tables whose names have changed, as the statements tell it that are known now."""
        tables, found = self._settings.tables, []
        for origin, called in self._history.called.items():
            source = destination(origin, tables)
            if source in self._mine and tables.selects(origin) and part_of(origin, tables) is None:
                history = tuple(Called(destination(one.name, tables), one.place) for one in called)
                path = self._settings.table_rules(source).path
                found.append(LakeName(path, source, history, origin in self._history.dropped))
        return found

    def learn(self, controls: Iterable[Control]) -> bool:
        """Take in statements that came among the data; True if any was new."""
        log, revision = self._schemas.ddl, self._schemas.ddl.revision
        for control in controls:
            if control.kind is ControlKind.DDL:
                database = (control.origin or control.source).database
                log.add(DdlEvent(control.order, None, place_of(control.order), control.text, database))
        return log.revision > revision

    def settle(
        self,
        known: Iterable[SourceTable],
        stream: str,
        pool: Executor,
        services: TableServices,
        held: Collection[SourceTable] = (),
    ) -> list[DdlOutcome]:
        """Carry out pending statements on the open tables; a table that fails is tried again later.

        ``held``: the tables that get no commits for now; their statements stay pending.
        """
        known = list(known)
        known_state = (
            self._schemas.ddl.revision,
            len(self._schemas.sources()),
            len(known),
            self._lake.openings,
            frozenset(held),
        )
        if self._quiet == known_state:  # nothing new and nothing failed: skip the loop over all tables
            return []
        self._quiet = known_state
        self._rebuild_history(known)
        notes = []
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is None or source in held:
                continue
            mark = (self._schemas.ddl.revision, table.table.generation, id(table))
            path = table.rules.path
            if self._settled.get(path) == mark:
                continue
            if monotonic_s() < self._paused_until.get(path, 0.0):
                self._quiet = None
                continue
            try:
                note = self._settle(source, table, stream, pool, services)
                self._settled[path] = (mark[0], table.table.generation, id(table))
            except BinlakeError as error:
                note = DdlOutcome(source, (), error=str(error))
                self._paused_until[path] = monotonic_s() + _PAUSE_S
                self._quiet = None
                self._open_again(source)
            if note is not None:
                notes.append(note)
        return notes

    def plan(self, topics: Iterable[str]) -> DdlPlan:
        """The DDL plan for the tasks of a batch over these topics."""
        topics = list(topics)
        plans = {**self._plans, **{origin: t.plan for origin, t in self._judge_fresh(topics).items()}}
        tables = {origin: plan for origin, plan in plans.items() if plan != SourceDdl()}
        shadows = self._history.shadows | self._shadows_of(topics)
        return DdlPlan(self._history.names, frozenset(shadows), tables)

    def fresh(self, source: SourceTable) -> FreshTable:
        """What statements say about a lake table that does not exist yet; nothing about any other table."""
        return self._fresh.get(source, FreshTable())

    def lake_tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The lake tables that DDL concerns besides those these topics have fed: of renamed tables, and new tables."""
        wanted = set(topics)
        found = set()
        for source, names in self._history.names.items():
            suffix = topic_suffix(source)
            if any(topic == suffix or topic.endswith(f".{suffix}") for topic in wanted):
                found |= {destination(n.identity, self._settings.tables) for n in names if n.identity is not None}
        return found | self._fresh.keys()

    # -- history ---------------------------------------------------------------------------------------------------

    def _open_again(self, source: SourceTable) -> None:
        """Open a table again, after a failure that may have made the cached one invalid."""
        rules = self._settings.table_rules(source)
        self._lake.forget(rules.path)
        with contextlib.suppress(BinlakeError):
            self._lake.get(rules)

    def _rebuild_history(self, known: Sequence[SourceTable]) -> None:
        self._mine = set(known)
        renamed: list[Entry] = []
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is not None and table.rules.path not in self._taken_over:
                self._taken_over.add(table.rules.path)
                renamed += [entry for entry in table.ddl if entry.renamed is not None]
                self._recorded |= {(e.place, e.digest, e.seconds): e.order for e in table.ddl}
        self._take_over(renamed)
        log, sources = self._schemas.ddl, self._schemas.sources() | set(known)
        if self._built_from != (log.revision, len(sources)):
            self._history = log.history(self._rule_of, sources, self._recorded, self._schemas.versions)
            self._built_from = (log.revision, len(sources))
            self._known = sources | self._history.effects.keys()

    def _take_over(self, renamed: Iterable[Entry]) -> None:
        """Take over renamings that only commit records hold: their statements came among data that was read before."""
        statements: dict[tuple[int, str], list[Entry]] = {}
        for entry in renamed:
            statements.setdefault(entry.key, []).append(entry)
        for entries in statements.values():
            first = entries[0]
            text = renaming([entry.renamed for entry in entries if entry.renamed is not None])
            self._schemas.ddl.add(DdlEvent(first.order, first.seconds, first.place, text, "", first.digest))

    def _rule_of(self, source: SourceTable) -> SchemaChangeSettings:
        return self._settings.table_rules(destination(source, self._settings.tables)).schema_changes

    def _origins(self, source: SourceTable) -> list[SourceTable]:
        """The source tables with statements, by their first names, whose rows go to a lake table."""
        tables = self._settings.tables
        return [o for o in self._history.effects if tables.selects(o) and destination(o, tables) == source]

    def _shard_of(self, origin: SourceTable) -> ShardRule | None:
        part = part_of(origin, self._settings.tables)
        return part if isinstance(part, ShardRule) else None

    def _shadows_of(self, topics: Iterable[str]) -> set[SourceTable]:
        found = set()
        for topic in topics:
            parts = topic.split(".")
            if len(parts) > 2:
                source = SourceTable(parts[-2], parts[-1])
                base = shadowed(source)
                if base is not None and base in self._known and self._rule_of(base).shadow_tables == "filter":
                    found.add(source)
        return found

    # -- carrying out ----------------------------------------------------------------------------------------------

    def _settle(
        self, source: SourceTable, table: LakeTable, stream: str, pool: Executor, services: TableServices
    ) -> DdlOutcome | None:
        judged, schema = self.judge(source, table)
        news = sorted((e for t in judged.values() for e in t.news), key=lambda e: e.key)
        instant = None
        if news:
            table.refresh(stream)
            entries = sorted((e for t in judged.values() for e in t.entries), key=lambda e: e.key)
            waiting = [Pending(entry, self._shard_of(entry.source)) for entry in news]
            instant = carry_out(table, entries, waiting, schema, stream, pool, services)
        self._plans |= {origin: table_ddl.plan for origin, table_ddl in judged.items()}
        return DdlOutcome(source, tuple(news), instant) if news else None

    def judge(self, source: SourceTable, table: LakeTable) -> tuple[dict[SourceTable, TableDdl], pa.Schema]:
        """The judged statements of a lake table by source table, and its columns after them. Changes nothing."""
        judged: dict[SourceTable, TableDdl] = {}
        schema = table.table.schema
        for origin in sorted({*self._origins(source), *(entry.source for entry in table.ddl)}, key=str):
            state = schema_state_of(table, schema, self._shard_of(origin))
            self._describe(state, origin)
            mine = [entry for entry in table.ddl if entry.source == origin]
            effects = self._history.effects.get(origin, ())
            judged[origin] = judge_table(origin, effects, mine, state, self._applied_until(source))
            schema = state.schema
        self._note_held(source, judged.values())
        return judged, schema

    def _applied_until(self, source: SourceTable) -> int:
        """Up to which ordering value all rows of a lake table count as applied."""
        return self._reached.get(source, -1) if self._holds else np.iinfo(np.int64).max

    def _note_held(self, source: SourceTable, judged: Iterable[TableDdl]) -> None:
        held = [one.held.order for one in judged if one.held is not None]
        if held:
            self._held[source] = min(held)
        else:
            self._held.pop(source, None)

    def _describe(self, state: TableSchemaState, origin: SourceTable) -> None:
        """Give a state what is known of the source's types and sessions."""
        versions = [version for version in self._schemas.versions(origin) if version.columns]
        since = [version.since for version in versions]

        def types_before(order: int) -> Mapping[str, MysqlType]:
            at = bisect.bisect_left(since, order)
            return {name.lower(): kind for name, kind in versions[at - 1].columns} if at else {}

        def defined_before(order: int) -> Defined | None:
            made = [v for v in self._schemas.versions(origin) if v.created and v.since < order]
            clauses = [c for c in made[-1].defined if isinstance(c, ChangePartitions)] if made else []
            return Defined(made[-1].since, clauses[0].defined if clauses else None) if made else None

        state.types_before = types_before
        state.partitions = KnownPartitions(defined_before)
        state.session = Session(self._settings.source.time_zone)

    def cascades(self, source: SourceTable) -> list[Undetermined]:
        """What the foreign keys of a source table change without an event, by its newest known CREATE TABLE."""
        made = [version for version in self._schemas.versions(source) if version.created]
        return [undetermined_by(one) for one in made[-1].defined if isinstance(one, Cascade)] if made else []

    def preview(self, known: Iterable[SourceTable]) -> dict[SourceTable, list[tuple[Entry, bool]]]:
        """All statements about the open tables, with their present verdicts and whether they are carried out.
        Changes nothing."""
        known = list(known)
        self._rebuild_history(known)
        found: dict[SourceTable, list[tuple[Entry, bool]]] = {}
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is None:
                continue
            judged = self.judge(source, table)[0].values()
            told = [(e, e not in t.news and not e.is_refusal) for t in judged for e in t.entries]
            if told:
                found[source] = sorted(told, key=lambda one: one[0].key)
        return found

    def consult(self, known: Iterable[SourceTable], topics: Iterable[str]) -> DdlPlan:
        """The DDL plan for tasks that write besides the stream: statements that are carried out, and refusals."""
        known = list(known)
        self._rebuild_history(known)
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            for origin, judged in self.judge(source, table)[0].items() if table is not None else ():
                done = [entry for entry in judged.entries if entry not in judged.news]
                self._plans[origin] = TableDdl(done, refusals=judged.refusals).plan
        return self.plan(topics)

    def _judge_fresh(self, topics: Iterable[str]) -> Mapping[SourceTable, TableDdl]:
        """The statements about tables that are not in the lake yet: their rows are restated before they are stored."""
        found: dict[SourceTable, TableDdl] = {}
        by_topic = [self._schemas.sources_of([topic]) for topic in topics]
        elsewhere = self._schemas.sources() - set().union(*by_topic) if all(by_topic) else set()
        concerned = self._history.effects.keys() - elsewhere
        self._fresh = {}
        for origin in sorted(concerned, key=str):
            source = destination(origin, self._settings.tables)
            rules = self._settings.table_rules(source)
            if source in self._mine or not self._settings.tables.selects(origin):
                continue
            versions = [version for version in self._schemas.versions(origin) if version.columns]
            defined = versions[0].columns if versions else ()
            columns = pa.schema([(lake_name(name), kind.lake_type) for name, kind in defined])
            key = rules.key or (versions[0].key if versions else ())
            by_writer = merging_of(rules).by_writer
            state = TableSchemaState(columns, tuple(map(lake_name, key)), None, rules, by_writer=by_writer)
            self._describe(state, origin)
            reached = self._applied_until(source)
            found[origin] = judge_table(origin, self._history.effects[origin], (), state, reached)
            self._note_held(source, [found[origin]])
            self._fresh[source] = self.fresh(source).with_origin(found[origin].entries, columns, state)
        return found


def renaming(pairs: Sequence[tuple[SourceTable, SourceTable]]) -> str:
    """A statement that renames tables all at once, by way of unused names."""
    away = [f"{_quoted(old)} TO `-`.`{at}`" for at, (old, _) in enumerate(pairs)]
    back = [f"`-`.`{at}` TO {_quoted(new)}" for at, (_, new) in enumerate(pairs)]
    return f"RENAME TABLE {', '.join([*away, *back])}"


def _quoted(source: SourceTable) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in (source.database, source.table))


def schema_state_of(table: LakeTable, schema: pa.Schema, shard: ShardRule | None) -> TableSchemaState:
    """The schema state of a lake table before its next statement."""
    config = table.table.config
    key = () if config.record_key_fields == (ROW_FIELD,) else config.record_key_fields
    partition = table.rules.partition.column if table.rules.partition is not None else None
    column = lake_name(shard.column) if shard is not None else None
    by_writer = Merging.of(config).by_writer
    return TableSchemaState(
        schema, key, partition and lake_name(partition), table.rules, shard=column, by_writer=by_writer
    )
