"""What the metadata table keeps, and how often it tidies up."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.errors import ConfigError
from pipeline.hudi.files.bloom import DEFAULT_FPP


@dataclass(frozen=True)
class MetadataConfig:
    """Settings of one table's metadata table.

    Args:
        columns: whose statistics to keep; None for the first 32 of the table, as Hudi does.
        column_stats: keep column_stats (and partition_stats, for a partitioned table).
        bloom_filters: keep the bloom filters of base files.
        bloom_fpp: the filters' false positive rate.
        column_stats_file_groups, bloom_file_groups: how many file groups those partitions are made with; fixed then.
        compact_after: delta commits before the metadata table is compacted, at the earliest.
        compact_at_most: delta commits after which it is compacted whatever its size.
        compact_ratio: between the two, it is compacted once its log files have this share of its base files' bytes, so
            that the work stays in proportion to what was added.
        versions_kept: file slices kept for readers that still use an older one.
        archive_after, archive_keep: the active timeline is cut to ``archive_keep`` instants once it holds
            ``archive_after``.
    """

    columns: tuple[str, ...] | None = None
    column_stats: bool = True
    bloom_filters: bool = True
    bloom_fpp: float = DEFAULT_FPP
    column_stats_file_groups: int = 2
    bloom_file_groups: int = 4
    compact_after: int = 16
    compact_at_most: int = 64
    compact_ratio: float = 0.5
    versions_kept: int = 2
    archive_after: int = 40
    archive_keep: int = 20

    def __post_init__(self) -> None:
        if not (0 < self.bloom_fpp < 1):
            raise ConfigError(f"bloom_fpp is {self.bloom_fpp}, not between 0 and 1", do_next="correct the settings")
        if min(self.column_stats_file_groups, self.bloom_file_groups) < 1 or self.versions_kept < 1:
            raise ConfigError("file group and version counts must be at least 1", do_next="correct the settings")
        if not (1 <= self.compact_after <= self.compact_at_most) or not (1 <= self.archive_keep < self.archive_after):
            raise ConfigError("compaction or archival limits contradict each other", do_next="correct the settings")
