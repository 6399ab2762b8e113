"""Rows of append tables on their way to the writer: by partition path, with their own columns alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from binlake.decode.changes import META_NAMES
from binlake.rows.upsert.parcel import APPEND_BUCKET, Parcel, pack
from binlake.rows.upsert.target import Target


def append_parcels(rows: pa.Table, target: Target) -> Iterator[Parcel]:
    """One parcel or several for each partition path; rows of one path keep their order.

    Args:
        rows: n > 0 rows to add: the value columns under their lake names, and META_FIELDS.
        target: the lake table, an append table.
    """
    paths = target.layout.paths(rows).dictionary_encode()
    values = rows.select([name for name in rows.column_names if name not in META_NAMES])
    if len(paths.dictionary) == 1:
        yield from pack(target.path, paths.dictionary[0].as_py(), APPEND_BUCKET, values)
        return
    codes = paths.indices.to_numpy()
    order = np.argsort(codes, kind="stable")
    ordered = values.take(pa.array(order)).combine_chunks()
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        path = paths.dictionary[int(codes[order[start]])].as_py()
        yield from pack(target.path, path, APPEND_BUCKET, ordered.slice(start, end - start))
