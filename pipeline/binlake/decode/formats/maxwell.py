"""Maxwell's JSON -> change batches: one row in each message, typed, with only the members that apply.

``position`` (``output_binlog_position``) orders the rows, and ``xoffset`` those of one event; the last row of a
transaction has ``commit`` instead. Where Maxwell writes no positions, ``source.maxwell.order: offset`` uses Kafka's
offset, also of the statements among the rows. Rows of a bootstrap are snapshot rows. ``old`` is the only sign of a
changed key, as with Canal. Types come from Maxwell's own DDL (``output_ddl``), selected by position, or from the
settings. There is no TRUNCATE: Maxwell does not write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode import order
from binlake.decode.changes import ControlKind, SourceTable
from binlake.decode.events import NO_POSITION, Places, RowEvents, places
from binlake.decode.formats.debezium import decode_table
from binlake.decode.formats.maxwell_schema import at_offset, definition_changes
from binlake.decode.messages.chunk import IGNORED, DecodeChunk, Groups, TableEvents, reject_invalid, reject_misfit
from binlake.decode.messages.duplicates import with_duplicate_members
from binlake.decode.messages.envelopes import TOMBSTONE, Long
from binlake.decode.messages.format_detection import MAXWELL_DDL
from binlake.decode.messages.images import before_of
from binlake.decode.options import EventFormat, MaxwellForm, MaxwellOrder
from binlake.decode.quarantine import Buffer, Fault, Reason, json_fault

if TYPE_CHECKING:
    from binlake.decode.templates.maxwell import MaxwellRows

_NULL = b"null"
_RowNumber = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Time = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
_OPS = {"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": "r"}
_BOOTSTRAP = frozenset({"bootstrap-start", "bootstrap-complete"})
#: The table that users insert bootstrap requests into; Maxwell writes these inserts as any other.
_ASKS_FOR_BOOTSTRAP = SourceTable("maxwell", "bootstrap")
_MEMBERS = (b'"data":', b'"database":', b'"table":', b'"type":')
_LAST_ROW = (1 << 31) - 1
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_PK = "pk."
_NO_NUMBER = Fault(
    Reason.NO_POSITION, "a row of a table without a key has no xoffset: set output_xoffset=true at Maxwell"
)


class _MaxwellMessage(msgspec.Struct, gc=False):
    """A message about a row or a bootstrap. Of a DDL message only the head is read."""

    type: str
    database: str | None
    ts: _Time
    table: str | None = None
    position: str | None = None
    xoffset: _RowNumber | None = None
    commit: bool | None = None
    server_id: Long | None = None
    gtid: str | None = None
    primary_key_columns: tuple[str, ...] | None = None
    data: msgspec.Raw = msgspec.Raw(_NULL)
    old: msgspec.Raw = msgspec.Raw(_NULL)
    sql: str | None = None


_ANY = msgspec.json.Decoder().decode
_MESSAGE = msgspec.json.Decoder(_MaxwellMessage).decode
_Group = tuple[SourceTable, tuple[str, ...] | None]


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    live = chunk.live()
    scan = _scanned(chunk, live)
    groups: Groups[_Group, _MaxwellMessage] = Groups()
    if scan is not None:
        chunk.decoded.by_template += len(scan.records)
        groups = Groups(scan.records)
        _sort_read(chunk, scan, groups)
        live = np.delete(np.array(live), scan.rows.rows).tolist()
    heads = _heads(chunk, live)
    doubled = _doubled(chunk, heads)
    for index, head in heads:
        if index in doubled:
            chunk.refuse(index, doubled[index], _source(head))
        elif (source := _settled(chunk, index, head)) is not None:
            groups.add((source, _key(chunk, index, head)), index, head)
    for (source, key), read_rows, messages in groups.in_order():
        _decode_table(chunk, source, key, messages, scan and replace(scan, read=read_rows))
    if chunk.tombstones:
        chunk.decoded.count_filtered(None, TOMBSTONE, len(chunk.tombstones))


@dataclass(frozen=True)
class _RowsRead:
    """What templates have read. ``records``: those of the messages. ``read``: the places of those that are meant."""

    rows: MaxwellRows
    records: npt.NDArray[np.int64]
    read: npt.NDArray[np.int64]


def _scanned(chunk: DecodeChunk, live: list[int]) -> _RowsRead | None:
    """The messages of rows that look alike; None if there are none."""
    # imported here: numba needs half a second, and commands that decode nothing import this module too
    from binlake.decode.templates.maxwell import read_rows

    def content(message: Buffer) -> Mapping[str, Any] | None:
        try:
            head, document = _MESSAGE(message), _ANY(message)
        except _BAD:
            return None
        source = _source(head)
        if head.type not in _OPS or source in (None, _ASKS_FOR_BOOTSTRAP) or bytes(head.data)[:1] != b"{":
            return None
        if "sql" in document or json_fault(bytes(message), chunk.options.max_nesting) is not None:
            return None
        return {"type": head.type, "head": head, "source": source}

    rows = read_rows([chunk.records.values[index] or b"" for index in live], content)
    if rows is None:
        return None
    placed = rows.have_place() | _by_offset(chunk)
    placed |= rows.are_bootstrap(np.arange(len(placed)))
    rows = replace(rows, rows=rows.rows[placed])
    return _RowsRead(rows, np.array(live, dtype=np.int64)[rows.rows], np.arange(len(rows.rows)))


def _sort_read(chunk: DecodeChunk, scan: _RowsRead, groups: Groups[_Group, _MaxwellMessage]) -> None:
    """Sort the messages that templates have read into groups; those of ignored tables are counted."""
    template = scan.rows.template(scan.read)
    for n, document in enumerate(scan.rows.documents()):
        read, source, head = scan.read[template == n], document["source"], document["head"]
        if source in chunk.options.ignored_tables:
            if len(read):
                chunk.decoded.count_filtered(source, IGNORED, len(read))
        elif head.primary_key_columns is not None or not isinstance(chunk.keys.fields, list):
            groups.add_read((source, _key(chunk, 0, head)), read)
        else:
            for place in read:
                groups.add_read((source, _key(chunk, int(scan.records[place]), head)), np.array([place]))


def _doubled(chunk: DecodeChunk, heads: list[tuple[int, _MaxwellMessage]]) -> dict[int, Fault]:
    """Faults of rows that name a member twice, searched among messages with the same members."""
    alike: dict[tuple[bool, bool], list[tuple[int, _MaxwellMessage]]] = {}
    for pair in heads:
        if pair[1].type in _OPS:
            alike.setdefault((pair[1].type == "update", pair[1].position is None), []).append(pair)
    faults: dict[int, Fault] = {}
    for (update, placeless), pairs in alike.items():
        members = dict.fromkeys(_MEMBERS, 1) | {b'"old":': int(update), b'"position":': int(not placeless)}
        values = [chunk.records.values[index] or b"" for index, _ in pairs]
        for i in with_duplicate_members(values, [m for _, m in pairs], members, lambda m: (m.data, m.old)):
            if (fault := json_fault(values[i], chunk.options.max_nesting)) is not None:
                faults[pairs[i][0]] = fault
    return faults


def _heads(chunk: DecodeChunk, live: list[int]) -> list[tuple[int, _MaxwellMessage]]:
    heads = []
    for index in live:
        value = chunk.records.values[index] or b""
        try:
            head = _MESSAGE(value)
            if bytes(head.data)[:1] != b"{" and head.type not in MAXWELL_DDL:
                raise msgspec.ValidationError("a message whose data is no object")
            heads.append((index, head))
        except _BAD as error:
            _other(chunk, index, value, str(error))
    return heads


def _other(chunk: DecodeChunk, at: int, value: bytes, error: str) -> None:
    """Settle a record that is not a valid Maxwell message."""
    if not reject_invalid(chunk, at, value, EventFormat.MAXWELL):
        reject_misfit(chunk, at, value, error)


def _source(message: _MaxwellMessage) -> SourceTable | None:
    return SourceTable.named(message.database, message.table) if message.database and message.table else None


def _key(chunk: DecodeChunk, at: int, message: _MaxwellMessage) -> tuple[str, ...] | None:
    """The key's columns: from the message, else from the Kafka key (``pk.<column>``)."""
    if message.primary_key_columns is not None:
        return message.primary_key_columns
    fields = chunk.keys.fields_at(at) or ()
    return tuple(name[len(_PK) :] for name in fields if name.startswith(_PK)) or None


