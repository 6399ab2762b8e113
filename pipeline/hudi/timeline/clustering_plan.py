"""The requested file of a clustering (``HoodieRequestedReplaceMetadata``), as Hudi plans it for consistent hashing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.hudi.timeline.avro_container import encode_container

_AVRO = "HoodieRequestedReplaceMetadata"
_STRATEGY = "org.apache.hudi.client.clustering.run.strategy.SparkConsistentBucketClusteringExecutionStrategy"
_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class PlannedSlice:
    """A file slice of a plan.

    Args:
        partition_path, file_id: of the file group.
        base_file: the path of its base file, relative to the table's root; None for none.
        log_files: the paths of its log files.
        log_bytes, bytes: the size of the log files, and of all files.
    """

    partition_path: str
    file_id: str
    base_file: str | None
    log_files: tuple[str, ...]
    log_bytes: int
    bytes: int


@dataclass(frozen=True, slots=True)
class PlannedGroup:
    """File groups of one partition that become others together.

    Args:
        partition_path: of the file groups.
        slices: what is read.
        children: the nodes that the hash ring gets, as JSON.
        outputs: the number of new file groups.
        seq_no: the number of resizes of the partition before this one.
    """

    partition_path: str
    slices: tuple[PlannedSlice, ...]
    children: str
    outputs: int
    seq_no: int


def clustering_request(uri: str, groups: Sequence[PlannedGroup], extra: Mapping[str, str]) -> bytes:
    """The body of the requested file.

    Args:
        uri: the table's root: plans hold full URIs.
        groups: of the plan.
        extra: the writer's own keys.
    """
    plan = {
        "inputGroups": [_group(uri, group) for group in groups],
        "strategy": {"strategyClassName": _STRATEGY, "strategyParams": {}, "version": 1},
        "extraMetadata": {},
        "version": 1,
        "preserveHoodieMetadata": True,
        "missingSchedulePartitions": sorted({group.partition_path for group in groups}),
    }
    record = {"operationType": "CLUSTER", "clusteringPlan": plan, "extraMetadata": dict(extra), "version": 1}
    return encode_container(_AVRO, record)


def _group(uri: str, group: PlannedGroup) -> dict[str, object]:
    size = sum(piece.bytes for piece in group.slices) / _MEGABYTE
    metrics = {
        "TOTAL_LOG_FILES": float(sum(len(piece.log_files) for piece in group.slices)),
        "TOTAL_LOG_FILES_SIZE": float(sum(piece.log_bytes for piece in group.slices)),
        "TOTAL_IO_READ_MB": float(int(size)),
        "TOTAL_IO_WRITE_MB": float(int(size)),
        "TOTAL_IO_MB": float(2 * int(size)),
    }
    return {
        "slices": [_slice(uri, piece) for piece in group.slices],
        "metrics": metrics,
        "numOutputFileGroups": group.outputs,
        "extraMetadata": {
            "clustering.group.partition": group.partition_path,
            "clustering.group.child.node": group.children,
            "clustering.group.sequence.no": str(group.seq_no),
        },
        "version": 1,
    }


def _slice(uri: str, piece: PlannedSlice) -> dict[str, object]:
    return {
        "dataFilePath": f"{uri}/{piece.base_file}" if piece.base_file is not None else "",
        "deltaFilePaths": [f"{uri}/{path}" for path in piece.log_files],
        "fileId": piece.file_id,
        "partitionPath": piece.partition_path,
        "bootstrapFilePath": "",
        "version": 1,
    }
