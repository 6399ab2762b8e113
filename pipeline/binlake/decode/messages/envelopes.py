"""The shapes of Debezium's messages; sorts a chunk into row events and all other records."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import UNSET

from binlake.decode.events import RowEvents, from_flats
from binlake.decode.messages.duplicates import with_duplicate_members
from binlake.decode.messages.format_detection import format_of, is_avro
from binlake.decode.options import EventFormat
from binlake.decode.quarantine import Buffer, Fault, Reason, json_fault
from binlake.decode.schemas.schema_change import is_schema_change

TOMBSTONE = "tombstone"
DDL_OF_TABLE = "ddl_of_table"
FRAMED = "framed"
FOREIGN = "foreign"

#: All members of the records of Debezium's transaction topic, and of its notifications. A flat row of a table that has
#: such columns has others besides.
_TRANSACTION = frozenset({"status", "id", "event_count", "data_collections", "ts_ms"})
_NOTIFICATION = frozenset({"id", "type", "aggregate_type", "additional_data", "timestamp"})
_NULL = msgspec.Raw(b"null")
#: Messages decoded together: as much as fits into the processor's cache for all passes (a sixth of the time).
_BLOCK = 2_000
_DOUBLED = "a member of the envelope occurs twice"
_MAX_LONG = (1 << 63) - 1
Long = Annotated[int, msgspec.Meta(ge=-_MAX_LONG, le=_MAX_LONG)]
_Position = Annotated[int, msgspec.Meta(ge=0, le=_MAX_LONG)]
_Row = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]


class Source(msgspec.Struct, gc=False):
    """The used part of ``source``. ``gc=False``: there are no cycles, and half a million objects in a chunk."""

    db: str
    table: str
    file: str
    pos: _Position
    row: _Row = 0
    ts_ms: Long = 0


class TracedSource(Source, gc=False):
    """A source with the fields that select an epoch."""

    server_id: Long | None = None
    gtid: str | None = None


class Envelope(msgspec.Struct, gc=False):
    """The envelope as Debezium writes it, with every member; row images stay raw."""

    op: str
    source: Source
    before: msgspec.Raw
    after: msgspec.Raw


class TracedEnvelope(msgspec.Struct, gc=False):
    """The same with a traced source."""

    op: str
    source: TracedSource
    before: msgspec.Raw
    after: msgspec.Raw


class _LooseEnvelope(msgspec.Struct, gc=False):
    op: str
    source: TracedSource
    before: msgspec.Raw = _NULL
    after: msgspec.Raw = _NULL


_FLAT_FIELDS: tuple[tuple[str, Any], ...] = (
    ("op", str | None),
    ("deleted", str | bool | None),
    *(
        (name, kind)
        for field_name, kind in (
            ("db", str | None),
            ("table", str | None),
            ("file", str | None),
            ("pos", _Position | None),
            ("row", _Row | None),
            ("ts_ms", Long | None),
            ("server_id", Long | None),
            ("gtid", str | None),
        )
        for name in (field_name, f"source_{field_name}")
    ),
)

#: Types of the fields that ExtractNewRecordState can add, by name without prefix; the types of others are sampled.
_FLAT_LONG_NAMES = (
    "ts_ms ts_us ts_ns pos row server_id thread source_ts_ms source_ts_us source_ts_ns source_pos source_row "
    "source_server_id source_thread transaction_total_order transaction_data_collection_order"
)
FLAT_LONGS = frozenset(_FLAT_LONG_NAMES.split())


@lru_cache(maxsize=8)
def flat_decoder(prefix: str) -> Callable[[Buffer], Any]:
    """A decoder for the added fields of flat messages; missing fields are UNSET."""
    fields = [(name, kind | msgspec.UnsetType, msgspec.field(default=UNSET)) for name, kind in _FLAT_FIELDS]
    renamed = {name: prefix + name for name, _ in _FLAT_FIELDS}
    kind = msgspec.defstruct("FlatFields", fields, rename=renamed, gc=False)
    return msgspec.json.Decoder(kind).decode


_ENVELOPE = msgspec.json.Decoder(Envelope).decode
_TRACED_ENVELOPE = msgspec.json.Decoder(TracedEnvelope).decode
_LOOSE_ENVELOPE = msgspec.json.Decoder(_LooseEnvelope).decode
_ANY = msgspec.json.Decoder().decode

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)


@dataclass(frozen=True)
class MessageShape:
    """The options that distinguish kinds of messages.

    Attributes:
        traced: server id and GTID are needed.
        flat_prefix: see DecodeOptions.
        flat_topic: a message of no known shape is a flat row without added fields.
        max_nesting: see DecodeOptions.
        one_of_many: messages of other formats are recognised (FOREIGN).
    """

    traced: bool
    flat_prefix: str
    flat_topic: bool
    max_nesting: int
    one_of_many: bool = False


@dataclass
class SortedMessages:
    """A sorted chunk: its records by kind, as positions in the list given to ``sort_messages``.

    ``events`` come from envelopes; ``event_at`` are their positions. ``flats``: the same of flat messages;
    ``flat_heads``: their decoded heads, while they are sorted. ``others`` hold the kind of each record that changes
    nothing (DDL_OF_TABLE for a statement about a table; FRAMED for a message that is still in its frame). ``faults``
    hold the rest. ``by_template``: how many were read by templates.
    """

    events: RowEvents
    event_at: list[int] = field(default_factory=list)
    flats: RowEvents | None = None
    flat_heads: list[Any] = field(default_factory=list)
    flat_at: list[int] = field(default_factory=list)
    others: list[tuple[int, str]] = field(default_factory=list)
    faults: list[tuple[int, Fault]] = field(default_factory=list)
    by_template: int = 0


def sort_messages(payloads: list[Buffer], at: Sequence[int], shape: MessageShape) -> SortedMessages:
    """Decode the heads of all messages, and the rows of messages that share a template.

    ``at``: the record indices of the payloads, which the events get.
    """
    # imported here: numba needs half a second, and commands that decode nothing import this module too
    from binlake.decode.templates.flat import scan_flats
    from binlake.decode.templates.scan import scan_envelopes

    def is_flat(document: dict[str, Any]) -> bool:
        return _kind(document, shape) == "flat"

    left = np.arange(len(payloads))
    envelopes = scan_envelopes(payloads, at, traced=shape.traced, max_nesting=shape.max_nesting)
    event_at = left[:0] if envelopes is None else envelopes.rows
    if envelopes is not None:
        left = envelopes.rest
        if not len(left):
            return SortedMessages(envelopes.events, event_at.tolist(), by_template=len(event_at))
    flats = scan_flats(
        payloads if len(left) == len(payloads) else [payloads[i] for i in left.tolist()],
        [at[i] for i in left.tolist()],
        prefix=shape.flat_prefix,
        is_flat=is_flat,
        traced=shape.traced,
        max_nesting=shape.max_nesting,
    )
    flat_at = left[:0] if flats is None else left[flats.rows]
    rest = (left if flats is None else left[flats.rest]).tolist()
    others = _sort_all([payloads[i] for i in rest], [at[i] for i in rest], shape)
    return SortedMessages(
        events=others.events if envelopes is None else envelopes.events.merged(others.events),
        event_at=sorted(event_at.tolist() + [rest[i] for i in others.event_at]),
        flats=others.flats if flats is None or others.flats is None else flats.events.merged(others.flats),
        flat_at=sorted(flat_at.tolist() + [rest[i] for i in others.flat_at]),
        others=[(rest[i], kind) for i, kind in others.others],
        faults=[(rest[i], fault) for i, fault in others.faults],
        by_template=len(event_at) + len(flat_at),
    )


def _sort_all(payloads: list[Buffer], at: Sequence[int], shape: MessageShape) -> SortedMessages:
    """Decode the heads of messages of any kind, block by block: in bulk where all are alike, else one by one."""
    decode = _TRACED_ENVELOPE if shape.traced else _ENVELOPE
    sorted_messages = SortedMessages(RowEvents.none(traced=shape.traced))
    for start in range(0, len(payloads), _BLOCK):
        part = payloads[start : start + _BLOCK]
        try:
            envelopes: list[Any] = list(map(decode, part))
            places: Sequence[int] = range(start, start + len(part))
        except _BAD:
            envelopes, places = _sort_singly(decode, part, start, shape, sorted_messages)
        _add(envelopes, places, payloads, at, shape, sorted_messages)
    flat_at = sorted_messages.flat_at
    rows = [payloads[i] for i in flat_at]
    sorted_messages.flats = from_flats(sorted_messages.flat_heads, [at[i] for i in flat_at], rows, shape.traced)
    return sorted_messages


def _sort_singly(
    decode: Callable[[Buffer], Any], part: list[Buffer], start: int, shape: MessageShape, found: SortedMessages
) -> tuple[list[Any], list[int]]:
    """The envelopes of a block and their positions; the other messages are sorted into ``found``."""
    envelopes, places = [], []
    for place, payload in enumerate(part, start):
        try:
            envelope = decode(payload)
        except _BAD:
            envelope = _sort_one(place, payload, shape, found)
        if envelope is not None:
            envelopes.append(envelope)
            places.append(place)
    return envelopes, places


def _add(
    envelopes: list[Any],
    places: Sequence[int],
    payloads: list[Buffer],
    at: Sequence[int],
    shape: MessageShape,
    found: SortedMessages,
) -> None:
    """Add the events of a block's envelopes, except those with a duplicate member."""
    texts = [payloads[place] for place in places]
    if doubled := with_duplicate_members(texts, envelopes):
        for i in doubled:
            fault = json_fault(texts[i], shape.max_nesting)
            found.faults.append((places[i], fault or Fault(Reason.DUPLICATE_KEY, _DOUBLED)))
        kept = sorted(set(range(len(places))) - set(doubled))
        envelopes, places = [envelopes[i] for i in kept], [places[i] for i in kept]
    found.event_at += places
    found.events.add_envelopes(envelopes, [at[place] for place in places])