def _settled(chunk: DecodeChunk, at: int, message: _MaxwellMessage) -> SourceTable | None:
    """The table of a message with a row; None for any other message, which is settled here."""
    source, what = _source(message), message.type
    if what in MAXWELL_DDL:
        _statement(chunk, at, message)
    elif source is not None and (what in _BOOTSTRAP or source == _ASKS_FOR_BOOTSTRAP):
        chunk.decoded.count_filtered(source if what in _BOOTSTRAP else None, "bootstrap")
    elif what not in _OPS:
        chunk.refuse(at, Fault(Reason.UNKNOWN_OP, f"type {what[:50]!r} is not known"), source)
    elif source is None:
        chunk.refuse(at, Fault(Reason.UNKNOWN_TABLE, "the message names no table that MySQL can have"))
    elif source in chunk.options.ignored_tables:
        chunk.decoded.count_filtered(source, IGNORED)
    elif (fault := _position_fault(chunk, message)) is not None:
        chunk.refuse(at, fault, source)
    else:
        return source
    return None


def _position_fault(chunk: DecodeChunk, message: _MaxwellMessage) -> Fault | None:
    if message.position is not None or message.type == "bootstrap-insert" or _by_offset(chunk):
        return None
    detail = "the message has no position: set output_binlog_position=true at Maxwell, or source.maxwell.order: offset"
    return Fault(Reason.NO_POSITION, detail)


