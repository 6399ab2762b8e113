"""Canal's flat JSON -> change batches. One message holds the rows of one rows event, with every value as text.

The messages have no binlog place. Kafka's offset orders the messages; the index in the message orders its rows. So all
messages of a key must be in one partition of one topic, and a topic that is created again needs a higher
``source.epoch``. ``old`` holds the changed values of an update. It is the only sign of a changed key, so an update that
changes its key always gets its before image and the row under the old key is deleted. Each message has its types
(``mysqlType``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import numpy.typing as npt

from binlake.decode import order
from binlake.decode.changes import ControlKind, SourceTable
from binlake.decode.ddl.clauses import EVERY_TABLE
from binlake.decode.events import NO_PLACE, NO_POSITION, Places, RowEvents
from binlake.decode.formats.canal_messages import (
    MEMBERS,
    STRICT,
    TYPES,
    AnyMessage,
    CanalMessage,
    bare_name,
    heads_of,
    inner_parts,
    source_of,
    version_of,
)
from binlake.decode.messages.chunk import IGNORED, DecodeChunk, Groups, TableEvents
from binlake.decode.messages.duplicates import with_duplicate_members
from binlake.decode.messages.envelopes import TOMBSTONE
from binlake.decode.messages.images import before_of
from binlake.decode.messages.part import decode_rows
from binlake.decode.options import CanalForm
from binlake.decode.quarantine import Buffer, Fault, Reason, json_fault

if TYPE_CHECKING:
    from binlake.decode.templates.canal import CanalRows

_I64 = npt.NDArray[np.int64]
_NULL = b"null"
_ROW_OPS = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_DDL = frozenset({"CREATE", "ALTER", "ERASE", "RENAME", "CINDEX", "DINDEX"})
#: Types of messages that change nothing, and the kind that each is counted as.
_NO_CHANGE = {
    "QUERY": "query",
    "GTID": "transaction",
    "XACOMMIT": "transaction",
    "XAROLLBACK": "transaction",
    "MHEARTBEAT": "heartbeat",
}
_MOST_ROWS = 100_000
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True)
class _Kind:
    """A group of rows that are decoded together: one table, the same types and key."""

    source: SourceTable
    types: bytes
    key: tuple[str, ...] | None


@dataclass(frozen=True)
class _Scan:
    """What templates have read. ``live``: the records of all messages."""

    rows: CanalRows
    live: _I64

    @property
    def heads(self) -> list[CanalMessage]:
        """The message of each template."""
        return [template.document["head"] for template in self.rows.reading.templates]

    def records(self, read: _I64) -> _I64:
        """The records of messages, by their places among those read."""
        return self.live[self.rows.rows[read]]


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records. With automatic detection, records of other formats are left."""
    live = chunk.live()
    scan = _scanned(chunk, live)
    groups: Groups[_Kind, AnyMessage] = Groups()
    if scan is not None:
        groups = Groups(scan.records(np.arange(len(scan.rows.rows))))
        chunk.decoded.by_template += len(scan.rows.rows)
        _sort_read(chunk, scan, groups)
        live = np.delete(scan.live, scan.rows.rows).tolist()
    heads = heads_of(chunk, live)
    values = [chunk.records.values[index] or b"" for index, _ in heads]
    doubled = set(with_duplicate_members(values, [head for _, head in heads], MEMBERS, inner_parts))
    for i, (index, head) in enumerate(heads):
        fault = json_fault(values[i], chunk.options.max_nesting) if i in doubled else None
        if fault is not None:
            chunk.refuse(index, fault, source_of(head))
        elif (of_kind := _settled(chunk, index, head)) is not None:
            groups.add(of_kind, index, head)
    for kind, taken, messages in groups.in_order():
        _decode_kind(chunk, kind, taken, messages, scan)
    if chunk.tombstones:
        chunk.decoded.count_filtered(None, TOMBSTONE, len(chunk.tombstones))


def _scanned(chunk: DecodeChunk, live: list[int]) -> _Scan | None:
    """The messages of rows that look alike; None if there are none."""
    # imported here: numba needs half a second, and commands that decode nothing import this module too
    from binlake.decode.templates.canal import read_rows

    def content(message: Buffer) -> Mapping[str, Any] | None:
        try:
            head = STRICT(message)
        except _BAD:
            return None
        if head.type not in _ROW_OPS or source_of(head) is None or _shape_fault(head) is not None:
            return None
        if json_fault(bytes(message), chunk.options.max_nesting) is not None:
            return None
        rows = head.data or []
        one = len(rows) == 1 and bytes(rows[0])[:1] == b"{"
        return {"type": head.type, "rows": 1 if one else 0, "head": head}

    rows = read_rows([chunk.records.values[index] or b"" for index in live], content)
    return None if rows is None else _Scan(rows, np.array(live, dtype=np.int64))


