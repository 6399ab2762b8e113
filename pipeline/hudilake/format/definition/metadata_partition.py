"""The partitions of the metadata table, which ``hoodie.properties`` names too.

It stands alone: the properties name the partitions, and their room may not import the metadata table.
"""

from __future__ import annotations

from enum import StrEnum


class MetadataPartition(StrEnum):
    """The metadata table's partitions that binlake keeps, in the order they are initialised."""

    FILES = "files"
    COLUMN_STATS = "column_stats"
    BLOOM_FILTERS = "bloom_filters"
    PARTITION_STATS = "partition_stats"
    RECORD_INDEX = "record_index"

    @property
    def prefix(self) -> str:
        """The prefix of its file groups' names."""
        return _PREFIXES[self]


_PREFIXES = {
    MetadataPartition.FILES: "files-",
    MetadataPartition.COLUMN_STATS: "col-stats-",
    MetadataPartition.BLOOM_FILTERS: "bloom-filters-",
    MetadataPartition.PARTITION_STATS: "partition-stats-",
    MetadataPartition.RECORD_INDEX: "record-index-",
}
