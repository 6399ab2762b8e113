"""A data file's entry in the metadata table, computed from the file itself, to initialise or to check an index."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import BLOOM_FILTER_KEY, BLOOM_TYPE_KEY
from hudilake.format.files.bloom import DEFAULT_FPP, BloomFilter
from hudilake.format.files.column_stats import LogRanges, column_ranges, log_ranges
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.names import in_partition
from hudilake.format.files.parquet_file import decode_parquet, footer_of
from hudilake.metadata.records.delta import AddedFile
from hudilake.storage.base import FileInfo, Storage


def describe_file(
    storage: Storage,
    partition_path: str,
    file: FileInfo,
    columns: Sequence[str],
    with_bloom: bool,
    bloom_fpp: float = DEFAULT_FPP,
) -> AddedFile:
    """Read a data file and compute its entry in the metadata table.

    Args:
        storage: rooted at the data table.
        partition_path: its partition.
        file: the file.
        columns: whose statistics; empty for none.
        with_bloom: whether to give a base file's record key filter: the one in its footer, or a new one.
        bloom_fpp: false positive rate of a new one.

    A log file whose blocks binlake cannot read stays out of the index. Raises CorruptDataError, StorageError.
    """
    name = file.path.rpartition("/")[2]
    path = in_partition(partition_path, name)
    if not columns and (not with_bloom or name.startswith(".")):
        return AddedFile(partition_path, name, file.size)
    content = storage.read(path)
    if name.startswith("."):
        stats = _log_ranges(content, columns, path)
        return AddedFile(partition_path, name, len(content), stats.ranges, lacking=stats.lacking)
    names = [*columns, *((RECORD_KEY_FIELD,) if with_bloom and RECORD_KEY_FIELD not in columns else ())]
    rows = decode_parquet(content, names, path)
    bloom = _bloom(content, rows, path, bloom_fpp) if with_bloom else None
    return AddedFile(partition_path, name, len(content), column_ranges(rows, columns) if columns else None, bloom)


def _bloom(content: bytes, rows: pa.Table, path: str, fpp: float) -> tuple[str, str]:
    footer = footer_of(content, path)
    if BLOOM_FILTER_KEY in footer and BLOOM_TYPE_KEY in footer:
        return footer[BLOOM_TYPE_KEY], footer[BLOOM_FILTER_KEY]
    made = BloomFilter.of(rows.column(RECORD_KEY_FIELD), fpp)
    return made.kind, made.to_base64()


def _log_ranges(content: bytes, columns: Sequence[str], path: str) -> LogRanges:
    whole, partial = list[pa.Table](), list[pa.Table]()
    for block in iter_blocks(content, path):
        if block.block_type is BlockType.DELETE:
            continue
        if block.block_type is not BlockType.PARQUET_DATA:
            return LogRanges(None)
        rows = decode_parquet(block.content, columns, path, block.offset)
        (partial if block.is_partial else whole).append(rows)
    return log_ranges(whole, partial, columns)