def _sort_read(chunk: DecodeChunk, scan: _Scan, groups: Groups[_Kind, AnyMessage]) -> None:
    """Sort the messages that templates have read into kinds; those of ignored tables are counted."""
    everything = np.arange(len(scan.rows.rows))
    template = scan.rows.template(everything)
    for n, head in enumerate(scan.heads):
        read, source = everything[template == n], source_of(head)
        if source is None or not len(read):
            continue
        if source in chunk.options.ignored_tables:
            chunk.decoded.count_filtered(source, IGNORED, len(read))
        else:
            groups.add_read(_Kind(source, bytes(head.mysql_type), head.pk_names), read)


def _settled(chunk: DecodeChunk, at: int, message: AnyMessage) -> _Kind | None:
    """The kind of a message with rows; None for any other message, which is settled here."""
    source, what = source_of(message), message.type
    if what == "QUERY" and message.is_ddl and message.database:
        _statement(chunk, at, message, SourceTable(bare_name(message.database), EVERY_TABLE))
    elif what in _NO_CHANGE:
        chunk.decoded.count_filtered(None, _NO_CHANGE[what])
    elif what not in _ROW_OPS and what not in _DDL and what != "TRUNCATE":
        chunk.refuse(at, Fault(Reason.UNKNOWN_OP, f"type {what[:50]!r} is not known"), source)
    elif source is None:
        chunk.refuse(at, Fault(Reason.UNKNOWN_TABLE, "the message names no table that MySQL can have"))
    elif source in chunk.options.ignored_tables:
        chunk.decoded.count_filtered(source, IGNORED)
    elif what in _ROW_OPS:
        if (fault := _shape_fault(message)) is None:
            return _Kind(source, bytes(message.mysql_type), message.pk_names)
        chunk.refuse(at, fault, source)
    else:
        _statement(chunk, at, message, source)
    return None


def _shape_fault(message: AnyMessage) -> Fault | None:
    rows = len(message.data or ())
    if not rows:
        return Fault(Reason.MISSING_IMAGE, f"{message.type} without data")
    if message.type == "UPDATE" and len(message.old or ()) != rows:
        return Fault(Reason.MISSING_IMAGE, f"UPDATE of {rows} rows with {len(message.old or ())} in old")
    return None


def _statement(chunk: DecodeChunk, at: int, message: AnyMessage, source: SourceTable) -> None:
    place = int(_orders(chunk, [at], [message.gtid])[0])
    if place == order.OUT_OF_RANGE:
        chunk.refuse(at, _ORDER, source)
    elif message.type == "TRUNCATE":
        chunk.control(at, ControlKind.TRUNCATE, source, place, message.sql or "", source_ms=message.es or 0)
    else:
        chunk.control(at, ControlKind.DDL, source, place, message.sql or "")


_ORDER = Fault(Reason.ORDER_OUT_OF_RANGE, "the Kafka offset does not fit the ordering value")


def _orders(chunk: DecodeChunk, at: list[int], gtids: list[str | None]) -> order.Int64s:
    options = chunk.options
    if options.epoch_of_gtid_domain:
        epochs = np.array([options.epoch_for(None, gtid) for gtid in gtids], dtype=np.int64)
    else:
        epochs = np.full(len(at), options.epoch_for(None, None), dtype=np.int64)
    return order.offset_orders(epochs, chunk.records.offsets[at])


def _portions(counts: _I64) -> Iterator[slice]:
    """Messages in portions by rows, so that a portion needs no more memory than a chunk of single rows."""
    rows, start = np.cumsum(counts), 0
    while start < len(counts):
        before = rows[start - 1] if start else 0
        stop = int(np.searchsorted(rows, before + _MOST_ROWS)) + 1
        yield slice(start, stop)
        start = stop


def _decode_kind(
    chunk: DecodeChunk, kind: _Kind, read: _I64, messages: list[tuple[int, AnyMessage]], scan: _Scan | None
) -> None:
    """Decode messages of one kind, portion by portion, in the order of their records."""
    there = (scan.records(read), scan.rows.counts[read]) if scan is not None else (read, read)
    records = np.concatenate([there[0], np.array([index for index, _ in messages], dtype=np.int64)])
    counts = np.concatenate([there[1], np.array([len(m.data or ()) for _, m in messages], dtype=np.int64)])
    by_record = np.argsort(records)
    for portion in _portions(counts[by_record]):
        chosen = by_record[portion]
        others = [messages[i] for i in (chosen[chosen >= len(read)] - len(read)).tolist()]
        _decode_portion(chunk, kind, scan, read[chosen[chosen < len(read)]], others)


