"""Writing the metadata table's base files.

It stands alone: the first file groups and compaction both write base files.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from hudilake.clock import now_ms
from hudilake.format.files.hfile.layout import MAX_RECORD_KEY, MIN_RECORD_KEY, SCHEMA_KEY
from hudilake.format.files.hfile.writer import HFileWriter
from hudilake.metadata.records.records import record_schema

#: The bytes of a base file, and how many records it has.
EncodedBase: TypeAlias = tuple[bytes, int]


def encode_base(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """An HFile of merged records, ascending by key, with the file info Hudi's base files have."""
    writer, first, last = HFileWriter(), b"", b""
    for key, value in entries:
        first = first or key
        last = key
        writer.append(key, value)
    info = {SCHEMA_KEY: record_schema().encode(), MIN_RECORD_KEY: first, MAX_RECORD_KEY: last}
    return writer.finish(info, now_ms())
