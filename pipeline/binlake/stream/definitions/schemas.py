"""The source's schemas on the driver, for the tasks: those of the settings and those of the DDL topic."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec
import pyarrow as pa

from binlake.decode.changes import Control, SourceTable, ZeroDates
from binlake.decode.formats.plain_avro_schema import plain_schema
from binlake.decode.formats.reader import as_json, table_changes
from binlake.decode.inferred import InferredColumns
from binlake.decode.options import (
    BigintUnsignedHandlingMode,
    BinaryHandlingMode,
    DecimalHandlingMode,
    DecodeOptions,
    EventFormat,
    MaxwellOrder,
    PlainTopics,
    TimePrecisionMode,
)
from binlake.decode.order import binlog_order
from binlake.decode.schemas.schema_change import SchemaChange, executed
from binlake.decode.schemas.schemas import (
    DeclaredSchemas,
    DeclaredTable,
    LayeredSchemas,
    SchemaHistory,
    SchemaSource,
    SchemaVersion,
    declared_table,
)
from binlake.hbase.settings.lake_tables import split_name
from binlake.rows.tasks.plan import TaskReport
from binlake.rows.upsert.fanout import AppendSources, SourcesWithTransactions
from binlake.schema.rules.ddl_effects import DdlEvent
from binlake.schema.rules.ddl_log import DdlLog
from binlake.schema.rules.definitions import OTHER_COLUMNS
from binlake.settings import Settings
from binlake.settings.plain import PlainTopicsSettings, no_delete
from binlake.source.log_tail import LogTail
from binlake.source.offsets import Offsets, topic_suffix
from binlake.source.registry import schema_registry
from binlake.stream.definitions.inferred_tables import InferredTables
from binlake.stream.definitions.learned import Definitions
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError

#: How long a batch waits for a DDL record that its rows require: there is no order between topics.
_WAIT_S = 5.0
_POLL_S = 0.25


class SchemaRegistry:
    """Follows the DDL topic, and gives each batch the schemas of the tables it may touch."""

    def __init__(self, settings: Settings) -> None:
        source, self._tables = settings.source, settings.tables
        self._options = DecodeOptions(
            time_precision_mode=TimePrecisionMode(source.debezium.time_precision_mode),
            decimal_handling_mode=DecimalHandlingMode(source.debezium.decimal_handling_mode),
            bigint_unsigned_handling_mode=BigintUnsignedHandlingMode(source.debezium.bigint_unsigned_handling_mode),
            binary_handling_mode=BinaryHandlingMode(source.debezium.binary_handling_mode),
            flat_prefix=source.debezium.metadata_prefix,
            flat_tombstone_deletes=source.debezium.tombstone_deletes,
            epoch=source.epoch,
            epoch_of_server=tuple(source.epoch_of_server.items()),
            format=EventFormat.BINLOG if source.mysql is not None else EventFormat(source.format),
            time_zone=source.time_zone,
            zero_dates=ZeroDates(source.zero_dates),
            maxwell_order=MaxwellOrder(source.maxwell.order),
            maxwell_nulls=source.maxwell.output_nulls,
            bigtable_text=frozenset(source.bigtable.text),
            registry=schema_registry(settings),
            inserts_of=AppendSources(self._tables) if self._tables.appends_any else frozenset(),
            transactions_of=SourcesWithTransactions(self._tables) if self._tables.changes_any else frozenset(),
            plain=plain_topics(settings),
            by_sequence=tuple(
                (SourceTable(*split_name(store.source)), name)
                for store in settings.tables.cells
                for name, family in store.families.items()
                if family.new_version_behavior
            ),
        )
        self._declared = DeclaredSchemas(
            {
                SourceTable(*name.split(".", 1)): declared_table(schema.columns, schema.key)
                for name, schema in source.schemas.items()
            }
            | declared_plain_tables(settings)
        )
        self._inferred = InferredTables(settings)
        self._history = SchemaHistory()
        self.ddl = DdlLog()
        self._definitions = Definitions(settings)
        #: Records that were learned and, since the store failed, not kept.
        self._unkept: list[bytes] = []
        self._by_topic_suffix: dict[str, set[SourceTable]] = {}
        config = settings.kafka.client_properties()
        self._tails = [LogTail(config, topic) for topic in settings.kafka.ddl_topics]

    def options(self, before_of: frozenset[SourceTable] | Literal["all"]) -> DecodeOptions:
        """The decoder's options for a batch."""
        return dataclasses.replace(self._options, before_of=before_of)

    def refresh(self) -> bool:
        """Read new DDL records; True if they changed the schemas."""
        revision = self._history.revision + self.ddl.revision
        self.learn(self._definitions.load())
        for records in (chunk for tail in self._tails for chunk in tail.poll()):
            for value in records.values:
                if value is not None:
                    self._learn(value)
        return self._history.revision + self.ddl.revision > revision

    @property
    def heard(self) -> Offsets:
        """Up to where the DDL topics are read."""
        return Offsets.of_places(place for tail in self._tails for place in tail.read.places())

    def learn_and_keep(self, records: Sequence[bytes]) -> None:
        """Take in DDL records of the source that no topic keeps; those that are new are stored. Raises StorageError."""
        for record in records:
            revision = self._history.revision + self.ddl.revision
            self._learn(record)
            if self._history.revision + self.ddl.revision > revision:
                self._unkept.append(record)
        self._keep()

    def _keep(self) -> None:
        """What the store did not take is kept with the next records, or when the batch is repeated."""
        if self._unkept:
            self._definitions.keep(self._unkept)
            self._unkept = []

    def learn(self, values: Iterable[bytes | None]) -> None:
        """Take in DDL records from another source than the DDL topics, in order."""
        for value in values:
            if value is not None:
                self._learn(value)

    def take_in(self, controls: Iterable[Control]) -> bool:
        """Take in and store table definitions that came among a batch's rows; True if they changed the schemas.

        They are stored before the batch commits: when the batch is repeated, they are known and change nothing.
        """
        defining = sorted((c for c in controls if c.record), key=lambda control: control.order)
        before = self._history.revision
        for control in defining:
            revision = self._history.revision
            self._learn(control.record)
            if self._history.revision > revision:
                self._unkept.append(control.record)
        self._keep()
        return self._history.revision > before

    def _learn(self, value: bytes) -> None:
        value = as_json(value, self._options)
        changes = table_changes(value, self._options)
        for change in changes:
            is_new = self._history.apply(change, self._options)
            suffix = topic_suffix(change.source)
            self._by_topic_suffix.setdefault(suffix, set()).add(change.source)
            if is_new and self._options.format is EventFormat.BINLOG and not change.statement:
                self._note_key(change)
        self._note_statement(value, changes)

    def _note_key(self, change: SchemaChange) -> None:
        """Record the key that a table's rows come with, where it may be another one. A statement need not name it (a
        unique index can be the key), and may have been carried out before its next row came."""
        order = binlog_order(self._options.epoch_for(change.server_id, change.gtid), change.file, change.position)
        before = [version for version in self._history.versions(change.source) if version.since < order]
        if not before:
            return
        if before[-1].key != change.key or self.ddl.has_statement(change.source, before[-1].since, order):
            place = f"{change.file}:{change.position}"
            text = _statement_of_key(change.source, change.key)
            event = DdlEvent(order + 1, None, place, text, change.source.database, exact=True, by_rows=True)
            self.ddl.add(event)  # behind a statement at its place

    def _note_statement(self, value: bytes, changes: Sequence[SchemaChange]) -> None:
        """Record a statement that the source carried out; not one that a connector generates for its snapshot."""
        try:
            done = executed(value)
        except msgspec.MsgspecError:  # a record of another format, which has no time
            for change in changes[:1]:
                epoch = self._options.epoch_for(change.server_id, change.gtid)
                order, place = binlog_order(epoch, change.file, change.position), f"{change.file}:{change.position}"
                self.ddl.add(DdlEvent(order, None, place, change.statement, change.source.database))
            return
        if done is not None:
            order = binlog_order(self._options.epoch_for(done.server_id, done.gtid), done.file, done.position)
            place = f"{done.file}:{done.position}"
            event = DdlEvent(
                order,
                done.seconds,
                place,
                done.text,
                done.database,
                mariadb=done.mariadb,
                previous=done.previous,
                exact=done.exact,
                strict=done.strict,
                charset=done.charset,
            )
            self.ddl.add(event)

    def sources(self) -> set[SourceTable]:
        """The tables with a known definition."""
        return set(self._history.tables)

    def sources_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """Those of them whose records come from these topics, judged by the topics' names."""
        sources: set[SourceTable] = set()
        for topic in topics:
            parts = topic.split(".")
            sources.update(*(self._by_topic_suffix.get(".".join(parts[start:]), ()) for start in range(len(parts))))
        return sources

    def versions(self, source: SourceTable) -> tuple[SchemaVersion, ...]:
        """All definitions of a table, ordered by position."""
        return self._history.versions(source)

    def schemas_for(self, topics: Iterable[str]) -> SchemaSource:
        """The schemas that records of these topics can need: the work grows with the touched tables, not with all."""
        wanted: set[SourceTable] = set()
        for topic in topics:
            parts = topic.split(".")
            candidates = [self._by_topic_suffix.get(".".join(parts[start:])) for start in range(len(parts))]
            if not any(candidates):
                return LayeredSchemas((*self._settled(), self._history))  # the topic's name follows other rules
            wanted.update(*(f for f in candidates if f))
        return LayeredSchemas((*self._settled(), self._history.only(wanted)))

    def _settled(self) -> tuple[SchemaSource, ...]:
        """The schemas that no statement changes."""
        inferred = self._inferred.declared()
        return (self._declared, DeclaredSchemas(inferred)) if inferred else (self._declared,)

    def infer(self, source: SourceTable, inferred: InferredColumns, stored: pa.Schema | None) -> bool:
        """Take in columns that messages of a plain topic have; True if that changes the schemas. See
        ``InferredTables.learn``."""
        return self._inferred.learn(source, inferred, stored)

    def waits_for(self, report: TaskReport) -> bool:
        """Whether a DDL record on which this batch's rows depend may be missing."""
        lacking = any(q.reason in ("no_schema", OTHER_COLUMNS) for q in report.quarantined)
        return bool(self._tails) and (bool(report.unknown_columns) or lacking)

    def wait_for_news(self) -> bool:
        """Wait a few seconds at most for a DDL record; True if one came."""
        deadline = monotonic_s() + _WAIT_S
        while monotonic_s() < deadline:
            if self.refresh():
                return True
            time.sleep(_POLL_S)
        return False


