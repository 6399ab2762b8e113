"""The sections of a settings file, except ``tables``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from binlake.settings.database import DatabaseSettings, MysqlSettings
from binlake.settings.plain import PlainTopicsSettings, plain_problem
from binlake.settings.registry import RegistrySettings
from binlake.settings.templates import check_relative, placeholders
from hudilake.storage import has_scheme
from hudilake.validation import EACH_ONCE, Amount, ColumnNames, Count, Fraction, Section, Text, mistake
from lakemetastore.settings.options import Options, plain

_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|(spark|k8s)://.+|yarn")

_FIXED_OFFSET = re.compile(r"[+-](0\d|1[0-4]):[0-5]\d")


class LakeSettings(Section):
    """Where the tables live."""

    uri: Text
    """Root of all tables: a path, ``file:``, ``hdfs:`` or an object store (``s3:``, ``gs:``, ``az:``)."""
    options: Options = Field(default_factory=dict)
    """The store's own options (endpoint, region, credentials)."""

    @field_validator("uri")
    @classmethod
    def _the_same_from_everywhere(cls, uri: str) -> str:
        if not has_scheme(uri) and not uri.startswith("/"):
            raise mistake("must not be relative, or it is another lake from another directory: write file:///path")
        return uri

    def storage_options(self) -> dict[str, str]:
        """The options in clear text, for ``open_storage``."""
        return plain(self.options)


class StateSettings(Section):
    """Where the stream's ledger and Spark's checkpoint live; losing them loses no data."""

    uri: Text | None = None
    """Root of the state; ``<lake.uri>/.binlake/<name>`` if null."""
    options: Options | None = None
    """The store's own options; the lake's if null."""


class LockingSettings(Section):
    """How tables are shared with other writers: other streams, ``binlake compact``, Hudi."""

    lock: Literal["auto", "process", "file", "storage"] = "auto"
    """``auto``: Hudi's file lock on local disk and HDFS, its storage-based lock on object stores; ``file`` and
    ``storage`` choose one of the two. ``process`` promises that no other process writes to the tables: binlake then
    takes no lock outside of its process and writes no heartbeats."""
    wait_seconds: float = Field(default=60.0, gt=0)
    """How long to wait for a lock that another writer holds."""
    validity_seconds: float = Field(default=300.0, gt=0)
    """Another writer may take over a lock that it has seen without renewal for so long, by its own clock: clocks may
    differ. At least ten times ``renew_seconds``."""
    renew_seconds: float = Field(default=30.0, gt=0)
    """How often a lock that is held for a long time is renewed."""
    heartbeat_timeout_seconds: float = Field(default=600.0, gt=0)
    """A writer without a heartbeat for so long counts as dead, and its pending commits are rolled back."""
    foreign_expiry_seconds: float = Field(default=0.0, ge=0)
    """A Hudi writer never renews its file lock. binlake takes over a file lock of Hudi that is older than this. Set it
    to the writer's ``hoodie.write.lock.filesystem.expire`` (which is in minutes); 0 means never."""


class DebeziumSettings(Section):
    """The connector's own settings, where they change what its JSON means. Defaults are Debezium's."""

    time_precision_mode: Literal[
        "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"
    ] = "adaptive_time_microseconds"
    """The connector's ``time.precision.mode``."""
    decimal_handling_mode: Literal["precise", "string", "double"] = "precise"
    """The connector's ``decimal.handling.mode``."""
    bigint_unsigned_handling_mode: Literal["long", "precise"] = "long"
    """The connector's ``bigint.unsigned.handling.mode``."""
    binary_handling_mode: Literal["bytes", "base64", "base64-url-safe", "hex"] = "bytes"
    """The connector's ``binary.handling.mode``."""
    metadata_prefix: str = "__"
    """Prefix of the fields that ExtractNewRecordState adds in the flat form."""
    tombstone_deletes: bool = False
    """In the flat form a record without a value deletes the row of its key. With ``delete.tombstone.handling.mode``
    ``tombstone``, its default, or ``delete-to-tombstone`` ExtractNewRecordState writes no other sign of a delete. Such
    a record has no place in the binlog, so Kafka's offset orders the rows of all flat messages: raise ``source.epoch``
    by one where tables have rows already."""
    signal_topic: Text | None = None
    """The connector's ``signal.kafka.topic``. ``binlake table resync`` writes to it."""
    notification_topic: Text | None = None
    """The connector's ``notification.sink.topic.name``. It tells when a table has been fetched anew."""
    topic_prefix: Text | None = None
    """The connector's ``topic.prefix``; null takes it from the names of the table's topics."""


