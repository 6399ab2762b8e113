"""The expected final content of a table, and one checksum over all cells that every writer's table must have."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pa_json

from bench.events import Shape

_ARROW = {"bigint": pa.int64(), "int": pa.int64(), "tinyint": pa.int64(), "double": pa.float64()}
_CENTS = pa.decimal128(12, 2)
_PIECE = 200_000


@dataclass(frozen=True)
class Digest:
    """The number of rows of a table, and a checksum over all of its cells."""

    rows: int
    sha256: str


def newest(changes: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Key -> its last event, in order of creation: a plain loop that shares no code with any writer."""
    return dict(changes)


def expected(last: Mapping[bytes, bytes], shape: Shape) -> Digest:
    """The digest of the table that results from these last events."""
    images = list(map(_after, last.values()))
    return digest(rows_of([image for image in images if image != b"null"], shape), shape)


def expected_of_loaded(changes: Iterable[tuple[bytes, bytes]], shape: Shape, loaded: int) -> Digest:
    """The digest of a table whose first ``loaded`` events insert one key each, and which is then changed.

    The loaded rows are kept as columns, because their events would not fit into memory.
    """
    events = iter(changes)
    tables: list[pa.Table] = []
    while loaded > 0:
        piece = [_after(value) for _, value in islice(events, min(loaded, _PIECE))]
        tables.append(rows_of(piece, shape))
        loaded -= len(piece)
    last = newest(events)
    changed = pa.array([int(key[len(b'{"id":') : -1]) for key in last], pa.int64())
    kept = [table.filter(pc.invert(pc.is_in(table.column("id"), changed))) for table in tables]
    images = [image for image in map(_after, last.values()) if image != b"null"]
    return digest(pa.concat_tables([*kept, rows_of(images, shape)]), shape)


def _after(value: bytes) -> bytes:
    """The row image after an event."""
    return value[value.index(b'"after":') + 8 : value.index(b',"source":')]


def rows_of(images: list[bytes], shape: Shape) -> pa.Table:
    """Row images as Debezium writes them, as typed columns."""
    types = shape.types()
    raw = pa.schema([(name, _raw_type(mysql)) for name, mysql in types.items()])
    if not images:
        return pa.table({name: _typed(pa.array([], raw.field(name).type), mysql) for name, mysql in types.items()})
    options = pa_json.ParseOptions(explicit_schema=raw, unexpected_field_behavior="error")
    block = pa_json.ReadOptions(block_size=max(1 << 20, 2 * max(map(len, images))))
    table = pa_json.read_json(pa.BufferReader(b"\n".join(images)), read_options=block, parse_options=options)
    return pa.table({name: _typed(table.column(name), mysql) for name, mysql in types.items()})


def _raw_type(mysql: str) -> pa.DataType:
    if mysql.startswith("datetime"):
        return pa.int64()
    return _ARROW.get(mysql, pa.string())


def _typed(column: pa.ChunkedArray | pa.Array, mysql: str) -> pa.ChunkedArray | pa.Array:
    """A column of Debezium's JSON in its own type: base64 decimals, instants from text, local times in microseconds."""
    if mysql.startswith("decimal"):
        return cents_of(column)
    if mysql.startswith("timestamp"):
        return column.cast(pa.timestamp("us", tz="UTC"))
    return column.cast(pa.timestamp("us")) if mysql.startswith("datetime") else column


def cents_of(column: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Base64 of unscaled two's complement -> decimal(12,2); each distinct text is decoded once."""
    encoded = pc.dictionary_encode(column)
    chunks = encoded.chunks if isinstance(encoded, pa.ChunkedArray) else [encoded]
    done = []
    for chunk in chunks:
        texts = chunk.dictionary.to_pylist()
        values = [Decimal(int.from_bytes(base64.b64decode(t), "big", signed=True)).scaleb(-2) for t in texts]
        done.append(pa.array(values, _CENTS).take(chunk.indices))
    return pa.chunked_array(done, _CENTS)


def digest(table: pa.Table, shape: Shape) -> Digest:
    """The digest of the shape's columns, in key order; other columns of the table are ignored.

    Integers of any width, decimals of scale 2 and instants of any unit with or without a zone count as equal.
    """
    order = pc.sort_indices(table.column("id").cast(pa.int64()))
    found = hashlib.sha256()
    for name, mysql in shape.types().items():
        column = _canonical(table.column(name), mysql).take(order).combine_chunks()
        found.update(name.encode())
        found.update(pc.is_valid(column).cast(pa.int8()).to_numpy().tobytes())
        if pa.types.is_string(column.type):
            found.update(pc.binary_length(column.fill_null("")).to_numpy().tobytes())
            found.update("".join(column.fill_null("").to_pylist()).encode())
        else:
            found.update(column.fill_null(0).to_numpy(zero_copy_only=False).tobytes())
    return Digest(table.num_rows, found.hexdigest())


def _canonical(column: pa.ChunkedArray, mysql: str) -> pa.ChunkedArray:
    if mysql.startswith("decimal"):
        return column.cast(_CENTS).cast(pa.string())
    if mysql.startswith(("datetime", "timestamp")):
        zone = column.type.tz
        return column.cast(pa.timestamp("us", tz=zone)).cast(pa.int64())
    return column.cast(_ARROW.get(mysql, pa.string()))
