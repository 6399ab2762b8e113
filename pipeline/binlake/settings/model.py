"""The settings of one stream: the whole file, validated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from binlake.hbase.settings.families import DeriveSettings
from binlake.settings.dumps import DumpSettings
from binlake.settings.fanout import Destination
from binlake.settings.kafka import KafkaSettings
from binlake.settings.plain import PlainTopicsSettings, plain_table_problem
from binlake.settings.sections import (
    BatchSettings,
    LakeSettings,
    LockingSettings,
    MonitoringSettings,
    QuarantineSettings,
    SourceSettings,
    SparkSettings,
    StateSettings,
)
from binlake.settings.table_rules import TableRules
from binlake.settings.tables import KnownRules, SourceName, TablesSettings
from binlake.settings.templates import QUARANTINE_DIRECTORY, may_meet
from binlake.settings.types import looks_secret
from hudilake.errors import ConfigError
from hudilake.validation import Section, mistake
from lakemetastore.settings.connection import MetastoreConnection
from lakemetastore.settings.document import KeyPath, document_of, read_text
from lakemetastore.settings.options import plain
from lakemetastore.settings.problems import validated

_MASK = "**********"
_OPTIONS = (("lake", "options"), ("state", "options"), ("dump", "options"), ("kafka", "properties"), ("spark", "conf"))

StreamName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]


class Settings(Section):
    """One stream of changes into one lake."""

    name: StreamName
    """The stream's name: letters, digits, _ and -. Every commit keeps it, so do not change it later."""
    lake: LakeSettings
    """Where the tables are."""
    state: StateSettings = Field(default_factory=StateSettings)
    """Where the stream's ledger and Spark's checkpoint are. Losing them loses no data."""
    kafka: KafkaSettings = Field(default_factory=KafkaSettings.absent)
    """What to read. Required, unless ``source.mysql`` reads the binlog itself."""
    source: SourceSettings = Field(default_factory=SourceSettings)
    """How to read the records."""
    tables: TablesSettings = Field(default_factory=TablesSettings)
    """Which source tables are taken, where they go, and their rules."""
    locking: LockingSettings = Field(default_factory=LockingSettings)
    """How tables are shared with other writers: other streams, ``binlake compact``, Hudi."""
    batch: BatchSettings = Field(default_factory=BatchSettings)
    """The size and rhythm of batches, and whole transactions."""
    derive: DeriveSettings = Field(default_factory=DeriveSettings)
    """What is kept of tables of cells while wide tables are derived from them."""
    quarantine: QuarantineSettings = Field(default_factory=QuarantineSettings)
    """The table of records that cannot be applied, and how many are too many."""
    dump: DumpSettings = Field(default_factory=DumpSettings)
    """Files of change events: ``binlake dump`` writes them, ``binlake replay`` reads them."""
    spark: SparkSettings = Field(default_factory=SparkSettings)
    """The Spark session that runs the stream."""
    monitoring: MonitoringSettings = Field(default_factory=MonitoringSettings)
    """Metrics and health over HTTP."""
    metastore: MetastoreConnection = Field(default_factory=MetastoreConnection)
    """The metastore that learns of the stream's commits and that readers ask."""

    _written: dict[KeyPath, str] = PrivateAttr(default_factory=dict)
    _rules: KnownRules = PrivateAttr(default_factory=lambda: KnownRules(TablesSettings()))

    def __repr__(self) -> str:
        return f"Settings(name={self.name!r})"

    __str__ = __repr__

    @staticmethod
    def load(path: Path | str, environ: Mapping[str, str] | None = None) -> Settings:
        """Read and validate a settings file.

        Raises:
            SettingsError: with every mistake of the file, each with its path and line.
            ConfigError: the file cannot be read or is not YAML.
        """
        file = Path(path)
        text = read_text(file)
        return Settings.parse(text, origin=str(file), directory=file.parent, environ=environ)

    @staticmethod
    def parse(
        text: str,
        *,
        origin: str = "settings",
        directory: Path = Path(),
        environ: Mapping[str, str] | None = None,
    ) -> Settings:
        """Validate the text of a settings file; see ``load``."""
        document = document_of(text, origin, directory, environ)
        settings = validated(Settings, document, origin, "binlake config-schema")
        settings._written.update(document.written)
        return settings

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.source.mysql is None and not self.kafka.bootstrap_servers:
            raise mistake("kafka is missing: say what to read (or give source.mysql to read a server's binlog)")
        if self.source.mysql is not None and self.kafka.bootstrap_servers:
            raise mistake("kafka and source.mysql exclude each other: the stream reads topics, or a server's binlog")
        return self

    @model_validator(mode="after")
    def _statements_are_among_the_rows(self) -> Self:
        maxwell = self.source.format in ("auto", "maxwell") and self.source.maxwell.order == "offset"
        if maxwell and self.kafka.ddl_topics:
            raise mistake(
                "source.maxwell.order: offset does not place the statements of kafka.ddl_topics among the rows: let "
                "Maxwell write them to the rows' topic (without ddl_kafka_topic), or positions (output_binlog_position)"
            )
        return self

    @model_validator(mode="after")
    def _whole_transactions_can_be_seen(self) -> Self:
        topics = self.batch.transaction_consistent and self.source.mysql is None
        if topics and (self.kafka.transaction_topic is None or self.kafka.fetch != "direct"):
            raise mistake("batch.transaction_consistent needs kafka.transaction_topic, and kafka.fetch: direct")
        return self

    @model_validator(mode="after")
    def _the_quarantine_is_no_table_of_the_source(self) -> Self:
        if may_meet(self.tables.path, self.quarantine_path, (QUARANTINE_DIRECTORY,)):
            raise mistake("quarantine.path must not be a path that tables.path can give to a table of the source")
        return self

    @model_validator(mode="after")
    def _plain_topics_fit_their_tables(self) -> Self:
        for entry in self.source.plain:
            try:
                rules = self.plain_rules(entry)
            except ConfigError as error:
                raise mistake(f"source.plain: {error.what}") from error
            if rules is not None and (problem := plain_table_problem(entry, rules)):
                raise mistake(f"source.plain, table {entry.table}: {problem}")
        return self

    @model_validator(mode="after")
    def _stores_are_those_of_the_format(self) -> Self:
        store = {"bigtable": "bigtable", "hbase_wal": "hbase", "hbase_avro": "hbase"}.get(self.source.format)
        for entry in self.tables.cells:
            if store is not None and entry.store != store:
                what = f"tables.cells, entry {entry.source}: store is {entry.store}"
                raise mistake(f"{what}, but source.format {self.source.format} is of {store}: say store: {store}")
        return self

    @model_validator(mode="after")
    def _nothing_masked_lies_readable(self) -> Self:
        if self.tables.masks_any and not self.quarantine.secret():
            raise mistake("columns are masked, so quarantine.seal must give a secret to encrypt the quarantine with")
        return self

    @property
    def state_uri(self) -> str:
        """Root of the ledger and of Spark's checkpoint."""
        return self.state.uri or f"{self.lake.uri.rstrip('/')}/.binlake/{self.name}"

    def state_options(self) -> dict[str, str]:
        """The state's storage options in clear text: its own, or the lake's."""
        return self.lake.storage_options() if self.state.options is None else plain(self.state.options)

    @property
    def quarantine_path(self) -> str:
        """Path of the quarantine table, relative to the lake's root."""
        return self.quarantine.path.format(name=self.name)

    def selects(self, source: SourceName) -> bool:
        """Whether the source table is taken into the lake."""
        return self.tables.selects(source)

    def table_rules(self, source: SourceName) -> TableRules:
        """The rules of a source table's lake table; made once, for every batch asks for them several times."""
        if self._rules.tables is not self.tables:
            self._rules = KnownRules(self.tables)
        return self._rules.of(source)

    def plain_rules(self, entry: PlainTopicsSettings) -> TableRules | None:
        """The rules of the lake table that plain topics feed; None if the table is not taken into the lake."""
        source = Destination(*entry.source)
        lake_table = self.tables.destination(source) if self.tables.selects(source) else None
        return None if lake_table is None else self.tables.rules(lake_table)

    def effective(self) -> dict[str, Any]:
        """All settings with defaults, safe to print: references as written, secrets masked."""
        tree: dict[str, Any] = self.model_dump(mode="json")
        for section, field in _OPTIONS:
            values = getattr(getattr(self, section), field)
            if values is not None:
                tree[section][field] = {k: _MASK if looks_secret(k) else v for k, v in plain(values).items()}
        tree["tables"]["overrides"] = [o.model_dump(mode="json", exclude_unset=True) for o in self.tables.overrides]
        for path, text in self._written.items():
            _put(tree, path, text)
        return tree


def _put(tree: Any, path: KeyPath, text: str) -> None:  # noqa: ANN401 - any JSON tree
    for part in path[:-1]:
        tree = tree[part]
    tree[path[-1]] = text


def json_schema() -> str:
    """The JSON schema of a settings file, indented."""
    return json.dumps(Settings.model_json_schema(), indent=2)