def _by_offset(chunk: DecodeChunk) -> bool:
    return chunk.options.maxwell_order is MaxwellOrder.OFFSET


def _statement(chunk: DecodeChunk, at: int, message: _MaxwellMessage) -> None:
    """DDL: a definition of a table goes to the driver, which gives its schema to the rows that follow."""
    if message.type in ("database-create", "database-alter"):
        chunk.decoded.count_filtered(None, "ddl")
        return
    value = chunk.records.values[at] or b""
    try:
        if _by_offset(chunk):
            value = at_offset(value, int(chunk.records.offsets[at]))
        change = definition_changes(value)[-1]
        place = order.binlog_order(chunk.options.epoch_for(change.server_id, change.gtid), change.file, change.position)
    except (*_BAD, IndexError) as error:
        fault = json_fault(value, chunk.options.max_nesting) or Fault(Reason.BAD_VALUE, f"a definition: {error}")
        chunk.refuse(at, fault, _source(message))
    except OverflowError as error:
        chunk.refuse(at, Fault(Reason.ORDER_OUT_OF_RANGE, str(error)), _source(message))
    else:
        chunk.control(at, ControlKind.DDL, change.source, place, message.sql or "", bytes(value))


@dataclass(frozen=True, slots=True)
class _BeforeForm:
    """How the before images of a table's updates are made: see ``before_of``."""

    key: tuple[str, ...]
    whole: bool
    nulls: bool | None

    def read(self, row: Buffer, old: Buffer) -> Buffer:
        """The before image of one update."""
        return before_of(row, old, self.key, self.whole, self.nulls)


def _decode_table(
    chunk: DecodeChunk,
    source: SourceTable,
    key: tuple[str, ...] | None,
    messages: list[tuple[int, _MaxwellMessage]],
    scan: _RowsRead | None,
) -> None:
    versions = chunk.schemas.versions(source)
    keys = chunk.schemas.key(source) or key or (versions[-1].key if versions else ())
    if not keys and not _by_offset(chunk):
        messages = [pair for pair in messages if _has_row_number(chunk, source, *pair)]
        scan = scan and _numbered(chunk, source, scan)
    form = _BeforeForm(keys, chunk.options.wants_before(source), chunk.options.maxwell_nulls_of(source))
    events = _events(chunk, messages, form)
    if scan is not None and len(scan.read):
        events = _events_read(chunk, scan, form).merged(events)
    if not len(events):
        return
    offsets = chunk.records.offsets[events.at]
    placed = places(events, offsets, chunk.options)
    if _by_offset(chunk):
        placed = _placed_by_offset(chunk, events, placed)
    group = TableEvents(source, None, key, events)
    decode_table(chunk, group, placed, MaxwellForm(chunk.options.time_zone))


