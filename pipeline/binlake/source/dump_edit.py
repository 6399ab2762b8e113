"""Empties records of a dump file: each keeps its place and its form, and has neither key nor value any more.

An emptied record says nothing, as a tombstone without a key. It stays, so that the other records keep their places: the
offsets that a table without a key has brought, and the places in the file by which records without Kafka coordinates
are known.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from binlake.decode.formats.avro_schema import check_bounded
from binlake.source.dump_packing import HEAD_BYTES, ByteStream, packed, packing_of, unpacked
from binlake.source.dump_read import AVRO, PARQUET, RECORD_NAMES, columns_of_batch, lines
from binlake.source.dump_records import NULL_EVENT, RecordColumns, events_of, is_record, line_of, record_of, records_of
from hudilake.errors import UnsupportedError

#: Topic, partition and offset of a record; of one without Kafka coordinates the file's path, 0 and its place in it.
Place = tuple[str, int, int]
_LINES, _LINES_BYTES = 10_000, 64 << 20
_COORDINATES = ("topic", "partition", "offset", "timestamp")


@dataclass(frozen=True)
class Replacements:
    """What becomes of records.

    Args:
        values: place and value -> the new value; None empties the record. No new record has a key. The place alone does
            not say which record it is: the offsets of a topic that was made again begin at 0.
        tombstones: topic and key of records without a value, which are emptied wherever they are.
    """

    values: Mapping[tuple[Place, bytes | None], bytes | None]
    tombstones: frozenset[tuple[str, bytes]] = field(default_factory=frozenset)

    def has(self, place: Place, key: bytes | None, value: bytes | None) -> bool:
        """Whether a record changes."""
        if (place, value) in self.values:
            return (key, value) != (None, self.values[place, value])
        return value is None and key is not None and (place[0], key) in self.tombstones


def replaced(data: bytes, path: str, replacements: Replacements) -> bytes | None:
    """The file with the replacements, in its own format and compression; None if none of its records changes.

    Args:
        data: all bytes of a dump file.
        path: of the file, below the dump's root.
        replacements: which records change.

    Raises READ_ERRORS for damaged bytes, CorruptDataError for a file of an unknown form,
    UnsupportedError for a file whose schema allows no record without a value.
    """
    head = data[:HEAD_BYTES]
    if head.startswith(PARQUET):
        return _parquet(data, path, replacements)
    if head.startswith(AVRO):
        return _avro(data, path, replacements)
    packing = packing_of(head, path) if data else None
    with unpacked(io.BytesIO(data), packing) as opened:
        written = _lines(opened, path, replacements)
    return None if written is None else packed(written, packing)


def _lines(plain: ByteStream, path: str, replacements: Replacements) -> bytes | None:
    written, first, changed = list[bytes](), 0, False
    with_places: bool | None = None
    for some in lines(plain, path, _LINES, _LINES_BYTES):
        if with_places is None:
            with_places = is_record(some[0])
        columns = records_of(some) if with_places else events_of(some)
        for index, line in enumerate(some):
            place = _place(columns, index, path, first + index)
            if not replacements.has(place, columns.keys[index], columns.values[index]):
                written.append(line + b"\n")
                continue
            changed, value = True, replacements.values.get((place, columns.values[index]))
            if columns.topics[index] is None:
                written.append((NULL_EVENT if value is None else value) + b"\n")
            else:
                written.append(line_of(*place, columns.timestamps_ms[index], None, value))
        first += len(some)
    return b"".join(written) if changed else None


def _place(columns: RecordColumns, index: int, path: str, in_file: int) -> Place:
    topic = columns.topics[index]
    return (path, 0, in_file) if topic is None else (topic, columns.partitions[index], columns.offsets[index])


def _parquet(data: bytes, path: str, replacements: Replacements) -> bytes | None:
    file = pq.ParquetFile(pa.BufferReader(data))
    if not file.metadata.num_row_groups:
        return None
    codec = file.metadata.row_group(0).column(0).compression.lower()
    sink, first, changed = io.BytesIO(), 0, False
    with pq.ParquetWriter(sink, file.schema_arrow, compression="none" if codec == "uncompressed" else codec) as writer:
        for group in range(file.metadata.num_row_groups):
            rows = file.read_row_group(group)
            for batch in rows.to_batches():
                columns = columns_of_batch(batch.select([n for n in batch.schema.names if n in RECORD_NAMES]))
                places = [_place(columns, index, path, first + index) for index in range(len(batch))]
                chosen = [replacements.has(*one) for one in zip(places, columns.keys, columns.values, strict=True)]
                news = [replacements.values.get(one) for one in zip(places, columns.values, strict=True)]
                first += len(batch)
                changed = changed or any(chosen)
                writer.write_batch(_emptied(batch, chosen, news, path) if any(chosen) else batch)
    return sink.getvalue() if changed else None


def _emptied(batch: pa.RecordBatch, chosen: list[bool], news: list[bytes | None], path: str) -> pa.RecordBatch:
    """The batch with the chosen rows replaced by these values: what stands beside the coordinates goes."""
    mask = pa.array(chosen)
    columns = []
    for named, column in zip(batch.schema, batch.columns, strict=True):
        if named.name in _COORDINATES:
            columns.append(column)
        elif not named.nullable:
            raise _no_null(path, named.name)
        elif named.name == "value":
            columns.append(pc.if_else(mask, pa.array(news, pa.binary()).cast(named.type), column))
        else:
            columns.append(pc.if_else(mask, pa.scalar(None, named.type), column))
    return pa.record_batch(columns, schema=batch.schema)


def _avro(data: bytes, path: str, replacements: Replacements) -> bytes | None:
    opened = fastavro.reader(io.BytesIO(data))
    check_bounded(opened.writer_schema)
    rows: list[Any] = list(opened)
    changed = False
    for index, row in enumerate(rows):
        topic, partition, offset, _, key, value = record_of(row)
        place = (path, 0, index) if topic is None else (topic, partition, offset)
        if replacements.has(place, key, value):
            kept = {name: cell for name, cell in row.items() if name in _COORDINATES}
            rows[index] = {**dict.fromkeys(row), **kept, "value": replacements.values.get((place, value))}
            changed = True
    if not changed:
        return None
    sink = io.BytesIO()
    try:
        fastavro.writer(sink, opened.writer_schema, rows, codec=opened.codec)
    except (ValueError, TypeError) as error:
        raise _no_null(path, "value") from error
    return sink.getvalue()


def _no_null(path: str, column: str) -> UnsupportedError:
    return UnsupportedError(
        f"the file's schema allows no record without {column}, so none of its records can be emptied",
        do_next="delete the file, or write it again without the row; then give the command again",
        path=path,
    )
