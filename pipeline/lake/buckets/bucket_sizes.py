"""Whether a table's buckets have the size that they are planned for, and which number of buckets would have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.hudi.files.view import FileSlice
from pipeline.hudi.table.table import HudiTable

#: The planned size of a bucket, in bytes of its files.
PLANNED_BYTES = 1 << 30
#: A mean bucket that is so many times too large, or too small, is worth a move.
_TOO_LARGE, _TOO_SMALL = 2, 32
#: Fewer buckets than this cost no reader and no commit much, and a small table may grow.
_FEW = 64


@dataclass(frozen=True, slots=True)
class BucketAdvice:
    """Another number of buckets for the partition with the largest buckets.

    Args:
        partition_path: of the partition.
        buckets: its present number.
        mean_bytes: of its buckets.
        proposed: the number by which its buckets have about the planned size: the present one times or divided by a
            power of two, so that file groups are split or joined one by one.
    """

    partition_path: str
    buckets: int
    mean_bytes: int
    proposed: int

    def command(self, conf: str, table: str) -> str:
        """What carries it out. ``conf``: the settings file; ``table``: ``database.table``."""
        words = f"binlake rebucket {conf} {table} --buckets {self.proposed}"
        return f'{words} --partition "{self.partition_path}"' if self.partition_path else words


def bucket_advice(
    table: HudiTable, slices: Iterable[FileSlice] | None = None, planned_bytes: int = PLANNED_BYTES
) -> BucketAdvice | None:
    """What the sizes of the buckets suggest; None if they are as planned, or the table has no fixed buckets.

    Args:
        table: open.
        slices: its newest file slices, if they are known.
        planned_bytes: of a bucket.

    Raises CorruptDataError, StorageError.
    """
    if table.config.kind.index != "bucket":
        return None
    sizes: dict[str, int] = {}
    for piece in table.file_slices() if slices is None else slices:
        sizes[piece.partition_path] = sizes.get(piece.partition_path, 0) + piece.base_size + piece.log_size
    if not sizes:
        return None
    path = max(sizes, key=lambda one: sizes[one] / table.config.bucketing.count(one))
    buckets = proposed = table.config.bucketing.count(path)
    if sizes[path] > _TOO_LARGE * planned_bytes * buckets:
        while sizes[path] > planned_bytes * proposed:
            proposed *= 2
    elif sizes[path] * _TOO_SMALL < planned_bytes * buckets and buckets >= _FEW:
        while proposed % 2 == 0 and sizes[path] * 4 < planned_bytes * proposed:
            proposed //= 2
    return BucketAdvice(path, buckets, sizes[path] // buckets, proposed) if proposed != buckets else None
