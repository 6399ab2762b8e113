"""Brings DDL into the lake: judges it table by table, carries it out before a batch is planned, passes it to the tasks.

A statement may be known long before the data topics reach it, or only after rows that follow it have been stored. It
acts on rows by their ordering values, so both cases give the same table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Action
from binlake.rows.upsert.fanout import destination, shard_of
from binlake.rows.upsert.truncates import Truncates
from binlake.schema.apply.restate import carry_out
from binlake.schema.apply.schema_states import FreshTable, KnownSchemas, SchemaStates
from binlake.schema.apply.statement_history import StatementHistory
from binlake.schema.apply.stored_rows import PendingStatement
from binlake.schema.rules.ddl_effects import place_of
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.judged import ClauseVerdict, Ruling
from binlake.schema.rules.plan import DdlPlan
from binlake.schema.rules.restatement import SourceDdl
from binlake.schema.rules.table_ddl import JudgedDdl, judge_table
from binlake.schema.rules.undetermined import UndeterminedEffect
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.names import Feed, LakeName
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.clock import monotonic_s
from hudilake.errors import BadInputError, LakeError, TransientError

#: How long no statement is tried again on a table after a failure.
_PAUSE_S = 30.0
_NO_TABLE = Ruling(ClauseVerdict.KEEP, "no row of the table has come: the lake has no table for it yet")


@dataclass(frozen=True, slots=True)
class DdlOutcome:
    """The outcome of a table's statements: the commit that carried them out, or the error that prevented it; neither if
    the lake has no such table."""

    table: SourceTable
    entries: tuple[DdlEntry, ...]
    instant: str | None = None
    error: str | None = None


class DdlKeeper:
    """The DDL of all tables of a stream, on the driver.

    ``history``: what the known statements do to names. ``holds``: whether a statement may wait until all rows before it
    are applied. If not, it is carried out at once, and rows from before it are brought to its key one by one.
    """

    def __init__(self, settings: Settings, lake: Lake, schemas: KnownSchemas, *, holds: bool = False) -> None:
        self._settings = settings
        self._lake = lake
        self._schemas = schemas
        self.history = StatementHistory(settings, lake, schemas)
        self._states = SchemaStates(settings, schemas, lambda: self.history.events)
        self._quiet: tuple[int, int, int, int, int, frozenset[SourceTable]] | None = None
        self._mine: Set[SourceTable] = frozenset()
        self._plans: dict[SourceTable, SourceDdl] = {}
        self._settled: dict[str, tuple[int, int, int]] = {}
        self._paused_until: dict[str, float] = {}
        self._fresh: dict[SourceTable, FreshTable] = {}
        self._holds = holds
        self._held: dict[SourceTable, int] = {}
        self._failed: dict[SourceTable, LakeError] = {}
        self._reached: dict[SourceTable, int] = {}
        self._reported: set[SourceTable] = set()

    @property
    def held(self) -> Collection[SourceTable]:
        """The lake tables with a statement that waits until all rows before it are applied."""
        return self._held.keys()

    def open_statements(self) -> dict[SourceTable, LakeError]:
        """The tables with a statement that is not carried out: it waits for rows, or the last attempt failed."""
        waits = "its statement at {} waits for rows from before it, which have not all come"
        held = {source: TransientError(waits.format(place_of(order))) for source, order in self._held.items()}
        return {**held, **self._failed}

    def release(self, source: SourceTable) -> None:
        """Note that all rows before the held statement of a lake table are applied."""
        self._reached[source] = self._held.pop(source)
        self._settled.pop(self._settings.table_rules(source).path, None)
        self._quiet = None

    def take_in(self, known: frozenset[SourceTable]) -> None:
        """Note which lake tables there are now."""
        self._mine = known

    def names(self) -> list[LakeName]:
        """The lake tables whose names have changed, as the statements tell it that are known now."""
        return self.history.names(self._mine)

    def feeds(self) -> list[Feed]:
        """The source tables behind the lake tables, where they are not those of the same name."""
        return self.history.feeds()

    def refuse_unsure(self, source: SourceTable) -> None:
        """Raise BadInputError if the statements do not determine which source table a lake table belongs to."""
        if (why := self.history.unsure().get(source)) is not None:
            raise BadInputError(
                f"not determined: {why}",
                do_next="say in source.statement_databases which database the statement was run in (its place: the "
                "database), and start the stream again",
                table=str(source),
            )

    def lake_tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The lake tables that DDL concerns besides those these topics have fed: of renamed tables, and new tables."""
        return self.history.renamed_tables_of(topics) | self._fresh.keys()

    def cascades(self, source: SourceTable, entries: Iterable[DdlEntry]) -> list[UndeterminedEffect]:
        """What the foreign keys of a source table change without an event. ``entries``: those that commits record."""
        return self._states.cascades(source, entries)

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
            self.history.heard,
            len(self._schemas.sources()),
            len(known),
            self._lake.openings,
            frozenset(held),
        )
        if self._quiet == known_state:  # nothing new and nothing failed: skip the loop over all tables
            return []
        self._quiet = known_state
        self._rebuild(known)
        notes = []
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is None or source in held:
                continue
            mark = (self._schemas.ddl.revision + self.history.heard, table.hudi.generation, id(table))
            path = table.rules.path
            if self._settled.get(path) == mark:
                continue
            if monotonic_s() < self._paused_until.get(path, 0.0):
                self._quiet = None
                continue
            try:
                note = self._settle(source, table, stream, pool, services)
                self._settled[path] = (mark[0], table.hudi.generation, id(table))
                self._failed.pop(source, None)
            except LakeError as error:
                self._failed[source] = error
                note = DdlOutcome(source, (), error=str(error))
                self._paused_until[path] = monotonic_s() + _PAUSE_S
                self._quiet = None
                self._open_again(source)
            if note is not None:
                notes.append(note)
        return [*notes, *self._outside()]

    def _outside(self) -> Iterator[DdlOutcome]:
        """Statements by which tables have rows that the log lacks, of tables that are not in the lake, where no commit
        can record them: one for each table."""
        tables = self._settings.tables
        for origin, effects in self.history.events.effects.items():
            source = destination(origin, tables)
            if source in self._mine or source in self._reported or not tables.selects(origin):
                continue
            if effects[-1].action is Action.DROP or not any(effect.lacks_rows for effect in effects):
                continue
            self._reported.add(source)
            state = self._states.of_source(origin, self._settings.table_rules(source))
            entries = judge_table(origin, effects, (), state, self._applied_until(source)).entries
            for entry in [entry for entry in entries if entry.undetermined or entry.is_refusal][-1:]:
                yield DdlOutcome(source, (replace(entry, rulings=(*entry.rulings, _NO_TABLE)),))

    def plan(self, topics: Iterable[str]) -> DdlPlan:
        """The DDL plan for the tasks of a batch over these topics."""
        topics = list(topics)
        plans = {**self._plans, **{origin: t.plan for origin, t in self._judge_fresh(topics).items()}}
        tables = {origin: plan for origin, plan in plans.items() if plan != SourceDdl()}
        return DdlPlan(self.history.events.names, frozenset(self.history.shadows_of(topics)), tables)

    def fresh(self, source: SourceTable) -> FreshTable:
        """What statements say about a lake table that does not exist yet; nothing about any other table."""
        return self._fresh.get(source, FreshTable())

    def _rebuild(self, known: Sequence[SourceTable]) -> None:
        self._mine = set(known)
        self.history.rebuild(known)

    def _open_again(self, source: SourceTable) -> None:
        """Open a table again, after a failure that may have made the cached one invalid."""
        rules = self._settings.table_rules(source)
        self._lake.forget(rules.path)
        with contextlib.suppress(LakeError):
            self._lake.get(rules)

    # -- carrying out ----------------------------------------------------------------------------------------------

    def _settle(
        self, source: SourceTable, table: LakeTable, stream: str, pool: Executor, services: TableServices
    ) -> DdlOutcome | None:
        if table.merging.keeps_versions:
            self._end_versions(source, table, stream, pool, services)
        judged, schema = self.judge(source, table)
        news = sorted((e for t in judged.values() for e in t.news), key=lambda e: e.key)
        instant = None
        if news:
            table.refresh(stream)
            entries = sorted((e for t in judged.values() for e in t.entries), key=lambda e: e.key)
            waiting = [PendingStatement(entry, shard_of(entry.source, self._settings.tables)) for entry in news]
            instant = carry_out(table, entries, waiting, schema, stream, pool, services)
        self._plans |= {origin: table_ddl.plan for origin, table_ddl in judged.items()}
        return DdlOutcome(source, tuple(news), instant) if news else None

    def _end_versions(
        self, source: SourceTable, table: LakeTable, stream: str, pool: Executor, services: TableServices
    ) -> None:
        """End the versions of a history table at each DROP TABLE of its source, in a commit that covers no offsets."""
        table.refresh(stream)
        known = table.truncates
        ends = {order: ms for order, ms in self.history.ends_of(source).items() if order > known.forgotten}
        truncates = Truncates(ends=ends)
        if truncates.news_to(known):
            table_input = TableInput(table.report(source), NO_RANGES, truncates=truncates)
            write_and_commit(table, table_input, stream, 0, pool, services)

    def judge(self, source: SourceTable, table: LakeTable) -> tuple[dict[SourceTable, JudgedDdl], pa.Schema]:
        """The judged statements of a lake table by source table, and its columns after them. Changes nothing."""
        judged: dict[SourceTable, JudgedDdl] = {}
        schema = table.hudi.schema
        for origin in sorted({*self.history.origins(source), *(entry.source for entry in table.ddl)}, key=str):
            state = self._states.of_table(table, schema, origin, shard_of(origin, self._settings.tables))
            mine = [entry for entry in table.ddl if entry.source == origin]
            effects = self.history.events.effects.get(origin, ())
            judged[origin] = judge_table(origin, effects, mine, state, self._applied_until(source))
            schema = state.schema
        self._note_held(source, judged.values())
        return judged, schema

    def _applied_until(self, source: SourceTable) -> int:
        """Up to which ordering value all rows of a lake table count as applied."""
        return self._reached.get(source, -1) if self._holds else np.iinfo(np.int64).max

    def _note_held(self, source: SourceTable, judged: Iterable[JudgedDdl]) -> None:
        held = [one.held.order for one in judged if one.held is not None]
        if held:
            self._held[source] = min(held)
        else:
            self._held.pop(source, None)

    def preview(self, known: Iterable[SourceTable]) -> dict[SourceTable, list[tuple[DdlEntry, bool]]]:
        """All statements about the open tables, with their present verdicts and whether they are carried out.
        Changes nothing."""
        known = list(known)
        self._rebuild(known)
        by_source: dict[SourceTable, list[tuple[DdlEntry, bool]]] = {}
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is None:
                continue
            judged = self.judge(source, table)[0].values()
            entries = [(e, e not in t.news and not e.is_refusal) for t in judged for e in t.entries]
            if entries:
                by_source[source] = sorted(entries, key=lambda one: one[0].key)
        return by_source

    def consult(self, known: Iterable[SourceTable], topics: Iterable[str]) -> DdlPlan:
        """The DDL plan for tasks that write besides the stream: statements that are carried out, and refusals."""
        known, topics = list(known), list(topics)
        self.history.hear(topics)
        self._rebuild(known)
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            for origin, judged in self.judge(source, table)[0].items() if table is not None else ():
                done = [entry for entry in judged.entries if entry not in judged.news]
                self._plans[origin] = JudgedDdl(done, refusals=judged.refusals).plan
        return self.plan(topics)

    def _judge_fresh(self, topics: Iterable[str]) -> Mapping[SourceTable, JudgedDdl]:
        """The statements about tables that are not in the lake yet: their rows are restated before they are stored."""
        judged: dict[SourceTable, JudgedDdl] = {}
        by_topic = [self._schemas.sources_of([topic]) for topic in topics]
        elsewhere = self._schemas.sources() - set().union(*by_topic) if all(by_topic) else set()
        concerned = self.history.events.effects.keys() - (elsewhere - self.history.renamed_of(topics))
        self._fresh = {}
        for origin in sorted(concerned, key=str):
            source = destination(origin, self._settings.tables)
            rules = self._settings.table_rules(source)
            if source in self._mine or not self._settings.tables.selects(origin):
                continue
            state = self._states.of_source(origin, rules)
            columns = state.schema
            reached = self._applied_until(source)
            judged[origin] = judge_table(origin, self.history.events.effects[origin], (), state, reached)
            self._note_held(source, [judged[origin]])
            self._fresh[source] = self.fresh(source).with_origin(judged[origin].entries, columns, state)
        return judged
