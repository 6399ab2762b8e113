"""The content of DELETE blocks: record keys, partition paths and ordering values, Avro under a version and a length.

A key's ordering value selects the deleted rows: a LongWrapper deletes rows ordered at or below it, null or
IntWrapper(0) deletes every row (measured in Hudi Spark 1.2.0 and hudi-rs 0.5.0).
"""

from __future__ import annotations

import io
import json
import struct
from functools import lru_cache
from importlib import resources
from typing import Any

import fastavro
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.plain_deletes import decode_plain
from hudilake.format.files.varint import write_varint

_VERSION = 3
_FORMER = (1, 2)
_HEAD = struct.Struct(">ii")
_LONG_WRAPPER_BRANCH = b"\x06"  # zigzag of 3, the LongWrapper's place in the union
_INT_WRAPPER_ZERO = b"\x04\x00"
_STRING_BRANCH = 0x02
Bytes = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]

#: The schema of ``decode_deletes``: unconditional deletes have a null ordering.
DELETES_SCHEMA = pa.schema([pa.field("_hoodie_record_key", pa.string()), pa.field("ordering", pa.int64())])


def encode_deletes(keys: pa.Array, ordering: pa.Array | None, partition_path: str) -> bytes:
    """A block's content for deletes of one partition.

    Args:
        keys: string array of n record keys without nulls.
        ordering: int64 array of n LONG ordering values without nulls; None deletes unconditionally.
        partition_path: the partition path of all of them.
    """
    body = _records(keys, ordering, partition_path)
    datum = b"".join([write_varint(len(keys) << 1), body, b"\x00"]) if len(keys) else b"\x00"
    return _HEAD.pack(_VERSION, len(datum)) + datum


def decode_deletes(content: bytes | memoryview, path: str = "") -> pa.Table:
    """A block's content as a table of DELETES_SCHEMA, n rows in the block's order.

    Null and IntWrapper(0) orderings, which delete unconditionally, come out as null. Raises CorruptDataError for a
    content that cannot be parsed, UnsupportedError for ordering values that are not whole numbers and for the former
    versions, which Java serialised.
    """
    try:
        version, length = _HEAD.unpack_from(content)
        if version in _FORMER:
            raise UnsupportedError(f"delete block version {version}", do_next="compact it with Hudi", path=path)
        if version != _VERSION:
            raise ValueError(f"delete block version {version}")
        datum = bytes(content[_HEAD.size : _HEAD.size + length])
        columns = decode_plain(datum) or _by_record(datum)
    except (struct.error, ValueError, EOFError, LookupError, TypeError, OverflowError) as error:
        raise CorruptDataError(
            f"a delete block cannot be read: {error}", do_next="run binlake fsck", path=path
        ) from error
    return pa.Table.from_arrays(list(columns), schema=DELETES_SCHEMA)


def _by_record(datum: bytes) -> tuple[pa.Array, pa.Array]:
    """Keys and ordering values of any layout."""
    record: Any = fastavro.schemaless_reader(io.BytesIO(datum), delete_list_schema(), None, return_record_name=True)
    records = record["deleteRecordList"]
    return pa.array([r["recordKey"] for r in records], pa.string()), _orderings(records)


def _orderings(records: list[dict[str, Any]]) -> pa.Array:
    return pa.array([_ordering(r["orderingVal"]) for r in records], pa.int64())


def _ordering(wrapped: tuple[str, dict[str, Any]] | None) -> int | None:
    if wrapped is None:
        return None
    name, value = wrapped[0].rpartition(".")[2], wrapped[1].get("value")
    if name == "IntWrapper" and value == 0:
        return None
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise UnsupportedError(f"a delete block orders by {name}", do_next="read the table with Hudi")


@lru_cache(maxsize=1)
def delete_list_schema() -> Any:  # noqa: ANN401 - fastavro's parsed schema
    """Avro schema of a block's datum, as Hudi 1.2.0 writes it."""
    text = (
        resources.files("hudilake.format.files").joinpath("schemas", "HoodieDeleteRecordList.avsc").read_text("utf-8")
    )
    return fastavro.parse_schema(json.loads(text))


def _records(keys: pa.Array, ordering: pa.Array | None, partition_path: str) -> bytes:
    """The n records, joined column by column: each is key length, key, partition, ordering."""
    data, starts, lengths = _string_buffers(keys)
    size_bytes, size_widths = _varints(lengths)
    order_bytes, order_widths = _order_varints(ordering, len(keys))
    part = partition_path.encode("utf-8")
    branch = _INT_WRAPPER_ZERO if ordering is None else _LONG_WRAPPER_BRANCH
    middle = bytes([_STRING_BRANCH]) + write_varint(len(part) << 1) + part + branch
    total = 1 + size_widths + lengths + len(middle) + order_widths
    ends = np.cumsum(total)
    out = np.empty(int(ends[-1]) if len(ends) else 0, dtype=np.uint8)
    offsets = ends - total
    out[offsets] = _STRING_BRANCH
    offsets = _place_columns(out, offsets + 1, size_bytes, size_widths)
    index = np.arange(int(lengths.sum()), dtype=np.int64)
    before = np.repeat(np.cumsum(lengths) - lengths, lengths)
    out[np.repeat(offsets, lengths) + index - before] = data[np.repeat(starts, lengths) + index - before]
    offsets = offsets + lengths
    for i, byte in enumerate(middle):
        out[offsets + i] = byte
    _place_columns(out, offsets + len(middle), order_bytes, order_widths)
    return out.tobytes()


def _string_buffers(keys: pa.Array) -> tuple[Bytes, Longs, Longs]:
    _, offsets_buffer, data_buffer = keys.cast(pa.string()).buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, dtype=np.uint8) if data_buffer else np.empty(0, dtype=np.uint8)
    return data, offsets[:-1], np.diff(offsets)


def _order_varints(ordering: pa.Array | None, count: int) -> tuple[Bytes, Longs]:
    if ordering is None:
        return np.empty((count, 0), dtype=np.uint8), np.zeros(count, dtype=np.int64)
    return _varints(ordering.cast(pa.int64()).to_numpy(zero_copy_only=False))


def _varints(values: Longs) -> tuple[Bytes, Longs]:
    """Zigzag varints of n longs: a matrix of (n, 10) bytes and the width of each."""
    rest = ((values << 1) ^ (values >> 63)).view(np.uint64)
    out = np.zeros((len(values), 10), dtype=np.uint8)
    widths = np.ones(len(values), dtype=np.int64)
    for i in range(10):
        out[:, i] = rest & np.uint64(0x7F)
        rest = rest >> np.uint64(7)
        more = rest != 0
        if not more.any():
            break
        out[more, i] |= 0x80
        widths += more
    return out, widths


def _place_columns(out: Bytes, offsets: Longs, columns: Bytes, widths: Longs) -> Longs:
    for i in range(int(widths.max(initial=0))):
        mask = widths > i
        out[offsets[mask] + i] = columns[mask, i]
    return offsets + widths
