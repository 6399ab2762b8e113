"""Which file slices of two bucketed tables meet, and how many tasks join them.

A pair takes the rows whose hash leaves ``number`` when it is divided by ``of``. A bucket of a partition with n buckets
has such rows if ``number`` and the bucket agree modulo the greatest common divisor of n and ``of``; it has no others if
``of`` divides n. So the rule is right for any counts, also where they differ by partition, and every row is in one
pair. Where ``of`` is larger than n, a bucket is read by several pairs; ``of`` is chosen by what that costs.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import bucket_or_none
from hudilake.format.files.view import FileSlice
from hudilake.query.join.bucketed import BucketedScan
from hudilake.query.join.how import JoinHow, gives_rows
from hudilake.query.join.keys import JoinKeys
from hudilake.read.partition_values import path_values
from hudilake.wording import counted

#: Counts whose least common multiple is more than this many times the largest are not brought to it.
_MULTIPLE: Final = 4
#: Tasks a core: more of them balance buckets of different sizes, fewer begin less often.
_TASKS_A_CORE: Final = 4

#: Slices of one side by partition, or all of them under ().
_Parts: TypeAlias = Mapping[tuple[str, ...], Sequence["BucketSlice"]]


@dataclass(frozen=True, slots=True)
class BucketSlice:
    """A file slice, its bucket, and the number of buckets of its partition."""

    file_slice: FileSlice
    bucket: int
    buckets: int

    @property
    def size(self) -> int:
        """Bytes of its files."""
        return self.file_slice.base_size + self.file_slice.log_size

    def meets(self, number: int, of: int) -> bool:
        """Whether it may have rows of a pair."""
        return (self.bucket - number) % math.gcd(self.buckets, of) == 0


@dataclass(frozen=True, slots=True)
class Pair:
    """The slices of both sides whose rows are joined with each other: those whose hash leaves ``number`` by ``of``."""

    number: int
    of: int
    left: tuple[BucketSlice, ...]
    right: tuple[BucketSlice, ...] = ()

    @property
    def left_size(self) -> int:
        """Bytes of the left files."""
        return sum(piece.size for piece in self.left)

    @property
    def right_size(self) -> int:
        """Bytes of the right files."""
        return sum(piece.size for piece in self.right)

    @property
    def size(self) -> int:
        """Bytes of the files to read."""
        return self.left_size + self.right_size


def pairs_of(left: BucketedScan, right: BucketedScan, keys: JoinKeys, how: JoinHow, slots: int) -> tuple[Pair, ...]:
    """The pairs of a join that may give rows.

    Args:
        left, right: the tables.
        keys: of the join.
        how: its kind; pairs without rows on a needed side are left out.
        slots: the number of tasks that run at the same time.
    """
    lefts, rights = _by_partition(left), _by_partition(right)
    if not keys.by_partition or lefts is None or rights is None:
        lefts, rights = {(): bucket_slices(left)}, {(): bucket_slices(right)}
    parts = sorted(lefts.keys() | rights.keys())
    share = max(1, slots // max(len(parts), 1))
    pairs = (pair for part in parts for pair in _paired(lefts.get(part, ()), rights.get(part, ()), share))
    return tuple(pair for pair in pairs if gives_rows(how, bool(pair.left), bool(pair.right)))


def groups_of(scan: BucketedScan, slots: int) -> tuple[Pair, ...]:
    """The slices of one table whose rows are grouped with each other. Arguments as ``pairs_of``."""
    return tuple(pair for pair in _paired(bucket_slices(scan), (), slots) if pair.left)


def bucket_slices(scan: BucketedScan) -> list[BucketSlice]:
    """The slices of a plan with their buckets. Raises UnsupportedError for a file group that is no bucket."""
    slices = scan.plan.slices
    counts = {path: scan.bucketing.count(path) for path in {piece.partition_path for piece in slices}}
    return [_bucket_slice(scan, piece, counts[piece.partition_path]) for piece in slices]


def _bucket_slice(scan: BucketedScan, piece: FileSlice, count: int) -> BucketSlice:
    bucket = bucket_or_none(scan.bucketing, piece.partition_path, piece.file_id)
    if bucket is None or not 0 <= bucket < count:
        raise UnsupportedError(
            f"a file group is none of the {counted(count, 'bucket')} of its partition",
            do_next="join frames of read_dataframe; binlake fsck tells whether the table is damaged",
            table=scan.table,
            partition=piece.partition_path,
            file_group=piece.file_id,
        )
    return BucketSlice(piece, bucket, count)


def packed(pairs: Sequence[Pair], slots: int) -> list[tuple[Pair, ...]]:
    """The pairs of each task. Small pairs share one, so that their number does not follow that of the partitions."""
    if not pairs:
        return []
    limit = sum(pair.size for pair in pairs) / (slots * _TASKS_A_CORE)
    tasks: list[list[Pair]] = [[]]
    size = 0
    for pair in pairs:
        if tasks[-1] and size + pair.size > limit:
            tasks.append([])
            size = 0
        tasks[-1].append(pair)
        size += pair.size
    return [tuple(task) for task in tasks]


def _by_partition(scan: BucketedScan) -> _Parts | None:
    """None if the path of a partition does not say its values."""
    if scan.layout is None:
        return None
    slices_by_partition: dict[tuple[str, ...], list[BucketSlice]] = defaultdict(list)
    known: dict[str, tuple[str, ...]] = {}
    for piece in bucket_slices(scan):
        path = piece.file_slice.partition_path
        if path not in known:
            values = path_values(path, scan.layout)
            if values is None:
                return None
            known[path] = tuple(values)
        slices_by_partition[known[path]].append(piece)
    return slices_by_partition


def _paired(left: Sequence[BucketSlice], right: Sequence[BucketSlice], slots: int) -> Iterable[Pair]:
    of = modulus([*left, *right], slots)
    lefts, rights = _by_number(left, of), _by_number(right, of)
    for number in range(of):
        yield Pair(number, of, tuple(lefts[number]), tuple(rights[number]))


def _by_number(slices: Iterable[BucketSlice], of: int) -> list[list[BucketSlice]]:
    slices_by_number: list[list[BucketSlice]] = [[] for _ in range(of)]
    for piece in slices:
        step = math.gcd(piece.buckets, of)
        for number in range(piece.bucket % step, of, step):
            slices_by_number[number].append(piece)
    return slices_by_number


def modulus(slices: Sequence[BucketSlice], slots: int) -> int:
    """The number of pairs that takes least time: bytes read by all tasks over the cores, or by the largest task. Of
    equal ones the largest, whose tasks need least memory.

    Args:
        slices: of all tables.
        slots: the number of tasks that run at the same time.
    """
    counts = {piece.buckets for piece in slices}
    if len(counts) <= 1:
        return next(iter(counts), 1)
    largest, multiple = max(counts), math.lcm(*counts)
    candidates = {*counts, math.gcd(*counts), *([multiple] if multiple <= _MULTIPLE * largest else [])}
    return min(sorted(candidates, reverse=True), key=lambda of: _time(slices, of, slots))


def _time(slices: Sequence[BucketSlice], of: int, slots: int) -> float:
    loads = [0] * of
    for piece in slices:
        step = math.gcd(piece.buckets, of)
        for number in range(piece.bucket % step, of, step):
            loads[number] += piece.size
    return max(sum(loads) / slots, max(loads))
