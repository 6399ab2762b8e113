"""The rows of one side of a pair. Every row is checked to lie in the bucket in which its partners are looked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.query.join.bucketed import BucketedScan
from hudilake.query.join.keys import HashedKey
from hudilake.query.join.pairs import BucketSlice, Pair
from hudilake.read.inside.tally import ReadTally


def rows_of(
    scan: BucketedScan,
    key: HashedKey,
    slices: Sequence[BucketSlice],
    pair: Pair,
    tally: ReadTally | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some slices that belong to a pair; no more than one slice is in memory.

    Args:
        scan: the table.
        key: its hashed columns.
        slices: of the pair.
        pair: says which rows of the slices it takes.
        tally: counts what is read of base files.

    Raises UnsupportedError for a row in another bucket than its columns say: a partner of it would be missed. Errors as
    ``SliceScan.read``.
    """
    for piece in slices:
        for batch in scan.plan.scan.read(piece.file_slice, tally):
            hashes = key.hashes(batch)
            strayed = np.flatnonzero(hashes % np.uint32(piece.buckets) != piece.bucket)
            if len(strayed):
                _refuse(scan, key, piece, batch.slice(int(strayed[0]), 1))
            if piece.buckets % pair.of:
                batch = batch.filter(pa.array(hashes % np.uint32(pair.of) == pair.number))
            if batch.num_rows:
                yield batch


def _refuse(scan: BucketedScan, key: HashedKey, piece: BucketSlice, row: pa.RecordBatch) -> None:
    values = row.select(list(key.columns)).to_pylist()[0]
    raise UnsupportedError(
        f"a row is not in the bucket that its columns say: {values} is in bucket {piece.bucket} of {piece.buckets}; "
        "its record key was made of other columns or types, or by another writer's rule",
        do_next="join frames of read_dataframe, query with --at-once; binlake fsck tells whether the table is damaged",
        table=scan.table,
        partition=piece.file_slice.partition_path,
        file_group=piece.file_slice.file_id,
    )
