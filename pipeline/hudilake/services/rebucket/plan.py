"""What a change of bucket counts moves: units of file groups that exchange no row with other units.

A key of bucket ``b`` of ``n`` has the hash ``b`` modulo ``n``. In ``m`` buckets it goes to one that is equal to ``b``
modulo the greatest common divisor of both numbers, so file groups with equal remainders are moved together: from 8 to
16 buckets one old file group becomes two, from 16 to 8 two become one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd

from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.format.definition.bucketing import Bucketing
from hudilake.format.files.view import FileSlice
from hudilake.services.compaction.plan import Operation


@dataclass(frozen=True)
class Unit:
    """File groups of one partition that are moved together. Picklable.

    Args:
        partition_path: of the file groups.
        remainder: of their buckets.
        sources: the newest slice of each file group as operations of a compaction, by file id.
        buckets: the new buckets.
        size: bytes of the sources.
    """

    partition_path: str
    remainder: int
    sources: tuple[Operation, ...]
    buckets: tuple[int, ...]
    size: int

    @property
    def place(self) -> tuple[str, int]:
        """What names it from one plan to the next."""
        return self.partition_path, self.remainder


def units(slices: Iterable[FileSlice], old: Bucketing, new: Bucketing) -> list[Unit]:
    """What to move: nothing in partitions whose bucket count stays."""
    found: dict[tuple[str, int], list[FileSlice]] = {}
    for piece in slices:
        path = piece.partition_path
        if old.count(path) != new.count(path):
            step = gcd(old.count(path), new.count(path))
            found.setdefault((path, bucket_of_file_id(piece.file_id) % step), []).append(piece)
    return [_unit(place, pieces, old, new) for place, pieces in sorted(found.items())]


def _unit(place: tuple[str, int], pieces: list[FileSlice], old: Bucketing, new: Bucketing) -> Unit:
    path, remainder = place
    step = gcd(old.count(path), new.count(path))
    return Unit(
        path,
        remainder,
        tuple(Operation.of(piece, piece.log_files) for piece in sorted(pieces, key=lambda p: p.file_id)),
        tuple(range(remainder, new.count(path), step)),
        sum(piece.base_size + piece.log_size for piece in pieces),
    )
