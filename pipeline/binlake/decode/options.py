"""Options of the decoder: how the connector writes its messages, and the decoder's own limits."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal, Protocol

from binlake.decode.changes import SourceTable, ZeroDates
from hudilake.errors import ConfigError


class EventFormat(StrEnum):
    """The writer of the change events; ``auto`` detects the format of each message. ``json`` and ``avro`` are no change
    events. ``binlog`` is Debezium's envelope around values in the form of ``BinlogForm``; no setting names it."""

    AUTO = "auto"
    DEBEZIUM = "debezium"
    CANAL = "canal"
    MAXWELL = "maxwell"
    DEBEZIUM_AVRO = "debezium_avro"
    JSON = "json"
    AVRO = "avro"
    HBASE_WAL = "hbase_wal"
    HBASE_AVRO = "hbase_avro"
    BIGTABLE = "bigtable"
    BINLOG = "binlog"


#: Members of Bigtable's change records that hold bytes.
BigtableText = Literal["rowKey", "column", "value"]


class MaxwellOrder(StrEnum):
    """What orders Maxwell's messages."""

    POSITION = "position"
    OFFSET = "offset"


class TimePrecisionMode(StrEnum):
    """Debezium's ``time.precision.mode``."""

    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    ADAPTIVE = "adaptive"
    CONNECT = "connect"
    ISOSTRING = "isostring"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"


class DecimalHandlingMode(StrEnum):
    """Debezium's ``decimal.handling.mode``."""

    PRECISE = "precise"
    STRING = "string"
    DOUBLE = "double"


class BigintUnsignedHandlingMode(StrEnum):
    """Debezium's ``bigint.unsigned.handling.mode``."""

    LONG = "long"
    PRECISE = "precise"


class BinaryHandlingMode(StrEnum):
    """Debezium's ``binary.handling.mode``; ``bytes`` is base64 in JSON."""

    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


@dataclass(frozen=True, slots=True)
class JsonForm:
    """The four switches that decide the form of a MySQL value in JSON where messages have no schema."""

    time_precision: TimePrecisionMode = TimePrecisionMode.ADAPTIVE_TIME_MICROSECONDS
    decimals: DecimalHandlingMode = DecimalHandlingMode.PRECISE
    bigint_unsigned: BigintUnsignedHandlingMode = BigintUnsignedHandlingMode.LONG
    binary: BinaryHandlingMode = BinaryHandlingMode.BYTES


@dataclass(frozen=True, slots=True)
class CanalForm:
    """A MySQL value as Canal writes it: text. ``zone``: the time zone of TIMESTAMP."""

    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class MaxwellForm:
    """A MySQL value as Maxwell writes it. ``zone``: the time zone of TIMESTAMP."""

    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class BinlogForm:
    """A MySQL value as binlake writes it into the records that it makes of the binlog itself."""


Form = JsonForm | CanalForm | MaxwellForm | BinlogForm


@dataclass(frozen=True, slots=True)
class PlainTopics:
    """Topics whose records are no change events: each record is a row of one table.

    Attributes:
        patterns: globs on the topic's name.
        table: the table that they feed.
        key: the columns that name a row; empty for rows that are only added.
        metadata: pairs (fact, column): what Kafka knows of a record (``topic``, ``partition``, ``offset``,
            ``timestamp``), and its column.
        inferred: the columns are learned from the messages.
        no_delete: why a record without a value cannot delete its row; None if it can.
        avro_schema: the writer's schema (JSON text) of messages without a schema id.
    """

    patterns: tuple[str, ...]
    table: SourceTable
    key: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    inferred: bool = False
    no_delete: str | None = None
    avro_schema: str | None = None


