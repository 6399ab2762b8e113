"""Reads a dump file in chunks: JSON lines (plain or packed), Parquet, Avro. Its first bytes give the format.

Where a file does not give the Kafka coordinates of its records, a record is identified by the file's path and its place
in the file. Its order still comes from the event.
"""

from __future__ import annotations

import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import IO, Any, cast

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from binlake.decode.changes import RawRecords
from binlake.decode.formats.avro_schema import check_bounded
from binlake.source.dump_layout import DumpFile
from binlake.source.dump_packing import HEAD_BYTES, ByteStream, check_lines, packing_of, unpacked
from binlake.source.dump_records import RecordColumns, events_of, is_record, records_of, rows_of
from hudilake.errors import CorruptDataError, LakeError
from hudilake.storage import Storage
from hudilake.storage.ranged import StoredFile

_READ_BYTES = 8 << 20
#: A chunk ends after this many bytes, however few its records are.
_CHUNK_BYTES = 64 << 20
#: More than a Kafka record that can be applied (64 MiB) takes as text. Some bytes of gzip can be gigabytes of one line.
_LINE_BYTES = 512 << 20
#: The columns of a record; other columns of a file are not read.
RECORD_NAMES = ("topic", "partition", "offset", "timestamp", "key", "value")
PARQUET, AVRO = b"PAR1", b"Obj\x01"
#: The approximate size of a file's records as a multiple of the file size; used to divide work only.
_PACKED = dict.fromkeys((".gz", ".zst", ".bz2", ".xz", ".lzma", ".lz4", ".br", ".deflate", ".zz"), 8)
_BY_NAME = {**_PACKED, ".parquet": 5, ".avro": 4}


#: What the unpackers, pyarrow and fastavro raise for damaged bytes.
READ_ERRORS = (
    pa.ArrowException,
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    OverflowError,
    RecursionError,
    fastavro.schema.SchemaParseException,
)


def read_dump(storage: Storage, file: DumpFile, chunk_records: int) -> Iterator[RawRecords]:
    """The records of a file, in chunks of approximately ``chunk_records`` at most, of one topic partition each.

    Raises CorruptDataError for a file that is damaged or of an unknown form, StorageError.
    """
    first, stamp = 0, file.hour * 3_600_000
    try:
        for rows in _rows(storage, file, chunk_records):
            yield from rows.grouped(file.path, first, stamp)
            first += len(rows.values)
    except LakeError:
        raise
    except READ_ERRORS as error:
        raise unreadable(storage, file, error) from error


def unreadable(storage: Storage, file: DumpFile, error: Exception) -> CorruptDataError:
    """The error of a file whose bytes raised one of READ_ERRORS."""
    return CorruptDataError(
        f"a dump file cannot be read: {type(error).__name__}: {error}",
        do_next="restore the file, or move it out of the way; nothing of it was applied",
        path=f"{storage.uri}/{file.path}",
    )


def record_bytes(file: DumpFile) -> int:
    """The approximate number of record bytes in a file, estimated from its name and size."""
    return file.size * next((factor for end, factor in _BY_NAME.items() if file.path.endswith(end)), 1)


def _rows(storage: Storage, file: DumpFile, chunk_records: int) -> Iterator[RecordColumns]:
    if not file.size:
        return
    head, path = storage.read_range(file.path, 0, HEAD_BYTES), f"{storage.uri}/{file.path}"
    stored = StoredFile(storage, file.path, file.size)
    if head.startswith(PARQUET):
        yield from _parquet(stored, chunk_records)
    elif head.startswith(AVRO):
        yield from _avro(stored, file.size, chunk_records)
    else:
        with unpacked(stored, packing_of(head, path)) as opened:
            yield from _json_lines(opened, chunk_records, path)


def _json_lines(stream: ByteStream, chunk_records: int, path: str) -> Iterator[RecordColumns]:
    parse: Callable[[list[bytes]], RecordColumns] | None = None
    for some in lines(stream, path, chunk_records, _CHUNK_BYTES):
        if parse is None:
            parse = records_of if is_record(some[0]) else events_of
        yield parse(some)


