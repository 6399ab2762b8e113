"""What a message says of its transaction, and which columns its before image names. Rows are read by ``reader``.

The forms are those of the recordings: Debezium names the GTID in ``source.gtid`` and the transaction in
``transaction.id`` (``provide.transaction.metadata``), Maxwell its transaction in ``xid``, Canal the GTID in ``gtid``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from binlake.decode.changes import RawRecords
from binlake.decode.formats.avro import as_json
from binlake.decode.messages.format_detection import format_of, is_avro
from binlake.decode.messages.images import may_hide_null
from binlake.decode.options import DecodeOptions, EventFormat

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trace:
    """The origin of a message's changes; None where the message does not say it.

    Args:
        op: Debezium's letter: ``c`` insert, ``u`` update, ``d`` delete, ``r`` row of a snapshot, ``t`` TRUNCATE.
        gtid: of the transaction.
        transaction: the transaction's id as the format gives it.
        place: binlog file and position, ``name:position``.
        source_ms: the source's time in ms since the epoch; 0 if unknown.
        before: the columns in the before image (of a delete: in its row); with several rows, those in each of them.
    """

    op: str | None = None
    gtid: str | None = None
    transaction: str | None = None
    place: str | None = None
    source_ms: int = 0
    before: frozenset[str] | None = None

    @property
    def names(self) -> frozenset[str]:
        """The names by which the transaction can be chosen."""
        return frozenset(name for name in (self.gtid, self.transaction) if name)


NO_TRACE = Trace()
#: No change events of MySQL: members of these names would mean something else.
_UNTRACED = frozenset(
    {EventFormat.JSON, EventFormat.AVRO, EventFormat.HBASE_WAL, EventFormat.HBASE_AVRO, EventFormat.BIGTABLE}
)
#: The operation of a row that a snapshot has read.
SNAPSHOT_ROW = "r"
#: Debezium's letters for the operations of Maxwell and Canal.
_OPS = {"insert": "c", "update": "u", "delete": "d", "bootstrap-insert": SNAPSHOT_ROW, "truncate": "t"}


def transactions_of(records: RawRecords, offsets: Iterable[int], options: DecodeOptions) -> dict[int, str]:
    """The transactions of some records by their offsets: the GTID, or else the transaction's id as the format gives it.
    A record that names none is left out, and so is a row of a snapshot, which no transaction made."""
    numbers = {int(offset): number for number, offset in enumerate(records.offsets.tolist())}
    traces = {offset: trace_of(records.values[numbers[offset]], options) for offset in offsets}
    names = {offset: trace.gtid or trace.transaction for offset, trace in traces.items() if trace.op != SNAPSHOT_ROW}
    return {offset: name for offset, name in names.items() if name is not None}


def trace_of(value: bytes | None, options: DecodeOptions) -> Trace:
    """The trace of one message of any format; an empty one for a message that cannot be read."""
    if options.format in _UNTRACED:
        return NO_TRACE
    document = _document(value, options) if value is not None else None
    if document is None:
        return NO_TRACE
    match format_of(dict(document)):
        case EventFormat.MAXWELL:
            return _of_maxwell(document, options.maxwell_nulls)
        case EventFormat.CANAL:
            return _of_canal(document)
        case EventFormat.HBASE_WAL | EventFormat.BIGTABLE:
            return NO_TRACE
        case _:
            return _of_envelope(document) if "source" in document else _of_flat(document, options.flat_prefix)


def _document(value: bytes, options: DecodeOptions) -> _Document | None:
    try:
        document = _ANY(as_json(value, options) if is_avro(value) else value)
    except _BAD:
        return None
    if isinstance(document, dict) and document.keys() == {"schema", "payload"}:
        document = document["payload"]
    return document if isinstance(document, dict) else None


def _of_envelope(document: _Document) -> Trace:
    source, transaction = _object(document["source"]), _object(document.get("transaction"))
    before = document.get("before")
    file, position = source.get("file"), source.get("pos")
    return Trace(
        op=_text(document.get("op")),
        gtid=_text(source.get("gtid")),
        transaction=_text(transaction.get("id")),
        place=f"{file}:{position}" if file and position is not None else None,
        source_ms=_number(source.get("ts_ms")),
        before=frozenset(before) if isinstance(before, dict) else None,
    )


def _of_flat(document: _Document, prefix: str) -> Trace:
    """A flat message holds no before image."""

    def added(name: str) -> Any:  # noqa: ANN401 - decoded JSON
        return document.get(f"{prefix}source_{name}", document.get(f"{prefix}{name}"))

    file, position = added("file"), added("pos")
    place = f"{file}:{position}" if file and position is not None else None
    transaction = _text(document.get(f"{prefix}transaction_id"))
    return Trace(_text(document.get(f"{prefix}op")), _text(added("gtid")), transaction, place, _number(added("ts_ms")))


def _of_maxwell(document: _Document, nulls: bool | None) -> Trace:
    """The old values of an update stand beside its new ones; together they are the before image."""
    row, old = document.get("data"), document.get("old")
    if isinstance(row, dict) and isinstance(old, dict) and may_hide_null(row.keys(), old.keys(), (), nulls):
        row = None
    return Trace(
        op=_OPS.get(str(document.get("type"))),
        gtid=_text(document.get("gtid")),
        transaction=_text(document.get("xid")),
        place=_text(document.get("position")),
        source_ms=_number(document.get("ts")) * 1000,
        before=frozenset(row) if isinstance(row, dict) else None,
    )


def _of_canal(document: _Document) -> Trace:
    rows = [row for row in document.get("data") or () if isinstance(row, dict)]
    named = frozenset.intersection(*map(frozenset, rows)) if rows else None
    op = _OPS.get(str(document.get("type")).lower())
    return Trace(op, _text(document.get("gtid")), source_ms=_number(document.get("es")), before=named)


def _object(value: Any) -> _Document:  # noqa: ANN401 - decoded JSON
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:  # noqa: ANN401 - decoded JSON
    return str(value) if isinstance(value, str | int) and value != "" else None


def _number(value: Any) -> int:  # noqa: ANN401 - decoded JSON
    return value if isinstance(value, int) else 0