class SchemaLookup(Protocol):
    """Gives the Avro schema of an id. Implementations are picklable: they are sent to the tasks."""

    def schema(self, schema_id: int, subject: str) -> str | None:
        """The schema's JSON text; None if the registry has no schema of that id.

        ``subject``: the name that it is most likely registered under, for messages. Raises TransientError where the
        registry gives no answer, ConfigError where it refuses the request.
        """
        ...

    def describe(self) -> str:
        """Where the registry is, without secrets."""
        ...


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Options of the decoder. Frozen and picklable: they are sent to the tasks.

    Attributes:
        format: the writer of the messages.
        time_zone: the zone of TIMESTAMP values that are text without a zone (Canal, Maxwell).
        maxwell_order: by binlog position, or by Kafka offset for a Maxwell that does not write positions.
        maxwell_nulls: whether Maxwell writes columns that are null (``output_nulls``); None if that is not known.
        nulls_unsaid_in: the tables whose messages of Maxwell are known to leave out columns that are null.
        registry: the schemas of Avro messages; None if there are no such messages.
        time_precision_mode, decimal_handling_mode, bigint_unsigned_handling_mode, binary_handling_mode: as set on the
            connector. They matter only where no Connect schema is in the message.
        flat_prefix: the prefix of added fields in ExtractNewRecordState (``add.fields.prefix``).
        deletes_unsaid_in: the topics whose messages are known not to say deletes. A tombstone of theirs that stands
            beside no message may be the only sign of a delete, and is quarantined; one of another topic is counted.
        has_emptied: records with neither key nor value say nothing: an erasure has emptied them.
        flat_tombstone_deletes: flat form only, for connectors whose only sign of a delete is the tombstone (the
            default of ``delete.tombstone.handling.mode``): a tombstone deletes its key. All flat records are then
            ordered by Kafka offset, because a tombstone has no binlog position.
        doubts_tombstones: each tombstone with a key may be a delete that nothing else says, and is quarantined unless
            ``flat_tombstone_deletes`` takes it for one: for a replay of such tombstones.
        epoch: the first part of the ordering value, 0..2047; the operator raises it when file numbers start again.
        epoch_of_server, epoch_of_gtid_domain: pairs (server id, epoch) and (GTID domain, epoch) that overrule
            ``epoch`` for streamed records. The domain is the part before the first ``-`` of a MariaDB GTID, or
            before the ``:`` of a MySQL one. The GTID domain takes precedence.
        before_of: the tables whose updates need their before image, or ``"all"``. One without it is quarantined, unless
            it is asked for of all tables.
        inserts_of: the tables of which only inserts and snapshot rows are taken: other events are quarantined.
        transactions_of: the tables of whose changes the transaction is asked for (``ChangeBatch.transactions``).
        ignored_tables: tables whose records are counted as ``ignored`` and not decoded.
        topic_tables: pairs (topic, table) for flat records that do not name their table, where the topic's name does
            not end in ``<database>.<table>``.
        zero_dates: what becomes of dates whose month or day is zero.
        plain: the tables of topics whose records are no change events.
        by_sequence: pairs (table of an HBase-like store, family) for families whose delete markers mask only what was
            written before them.
        bigtable_text: the members of Bigtable's change records that are text; the others are base64.
        max_message_bytes: a longer value is quarantined (``too_large``), at most 1 GiB.
        max_nesting: a row image with deeper arrays or objects is quarantined (``too_deep``).

    Raises ConfigError if max_message_bytes is out of range.
    """

    format: EventFormat = EventFormat.AUTO
    time_zone: str = "UTC"
    maxwell_order: MaxwellOrder = MaxwellOrder.POSITION
    maxwell_nulls: bool | None = None
    nulls_unsaid_in: frozenset[SourceTable] = frozenset()
    registry: SchemaLookup | None = None
    time_precision_mode: TimePrecisionMode = TimePrecisionMode.ADAPTIVE_TIME_MICROSECONDS
    decimal_handling_mode: DecimalHandlingMode = DecimalHandlingMode.PRECISE
    bigint_unsigned_handling_mode: BigintUnsignedHandlingMode = BigintUnsignedHandlingMode.LONG
    binary_handling_mode: BinaryHandlingMode = BinaryHandlingMode.BYTES
    flat_prefix: str = "__"
    flat_tombstone_deletes: bool = False
    doubts_tombstones: bool = False
    deletes_unsaid_in: frozenset[str] = frozenset()
    has_emptied: bool = False
    epoch: int = 0
    epoch_of_server: tuple[tuple[int, int], ...] = ()
    epoch_of_gtid_domain: tuple[tuple[str, int], ...] = ()
    before_of: frozenset[SourceTable] | Literal["all"] = frozenset()
    inserts_of: Container[SourceTable] = frozenset()
    transactions_of: Container[SourceTable] = frozenset()
    ignored_tables: frozenset[SourceTable] = frozenset()
    topic_tables: tuple[tuple[str, SourceTable], ...] = ()
    zero_dates: ZeroDates = ZeroDates.NULL
    plain: tuple[PlainTopics, ...] = ()
    by_sequence: tuple[tuple[SourceTable, str], ...] = ()
    bigtable_text: frozenset[BigtableText] = frozenset()
    max_message_bytes: int = 64 << 20
    max_nesting: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.max_message_bytes <= 1 << 30:
            raise ConfigError(
                f"max_message_bytes is {self.max_message_bytes}", do_next="set it between 1 and 1073741824 (1 GiB)"
            )

    @property
    def form(self) -> JsonForm:
        """The four switches alone, as a small hashable value."""
        return JsonForm(
            TimePrecisionMode(self.time_precision_mode),
            DecimalHandlingMode(self.decimal_handling_mode),
            BigintUnsignedHandlingMode(self.bigint_unsigned_handling_mode),
            BinaryHandlingMode(self.binary_handling_mode),
        )

    def wants_before(self, source: SourceTable) -> bool:
        """Whether updates of this table are decoded with their before image."""
        return self.before_of == "all" or source in self.before_of

    def maxwell_nulls_of(self, source: SourceTable) -> bool | None:
        """Whether Maxwell's messages of a table have the columns that are null; None if that is not known. Who asks for
        the before images of all tables looks at the messages' members himself, so True."""
        if self.before_of == "all":
            return True
        return False if self.maxwell_nulls is None and source in self.nulls_unsaid_in else self.maxwell_nulls

    def refuses_without_before(self, source: SourceTable) -> bool:
        """Whether an update of this table is quarantined if it has no before image."""
        return self.before_of != "all" and source in self.before_of

    def plain_topics(self, topic: str) -> PlainTopics | None:
        """What a topic feeds whose records are no change events; None if nothing is known of it."""
        return next((p for p in self.plain if any(fnmatchcase(topic, glob) for glob in p.patterns)), None)

    def epoch_for(self, server_id: int | None, gtid: str | None) -> int:
        """The epoch of one streamed record."""
        if gtid and self.epoch_of_gtid_domain:
            domain = gtid.partition(":")[0] if ":" in gtid else gtid.partition("-")[0]
            mapped_epoch = _lookup(self.epoch_of_gtid_domain, domain)
            if mapped_epoch is not None:
                return mapped_epoch
        mapped_epoch = _lookup(self.epoch_of_server, server_id) if server_id else None
        return self.epoch if mapped_epoch is None else mapped_epoch


def _lookup(pairs: Iterable[tuple[object, int]], key: object) -> int | None:
    return next((epoch for name, epoch in pairs if name == key), None)
