"""A part of a query that is run bucket by bucket, as a value: its SQL and the slices of each step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hudilake.errors import UnsupportedError
from hudilake.query.join.bucketed import BucketedScan
from hudilake.query.join.keys import HashedKey
from hudilake.query.join.pairs import BucketSlice, Pair, bucket_slices
from hudilake.query.sql.by_bucket.core import Core

#: A bucket is read again for several steps as long as all steps read at most this many times the bytes of all slices.
_READ_AGAIN = 1.2


@dataclass(frozen=True)
class PartTable:
    """A table of a part. ``name``: in the part's SQL. ``called``: by the query."""

    name: str
    called: str
    scan: BucketedScan
    key: HashedKey
    slices: tuple[BucketSlice, ...]


@dataclass(frozen=True)
class BucketPart:
    """A SELECT whose rows are those of all its steps together.

    Args:
        name: of its rows in the rest of the query.
        sql: the SELECT, over the names of the tables.
        tables: the tables.
        steps: the number of steps that the hashes of the keys are divided into.
        numbers: the steps that may give rows.
    """

    name: str
    sql: str
    tables: tuple[PartTable, ...]
    steps: int
    numbers: tuple[int, ...]

    def slices(self, table: PartTable, number: int) -> list[BucketSlice]:
        """The slices of a table that may have rows of a step."""
        return [piece for piece in table.slices if piece.meets(number, self.steps)]

    def pair(self, number: int) -> Pair:
        """A step as ``rows_of`` takes it."""
        return Pair(number, self.steps, ())

    def __str__(self) -> str:
        """For ``explain``."""
        what = "pairs" if len(self.tables) > 1 else "buckets"
        counts = "; ".join(f"{table.called}: {_counts(table.slices)}" for table in self.tables)
        return f"bucket by bucket: {len(self.numbers)} {what} ({counts})"


def part_of(core: Core, name: str, names: Sequence[str]) -> BucketPart:
    """The steps of a core; its SQL is still to be set.

    Args:
        core: the tables.
        name: of the part's rows.
        names: of the tables in its SELECT.

    Raises UnsupportedError if all rows are in one step.
    """
    slices = [tuple(bucket_slices(scan)) for scan in core.scans]
    steps = _steps([piece for pieces in slices for piece in pieces])
    if steps == 1:
        raise UnsupportedError(
            "the bucket counts of the tables have no common divisor", do_next="give the tables such counts"
        )
    tables = tuple(
        PartTable(called, core.sources.alias(number), core.scans[number], core.keys[number], slices[number])
        for number, called in enumerate(names)
    )
    numbers = tuple(number for number in range(steps) if _may_give_rows(core, slices, number, steps))
    return BucketPart(name, "", tables, steps, numbers)


def _may_give_rows(core: Core, slices: Sequence[Sequence[BucketSlice]], number: int, steps: int) -> bool:
    joined, *others = [any(piece.meets(number, steps) for piece in pieces) for pieces in slices]
    for source, filled in enumerate(others, 1):
        side = core.sources.joins.side(source)
        if side in ("", "SEMI"):
            joined = joined and filled
        elif side in ("RIGHT", "FULL"):
            joined = filled or (joined and side == "FULL")
    return joined


def _steps(slices: Sequence[BucketSlice]) -> int:
    """The largest number of steps, a divisor of the largest count, for which little is read again: the more steps, the
    less memory."""
    counts = {piece.buckets for piece in slices}
    if not counts:
        return 0
    least, largest = math.gcd(*counts), max(counts)
    candidates = [of for of in range(largest, 0, -1) if largest % of == 0 and of % least == 0]
    most = sum(piece.size for piece in slices) * _READ_AGAIN
    return next((of for of in candidates if _read(slices, of) <= most), least)


def _read(slices: Iterable[BucketSlice], of: int) -> int:
    return sum(piece.size * (of // math.gcd(piece.buckets, of)) for piece in slices)


def _counts(slices: Sequence[BucketSlice]) -> str:
    counts = sorted({piece.buckets for piece in slices})
    if not counts:
        return "nothing to read"
    return f"{counts[0]} buckets" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} buckets"
