"""The ``tables`` section: which source tables are taken, and the rules of each one's lake table."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from pipeline.settings.fanout import ColumnsRule, ColumnsSettings, Destination, RouteSettings
from pipeline.settings.schema_changes import SchemaChangeRule, SchemaChangeSettings
from pipeline.settings.types import Count, Section, Text, mistake

Transform = Literal["identity", "year", "month", "day", "hour"]
Compression = Literal["zstd", "snappy", "none"]

_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9_-]")


class SourceName(Protocol):
    """Whatever names a source table (``decode.changes.SourceTable`` does)."""

    @property
    def database(self) -> str:
        """The database as MySQL spells it."""
        ...

    @property
    def table(self) -> str:
        """The table as MySQL spells it."""
        ...


@dataclass(frozen=True, slots=True)
class PartitionRule:
    """Partition a lake table by ``transform`` of ``column``, in a partition field called ``name``."""

    column: str
    transform: Transform
    name: str


@dataclass(frozen=True, slots=True)
class MetadataRule:
    """What a lake table's metadata table keeps besides the list of files. ``columns``: None for the first 32."""

    columns: tuple[str, ...] | None = None
    column_stats: bool = True
    bloom_filters: bool = True
    column_stats_file_groups: int = 2
    bloom_file_groups: int = 4


@dataclass(frozen=True, slots=True)
class CompactionRule:
    """When a lake table's log files become base files: at the first of three triggers, None switches one off.

    Fields as in ``CompactionSettings``.
    """

    mode: Literal["async", "inline", "process"] = "async"
    after_commits: int | None = 100
    after_minutes: float | None = None
    log_ratio: float | None = 0.5
    tombstone_retention_hours: float = 24.0
    row_group_rows: int = 250_000
    row_group_bytes: int = 64 << 20
    bloom_filter_fpp: float = 0.001
    max_file_groups: int | None = None
    max_io_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """How far back time travel and slow readers are promised their files: in commits, or in hours. One of the two."""

    commits: int | None = 300
    hours: float | None = None


@dataclass(frozen=True, slots=True)
class TableRules:
    """All rules of one lake table, defaults and override merged. Picklable: it goes to tasks.

    ``path`` is relative to the lake's root. ``key`` None means the key the messages or the schema give.
    ``immutable_partition`` promises that the partition column of a row never changes, so that before images need not
    be read. ``metadata`` None means a table without a metadata table, ``compaction`` None one that is not compacted,
    ``retention`` None one of which nothing is cleaned or archived. ``columns`` None means all columns, as they come.
    """

    path: str
    buckets: int
    key: tuple[str, ...] | None
    partition: PartitionRule | None
    compression: Compression
    compression_level: int
    immutable_partition: bool
    hive_style: bool
    metadata: MetadataRule | None = MetadataRule()
    compaction: CompactionRule | None = None
    retention: RetentionRule | None = None
    columns: ColumnsRule | None = None
    schema_changes: SchemaChangeRule = field(default_factory=SchemaChangeRule)


class PartitionSettings(Section):
    """How a lake table is partitioned."""

    column: Text
    """The source column."""
    transform: Transform = "identity"
    """``identity`` takes the value itself; the others the year, month, day or hour (UTC) of a temporal column."""
    name: Text | None = None
    """The partition field's name; by default the column's, followed by ``_<transform>`` if there is one."""

    @field_validator("name")
    @classmethod
    def _apart_from_the_column(cls, name: str | None, info: ValidationInfo) -> str | None:
        transform, column = info.data.get("transform"), info.data.get("column")
        if name is None or transform is None or column is None:
            return name
        if (transform == "identity") != (name == column):
            raise mistake("must be the column's own name with identity, and another one with any other transform")
        return name

    def rule(self) -> PartitionRule:
        """The same with its name filled in."""
        derived = self.column if self.transform == "identity" else f"{self.column}_{self.transform}"
        return PartitionRule(self.column, self.transform, self.name or derived)


