"""Reads files of exported scans of HBase-like stores as records: one for each scanned row.

JSON lines (plain or packed) stay as they are. Parquet has one cell a row; consecutive cells of a row become one line.
SequenceFiles of HBase's Export hold one ``Result`` message a record, which becomes the record's value.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.types.encoded_bytes import decode_base64
from binlake.hbase.formats.cell_scan import scan_topic
from binlake.source.dump_layout import DumpFile, is_hidden, is_hidden_directory
from binlake.source.dump_packing import HEAD_BYTES, packing_of, unpacked
from binlake.source.dump_read import PARQUET, READ_ERRORS, in_chunks, lines, unreadable
from binlake.source.sequence_file import MAGIC, sequence_records
from hudilake.errors import LakeError
from hudilake.storage import Storage
from hudilake.storage.ranged import StoredFile

_MS_PER_HOUR: Final = 3_600_000
_SCAN_OF: Final = "#scan="
_READ_BYTES: Final = 8 << 20
_CHUNK_BYTES: Final = 32 << 20
_CELLS_AT_ONCE: Final = 50_000
_BYTES: Final = ("row", "family", "qualifier", "value")
_ENCODE: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Scan:
    """Exported scans of one table.

    Args:
        table: as the store calls it (``default`` where HBase names no namespace).
        files: glob pattern on the files' paths below the root.
        at_ms: when the scan was made, in milliseconds since 1970; None takes the time of each file's last change.
    """

    table: SourceTable
    files: str = "*"
    at_ms: int | None = None

    def find(self, storage: Storage) -> list[DumpFile]:
        """The files below the root, by the time of the scan and path. Raises StorageError."""
        dump_files = []
        for info in storage.walk(""):
            *directories, name = info.path.split("/")
            hidden = is_hidden(name) or any(map(is_hidden_directory, directories))
            if not hidden and fnmatchcase(info.path, self.files):
                file = DumpFile(0, info.path, info.size, info.modified_ms, self.table.database, self.table.table)
                dump_files.append(replace(file, hour=self.scanned_ms(file) // _MS_PER_HOUR))
        return sorted(dump_files)

    def scanned_ms(self, file: DumpFile) -> int:
        """When the scan in a file was made."""
        return file.modified_ms if self.at_ms is None else self.at_ms


def root_of_scan(uri: str, table: SourceTable) -> str:
    """What commits record as the root of the scans of a table below ``uri``."""
    return f"{uri}{_SCAN_OF}{table}"


def scan_of_root(root: str) -> str | None:
    """The table that ``root_of_scan`` names; None for the root of a dump."""
    _, mark, table = root.rpartition(_SCAN_OF)
    return table if mark else None


def read_scan(storage: Storage, file: DumpFile, scan: Scan, chunk_records: int) -> Iterator[RawRecords]:
    """The records of a file, in chunks. The place in the file stands for the offset, the scan's time for Kafka's.

    Raises CorruptDataError for a file that is damaged or of an unknown form, StorageError.
    """
    first, topic, stamp = 0, scan_topic(scan.table, file.path), scan.scanned_ms(file)
    try:
        for values in _values(storage, file, chunk_records):
            count = len(values)
            offsets, stamps = np.arange(first, first + count, dtype=np.int64), np.full(count, stamp, dtype=np.int64)
            yield RawRecords(topic, 0, offsets, stamps, [None] * count, list(values))
            first += count
    except LakeError:
        raise
    except READ_ERRORS as error:
        raise unreadable(storage, file, error) from error


def _values(storage: Storage, file: DumpFile, chunk_records: int) -> Iterator[list[bytes]]:
    if not file.size:
        return
    head = storage.read_range(file.path, 0, HEAD_BYTES)
    stored = StoredFile(storage, file.path, file.size)
    if head.startswith(PARQUET):
        yield from in_chunks(_parquet_rows(stored), chunk_records, _CHUNK_BYTES)
    elif head.startswith(MAGIC):
        records = sequence_records(io.BufferedReader(stored, _READ_BYTES), file.size)
        yield from in_chunks((_message(value) for _, value in records), chunk_records, _CHUNK_BYTES)
    else:
        path = f"{storage.uri}/{file.path}"
        with unpacked(stored, packing_of(head, path)) as opened:
            yield from lines(opened, path, chunk_records, _CHUNK_BYTES)


def _message(value: bytes) -> bytes:
    """A message without its size before it (protobuf's ``writeDelimitedTo``). Raises ValueError."""
    size = 0
    for place, byte in enumerate(value[:5]):
        size |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            if len(value) - place - 1 != size:
                break
            return value[place + 1 :]
    raise ValueError("a value that is no Result of HBase's Export")


def _parquet_rows(stored: StoredFile) -> Iterator[bytes]:
    """Lines of rows, as ``cell_scan`` reads them."""
    with pa.PythonFile(stored, mode="r") as opened:
        file = pq.ParquetFile(opened)
        held = file.schema_arrow.names
        if missing := [name for name in (*_BYTES, "timestamp") if name not in held]:
            raise ValueError(f"there is no column {', '.join(missing)} among {', '.join(held)}")
        names = ["family", "qualifier", "timestamp", *(["type"] if "type" in held else []), "value"]
        for batch in file.iter_batches(batch_size=_CELLS_AT_ONCE, columns=["row", *names], use_threads=False):
            cells = zip(*(_column(batch, name).to_pylist() for name in ("row", *names)), strict=True)
            for row, mine in groupby(cells, itemgetter(0)):
                yield _ENCODE({"row": row, "cells": [cell[1:] for cell in mine]})


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of cells: bytes from binary or base64 text, milliseconds, the type's name."""
    values = batch.column(name)
    if name == "type":
        return values.cast(pa.string())
    if name == "timestamp":
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
        return values.cast(pa.int64())
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        values = decode_base64(pc.fill_null(values.cast(pa.string()), ""))
    return values.cast(pa.binary())