def lines(stream: ByteStream, path: str, chunk_records: int, chunk_bytes: int) -> Iterator[list[bytes]]:
    """The non-empty lines of a file, in chunks; a last line without a line break counts too. Raises READ_ERRORS, and as
    ``check_lines``."""
    stripped = (line.rstrip(b"\r") for line in _each_line(stream))
    for number, some in enumerate(in_chunks(filter(None, stripped), chunk_records, chunk_bytes)):
        if number == 0:
            check_lines(some, path)
        yield some


def in_chunks(values: Iterable[bytes], chunk_records: int, chunk_bytes: int) -> Iterator[list[bytes]]:
    """The values in chunks that end with ``chunk_records`` of them, or with the one that makes ``chunk_bytes``."""
    held, size = list[bytes](), 0
    for value in values:
        held.append(value)
        size += len(value)
        if len(held) >= chunk_records or size >= chunk_bytes:
            yield held
            held, size = [], 0
    if held:
        yield held


def _each_line(stream: ByteStream) -> Iterator[bytes]:
    """Raises ValueError for a line of more than ``_LINE_BYTES``."""
    pieces, size = list[bytes](), 0
    while data := stream.read(_READ_BYTES):
        first, *others = data.split(b"\n")
        pieces.append(first)
        size += len(first)
        if size > _LINE_BYTES:
            raise ValueError(f"a line has more than {_LINE_BYTES} bytes")
        if others:
            yield b"".join(pieces)
            yield from others[:-1]
            pieces, size = [others[-1]], len(others[-1])
    yield b"".join(pieces)


def _parquet(stored: StoredFile, chunk_records: int) -> Iterator[RecordColumns]:
    with pa.PythonFile(stored, mode="r") as opened:
        file = pq.ParquetFile(opened)
        names = [name for name in RECORD_NAMES if name in file.schema_arrow.names]
        if "value" not in names:
            raise ValueError(f"there is no column value among {', '.join(file.schema_arrow.names)}")
        for batch in file.iter_batches(batch_size=chunk_records, columns=names, use_threads=False):
            yield columns_of_batch(batch)


def columns_of_batch(batch: pa.RecordBatch) -> RecordColumns:
    """The records of rows of Parquet. Raises READ_ERRORS for columns of other types."""
    count, held = len(batch), set(batch.schema.names)

    def column(name: str, kind: pa.DataType, absent: Any) -> list[Any]:  # noqa: ANN401 - a cell
        if name not in held:
            return [absent] * count
        values = batch.column(name)
        if pa.types.is_timestamp(values.type):
            values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
        cast = values.cast(kind)
        return list((cast if absent is None else pc.fill_null(cast, absent)).to_pylist())

    topics = column("topic", pa.string(), None)
    places = [column(name, pa.int64(), None) for name in ("partition", "offset")]
    for index, place in enumerate(zip(*places, strict=True)):
        if None in place:  # it is known by its place in the file
            topics[index] = None
    return RecordColumns(
        topics,
        column("partition", pa.int64(), 0),
        column("offset", pa.int64(), 0),
        column("timestamp", pa.int64(), -1),
        column("key", pa.binary(), None),
        column("value", pa.binary(), None),
    )


def _avro(stored: StoredFile, size: int, chunk_records: int) -> Iterator[RecordColumns]:
    below = _BoundedStream(io.BufferedReader(stored, _READ_BYTES), size)
    opened = fastavro.reader(cast("IO[bytes]", below))  # it only reads
    check_bounded(opened.writer_schema)
    records = iter(opened)
    while chunk := list(islice(records, chunk_records)):
        yield rows_of([_row(record) for record in chunk])


class _BoundedStream:
    """A stream that is asked for no more than it has left: a damaged length would else allocate terabytes."""

    def __init__(self, stream: io.BufferedReader, size: int) -> None:
        self._stream, self._left = stream, size

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes."""
        data = self._stream.read(min(size, self._left) if size >= 0 else self._left)
        self._left -= len(data)
        return data


def _row(record: Any) -> dict[str, Any]:  # noqa: ANN401 - what Avro holds
    if not isinstance(record, dict):
        raise TypeError(f"a row is a record, not {type(record).__name__}")
    return record