def _statement_of_key(source: SourceTable, key: Sequence[str]) -> str:
    table, *columns = ("`" + name.replace("`", "``") + "`" for name in (source.table, *key))
    database = source.database.replace("`", "``")
    given = f", ADD PRIMARY KEY ({', '.join(columns)})" if columns else ""
    return f"ALTER TABLE `{database}`.{table} DROP PRIMARY KEY{given} /* its rows come with this key */"


def plain_topics(settings: Settings) -> tuple[PlainTopics, ...]:
    """The topics of ``source.plain``, with the schemas of their files. Raises ConfigError if a file cannot be read."""
    return tuple(_topics(entry, settings) for entry in settings.source.plain)


def declared_plain_tables(settings: Settings) -> dict[SourceTable, DeclaredTable]:
    """The tables of ``source.plain`` whose columns are declared. Raises UnsupportedError for an unknown type."""
    return {
        SourceTable(*entry.source): declared_table(entry.declared, entry.key)
        for entry in settings.source.plain
        if entry.declared is not None
    }


def _topics(entry: PlainTopicsSettings, settings: Settings) -> PlainTopics:
    rules = settings.plain_rules(entry)
    return PlainTopics(
        patterns=entry.topics,
        table=SourceTable(*entry.source),
        key=entry.key,
        metadata=tuple(entry.metadata_columns.items()),
        inferred=settings.source.format == "json" and entry.declared is None,
        no_delete=None if rules is None else no_delete(entry, rules),
        avro_schema=_schema(entry.schema_file),
    )


def _schema(file: str | None) -> str | None:
    if file is None:
        return None
    try:
        text = Path(file).read_text(encoding="utf-8")
        plain_schema(text)
        return text
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the Avro schema cannot be read: {error}", do_next="correct schema_file in source.plain", path=file
        ) from error
