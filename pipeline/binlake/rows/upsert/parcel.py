"""Parcels: rows of one file group, sent from the task that decoded them to the task that writes them.

A parcel is one Arrow IPC stream, so that Spark moves a few blobs instead of millions of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import mmh3
import pyarrow as pa

#: The most bytes that one parcel aims at: Spark's rows and Python's pickles have limits.
MAX_PARCEL_BYTES = 64 << 20
#: The bucket of events that have no record key yet (tables without a key). LOOKED_UP_BUCKET is another one.
KEYLESS_BUCKET = -1
#: The bucket of rows of append tables: they go to any open file group of their partition.
APPEND_BUCKET = -3


@dataclass(frozen=True, slots=True)
class Parcel:
    """Changes for one file group: target path below the lake's root, partition path, bucket, and the rows."""

    table: str
    partition_path: str
    bucket: int
    rows: int
    blob: bytes

    def slot(self, slots: int) -> int:
        """The writer of this file group, 0 <= n < ``slots``, by a hash that is even over tables and partitions."""
        return int(mmh3.hash(f"{self.table}\n{self.partition_path}\n{self.bucket}".encode(), signed=False) % slots)


def pack(table: str, partition_path: str, bucket: int, rows: pa.Table) -> Iterator[Parcel]:
    """Rows of one file group as parcels of bounded size, at least one parcel."""
    pieces = max(1, -(-rows.nbytes // MAX_PARCEL_BYTES))
    step = max(1, -(-len(rows) // pieces))
    for start in range(0, max(len(rows), 1), step):
        piece = rows.slice(start, step)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, piece.schema) as stream:
            stream.write_table(piece)
        yield Parcel(table, partition_path, bucket, len(piece), sink.getvalue().to_pybytes())


def unpack(parcels: Sequence[Parcel]) -> pa.Table:
    """The rows of parcels of one file group as one table; columns missing in a parcel are null in its rows."""
    tables = [pa.ipc.open_stream(parcel.blob).read_all() for parcel in parcels]
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")
