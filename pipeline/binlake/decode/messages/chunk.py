"""One chunk during decoding: opened, sorted by kind of record, grouped by table. Other records are settled here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode.changes import Control, ControlKind, DecodedRecords, RawRecords, SourceTable
from binlake.decode.events import RowEvents, deletes_by_key
from binlake.decode.messages.envelopes import DDL_OF_TABLE, FOREIGN, FRAMED, TOMBSTONE, MessageShape, sort_messages
from binlake.decode.messages.format_detection import detect_format
from binlake.decode.messages.frames import Frames, open_loose
from binlake.decode.messages.keys import Keys, read_keys
from binlake.decode.options import DecodeOptions, EventFormat
from binlake.decode.order import binlog_order
from binlake.decode.quarantine import Buffer, Fault, Reason, json_fault
from binlake.decode.schemas.schema_change import statement_of
from binlake.decode.schemas.schemas import SchemaSource
from binlake.decode.types.columns import ConnectField

IGNORED = "ignored"
_DOUBT = Fault(
    Reason.UNKNOWN_OP,
    "a record without a value, and no message says the delete that it may stand for: set "
    "source.debezium.tombstone_deletes, or delete.tombstone.handling.mode=rewrite at the connector",
)
_BARE_KEY = Fault(
    Reason.MISSING_KEY,
    "a record without a value, whose key is no JSON object with the columns of the key: it does not say which row it "
    "deletes",
)
_NO_TABLE = "neither the message nor the topic names a table that MySQL can have"


@dataclass(frozen=True)
class TableEvents:
    """Row events of one table, all with the same embedded schema (None: none) and the same key names."""

    source: SourceTable
    schema: ConnectField | None
    key_fields: tuple[str, ...] | None
    events: RowEvents


@dataclass
class DecodeChunk:
    """The records, the context for decoding them, and the results so far.

    ``foreign``: indices of records that belong to another format's reader; used only with automatic detection.
    ``open_record``: gives the payload of a record as JSON where its value is no JSON; None: the value is.
    """

    records: RawRecords
    schemas: SchemaSource
    options: DecodeOptions
    decoded: DecodedRecords = field(default_factory=DecodedRecords)
    tombstones: list[int] = field(default_factory=list)
    foreign: list[int] = field(default_factory=list)
    open_record: Callable[[int], Buffer] | None = None

    @cached_property
    def keys(self) -> Keys:
        """The keys of the records; a reader sets those that are no JSON."""
        return read_keys(self.records.keys)

    def payload(self, at: int) -> Buffer:
        """The payload of a record, without its frame."""
        value = self.records.values[at] or b""
        return open_loose(value)[0] if self.open_record is None else self.open_record(at)

    def refuse(self, at: int, fault: Fault, source: SourceTable | None = None) -> None:
        """Quarantine one record."""
        self.decoded.quarantined.append(self.records.quarantined(at, fault.reason.value, fault.detail, source))
        if fault.columns and source is not None:
            self.decoded.unknown_columns.setdefault(source, set()).update(fault.columns)

    def tables(self) -> list[TableEvents]:
        """Settle all records that are not row events; group the row events by table."""
        live, values = self.live(), self.records.values
        whole = len(live) == len(values)
        payloads, schemas = Frames().open_all(values if whole else [values[index] for index in live])  # type: ignore[arg-type, misc]
        return self.tables_of(live, payloads, schemas)

    def tables_of(
        self,
        live: list[int],
        payloads: list[Buffer],
        schemas: list[ConnectField | None] | None,
        read: Sequence[tuple[ConnectField, RowEvents]] = (),
    ) -> list[TableEvents]:
        """Settles records whose payloads (JSON) and schemas are out of their frames; returns row events by table.

        ``read``: events that were read before, with their schema. Those of ``payloads`` that have it join them.
        """
        groups = list(self._by_table(live, payloads, schemas, read))
        self._settle_tombstones(groups)
        return groups

    def live(self) -> list[int]:
        """Indices of the records with a value of allowed size; others are settled, or noted as tombstones."""
        values, sizes = self.records.values, self.records.sizes
        if len(sizes) == len(values) and max(sizes, default=0) <= self.options.max_message_bytes:
            return list(range(len(values)))
        live = []
        for index, value in enumerate(values):
            if value is None:
                self.tombstones.append(index)
            elif len(value) > self.options.max_message_bytes:
                self.refuse(index, Fault(Reason.TOO_LARGE, f"{len(value)} bytes"))
            else:
                live.append(index)
        return live

    def _by_table(
        self,
        live: list[int],
        payloads: list[Buffer],
        schemas: list[ConnectField | None] | None,
        read: Sequence[tuple[ConnectField, RowEvents]] = (),
    ) -> Iterator[TableEvents]:
        """``live``: record indices of the payloads. ``schemas``: of the payloads; None where no message has one."""
        if not live:
            yield from self._joined(read, RowEvents.none(traced=self._shape().traced), [])
            return
        sorted_messages = sort_messages(payloads, live, self._shape())
        self.decoded.by_template += sorted_messages.by_template
        for index, fault in sorted_messages.faults:
            self.refuse(live[index], fault)
        framed = [index for index, kind in sorted_messages.others if kind == FRAMED]
        for index, kind in sorted_messages.others:
            self._settle(live[index], payloads[index], kind)
        if read:
            embedded = [schemas[index] if schemas else None for index in sorted_messages.event_at]
            yield from self._joined(read, sorted_messages.events, embedded)
        elif len(sorted_messages.events):
            yield from self._grouped(
                sorted_messages.events, schemas and [schemas[index] for index in sorted_messages.event_at]
            )
        if sorted_messages.flats:
            yield from self._grouped(
                sorted_messages.flats, schemas and [schemas[index] for index in sorted_messages.flat_at]
            )
        opened = [open_loose(bytes(payloads[index])) for index in framed]
        yield from self._by_table([live[index] for index in framed], [p for p, _ in opened], [s for _, s in opened])

    def _joined(
        self, read: Sequence[tuple[ConnectField, RowEvents]], others: RowEvents, schemas: list[ConnectField | None]
    ) -> list[TableEvents]:
        """The events ``read`` and ``others``, which have these schemas, by table; ordered by their first records."""
        groups: list[TableEvents] = []
        for schema, events in read:
            same = [i for i, one in enumerate(schemas) if one is schema]
            whole = events.merged(others.select(same))
            groups += self._grouped(whole, [schema] * len(whole))
        known = {id(schema) for schema, _ in read}
        rest = [i for i, one in enumerate(schemas) if id(one) not in known]
        groups += self._grouped(others.select(rest), [schemas[i] for i in rest])
        return sorted(groups, key=lambda group: group.events.at[0])

    def _shape(self) -> MessageShape:
        topic_table = self._table_of_topic()
        mapped = any(topic == self.records.topic for topic, _ in self.options.topic_tables)
        return MessageShape(
            traced=bool(self.options.epoch_of_server or self.options.epoch_of_gtid_domain),
            flat_prefix=self.options.flat_prefix,
            flat_topic=mapped or (topic_table is not None and bool(self.schemas.versions(topic_table))),
            max_nesting=self.options.max_nesting,
            one_of_many=self.options.format is EventFormat.AUTO,
        )

    def _settle(self, at: int, payload: Buffer, kind: str) -> None:
        """Settle a record that changes no row."""
        if kind == TOMBSTONE:
            self.tombstones.append(at)
        elif kind == FOREIGN:
            self.foreign.append(at)
        elif kind == DDL_OF_TABLE:
            self._settle_statement(at, payload)
        elif kind != FRAMED:
            self.decoded.count_filtered(None, kind)

    def _settle_statement(self, at: int, payload: Buffer) -> None:
        try:
            statement = statement_of(payload)
            epoch = self.options.epoch_for(statement.server_id, statement.gtid)
            order = binlog_order(epoch, statement.file, statement.position)
        except msgspec.ValidationError:
            self.decoded.count_filtered(None, "ddl")
        except OverflowError as error:
            self.refuse(at, Fault(Reason.ORDER_OUT_OF_RANGE, str(error)))
        else:
            self.control(at, ControlKind.DDL, statement.source, order, statement.text, bytes(payload))

    def control(
        self,
        at: int,
        kind: ControlKind,
        source: SourceTable,
        order: int,
        text: str = "",
        record: bytes = b"",
        source_ms: int = 0,
    ) -> None:
        """Note one record that concerns a whole table."""
        place = (self.records.topic, self.records.partition, int(self.records.offsets[at]))
        self.decoded.controls.append(Control(kind, source, order, *place, text, record=record, source_ms=source_ms))

    def _settle_tombstones(self, found: list[TableEvents]) -> None:
        if not self.tombstones:
            return
        sources = {group.source for group in found}
        source = next(iter(sources)) if len(sources) == 1 else None
        target = source or self._table_of_topic()
        flat = all(group.events.befores is None for group in found)
        named: list[int] = []
        if self.options.flat_tombstone_deletes and target is not None and flat:
            named = [index for index in self.tombstones if self.keys.fields_at(index)]
            rows = [self.keys.payloads[index] or b"" for index in named]
            found += self._grouped(deletes_by_key(named, rows, target), None)
            doubtful, doubt = sorted({*self._saying()} - {*named}), _BARE_KEY
        else:
            doubtful, doubt = self._doubtful(), _DOUBT
        if target in self.options.ignored_tables:
            doubtful = []
        for index in doubtful:
            self.refuse(index, doubt, target)
        if (rest := len(self.tombstones) - len(named) - len(doubtful)) > 0:
            self.decoded.count_filtered(source, TOMBSTONE, rest)

    def _doubtful(self) -> list[int]:
        """The tombstones that may be the only sign of a delete: those beside flat messages that do not say whether they
        delete, those beside no message of a topic whose messages are such, and those that follow another tombstone,
        where Debezium's deletes stand between two."""
        saying, says_deletes = self._saying(), self.decoded.says_deletes
        if says_deletes is None:
            says_deletes = self.records.topic not in self.options.deletes_unsaid_in
            self.decoded.lone_tombstones = bool(saying) and says_deletes
        if self.options.doubts_tombstones or not says_deletes:
            return saying
        keyed = [index for index in saying if self.records.keys[index] is not None]
        behind = {int(self.records.offsets[index]) + 1 for index in keyed}
        return [index for index in keyed if int(self.records.offsets[index]) in behind]

    def _saying(self) -> list[int]:
        """The tombstones that can say a delete: those with a key, and those of a table without one."""
        keys = self.records.keys
        if not self.options.has_emptied and all(key is None for key in keys):
            return list(self.tombstones)
        return [index for index in self.tombstones if keys[index] is not None]

    def _says_no_deletes(self, events: RowEvents) -> bool:
        """Whether a table's messages are flat ones, and their members do not say of one whether it is a delete."""
        if events.befores is not None or "d" in events.ops:
            return False
        ends = (self.payload(index) for index in (events.at[0], events.at[-1]))
        return not all(b'"%sdeleted"' % self.options.flat_prefix.encode() in bytes(end) for end in ends)

    def _grouped(self, events: RowEvents, schemas: list[ConnectField | None] | None) -> Iterator[TableEvents]:
        fields = self.keys.fields
        same_table = _all_equal(events.databases) and _all_equal(events.tables)
        uniform = same_table and not isinstance(fields, list) and _all_equal(list(map(id, schemas or ())))
        if uniform and len(events):
            schema = schemas[0] if schemas else None
            groups = [((events.databases[0], events.tables[0], schema, self.keys.fields_at(events.at[0])), events)]
        else:
            groups = self._parted(events, schemas)
        for (database, table, schema, key_fields), group in groups:
            source = self._source(database, table)
            self.decoded.note_deletes(not self._says_no_deletes(group))
            if source is None:
                for index in group.at:
                    self.refuse(index, Fault(Reason.UNKNOWN_TABLE, _NO_TABLE))
            elif source in self.options.ignored_tables:
                self.decoded.count_filtered(source, IGNORED, len(group))
            else:
                yield TableEvents(source, schema, key_fields, group)

    def _parted(self, events: RowEvents, schemas: list[ConnectField | None] | None) -> list[tuple[_Group, RowEvents]]:
        parts: dict[tuple[object, ...], list[int]] = {}
        for i, record_index in enumerate(events.at):
            identity = id(schemas[i]) if schemas else 0
            parts.setdefault(
                (events.databases[i], events.tables[i], identity, self.keys.fields_at(record_index)), []
            ).append(i)
        out = []
        for chosen in parts.values():
            i = chosen[0]
            schema = schemas[i] if schemas else None
            head = (events.databases[i], events.tables[i], schema, self.keys.fields_at(events.at[i]))
            out.append((head, events.select(chosen)))
        return out

    def _source(self, database: str | None, table: str | None) -> SourceTable | None:
        if database is not None and table is not None:
            return SourceTable.named(database, table)
        named = self._table_of_topic()
        if named is None:
            return None
        return SourceTable.named(
            named.database if database is None else database, named.table if table is None else table
        )

    def _table_of_topic(self) -> SourceTable | None:
        """The table from the settings, else from ``<prefix>.<database>.<table>``."""
        topic = self.records.topic
        mapped = next((table for name, table in self.options.topic_tables if name == topic), None)
        parts = topic.split(".")
        return mapped or (SourceTable.named(parts[-2], parts[-1]) if len(parts) > 2 else None)


