"""JSON objects that are no change events -> change batches. The columns are declared, or learned from the messages."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from binlake.decode.formats.plain_rows import PlainRows, decode_plain, settle_tombstones, topics_of
from binlake.decode.inferred import inferred_columns
from binlake.decode.messages.chunk import DecodeChunk
from binlake.decode.messages.images import members
from binlake.decode.options import PlainTopics
from binlake.decode.quarantine import Buffer, Fault, Reason
from binlake.decode.types.mysql_types import MysqlType
from binlake.decode.types.text_columns import plain_column

_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode
_NO_COLUMNS = "no message with a column is known"
_MISFITS = frozenset({Reason.UNKNOWN_COLUMN, Reason.BAD_VALUE})
_TEXTS = frozenset({"char", "varchar", "text", "enum", "set", "uuid"})


def read(chunk: DecodeChunk) -> None:
    """Decode the chunk's records."""
    topics = topics_of(chunk)
    if topics is None:
        return
    versions = chunk.schemas.versions(topics.table)
    kinds = dict(versions[-1].columns) if versions else {}
    live, values = chunk.live(), chunk.records.values
    deleted = _deleted(chunk, topics, kinds)
    indices = sorted([*live, *deleted]) if deleted else live
    images: list[Buffer] = [deleted[i] if i in deleted else values[i] or b"" for i in indices]
    if not kinds:
        _learn(chunk, topics, images)
        for i in indices:
            chunk.refuse(i, Fault(Reason.NO_SCHEMA, _NO_COLUMNS), topics.table)
        return
    zone = chunk.options.time_zone
    columns = tuple(plain_column(name, kind, zone, inferred=topics.inferred) for name, kind in kinds.items())
    faults = decode_plain(chunk, topics, PlainRows(indices, images, columns, frozenset(deleted)))
    misfits = {i for i, fault in faults.items() if fault.reason in _MISFITS}
    _learn(chunk, topics, [image for i, image in zip(indices, images, strict=True) if i in misfits])


def _deleted(chunk: DecodeChunk, topics: PlainTopics, kinds: Mapping[str, MysqlType]) -> dict[int, Buffer]:
    """The keys of the rows that records without a value delete, by record."""
    images: dict[int, Buffer] = {}
    for index in settle_tombstones(chunk, topics):
        image = key_image(chunk.records.keys[index] or b"", topics.key, kinds)
        if isinstance(image, Fault):
            chunk.refuse(index, image, topics.table)
        else:
            images[index] = image
    return images


def _learn(chunk: DecodeChunk, topics: PlainTopics, images: list[Buffer]) -> None:
    """Report the columns of messages that the known columns do not fit."""
    if topics.inferred and (column_types := inferred_columns(images)):
        chunk.decoded.inferred.setdefault(topics.table, {}).update(column_types)


def key_image(key: bytes, names: tuple[str, ...], kinds: Mapping[str, MysqlType]) -> Buffer | Fault:
    """The key columns in a message's key, as a JSON object.

    The key is a JSON object with all of them; for a single key column also its value alone, which for a text column
    need not be JSON.
    """
    raw_members = members(key)
    if raw_members is not None and set(names) <= raw_members.keys():
        return msgspec.json.encode({name: raw_members[name] for name in names})
    alone = _alone(key, kinds.get(names[0])) if len(names) == 1 and raw_members is None else None
    if alone is None:
        shown = key[:100].decode("utf-8", "replace")
        return Fault(
            Reason.MISSING_KEY, f"a record without a value, whose key {shown!r} does not give {', '.join(names)}"
        )
    return msgspec.json.encode({names[0]: alone})


def _alone(key: bytes, kind: MysqlType | None) -> msgspec.Raw | str | None:
    """The value of a single key column; None if the key is none."""
    try:
        parsed_key = _ANY(key)
    except _BAD:
        parsed_key = None
    text = kind is not None and kind.base in _TEXTS
    if isinstance(parsed_key, dict | list) or (parsed_key is None and not text):
        return None
    if isinstance(parsed_key, str) or not text:
        return msgspec.Raw(key)
    try:
        return key.decode()
    except UnicodeDecodeError:
        return None
