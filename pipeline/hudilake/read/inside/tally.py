"""What a scan read of the base files, and what it left out.

It stands alone: scans, joins, SQL and commands all use it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class ReadTally:
    """Counts, of the base files of a scan and of the columns that it needs.

    ``files``: the base files. ``row_groups``, ``pages``, ``bytes``: what of them was read, ``of_...``: how much there
    is. Pages are those of the row groups that were read in part. Bytes are those of the column chunks as they are
    stored. ``fetched``: the bytes asked of the storage, with footers, page indexes and gaps, by so
    many ``requests``.
    """

    files: int = 0
    row_groups: int = 0
    of_row_groups: int = 0
    pages: int = 0
    of_pages: int = 0
    bytes: int = 0
    of_bytes: int = 0
    fetched: int = 0
    requests: int = 0

    def add(self, other: ReadTally) -> None:
        """Add the counts of another scan."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))

    def __str__(self) -> str:
        pages = f", pages {self.pages:,} of {self.of_pages:,} in row groups read in part" if self.of_pages else ""
        read = f"row groups {self.row_groups:,} of {self.of_row_groups:,}{pages}"
        return f"{read}, bytes {self.bytes:,} of {self.of_bytes:,}"