def _has_row_number(chunk: DecodeChunk, source: SourceTable, at: int, message: _MaxwellMessage) -> bool:
    """Whether the row's number is known: rows of a table without a key differ by their place alone."""
    if message.xoffset is not None or message.commit or message.type == "bootstrap-insert":
        return True
    chunk.refuse(at, _NO_NUMBER, source)
    return False


def _numbered(chunk: DecodeChunk, source: SourceTable, scan: _RowsRead) -> _RowsRead:
    """The same of messages that templates have read."""
    numbered = scan.rows.are_numbered(scan.read) | scan.rows.are_bootstrap(scan.read)
    for record in scan.records[scan.read[~numbered]].tolist():
        chunk.refuse(record, _NO_NUMBER, source)
    return replace(scan, read=scan.read[numbered])


def _events_read(chunk: DecodeChunk, scan: _RowsRead, form: _BeforeForm) -> RowEvents:
    """The events of messages that templates have read."""
    rows, read = scan.rows, scan.read
    template, images = rows.template(read), rows.images(read)
    heads = [document["head"] for document in rows.documents()]
    ops, databases, tables = (
        np.array(names, dtype=object)[template].tolist()
        for names in zip(*((_OPS[head.type], head.database, head.table) for head in heads), strict=True)
    )
    befores: list[Buffer] = [_NULL] * len(read)
    updates = np.flatnonzero(np.array([head.type == "update" for head in heads])[template])
    if len(updates):
        looked_at = updates if form.whole else updates[~rows.keeps_key(read[updates], form.key)]
        for i, old in zip(looked_at.tolist(), rows.olds(read[looked_at]), strict=True):
            befores[i] = form.read(images[i], old)
    files, positions = rows.places(read)
    traced = _is_traced(chunk)
    return RowEvents(
        at=scan.records[read].tolist(),
        ops=ops,
        databases=databases,
        tables=tables,
        files=files,
        positions=positions,
        rows=rows.row_numbers(read, _LAST_ROW),
        source_ms=(rows.seconds(read) * 1000).tolist(),
        servers=rows.servers(read) if traced else None,
        gtids=rows.gtids(read) if traced else None,
        images=images,
        befores=befores,
    )


def _is_traced(chunk: DecodeChunk) -> bool:
    return bool(chunk.options.epoch_of_server or chunk.options.epoch_of_gtid_domain)


def _events(chunk: DecodeChunk, messages: list[tuple[int, _MaxwellMessage]], form: _BeforeForm) -> RowEvents:
    heads = [message for _, message in messages]
    split = [_place(message.position) for message in heads]
    traced = _is_traced(chunk)
    return RowEvents(
        at=[index for index, _ in messages],
        ops=[_OPS[m.type] for m in heads],
        databases=[m.database for m in heads],
        tables=[m.table for m in heads],
        files=[file for file, _ in split],
        positions=[position for _, position in split],
        rows=[_LAST_ROW if m.xoffset is None and m.commit else min(m.xoffset or 0, _LAST_ROW) for m in heads],
        source_ms=[m.ts * 1000 for m in heads],
        servers=[m.server_id for m in heads] if traced else None,
        gtids=[m.gtid for m in heads] if traced else None,
        images=[m.data for m in heads],
        befores=[form.read(m.data, m.old) if m.type == "update" else _NULL for m in heads],
    )


def _place(position: str | None) -> tuple[str, int]:
    """``file:position`` as (file, position)."""
    file, _, number = (position or "").rpartition(":")
    fits = number.isascii() and number.isdigit() and len(number) < 19
    return file, int(number) if fits else NO_POSITION


def _placed_by_offset(chunk: DecodeChunk, events: RowEvents, placed: Places) -> Places:
    """Kafka's offset as order, of rows among each other and among the statements."""
    epochs = np.full(len(events), chunk.options.epoch, dtype=np.int64)
    orders = order.offset_orders(epochs, chunk.records.offsets[events.at])
    return replace(placed, orders=orders, positions=orders)