_Group = tuple[str | None, str | None, ConnectField | None, tuple[str, ...] | None]


def _all_equal(values: Sequence[object]) -> bool:
    return not values or values.count(values[0]) == len(values)


# Settles values that are not valid messages of a reader's format: Canal's and Maxwell's, which look alike.

_NULL = b"null"


def reject_invalid(chunk: DecodeChunk, at: int, value: bytes, format_: EventFormat) -> bool:
    """Settle a record that is a tombstone, another reader's, or not JSON; False for any other record."""
    if value.strip() == _NULL:
        chunk.tombstones.append(at)
    elif chunk.options.format is EventFormat.AUTO and detect_format(value) is not format_:
        chunk.foreign.append(at)
    elif (fault := json_fault(value, chunk.options.max_nesting)) is not None:
        chunk.refuse(at, fault)
    else:
        return False
    return True


def reject_misfit(chunk: DecodeChunk, at: int, value: bytes, error: str) -> None:
    """Quarantine a misfit: a bad message if it names a type and a database, else no message of this format."""
    named = value.lstrip()[:1] == b"{" and b'"type"' in value and b'"database"' in value
    chunk.refuse(at, Fault(Reason.BAD_VALUE if named else Reason.UNKNOWN_MESSAGE, error))


# Messages in groups that are decoded together: those that templates have read, and all others.

