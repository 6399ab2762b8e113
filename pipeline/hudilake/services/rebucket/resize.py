"""Single nodes of hash rings split and merged: what is moved, and the plan that Hudi reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudilake.format.definition.consistent import HashingMetadata, Node, children_json
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.clustering_plan import CONSISTENT_BUCKETS, ClusteringPlan, PlannedGroup
from hudilake.services.clustering.plan import planned_group
from hudilake.services.compaction.plan import Operation
from hudilake.services.rebucket.plan import Unit


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
) -> list[Unit]:
    """What the resizes move; nothing for nodes without files."""
    found = []
    for one in resizes:
        path, sources = one.ring.partition_path, one.sources(slices)
        made = {node.file_id for node in one.made}
        buckets = tuple(number for number, node in enumerate(after[path].nodes) if node.file_id in made)
        operations = tuple(Operation.of(piece, piece.log_files) for piece in sources)
        size = sum(piece.base_size + piece.log_size for piece in sources)
        if sources:
            found.append(Unit(path, one.buckets[0], operations, buckets, size))
    return found


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
    return planned_group([Operation.of(piece, piece.log_files) for piece in sources], len(one.made), extra)
