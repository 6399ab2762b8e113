"""The plan of a clustering, ours or Hudi's: the requested file (Avro ``HoodieRequestedReplaceMetadata``).

Plans name files by full URIs. Only their bare names count here: a table that was copied elsewhere keeps its plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import CLUSTERING, Instant, State
from hudilake.storage.base import Storage

_AVRO = "HoodieRequestedReplaceMetadata"
_STRATEGIES = "org.apache.hudi.client.clustering.run.strategy"
#: Hudi's strategies of execution: rows sorted and cut into files, and the nodes of a hash ring.
SORT_AND_SIZE: Final = f"{_STRATEGIES}.SparkSortAndSizeExecutionStrategy"
CONSISTENT_BUCKETS: Final = f"{_STRATEGIES}.SparkConsistentBucketClusteringExecutionStrategy"
#: The parameter of a strategy that names the columns to sort by, with commas between them.
SORT_COLUMNS: Final = "hoodie.clustering.plan.strategy.sort.columns"


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """A file slice of a plan.

    Args:
        partition_path, file_id: of the file group.
        base_file: the bare name of its base file; None for none.
        log_files: the bare names of its log files.
    """

    partition_path: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """File groups of one partition that become others together.

    Args:
        slices: what is read; none for nodes of a hash ring that have no files yet.
        outputs: about how many file groups they become.
        extra: further keys of the strategy.
        metrics: for users.
    """

    slices: tuple[PlannedSlice, ...]
    outputs: int
    extra: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict, compare=False)

    @property
    def partition_path(self) -> str:
        """Of the file groups."""
        return self.slices[0].partition_path


@dataclass(frozen=True)
class ClusteringPlan:
    """What a clustering reads, and how it shall write it.

    Args:
        groups: what is laid out together.
        strategy: the class of Hudi that executes such plans.
        params: its parameters.
        extra: the writer's own keys.
        missing: partitions that the plan leaves out or does not take whole.
        keeps_times: whether rows keep their commit times.
    """

    groups: tuple[PlannedGroup, ...]
    strategy: str = SORT_AND_SIZE
    params: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    keeps_times: bool = True

    @property
    def planned(self) -> frozenset[tuple[str, str]]:
        """Partition path and file id of everything that it replaces."""
        return frozenset((piece.partition_path, piece.file_id) for group in self.groups for piece in group.slices)

    def to_bytes(self, uri: str) -> bytes:
        """The body of the requested file. ``uri``: the table's root."""
        plan = {
            "inputGroups": [_group(uri, group) for group in self.groups],
            "strategy": {"strategyClassName": self.strategy, "strategyParams": dict(self.params), "version": 1},
            "extraMetadata": {},
            "version": 1,
            "preserveHoodieMetadata": self.keeps_times,
            "missingSchedulePartitions": list(self.missing),
        }
        record = {
            "operationType": "CLUSTER",
            "clusteringPlan": plan,
            "extraMetadata": dict(self.extra),
            "version": 1,
        }
        return encode_container(_AVRO, record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> ClusteringPlan:
        """Read a requested clustering.

        Raises CorruptDataError for bytes that are not a plan, UnsupportedError for bootstrapped files.
        """
        record = decode_container(data, path)
        plan = record.get("clusteringPlan")
        if plan is None:
            raise CorruptDataError(
                "a clustering has no plan", do_next="roll the clustering back with the writer that made it", path=path
            )
        groups = [group for group in plan.get("inputGroups") or [] if group.get("slices")]
        strategy = plan.get("strategy") or {}
        return cls(
            tuple(_read_group(group, path) for group in groups),
            strategy.get("strategyClassName") or "",
            strategy.get("strategyParams") or {},
            record.get("extraMetadata") or {},
            tuple(plan.get("missingSchedulePartitions") or ()),
            plan.get("preserveHoodieMetadata") is not False,
        )


def read_clustering_plan(storage: Storage, instant: Instant) -> ClusteringPlan:
    """The plan of a clustering in any state. Raises as ``ClusteringPlan.from_bytes``, StorageNotFoundError."""
    requested = Instant(instant.requested_time, CLUSTERING, State.REQUESTED)
    return ClusteringPlan.from_bytes(storage.read(requested.path), requested.path)


def _group(uri: str, group: PlannedGroup) -> dict[str, Any]:
    return {
        "slices": [_slice(uri, piece) for piece in group.slices],
        "metrics": dict(group.metrics),
        "numOutputFileGroups": group.outputs,
        "extraMetadata": dict(group.extra) or None,
        "version": 1,
    }


def _slice(uri: str, piece: PlannedSlice) -> dict[str, Any]:
    root = f"{uri}/{piece.partition_path}" if piece.partition_path else uri
    return {
        "dataFilePath": f"{root}/{piece.base_file}" if piece.base_file is not None else "",
        "deltaFilePaths": [f"{root}/{name}" for name in piece.log_files],
        "fileId": piece.file_id,
        "partitionPath": piece.partition_path,
        "bootstrapFilePath": "",
        "version": 1,
    }


def _read_group(group: Mapping[str, Any], path: str) -> PlannedGroup:
    slices: Sequence[Mapping[str, Any]] = group["slices"]
    if any(piece.get("bootstrapFilePath") for piece in slices):
        raise UnsupportedError(
            "the clustering plan has bootstrapped files", do_next="run the clustering with Hudi", path=path
        )
    return PlannedGroup(
        tuple(_read_slice(piece) for piece in slices),
        int(group.get("numOutputFileGroups") or 1),
        group.get("extraMetadata") or {},
        group.get("metrics") or {},
    )


def _read_slice(piece: Mapping[str, Any]) -> PlannedSlice:
    base = _bare(piece.get("dataFilePath") or "")
    logs = tuple(_bare(path) for path in piece.get("deltaFilePaths") or ())
    return PlannedSlice(piece.get("partitionPath") or "", piece.get("fileId") or "", base or None, logs)


def _bare(uri: str) -> str:
    return uri.rpartition("/")[2]
