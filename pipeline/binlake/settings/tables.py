"""The ``tables`` section: the selected source tables, and the settings of their rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Protocol, Self

from pydantic import Field, field_validator, model_validator

from binlake.hbase.settings.allowed import cells_problem, shared_name, wide_problem
from binlake.hbase.settings.lake_tables import cells_table_of, has_table, rules_of, split_name
from binlake.hbase.settings.tables import CellsSettings
from binlake.settings.fanout import ColumnsSettings, Destination, RouteSettings
from binlake.settings.history import HistorySettings, history_problem
from binlake.settings.index import IndexSettings, RowsKind
from binlake.settings.kinds import kind_problem, stitched_problem
from binlake.settings.merging import MergeSettings, StitchedSettings
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.settings.table_rules import (
    ClusteringSettings,
    CompactionSettings,
    Compression,
    MetadataSettings,
    PartitionSettings,
    RetentionSettings,
    TableRules,
)
from binlake.settings.templates import check_relative, later_table, numbered, path_name, placeholders
from hudilake.errors import ConfigError
from hudilake.policies import ChangeLog, Conflicts, FileSizePolicy, TableType
from hudilake.validation import ColumnNames, Count, Section, Text, mistake


class SourceName(Protocol):
    """Any object that names a source table (``binlake.decode.changes.SourceTable`` does)."""

    @property
    def database(self) -> str:
        """The database as MySQL spells it."""
        ...

    @property
    def table(self) -> str:
        """The table as MySQL spells it."""
        ...


class TableSettings(Section):
    """Rules of lake tables."""

    buckets: Count = 8
    """Buckets of a new table (of each partition); ``binlake rebucket`` changes those of an existing one. Plan for about
    1 GB of base files in a bucket."""
    key: ColumnNames | None = Field(default=None, min_length=1)
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
    clustering: ClusteringSettings = Field(default_factory=ClusteringSettings)
    """When and where rows are laid out anew across file groups."""
    retention: RetentionSettings | None = Field(default_factory=RetentionSettings)
    """What cleaning and archival keep; they run after compactions. null cleans and archives nothing."""
    columns: ColumnsSettings = Field(default_factory=ColumnsSettings)
    """Which columns are written, masked and computed."""
    schema_changes: SchemaChangeSettings = Field(default_factory=SchemaChangeSettings)
    """What DDL at the source does to the lake table and its rows."""
    merge: MergeSettings = Field(default_factory=MergeSettings)
    """How events of one record key become a row."""
    conflicts: Conflicts = "queue"
    """What commits of several writers may do side by side. ``queue``: of two, the later one writes again. ``row``: they
    may write different file groups. ``column``: they may also write different columns of one file group."""
    kind: RowsKind = "upsert"
    """``upsert``: a row has a key, and events change it. ``append``: rows are added and never change (logs); they have
    no key and no order. Fixed at creation."""
    type: TableType = "merge_on_read"
    """``merge_on_read``: a commit writes log files, compaction makes base files of them. ``copy_on_write``: a commit
    rewrites the base files that it touches. Fixed at creation."""
    change_log: ChangeLog | None = None
    """What a commit keeps of each changed row for Hudi's CDC query, in a file beside each base file that it rewrites:
    ``op_key_only``, ``data_before`` or ``data_before_after``. Only type ``copy_on_write`` has it. null: nothing, or
    what an existing table says. Fixed at creation."""
    index: IndexSettings = Field(default_factory=IndexSettings)
    """How the file group of a record key is found. Fixed at creation."""
    files: FileSizePolicy = Field(default_factory=FileSizePolicy)
    """How large base files are, where rows may go to any file group."""


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
    stitched: tuple[StitchedSettings, ...] = ()
    """Lake tables whose columns come from several sources. A source table that one of them matches goes there."""
    history: tuple[HistorySettings, ...] = ()
    """Lake tables with the versions of rows, each beside the lake table of the same source table."""
    cells: tuple[CellsSettings, ...] = ()
    """Tables of HBase-like stores: a table of cells each, and a wide table that is derived from it."""
    defaults: TableSettings = Field(default_factory=TableSettings)
    """The rules of all tables."""
    overrides: tuple[TableOverride, ...] = ()
    """Rules that differ for some tables."""

    @field_validator("path")
    @classmethod
    def _template(cls, path: str) -> str:
        try:
            named = placeholders(path)
        except ValueError as error:
            raise mistake("is no template: only {database} and {table} may be in braces") from error
        if named - {"database", "table"}:
            raise mistake("may hold no placeholders but {database} and {table}")
        if problem := check_relative(path):
            raise mistake(problem)
        if "table" not in named:
            raise mistake("must have {table} in it")
        return path

    @model_validator(mode="after")
    def _kinds(self) -> Self:
        for override in (None, *self.overrides):
            if problem := kind_problem(self._effective(override)):
                where = "tables.defaults" if override is None else f"the override for {override.match}"
                raise mistake(f"{where}: {problem}")
        return self

    @model_validator(mode="after")
    def _stitched_tables(self) -> Self:
        names = [stitched.table for stitched in self.stitched]
        if len(set(names)) != len(names):
            raise mistake("two stitched tables have one name")
        for stitched in self.stitched:
            if problem := stitched_problem(self.rules(Destination(*stitched.name)), stitched):
                raise mistake(f"stitched table {stitched.table}: {problem}")
        return self

    @model_validator(mode="after")
    def _history_tables(self) -> Self:
        if problem := history_problem(self.history, [stitched.table for stitched in self.stitched]):
            raise mistake(problem)
        for history in self.history:
            main = self.destination(Destination(*split_name(history.table)))
            if main is None:
                raise mistake(f"history table {history.to}: a route leaves {history.table} out")
            if has_table(self.cells, _plain_name(main)):
                raise mistake(f"history table {history.to}: {history.table} is a table of tables.cells")
            kind = self._given(main)["kind"]  # of tables of some kinds inserts alone are read
            if problem := kind_problem(history.given(self._given(Destination(*history.name))) | {"kind": kind}):
                raise mistake(f"history table {history.to} of {history.table}: {problem}")
        return self

    @model_validator(mode="after")
    def _tables_of_stores(self) -> Self:
        if problem := shared_name(self.cells, [stitched.table for stitched in self.stitched]):
            raise mistake(f"cells: {problem}")
        for store in self.cells:
            if problem := cells_problem(self.rules(Destination(*split_name(store.cells_table)))):
                raise mistake(f"table of cells {store.cells_table}: {problem}")
            if store.wide_table is not None:
                wide = Destination(*split_name(store.wide_table))
                if problem := wide_problem(self.rules(wide), self._given(wide)["key"]):
                    raise mistake(f"wide table {store.wide_table}: {problem}")
        return self

    @property
    def masks_any(self) -> bool:
        """Whether any table has masked columns."""
        return any(t.columns.mask for t in (self.defaults, *self.overrides))

    @property
    def appends_any(self) -> bool:
        """Whether any table is an append table."""
        return any(t.kind == "append" for t in (self.defaults, *self.overrides))

    @property
    def changes_any(self) -> bool:
        """Whether any table is a table of changes."""
        kinds = [*(t.merge.engine for t in (self.defaults, *self.overrides)), *(one.kind for one in self.history)]
        return "changes" in kinds

    @property
    def fans_out(self) -> bool:
        """Whether a source table may go to a lake table of another name."""
        return bool(self.routes or self.stitched or self.cells or self.history)

    def selects(self, source: SourceName) -> bool:
        """Whether the source table is taken."""
        name = _plain_name(source)
        taken = _matches(name, self.include) and not _matches(name, self.exclude)
        return taken and (not self.fans_out or self.destination(source) is not None)

    def leaves_out(self, source: SourceName) -> bool:
        """Whether ``exclude`` names the source table."""
        return _matches(_plain_name(source), self.exclude)

    def destination(self, source: SourceName) -> Destination | None:
        """The lake table of a source table's rows: the table of cells of a store's table, else the first stitched table
        that has it as a source, else by the first route that matches; None if the route leaves the table out.

        Raises ConfigError for a source table that would be written into a store's tables.
        """
        if (cells := cells_table_of(self.cells, f"{source.database}.{source.table}")) is not None:
            return Destination(*cells)
        path = self._routed(source)
        if path is not None and has_table(self.cells, _plain_name(path)):
            raise ConfigError(
                f"{source.database}.{source.table} would be written into {_plain_name(path)}, a table of tables.cells",
                do_next="route it to another table, or leave it out (tables.exclude)",
            )
        return path

    def histories(self, source: SourceName) -> list[Destination]:
        """The history tables of a source table."""
        name = f"{source.database}.{numbered(source.table)[0]}"
        return [Destination(*one.name).later(numbered(source.table)[1]) for one in self.history if one.table == name]

    def is_history(self, table: SourceName) -> bool:
        """Whether a lake table is a history table."""
        return self._history(table) is not None

    def history_source(self, table: SourceName) -> tuple[str, str] | None:
        """Database and table, by its first name, of the source table whose versions a lake table has; None for a table
        that is no history table."""
        if (history := self._history(table)) is None:
            return None
        database, name = split_name(history.table)
        return database, later_table(name, numbered(table.table)[1])

    def _history(self, table: SourceName) -> HistorySettings | None:
        return next((one for one in self.history if one.to == _plain_name(table)), None)

    def _routed(self, source: SourceName) -> Destination | None:
        table, number = numbered(source.table)
        for stitched in self.stitched:
            if (group := stitched.group_of(f"{source.database}.{table}")) is not None:
                return Destination(*stitched.name, group)
        for route in self.routes:
            if (name_match := route.found_in(f"{source.database}.{table}")) is not None:
                routed = route.destination(name_match, source.database, table)
                return routed.later(number) if routed is not None else None
        return Destination(source.database, source.table)

    def override_of(self, source: SourceName) -> int | None:
        """The index of the first override that matches the table; None if none does."""
        name = _plain_name(source)
        return next((i for i, o in enumerate(self.overrides) if fnmatchcase(name, o.match)), None)

    def rules(self, source: SourceName) -> TableRules:
        """The rules of a lake table (named as by ``destination``): the defaults, with the values of the first matching
        override."""
        given = self._given(source)
        if (history := self._history(source)) is not None:
            given = history.given(given)
        if given["kind"] == "append":
            given["schema_changes"] = given["schema_changes"].without_changed_rows()
        given["columns"], given["merge"] = given["columns"].rule(), given["merge"].rule()
        if not given["metadata"].enabled:
            given["metadata"] = None
        if given["compaction"].mode == "off":
            given["compaction"] = None
        table, number = numbered(source.table)
        spelled = later_table(path_name(table), number)
        path = self.path.format(database=path_name(source.database), table=spelled)
        if (stitched := self._stitched(source)) is not None:
            given |= {"key": stitched.key, "groups": stitched.groups()}
        given |= rules_of(self.cells, f"{source.database}.{source.table}")
        return TableRules(path=path, **given)

    def _given(self, source: SourceName) -> dict[str, Any]:
        """The values of the settings for a lake table."""
        taken = self.override_of(source)
        return self._effective(self.overrides[taken] if taken is not None else None)

    def _effective(self, override: TableOverride | None) -> dict[str, Any]:
        """The values of the defaults, with those that an override gives in their place."""
        given: dict[str, Any] = {f: getattr(self.defaults, f) for f in TableSettings.model_fields}
        if override is not None:
            given |= {f: getattr(override, f) for f in override.model_fields_set - {"match"}}
        return given

    def _stitched(self, source: SourceName) -> StitchedSettings | None:
        name = f"{source.database}.{source.table}"
        return next((one for one in self.stitched if one.table == name), None)


@dataclass(frozen=True, slots=True)
class KnownRules:
    """The rules of lake tables that were asked for, by names. ``tables``: which they follow from."""

    tables: TablesSettings = field(compare=False)
    _known: dict[tuple[str, str], TableRules] = field(default_factory=dict, repr=False, compare=False)

    def of(self, source: SourceName) -> TableRules:
        """The rules of a lake table."""
        name = (source.database, source.table)
        if (rules := self._known.get(name)) is None:
            rules = self._known[name] = self.tables.rules(source)
        return rules


def _plain_name(source: SourceName) -> str:
    """``database.table`` as patterns match it: later tables of a name have the rules of that name."""
    return f"{source.database}.{numbered(source.table)[0]}"


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, p) for p in patterns)