def _decode_portion(
    chunk: DecodeChunk, kind: _Kind, scan: _Scan | None, read: _I64, messages: list[tuple[int, AnyMessage]]
) -> None:
    known = version_of(kind.types, kind.key)
    if isinstance(known, Fault):
        for index in sorted([index for index, _ in messages] + (scan.records(read).tolist() if scan else [])):
            chunk.refuse(index, known, kind.source)
        return
    versions = (known,) if known is not None else chunk.schemas.versions(kind.source)
    key = chunk.schemas.key(kind.source) or kind.key or (versions[-1].key if versions else ())
    whole = chunk.options.wants_before(kind.source)
    traced = bool(chunk.options.epoch_of_gtid_domain)
    events = RowEvents.none(traced=traced)
    for index, message in messages:
        _add_rows(events, index, message, key, whole)
    if scan is not None and len(read):
        events = _events_read(scan, read, kind, key, whole=whole, traced=traced).merged(events)
    orders = _orders(chunk, events.at, events.gtids or [])
    good = np.flatnonzero(orders != order.OUT_OF_RANGE)
    for index in np.unique(np.array(events.at)[orders == order.OUT_OF_RANGE]).tolist():
        chunk.refuse(index, _ORDER, kind.source)
    group = TableEvents(kind.source, None, kind.key, events)
    place = Places(orders, np.full(len(orders), NO_PLACE, dtype=np.int64))
    decode_rows(chunk, group, place, good, form=CanalForm(chunk.options.time_zone), versions=versions)


def _events_read(scan: _Scan, read: _I64, kind: _Kind, key: tuple[str, ...], *, whole: bool, traced: bool) -> RowEvents:
    """The events of messages that templates have read."""
    taken, template = scan.rows, scan.rows.template(read)
    counts = taken.counts[read]
    numbers = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    images = taken.images.select(np.repeat(taken.firsts[read], counts) + numbers)
    ops, databases, tables = (
        np.array(names, dtype=object)[np.repeat(template, counts)]
        for names in zip(*((_ROW_OPS[head.type], head.database, head.table) for head in scan.heads), strict=True)
    )
    befores: list[Buffer] = [_NULL] * len(numbers)
    updates = np.flatnonzero(ops == "u")
    if len(updates):
        olds = (np.repeat(taken.first_olds[read], counts) + numbers)[updates]
        names = [*TYPES(kind.types)] if kind.types != _NULL else []
        looked_at = np.flatnonzero(~taken.unchanged(olds, names, key)) if not whole else np.arange(len(olds))
        for i, old in zip(updates[looked_at].tolist(), olds[looked_at].tolist(), strict=True):
            befores[i] = before_of(images[i], taken.olds[old], key, whole)
    return RowEvents(
        at=np.repeat(scan.records(read), counts).tolist(),
        ops=ops.tolist(),
        databases=databases.tolist(),
        tables=tables.tolist(),
        files=[None] * len(numbers),
        positions=[NO_POSITION] * len(numbers),
        rows=numbers.tolist(),
        source_ms=np.repeat(taken.es(read), counts).tolist(),
        servers=[None] * len(numbers) if traced else None,
        gtids=np.repeat(np.array(taken.gtids(read), dtype=object), counts).tolist() if traced else None,
        images=images,
        befores=befores,
    )


def _add_rows(events: RowEvents, at: int, message: AnyMessage, key: tuple[str, ...], whole: bool) -> None:
    rows = message.data or []
    n = len(rows)
    events.at += [at] * n
    events.ops += [_ROW_OPS[message.type]] * n
    events.databases += [message.database] * n
    events.tables += [message.table] * n
    events.files += [None] * n
    events.positions += [NO_POSITION] * n
    events.rows += range(n)
    events.source_ms += [message.es or 0] * n
    if events.servers is not None and events.gtids is not None:
        events.servers += [None] * n
        events.gtids += [message.gtid] * n
    befores: list[Buffer] = [_NULL] * n
    if message.type == "UPDATE":
        befores = [before_of(row, old, key, whole) for row, old in zip(rows, message.old or (), strict=True)]
    events.add_images(rows, befores)
