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

    def first_instant(self, number: int = 0) -> str:
        """The instant that initialises it in the metadata table of that number, before any instant of the data.

        Hudi's readers take an instant that begins with 14 zeros for one that needs none of the data.
        """
        return f"{number * len(MetadataPartition) + list(MetadataPartition).index(self):017d}"

    @classmethod
    def numbers(cls) -> int:
        """So many numbers have first instants that differ."""
        return _FIRST_INSTANTS // len(cls)

    @classmethod
    def last_first_instant(cls) -> str:
        """No first instant is above it."""
        return f"{_FIRST_INSTANTS - 1:017d}"


#: Instants of 17 digits of which 14 are zeros.
_FIRST_INSTANTS = 1000

_PREFIXES = {
    MetadataPartition.FILES: "files-",
    MetadataPartition.COLUMN_STATS: "col-stats-",
    MetadataPartition.BLOOM_FILTERS: "bloom-filters-",
    MetadataPartition.PARTITION_STATS: "partition-stats-",
    MetadataPartition.RECORD_INDEX: "record-index-",
}