class SchemaSettings(Section):
    """The schema of one source table, for messages that carry none and without a DDL topic."""

    columns: Annotated[Mapping[Text, Text], EACH_ONCE] = Field(min_length=1)
    """Column name to MySQL type as DDL writes it (``bigint unsigned``, ``decimal(12,2)``), in the table's order."""
    key: ColumnNames = ()
    """Key columns in order; empty for a table without a key."""

    @field_validator("key")
    @classmethod
    def _of_the_columns(cls, key: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "columns" in info.data and (strange := [k for k in key if k not in info.data["columns"]]):
            raise mistake(f"no such column: {', '.join(strange)}")
        return key


class MaxwellSettings(Section):
    """How Maxwell is configured, where it changes what its messages mean."""

    order: Literal["position", "offset"] = "position"
    """What orders the rows. ``position`` is the binlog position and needs ``output_binlog_position``; ``offset`` is
    Kafka's offset, so all rows of a key must be in one partition."""
    output_nulls: bool | None = None
    """Whether Maxwell writes columns that are null (its ``output_nulls``). If not, an update does not say what was null
    before it, and where that decides what is changed, it is quarantined. ``null``: a table's newest messages show it,
    by columns that they lack. ``true`` also where ``exclude_columns`` leaves columns out, or those that decide are
    NOT NULL."""


class BigtableSettings(Section):
    """How the Dataflow template writes Bigtable's change records, where that changes what they mean."""

    text: tuple[Literal["rowKey", "column", "value"], ...] = ()
    """The members that are text: of the template's format ``JSON`` those without their ``useBase64`` option. All others
    are base64. Bytes that are no text are lost in text; such a message is quarantined."""


class SourceSettings(Section):
    """How to read the records."""

    format: Literal[
        "auto", "debezium", "canal", "maxwell", "debezium_avro", "json", "avro", "hbase_wal", "hbase_avro", "bigtable"
    ] = "auto"
    """The writer of the change events: ``debezium`` (JSON), ``canal`` (flat messages), ``maxwell``, ``debezium_avro``
    (with ``registry``), ``hbase_wal`` (WAL entries of HBase as JSON), ``hbase_avro`` (events of HBase's Kafka proxy),
    ``bigtable`` (change records of Bigtable); ``auto`` recognises the format of each message, but not ``hbase_avro``.
    ``json`` and ``avro`` are records that are no change events, each a row: ``plain`` names their tables."""
    epoch: int = Field(default=0, ge=0, lt=2048)
    """Events of a higher epoch win. Raise it by one after a failover that restarted the binlog's file numbers; after a
    topic was created again, where Kafka's offset is the order (Canal); and when you change to a format with another
    order."""
    time_zone: Text = "UTC"
    """The time zone of TIMESTAMP values that are text without a zone (Canal, Maxwell): the time zone of the session
    that wrote them. A name (``Asia/Shanghai``) or an offset (``+08:00``)."""
    zero_dates: Literal["null", "epoch", "text", "quarantine"] = "null"
    """What becomes of a DATE, DATETIME or TIMESTAMP whose month or day is zero (``0000-00-00``, ``2024-00-10``), which
    no calendar has. ``null``; ``epoch``: the start of 1970; ``text``: all these columns are strings in the lake, with
    the values as MySQL prints them; ``quarantine``: the record. Debezium has lost the value already: see Formats."""
    epoch_of_server: Mapping[int, Annotated[int, Field(ge=0, lt=2048)]] = Field(default_factory=dict)
    """Server id -> the epoch of what that server writes, instead of ``epoch``. For a failover to a replica, whose
    binlog has file numbers of its own."""
    statement_databases: Mapping[Text, Text] = Field(default_factory=dict)
    """Place of a DDL statement (as the table that stops for it says it, ``mariadb-bin.000003:1070``) -> the database in
    which it was run. For a table that was moved between databases by a name without one, where several databases had
    such a table: Debezium does not say which."""
    debezium: DebeziumSettings = Field(default_factory=DebeziumSettings)
    """Debezium's own settings, where they change what its JSON means."""
    maxwell: MaxwellSettings = Field(default_factory=MaxwellSettings)
    """Maxwell's own settings, where they change what its messages mean."""
    bigtable: BigtableSettings = Field(default_factory=BigtableSettings)
    """How Bigtable's change records are written."""
    registry: RegistrySettings = Field(default_factory=RegistrySettings)
    """Where the schemas of Avro messages are."""
    database: DatabaseSettings = Field(default_factory=DatabaseSettings)
    """The database itself, which ``binlake load`` and ``binlake verify`` read; a stream of Kafka does not need it."""
    mysql: MysqlSettings | None = None
    """With it the stream reads the binlog of ``database`` itself, and there is no section ``kafka``."""
    schemas: Mapping[Text, SchemaSettings] = Field(default_factory=dict)
    """Schemas by ``database.table``, for tables whose schema neither the messages nor a DDL topic give."""
    plain: tuple[PlainTopicsSettings, ...] = ()
    """Topics whose records are no change events, and the tables that they feed (``format: json`` and ``avro``)."""

    @model_validator(mode="after")
    def _the_binlog_has_one_form(self) -> Self:
        if self.mysql is not None and self.format != "auto":
            raise mistake("format is for messages in Kafka: leave it out where mysql is given")
        if self.mysql is not None and (self.database.host is None or self.database.user is None):
            raise mistake("mysql needs database.host and database.user")
        return self

    @field_validator("zero_dates", mode="before")
    @classmethod
    def _yaml_null(cls, policy: object) -> object:
        return "null" if policy is None else policy

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            if not _FIXED_OFFSET.fullmatch(zone):
                raise mistake("is neither a time zone such as Asia/Shanghai nor an offset such as +08:00") from error
        return zone

    @field_validator("plain")
    @classmethod
    def _plain_tables(
        cls, plain: tuple[PlainTopicsSettings, ...], info: ValidationInfo
    ) -> tuple[PlainTopicsSettings, ...]:
        form, registry = info.data.get("format"), info.data.get("registry")
        if problem := plain_problem(form, plain):
            raise mistake(problem)
        if form == "avro" and registry is not None and registry.url is None and not all(e.schema_file for e in plain):
            raise mistake("format avro needs registry.url, or a schema_file in every entry")
        return plain

    @field_validator("epoch")
    @classmethod
    def _epoch_of_format(cls, epoch: int, info: ValidationInfo) -> int:
        if epoch and info.data.get("format") == "bigtable":
            raise mistake("must be 0: Bigtable's commit times order its changes, and never start again")
        return epoch

    @field_validator("registry")
    @classmethod
    def _registry_of_avro(cls, registry: RegistrySettings, info: ValidationInfo) -> RegistrySettings:
        if info.data.get("format") == "debezium_avro" and registry.url is None:
            raise mistake("format debezium_avro needs registry.url")
        return registry


class BatchSettings(Section):
    """The size and rhythm of batches."""

    max_events: Count = 200_000
    """The most records that one batch takes, over all topics."""
    trigger_interval_ms: Amount = 500
    """The shortest time between the starts of two batches; 0 starts the next one at once."""
    shuffle_above_bytes: Amount = 256 * 1024 * 1024
    """Above so many bytes of raw records, rows are shuffled to writing tasks; below, the driver writes them."""
    transaction_consistent: bool = False
    """End batches between two transactions, so that no commit holds half of one. Needs ``kafka.transaction_topic`` and
    ``kafka.fetch: direct``; the messages must be enveloped, with Debezium's transaction metadata. With ``source.mysql``
    batches end so by themselves; then it is for transactions of more than ``max_events`` records."""
    transaction_wait_seconds: float = Field(default=600.0, gt=0)
    """A transaction is overdue when its end does not come for so long. Complete transactions before it are committed
    meanwhile."""
    transaction_max_events: Count = 2_000_000
    """A transaction is also overdue when more records than this wait for it."""
    transaction_overdue: Literal["stop", "split"] = "stop"
    """What happens then. ``stop``: the stream stops. ``split``: it goes on without whole transactions and says so."""


class QuarantineSettings(Section):
    """Where records go that cannot be applied, and how many are too many."""

    path: Text = "_quarantine/{name}"
    """Path of the quarantine table below ``lake.uri``; ``{name}`` is the stream's name."""
    max_records_per_batch: Amount = 10_000
    """More quarantined records than this in one batch stop the job."""
    max_fraction: Fraction = 0.5
    """A greater share of quarantined records in one batch than this stops the job."""
    seal: SecretStr | None = None
    """A secret (by reference) that encrypts the quarantined records. ``binlake quarantine`` decrypts them with the same
    secret. Required as soon as a column is masked."""

    def secret(self) -> str | None:
        """The secret in clear text; None if there is none."""
        return self.seal.get_secret_value() if self.seal is not None else None

    @field_validator("path")
    @classmethod
    def _template(cls, path: str) -> str:
        try:
            strange = placeholders(path) - {"name"}
        except ValueError as error:
            raise mistake("may hold no placeholder but {name}") from error
        if strange:
            raise mistake("may hold no placeholder but {name}")
        if problem := check_relative(path):
            raise mistake(problem)
        return path


class MonitoringSettings(Section):
    """Metrics for Prometheus (``/metrics``) and the stream's health (``/health``), over HTTP."""

    host: Text = "127.0.0.1"
    """The address to listen on. There is no authentication, so do not open it to a public network."""
    port: int | None = Field(default=None, ge=0, le=65535)
    """The port; null serves nothing."""
    stalled_seconds: float = Field(default=300.0, gt=0)
    """``/health`` fails when records wait and no batch has finished for so long."""
    console: bool = False
    """Serve the console from a process that ends with the stream; whoever knows BINLAKE_CONSOLE_TOKEN may act."""
    console_port: int = Field(default=8765, ge=0, le=65535)
    """The port of these pages, at the same host; 0 takes a free one."""


class SparkSettings(Section):
    """The Spark session that carries the stream."""

    master: Text | None = "local[2]"
    """The Spark master; null leaves it to spark-submit."""
    driver_memory_mb: int = Field(default=1024, ge=512)
    """Heap of the driver in megabytes, when binlake starts it (not under spark-submit). Spark takes none below 512."""
    conf: Options = Field(default_factory=dict)
    """Further Spark properties (``spark.*``)."""

    @field_validator("master")
    @classmethod
    def _known_master(cls, master: str | None) -> str | None:
        if master is not None and not _MASTER.fullmatch(master):
            known = "local[2], spark://host:7077, yarn, k8s://https://host:6443 or null"
            raise mistake(f"{master} is no Spark master: {known}")
        return master

    @field_validator("conf")
    @classmethod
    def _only_spark(cls, conf: Options) -> Options:
        if strange := [k for k in conf if not k.startswith("spark.")]:
            raise mistake(f"names must begin with spark.: {', '.join(strange)}")
        return conf

    @property
    def brings_jars(self) -> bool:
        """Whether the settings or spark-submit provide the Kafka connector, so that it need not be resolved."""
        return self.master is None or bool({"spark.jars", "spark.jars.packages"} & set(self.conf))

    def properties(self) -> dict[str, str]:
        """``conf`` in clear text."""
        return plain(self.conf)