def _sort_one(place: int, payload: Buffer, shape: MessageShape, found: SortedMessages) -> Any:  # noqa: ANN401 - an envelope
    """The message as an envelope; None for any other message, which is put into ``found``."""
    kind = _head_kind(payload, shape)
    if kind == "flat":
        try:
            found.flat_heads.append(flat_decoder(shape.flat_prefix)(payload))
            found.flat_at.append(place)
        except _BAD as error:
            found.faults.append((place, _fault(payload, error, shape)))
    elif kind == "envelope":
        try:
            return _loose(payload, shape)
        except _BAD as error:
            found.faults.append((place, _fault(payload, error, shape)))
    elif kind == "":
        fault = json_fault(payload, shape.max_nesting)
        found.faults.append((place, fault or Fault(Reason.UNKNOWN_MESSAGE, "no shape of a Debezium message")))
    else:
        found.others.append((place, kind))
    return None


def _loose(payload: Buffer, shape: MessageShape) -> Any:  # noqa: ANN401 - one of the envelope types
    """An envelope with missing members. It is checked strictly, because the checks in bulk do not see it."""
    fault = json_fault(payload, shape.max_nesting)
    if fault is not None:
        raise msgspec.ValidationError(fault.detail)
    return _LOOSE_ENVELOPE(payload)


