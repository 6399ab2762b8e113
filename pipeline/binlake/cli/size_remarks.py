"""What the commands say of buckets that are far from their planned size."""

from __future__ import annotations

from collections.abc import Sequence

from binlake.cli.text import size
from binlake.tables.buckets.bucket_sizes import PLANNED_BYTES, BucketAdvice, Wanted


def bucket_remark(advice: BucketAdvice, conf: str, table: str) -> str:
    """Another number of buckets, with its command. ``conf``: the settings file; ``table``: ``database.table``."""
    return f"a bucket has {size(advice.mean_bytes)} of {size(PLANNED_BYTES)} planned: {advice.command(conf, table)}"


def ring_remark(wanted: Sequence[Wanted], target_bytes: int, conf: str, table: str) -> str:
    """Splits and merges of single buckets, with their command.

    Args:
        wanted: at least one.
        target_bytes: the target size of files.
        conf: the settings file.
        table: ``database.table``.
    """
    splits = sum(len(one.buckets) == 1 for one in wanted)
    merged = sum(len(one.buckets) for one in wanted) - splits
    pieces = [f"{splits} to split"] if splits else []
    pieces += [f"{merged} to merge"] if merged else []
    return f"buckets far from {size(target_bytes)}: {', '.join(pieces)}: binlake rebucket {conf} {table} --auto"