class MetadataSettings(Section):
    """The metadata table of a lake table: readers list files and skip them by it."""

    enabled: bool = True
    """Keep a metadata table. false drops an existing one; true builds it from the files of the table."""
    columns: tuple[Text, ...] | None = None
    """Columns whose ranges are kept; null takes the first 32 of the table."""
    column_stats: bool = True
    """Keep column ranges of files (and of partitions, for a partitioned table)."""
    bloom_filters: bool = True
    """Keep the record key filters of base files."""
    column_stats_file_groups: Count = 2
    """File groups of column_stats. Fixed when the metadata table is created."""
    bloom_file_groups: Count = 4
    """File groups of bloom_filters. Fixed when the metadata table is created."""

    def rule(self) -> MetadataRule | None:
        """The same as a rule; None if there shall be none."""
        return MetadataRule(**self.model_dump(exclude={"enabled"})) if self.enabled else None


class CompactionSettings(Section):
    """Compaction of a lake table: its log files become base files. It begins at the first trigger that is met."""

    mode: Literal["async", "inline", "process", "off"] = "async"
    """``async``: beside the batches; ``inline``: between them; ``process``: left to ``binlake compact``, with
    cleaning and archival; ``off``: never."""
    after_commits: Count | None = 100
    """Due after so many commits since the last compaction was scheduled; null switches this trigger off."""
    after_minutes: float | None = Field(default=None, gt=0)
    """Due when the oldest of those commits is so old; null switches this trigger off."""
    log_ratio: float | None = Field(default=0.5, gt=0)
    """Due at this ratio of log bytes to base bytes, from 16 MiB of logs on; null switches this trigger off."""
    tombstone_retention_hours: float = Field(default=24.0, ge=0)
    """How long a delete keeps late, older events of its key out after the delete was compacted."""
    row_group_rows: Count = 250_000
    """The most rows of a row group of a base file."""
    row_group_bytes: Count = 64 << 20
    """The most decoded bytes of a row group, approximately. A base file is as large as its bucket."""
    bloom_filter_fpp: float = Field(default=0.001, gt=0, lt=1)
    """Rate of false positives of the bloom filters in base files."""
    max_file_groups: Count | None = None
    """The most file groups that one compaction takes, those with the most log bytes first; null for all."""
    max_io_bytes: Count | None = None
    """The most bytes that one compaction reads and writes, approximately; null for no bound."""

    def rule(self) -> CompactionRule | None:
        """The same as a rule; None if there shall be none."""
        if self.mode == "off":
            return None
        return CompactionRule(**self.model_dump())


class RetentionSettings(Section):
    """How long older file slices stay, for slow readers and for time travel.

    The active timeline is cut to about as many commits; older ones go to the table's history.
    """

    commits: Count | None = 300
    """Keep the states of the last so many commits and compactions."""
    hours: float | None = Field(default=None, gt=0)
    """Keep the states of so many hours, in place of ``commits``. A commit a second makes 86,400 instants a day."""

    @model_validator(mode="after")
    def _one_of_the_two(self) -> Self:
        if (self.commits is None) == (self.hours is None):
            raise mistake("give commits or hours, the other as null")
        return self


class TableSettings(Section):
    """Rules of lake tables."""

    buckets: Count = 8
    """Buckets of a new table (of each partition). Fixed at creation. Plan for about 1 GB of base files in a bucket."""
    key: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """Key columns; null takes the key that the messages or the schema give."""
    partition: PartitionSettings | None = None
    """Partitioning; null for none."""
    compression: Compression = "zstd"
    """Codec of the Parquet files."""
    compression_level: int = Field(default=1, ge=1, le=22)
    """Level of zstd."""
    immutable_partition: bool = False
    """A promise that the partition column of a row never changes, so that before images need not be read."""
    hive_style: bool = True
    """Name partition directories ``name=value`` instead of ``value``."""
    metadata: MetadataSettings = Field(default_factory=MetadataSettings)
    """The metadata table: readers list files and skip files by it."""
    compaction: CompactionSettings = Field(default_factory=CompactionSettings)
    """When and where log files become base files."""
    retention: RetentionSettings | None = Field(default_factory=RetentionSettings)
    """What cleaning and archival keep; they run after compactions. null cleans and archives nothing."""
    columns: ColumnsSettings = Field(default_factory=ColumnsSettings)
    """Which columns are written, masked and computed."""
    schema_changes: SchemaChangeSettings = Field(default_factory=SchemaChangeSettings)
    """What DDL at the source does to the lake table and its rows."""