_I64 = npt.NDArray[np.int64]
_NONE = np.empty(0, dtype=np.int64)
_Key = TypeVar("_Key")
_Message = TypeVar("_Message")


@dataclass
class _Alike(Generic[_Message]):
    read: list[_I64] = field(default_factory=list)
    others: list[tuple[int, _Message]] = field(default_factory=list)


@dataclass(frozen=True)
class Groups(Generic[_Key, _Message]):
    """Messages by group. ``records``: those of the messages that templates have read."""

    records: _I64 = field(default_factory=_NONE.copy)
    by_key: dict[_Key, _Alike[_Message]] = field(default_factory=dict)

    def add_read(self, key: _Key, read: _I64) -> None:
        """Add messages by their places among those that templates have read."""
        if len(read):
            self.by_key.setdefault(key, _Alike()).read.append(read)

    def add(self, key: _Key, index: int, message: _Message) -> None:
        """Add a message of a record; they come in ascending order."""
        self.by_key.setdefault(key, _Alike()).others.append((index, message))

    def in_order(self) -> Iterator[tuple[_Key, _I64, list[tuple[int, _Message]]]]:
        """The groups by their first record: the places of the messages read, ascending, and the others."""
        for key, group in sorted(self.by_key.items(), key=lambda item: self._first(item[1])):
            yield key, np.sort(np.concatenate([_NONE, *group.read])), group.others

    def _first(self, group: _Alike[_Message]) -> int:
        first = [int(self.records[read].min()) for read in group.read]
        return min(first + [index for index, _ in group.others[:1]])
