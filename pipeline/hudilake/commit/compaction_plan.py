"""The plan of a compaction in the timeline (Avro ``HoodieCompactionPlan``), ours or Hudi's: of a data table and of its
metadata table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.names import in_partition, parse_base_name, parse_log_name
from hudilake.format.files.view import FileSlice, LogFile
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import COMPACTION, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage

_AVRO = "HoodieCompactionPlan"
_VERSION = 2


@dataclass(frozen=True)
class Operation:
    """One file group of a plan: the bare names of the files that make up its slice.

    ``base_instant``: the base file's, or without a base file that of the oldest log file. ``metrics``: for users.
    """

    partition_path: str
    file_id: str
    base_instant: str
    base_file: str | None
    log_files: tuple[str, ...]
    metrics: dict[str, float] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, file_slice: FileSlice, logs: tuple[LogFile, ...]) -> Operation:
        """The operation that merges those log files of a slice over its base file."""
        base, log_bytes = file_slice.base_file, sum(file.size for file in logs)
        written = file_slice.base_size or log_bytes
        return cls(
            file_slice.partition_path,
            file_slice.file_id,
            base.name.instant if base is not None else logs[0].name.instant,
            str(base.name) if base is not None else None,
            tuple(str(file.name) for file in logs),
            metrics_of(len(logs), log_bytes, file_slice.base_size, written),
        )

    @property
    def group(self) -> tuple[str, str]:
        """Partition path and file id."""
        return self.partition_path, self.file_id

    def path(self, name: str) -> str:
        """The path of one of its files, relative to the table's root."""
        return in_partition(self.partition_path, name)

    @property
    def paths(self) -> list[str]:
        """The files it reads."""
        names = (self.base_file, *self.log_files) if self.base_file is not None else self.log_files
        return [self.path(name) for name in names]


def metrics_of(logs: int, log_bytes: int, base_bytes: int, written: int) -> dict[str, float]:
    """What a plan says of the work of an operation: the number of its log files, and bytes read and written."""
    return {
        "TOTAL_LOG_FILES": float(logs),
        "TOTAL_LOG_FILES_SIZE": float(log_bytes),
        "TOTAL_IO_READ_MB": float((base_bytes + log_bytes) >> 20),
        "TOTAL_IO_WRITE_MB": float(written >> 20),
        "TOTAL_IO_MB": float((base_bytes + log_bytes + written) >> 20),
    }


@dataclass(frozen=True)
class CompactionPlan:
    """The operations of one compaction. ``keeps_times``: whether rows keep their commit times; records of the metadata
    table have none."""

    operations: tuple[Operation, ...]
    keeps_times: bool = True

    def to_bytes(self) -> bytes:
        """The body of the requested file."""
        operations = [
            {
                "baseInstantTime": o.base_instant,
                "deltaFilePaths": list(o.log_files),
                "dataFilePath": o.base_file,
                "fileId": o.file_id,
                "partitionPath": o.partition_path,
                "metrics": o.metrics,
                "bootstrapFilePath": None,
            }
            for o in self.operations
        ]
        record = {"operations": operations, "version": _VERSION, "preserveHoodieMetadata": self.keeps_times}
        return encode_container(_AVRO, record)

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CompactionPlan:
        """Read a requested compaction.

        Raises CorruptDataError for bytes that are not a plan, UnsupportedError for a bootstrapped file group.
        """
        record = decode_container(data, path)
        operations = []
        for entry in record.get("operations") or []:
            if entry.get("bootstrapFilePath"):
                raise UnsupportedError(
                    "the compaction plan has bootstrapped files", do_next="run the compaction with Hudi", path=path
                )
            base, logs = _bare(entry["dataFilePath"]), tuple(_bare(p) or "" for p in entry["deltaFilePaths"] or ())
            sound = (base is None or parse_base_name(base)) and all(parse_log_name(log) for log in logs)
            if not sound:
                raise CorruptDataError(
                    "a compaction plan names files that are not data files",
                    do_next="unschedule the compaction with Hudi",
                    path=path,
                )
            operations.append(
                Operation(
                    entry["partitionPath"] or "",
                    entry["fileId"],
                    entry["baseInstantTime"] or "",
                    base,
                    logs,
                    dict(entry.get("metrics") or {}),
                )
            )
        return cls(tuple(operations))


def read_plan(storage: Storage, instant: Instant) -> CompactionPlan:
    """The plan of a compaction in any state. Raises as ``CompactionPlan.from_bytes``, StorageNotFoundError."""
    requested = Instant(instant.requested_time, COMPACTION, State.REQUESTED)
    return CompactionPlan.from_bytes(storage.read(requested.path), requested.path)


def pending_compactions(timeline: Timeline) -> list[Instant]:
    """The compactions that are requested or inflight, oldest first."""
    return [instant for instant in timeline.pending() if instant.action == COMPACTION]


def _bare(path: str | None) -> str | None:
    return path.rpartition("/")[2] if path else None
