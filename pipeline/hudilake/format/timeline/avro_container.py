"""Avro object containers of one record: the bodies of the timeline's files."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Collection
from functools import lru_cache
from importlib import resources
from typing import Any

import fastavro

from hudilake.errors import CorruptDataError

_MAGIC = b"Obj\x01"
_READ_ERRORS = (
    ValueError,
    EOFError,
    LookupError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    StopIteration,
    fastavro.read.SchemaResolutionError,
    fastavro.schema.SchemaParseException,
)


@lru_cache(maxsize=16)
def timeline_schema(name: str) -> Any:  # noqa: ANN401 - fastavro's parsed schema
    """A schema of ``timeline/schemas``, parsed."""
    text = resources.files("hudilake.format.timeline").joinpath("schemas", f"{name}.avsc").read_text("utf-8")
    return fastavro.parse_schema(json.loads(text))


@lru_cache(maxsize=16)
def _header(name: str) -> tuple[bytes, bytes]:
    out = io.BytesIO()
    sync = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    fastavro.writer(out, timeline_schema(name), [], sync_marker=sync)
    return out.getvalue(), sync


def encode_container(name: str, record: dict[str, Any]) -> bytes:
    """One record as a container without a codec. ``name``: a schema of ``timeline/schemas``.

    The same record always gives the same bytes, so that a write whose answer was lost can be recognised.
    """
    header, sync = _header(name)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, timeline_schema(name), record)
    body = out.getvalue()
    return b"".join([header, b"\x02", _long(len(body)), body, sync])


def words_within(name: str, data: bytes, words: Collection[bytes]) -> list[bytes] | None:
    """The words among these that are in the record of a container; None for a container that is not whole, or not as
    ``encode_container`` makes it of that schema."""
    header, sync = _header(name)
    if not (data.startswith(header) and data.endswith(sync)):
        return None
    start, end = len(header), len(data) - len(sync)
    for begin in range(start + 2, min(start + 7, end)):
        length = b"\x02" + _long(end - begin)
        if start + len(length) == begin and data.startswith(length, start):
            return [word for word in words if data.find(word, begin, end) >= 0]
    return None


def decode_container(data: bytes, path: str) -> dict[str, Any]:
    """The first record of a container, under the schema it was written with.

    Raises CorruptDataError for anything else: an empty file, JSON of the old layout, a cut-off file.
    """
    try:
        if not data.startswith(_MAGIC):
            raise ValueError("not an Avro container")
        record = next(iter(fastavro.reader(io.BytesIO(data))), None)
    except _READ_ERRORS as error:
        raise CorruptDataError(
            f"an instant's file cannot be read: {error}",
            do_next="restore the file from a copy, or roll the instant back",
            path=path,
        ) from error
    if not isinstance(record, dict):
        raise CorruptDataError(
            "an instant's file holds no record",
            do_next="restore the file from a copy, or roll the instant back",
            path=path,
        )
    return record


def _long(value: int) -> bytes:
    out = bytearray()
    value <<= 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