def _head_kind(payload: Buffer, shape: MessageShape) -> str:
    """The kind of one message; "" if it has none. A JSON null means the same as a null value."""
    if shape.one_of_many and is_avro(payload):
        return FOREIGN
    try:
        document = _ANY(payload)
    except _BAD:
        return ""
    if not isinstance(document, dict):
        return TOMBSTONE if document is None else ""
    return _kind(document, shape)


def _kind(document: dict[str, Any], shape: MessageShape) -> str:
    if "op" in document and isinstance(document.get("source"), dict):
        return "envelope"
    added = any(name.startswith(shape.flat_prefix) for name in document)
    if added and shape.flat_prefix:
        return "flat"  # no other record has such members; all others may have the names of columns
    if shape.one_of_many and format_of(document) is not EventFormat.DEBEZIUM:
        return FOREIGN
    if is_schema_change(document):
        named = isinstance(document.get("source"), dict) and document["source"].get("table")
        return DDL_OF_TABLE if named and "position" not in document else "ddl"
    if document.get("status") in ("BEGIN", "END") and {"id", "event_count"} <= document.keys() <= _TRANSACTION:
        return "transaction"
    if document.keys() == {"schema", "payload"}:
        return FRAMED
    if document.keys() == {"ts_ms"}:
        return "heartbeat"
    if {"id", "type", "aggregate_type"} <= document.keys() <= _NOTIFICATION:
        return "notification"
    return "flat" if added or shape.flat_topic else ""


def _fault(payload: Buffer, error: Exception, shape: MessageShape) -> Fault:
    fault = json_fault(payload, shape.max_nesting)
    if fault is not None:
        return fault
    return Fault(_reason_of(str(error)), str(error))


def _reason_of(error: str) -> Reason:
    """The reason for the member that the decoder's error names, as a path or as a required field."""
    named = {name.removeprefix("source_") for name in re.findall(r"[a-z][a-z_]*", "".join(re.findall("`.*?`", error)))}
    if ("<=" in error or ">=" in error) and named & {"pos", "row", "ts_ms"}:
        return Reason.ORDER_OUT_OF_RANGE
    if named & {"db", "table"}:
        return Reason.UNKNOWN_TABLE
    return Reason.NO_POSITION if named & {"file", "pos"} else Reason.BAD_VALUE
