"""Other buckets for a table: which file groups exchange rows.

A key of bucket ``b`` of ``n`` has the hash ``b`` modulo ``n``. In ``m`` buckets it goes to one that is equal to ``b``
modulo the greatest common divisor of both numbers, so file groups with equal remainders are moved together: from 8 to
16 buckets one old file group becomes two, from 16 to 8 two become one. With consistent hashing single nodes of the ring
are split and merged.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from hudilake.clock import new_uuid
from hudilake.commit.compaction_plan import CompactionOperation
from hudilake.errors import ConfigError
from hudilake.format.definition.bucket import bucket_of_file_id
from hudilake.format.definition.bucketing import Bucketing, PartitionBuckets, bucketing_of
from hudilake.format.definition.consistent import ConsistentBuckets, HashingMetadata, Node, children_json
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.clustering_plan import CONSISTENT_BUCKETS, ClusteringPlan, PlannedGroup
from hudilake.services.clustering.plan import planned_group


def wanted_buckets(known: Bucketing, number_of: int, partition: str | None) -> Bucketing:
    """The buckets of a table after a rebucket.

    Args:
        known: those of now.
        number_of: the new number.
        partition: a pattern of partition paths, ``*`` for any text and ``?`` for any character; None for the table.

    Raises ConfigError for a number below one and for a pattern that Hudi's expressions cannot hold.
    """
    if number_of < 1:
        raise ConfigError(f"a table cannot have {number_of} buckets", do_next="give a number of at least 1")
    if partition is None:
        return bucketing_of(number_of)
    if "," in partition or ";" in partition:
        raise ConfigError(
            "Hudi keeps no pattern of partitions with a comma or a semicolon",
            do_next="write ? in its place",
            partition=partition,
        )
    expression = "^" + "".join({"*": ".*", "?": "."}.get(one, re.escape(one)) for one in partition) + "$"
    default = known.default if isinstance(known, PartitionBuckets) else known.count("")
    rules = known.rules if isinstance(known, PartitionBuckets) else ()
    return bucketing_of(default, ((expression, number_of), *(rule for rule in rules if rule[0] != expression)))


@dataclass(frozen=True)
class RebucketUnit:
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
    sources: tuple[CompactionOperation, ...]
    buckets: tuple[int, ...]
    size: int

    @property
    def place(self) -> tuple[str, int]:
        """What names it from one plan to the next."""
        return self.partition_path, self.remainder


def units(slices: Iterable[FileSlice], old: Bucketing, new: Bucketing) -> list[RebucketUnit]:
    """What to move: nothing in partitions whose bucket count stays."""
    by_place: dict[tuple[str, int], list[FileSlice]] = {}
    for piece in slices:
        path = piece.partition_path
        if old.count(path) != new.count(path):
            step = gcd(old.count(path), new.count(path))
            by_place.setdefault((path, bucket_of_file_id(piece.file_id) % step), []).append(piece)
    return [_unit(place, pieces, old, new) for place, pieces in sorted(by_place.items())]


def _unit(place: tuple[str, int], pieces: list[FileSlice], old: Bucketing, new: Bucketing) -> RebucketUnit:
    path, remainder = place
    step = gcd(old.count(path), new.count(path))
    return RebucketUnit(
        path,
        remainder,
        tuple(CompactionOperation.of(piece, piece.log_files) for piece in sorted(pieces, key=lambda p: p.file_id)),
        tuple(range(remainder, new.count(path), step)),
        sum(piece.base_size + piece.log_size for piece in pieces),
    )


@dataclass(frozen=True, slots=True)
class Resize:
    """A change of one partition's ring.

    Args:
        ring: the partition's, before.
        buckets: the numbers of the nodes that go.
        children: what takes their places.
    """

    ring: HashingMetadata
    buckets: tuple[int, ...]
    children: tuple[Node, ...]

    @property
    def made(self) -> tuple[Node, ...]:
        """The new nodes."""
        return tuple(child for child in self.children if child.tag == "REPLACE")

    def sources(self, slices: Iterable[FileSlice]) -> list[FileSlice]:
        """The slices of the nodes that go, by file id; a node without rows has none."""
        ids = {self.ring.nodes[bucket].file_id for bucket in self.buckets}
        path = self.ring.partition_path
        return sorted((s for s in slices if s.partition_path == path and s.file_id in ids), key=lambda s: s.file_id)


def rings_after(resizes: Sequence[Resize], instant: str) -> dict[str, HashingMetadata]:
    """Partition path -> its ring after the resizes, none of which share a node."""
    children: dict[str, list[Node]] = {}
    for one in resizes:
        children.setdefault(one.ring.partition_path, []).extend(one.children)
    before = {one.ring.partition_path: one.ring for one in resizes}
    return {path: before[path].resized(instant, nodes) for path, nodes in children.items()}


def resize_units(
    slices: Sequence[FileSlice], resizes: Sequence[Resize], after: Mapping[str, HashingMetadata]
) -> list[RebucketUnit]:
    """What the resizes move; nothing for nodes without files."""
    moved = []
    for one in resizes:
        path, sources = one.ring.partition_path, one.sources(slices)
        made = {node.file_id for node in one.made}
        buckets = tuple(number for number, node in enumerate(after[path].nodes) if node.file_id in made)
        operations = tuple(CompactionOperation.of(piece, piece.log_files) for piece in sources)
        size = sum(piece.base_size + piece.log_size for piece in sources)
        if sources:
            moved.append(RebucketUnit(path, one.buckets[0], operations, buckets, size))
    return moved


def resize_plan(slices: Sequence[FileSlice], resizes: Sequence[Resize]) -> ClusteringPlan:
    """The resizes as a clustering plan, with the keys that Hudi needs for consistent hashing."""
    groups = tuple(_planned(one, one.sources(slices)) for one in resizes)
    partitions = {one.ring.partition_path for one in resizes}
    return ClusteringPlan(groups, CONSISTENT_BUCKETS, missing=tuple(sorted(partitions)))


def _planned(one: Resize, sources: Sequence[FileSlice]) -> PlannedGroup:
    extra = {
        "clustering.group.partition": one.ring.partition_path,
        "clustering.group.child.node": children_json(one.children),
        "clustering.group.sequence.no": str(one.ring.seq_no),
    }
    return planned_group([CompactionOperation.of(piece, piece.log_files) for piece in sources], len(one.made), extra)


@dataclass(frozen=True, slots=True)
class BucketChange:
    """A bucket of a partition to split, or neighbouring buckets to merge.

    Args:
        partition_path: of the partition.
        buckets: their numbers: one to split, several in the ring's order to merge.
    """

    partition_path: str
    buckets: tuple[int, ...]


def resizes(bucketing: ConsistentBuckets, wanted: Sequence[BucketChange], table: str) -> list[Resize]:
    """The changes of the rings. Raises ConfigError for buckets that cannot be split or merged.

    Args:
        bucketing: the rings of now.
        wanted: none of them share a bucket.
        table: its name, for the error.
    """
    taken, ring_changes = set[tuple[str, int]](), list[Resize]()
    for one in wanted:
        ring = bucketing.ring(one.partition_path)
        places = {(one.partition_path, bucket) for bucket in one.buckets}
        if not places or max(one.buckets) >= len(ring.nodes) or len(places) < len(one.buckets) or places & taken:
            raise _impossible(table, one, f"the partition has the buckets 0 to {len(ring.nodes) - 1}, each once")
        taken |= places
        ring_changes.append(_resize(table, ring, one))
    return ring_changes


def _resize(table: str, ring: HashingMetadata, wanted: BucketChange) -> Resize:
    if len(wanted.buckets) == 1:
        halves = ring.split(wanted.buckets[0], (new_uuid(), new_uuid()))
        if halves is None:
            raise _impossible(table, wanted, "its range is a single hash value")
        return Resize(ring, wanted.buckets, halves)
    children = ring.merged(wanted.buckets, new_uuid())
    if children is None:
        raise _impossible(table, wanted, "buckets that are merged are neighbours, given in the ring's order")
    return Resize(ring, wanted.buckets, children)


def _impossible(table: str, wanted: BucketChange, why: str) -> ConfigError:
    numbers = ", ".join(map(str, wanted.buckets))
    return ConfigError(
        f"buckets {numbers} cannot be {'split' if len(wanted.buckets) == 1 else 'merged'}: {why}",
        do_next="see the buckets with binlake inspect, and name others",
        table=table,
        partition=wanted.partition_path,
    )