class TableOverride(TableSettings):
    """Rules that differ for some tables: what is given here replaces the default, the rest stays."""

    match: Text
    """Glob pattern on ``database.table`` (the name that a route gives). Only the first match applies."""


class TablesSettings(Section):
    """Which source tables are taken, where they go, and their rules."""

    path: Text = "{database}/{table}"
    """Path of a table below ``lake.uri``. Characters other than letters, digits, _ and - become @ and their code."""
    include: tuple[Text, ...] = ("*",)
    """Glob patterns on ``database.table``: tables to take."""
    exclude: tuple[Text, ...] = ()
    """Glob patterns on ``database.table``: tables to leave out, even if included."""
    routes: tuple[RouteSettings, ...] = ()
    """Source tables that get another name in the lake, or are merged into one. ``include`` and ``exclude`` match the
    source's names; ``path`` and ``overrides`` match the names that the routes give."""
    defaults: TableSettings = Field(default_factory=TableSettings)
    """The rules of all tables."""
    overrides: tuple[TableOverride, ...] = ()
    """Rules that differ for some tables."""

    @field_validator("path")
    @classmethod
    def _template(cls, path: str) -> str:
        try:
            probe = path.format(database="d", table="t")
        except (KeyError, IndexError, ValueError) as error:
            raise mistake("may hold no placeholders but {database} and {table}") from error
        if "{table}" not in path or any(part in ("", ".", "..") for part in probe.split("/")):
            raise mistake("must be a relative path with {table} in it")
        return path

    @property
    def masks_any(self) -> bool:
        """Whether any table has masked columns."""
        return any(t.columns.mask for t in (self.defaults, *self.overrides))

    def selects(self, source: SourceName) -> bool:
        """Whether the source table is taken."""
        name = f"{source.database}.{source.table}"
        taken = _matches(name, self.include) and not _matches(name, self.exclude)
        return taken and (not self.routes or self.destination(source) is not None)

    def destination(self, source: SourceName) -> Destination | None:
        """The lake table that a source table's rows go to, by the first route that matches; None if it leaves them
        out."""
        for route in self.routes:
            if (found := route.found_in(f"{source.database}.{source.table}")) is not None:
                return route.destination(found, source.database, source.table)
        return Destination(source.database, source.table)

    def override_of(self, source: SourceName) -> int | None:
        """The place of the override that applies to the table: the first that matches; None if none does."""
        name = f"{source.database}.{source.table}"
        return next((i for i, o in enumerate(self.overrides) if fnmatchcase(name, o.match)), None)

    def rules(self, source: SourceName) -> TableRules:
        """The rules of a lake table (named as ``destination`` does): the defaults, replaced by what the first matching
        override gives."""
        given: dict[str, Any] = {f: getattr(self.defaults, f) for f in TableSettings.model_fields}
        if (taken := self.override_of(source)) is not None:
            override = self.overrides[taken]
            given |= {f: getattr(override, f) for f in override.model_fields_set - {"match"}}
        partition: PartitionSettings | None = given.pop("partition")
        given |= {name: given[name].rule() for name in ("metadata", "compaction", "columns", "schema_changes")}
        if given["retention"] is not None:
            given["retention"] = RetentionRule(**given["retention"].model_dump())
        path = self.path.format(database=path_name(source.database), table=path_name(source.table))
        return TableRules(path=path, partition=partition.rule() if partition else None, **given)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, p) for p in patterns)


def path_name(identifier: str) -> str:
    """A MySQL identifier as a path part, so that no two collide and none climbs out of its directory.

    Letters, digits, _ and - stay; every other UTF-16 code unit becomes ``@`` and four hexadecimal digits: the idea of
    MySQL's own mapping of identifiers to file names.
    """
    return _NOT_IN_PATHS.sub(_code_units, identifier)


def _code_units(match: re.Match[str]) -> str:
    data = match[0].encode("utf-16-be")
    return "".join(f"@{data[i : i + 2].hex()}" for i in range(0, len(data), 2))
