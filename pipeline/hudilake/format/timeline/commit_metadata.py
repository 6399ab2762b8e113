"""Commit metadata: the files that a commit wrote, their schema, and the writer's own keys."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hudilake.errors import CorruptDataError
from hudilake.format.digest.content_sum import CONTENTS_KEY, ContentSum
from hudilake.format.timeline.avro_container import decode_container, encode_container, words_within

SCHEMA_KEY = "schema"
#: The operation of replacecommits that move rows and change none.
CLUSTER = "CLUSTER"
_AVRO, _AVRO_REPLACE = "HoodieCommitMetadata", "HoodieReplaceCommitMetadata"
_AVRO_REPLACE_REQUEST = "HoodieRequestedReplaceMetadata"


@dataclass(frozen=True, slots=True)
class WriteStat:
    """One file of a commit, the fields of Hudi's ``HoodieWriteStat`` that binlake writes or reads.

    ``path`` is relative to the table's root; empty in an inflight file, which names file groups only. For a log file
    ``log_files`` is its name and ``log_version`` is set; for a base file both are empty and ``prev_base_file`` may name
    the file it replaces. ``change_log``: what a commit changed in a base file's rows, as (path, bytes). ``contents``:
    what the file shall hold; None if its writer does not say it. It is no field of Hudi's: commits have the sums of all
    their files in the extra metadata.
    """

    partition_path: str
    file_id: str
    path: str
    prev_commit: str
    num_writes: int = 0
    num_deletes: int = 0
    num_update_writes: int = 0
    num_inserts: int = 0
    file_size: int = 0
    log_version: int | None = None
    base_file: str | None = None
    log_files: tuple[str, ...] = ()
    prev_base_file: str | None = None
    total_log_records: int = 0
    total_log_blocks: int = 0
    total_log_files_compacted: int = 0
    total_log_size_compacted: int = 0
    change_log: tuple[tuple[str, int], ...] = ()
    contents: ContentSum | None = None

    @property
    def file_name(self) -> str:
        """The bare name of the file."""
        return self.path.rpartition("/")[2]

    def to_avro(self) -> dict[str, Any]:
        """The record as Hudi 1.2.0 fills it."""
        is_log = self.log_version is not None
        return {
            "fileId": self.file_id,
            "path": self.path or None,
            "prevCommit": self.prev_commit,
            "numWrites": self.num_writes,
            "numDeletes": self.num_deletes,
            "numUpdateWrites": self.num_update_writes,
            "totalWriteBytes": self.file_size,
            "totalWriteErrors": 0,
            "partitionPath": self.partition_path,
            "totalLogRecords": self.total_log_records,
            "totalUpdatedRecordsCompacted": self.total_log_records,
            "numInserts": self.num_inserts,
            "totalLogBlocks": self.total_log_blocks,
            "totalCorruptLogBlock": 0,
            "totalRollbackBlocks": 0,
            "fileSizeInBytes": self.file_size,
            "logVersion": self.log_version,
            "logOffset": 0 if is_log else None,
            "baseFile": (self.base_file or "") if is_log else None,
            "logFiles": list(self.log_files) if is_log else None,
            "prevBaseFile": self.prev_base_file,
            "totalLogFilesCompacted": self.total_log_files_compacted,
            "totalLogReadTimeMs": 0,
            "totalLogSizeCompacted": self.total_log_size_compacted,
            "numUpdates": 0,
            "cdcStats": dict(self.change_log) or None,
        }

    @classmethod
    def from_avro(cls, partition_path: str, stat: Mapping[str, Any]) -> WriteStat:
        """The record of any Hudi 1.x writer; absent numbers are 0."""
        number = {key: int(stat.get(key) or 0) for key in _NUMBERS}
        return cls(
            partition_path=partition_path,
            file_id=stat.get("fileId") or "",
            path=stat.get("path") or "",
            prev_commit=stat.get("prevCommit") or "null",
            num_writes=number["numWrites"],
            num_deletes=number["numDeletes"],
            num_update_writes=number["numUpdateWrites"],
            num_inserts=number["numInserts"],
            file_size=number["fileSizeInBytes"],
            log_version=stat.get("logVersion"),
            base_file=stat.get("baseFile"),
            log_files=tuple(stat.get("logFiles") or ()),
            prev_base_file=stat.get("prevBaseFile"),
            total_log_records=number["totalLogRecords"],
            total_log_blocks=number["totalLogBlocks"],
            total_log_files_compacted=number["totalLogFilesCompacted"],
            total_log_size_compacted=number["totalLogSizeCompacted"],
            change_log=tuple(sorted((stat.get("cdcStats") or {}).items())),
        )


_NUMBERS = (
    "numWrites",
    "numDeletes",
    "numUpdateWrites",
    "numInserts",
    "fileSizeInBytes",
    "totalLogRecords",
    "totalLogBlocks",
    "totalLogFilesCompacted",
    "totalLogSizeCompacted",
)


@dataclass(frozen=True)
class CommitMetadata:
    """The body of a completed commit, deltacommit, compaction or replacecommit. ``extra`` includes the key ``schema``.

    ``replaced``: of a replacecommit, the ids of the replaced file groups by partition path; None for other actions.
    """

    stats: tuple[WriteStat, ...] = ()
    extra: Mapping[str, str] = field(default_factory=dict)
    operation: str = "UPSERT"
    compacted: bool = False
    replaced: Mapping[str, tuple[str, ...]] | None = None

    def to_bytes(self) -> bytes:
        """An Avro container, the same bytes for the same metadata."""
        by_partition: dict[str, list[dict[str, Any]]] = {}
        for stat in self.stats:
            by_partition.setdefault(stat.partition_path, []).append(stat.to_avro())
        record = {
            "partitionToWriteStats": by_partition,
            "compacted": self.compacted,
            "extraMetadata": {**self.extra, **_contents_extra(self.stats)},
            "version": 1,
            "operationType": self.operation,
        }
        if self.replaced is None:
            return encode_container(_AVRO, record)
        replaced = {path: list(ids) for path, ids in self.replaced.items()}
        return encode_container(_AVRO_REPLACE, {**record, "partitionToReplaceFileIds": replaced})

    @classmethod
    def from_bytes(cls, data: bytes, path: str) -> CommitMetadata:
        """Read the body of a commit's file. Raises CorruptDataError (case 10: an empty completed file is no commit)."""
        return cls._of_record(decode_container(data, path), path)

    @classmethod
    def from_json(cls, data: bytes, path: str) -> CommitMetadata:
        """The same of timeline layout 1, which has JSON."""
        try:
            record = json.loads(data)
        except ValueError as error:
            raise CorruptDataError(
                f"a commit's file is no JSON: {error}", do_next="restore the file from a copy", path=path
            ) from error
        return cls._of_record(record if isinstance(record, dict) else {}, path)

    @classmethod
    def _of_record(cls, record: Mapping[str, Any], path: str) -> CommitMetadata:
        groups: Mapping[str, list[dict[str, Any]]] = record.get("partitionToWriteStats") or {}
        missing = {"partitionToWriteStats", "extraMetadata"} - record.keys()
        missing |= {"path", "fileId"} - set.intersection(
            {"path", "fileId"}, *(s.keys() for g in groups.values() for s in g)
        )
        if missing:  # else a commit whose field names are damaged would be one without files
            raise CorruptDataError(
                f"a commit's file lacks {' and '.join(sorted(missing))}",
                do_next="restore the file from a copy, or roll the instant back",
                path=path,
            )
        stats = [WriteStat.from_avro(partition, stat) for partition, group in groups.items() for stat in group]
        extra = dict(record.get("extraMetadata") or {})
        return cls(
            stats=_with_contents(stats, extra.pop(CONTENTS_KEY, None)),
            extra=extra,
            operation=record.get("operationType") or "UNKNOWN",
            compacted=bool(record.get("compacted")),
            replaced=_replaced(record.get("partitionToReplaceFileIds")),
        )

    def partitions(self) -> set[str]:
        """The partition paths the commit wrote to."""
        return {stat.partition_path for stat in self.stats}


def keys_within(data: bytes, keys: Collection[bytes]) -> list[bytes] | None:
    """Those of these keys, in UTF-8, that the extra metadata of a commit's file may have, by looking for their bytes:
    the others it lacks for certain. None for a file that another writer made, or that is not whole."""
    for name in (_AVRO, _AVRO_REPLACE):
        if (within := words_within(name, data, keys)) is not None:
            return within
    return None


def replace_request() -> bytes:
    """The body of the requested file of a replacecommit without a plan: Hudi refuses an empty one."""
    names = ("operationType", "clusteringPlan", "extraMetadata", "version")
    return encode_container(_AVRO_REPLACE_REQUEST, dict.fromkeys(names))


def _contents_extra(stats: Sequence[WriteStat]) -> dict[str, str]:
    """The entry of the extra metadata: a list of the sums in the order of the paths, null for a file without one."""
    ordered = sorted(stats, key=lambda stat: stat.path)
    if all(stat.contents is None for stat in ordered):
        return {}
    sums = [None if stat.contents is None else str(stat.contents) for stat in ordered]
    return {CONTENTS_KEY: json.dumps(sums, separators=(",", ":"))}


def _with_contents(stats: list[WriteStat], text: str | None) -> tuple[WriteStat, ...]:
    """The stats with their sums; without, if the entry is not there or cannot be read: then nothing is determined."""
    if text is None:
        return tuple(stats)
    try:
        sums = [None if part is None else ContentSum.parse(part) for part in json.loads(text)]
        by_path = dict(zip(sorted(stat.path for stat in stats), sums, strict=True))
    except (ValueError, TypeError, AttributeError):
        return tuple(stats)
    return tuple(replace(stat, contents=by_path[stat.path]) for stat in stats)


def _replaced(groups: Mapping[str, list[str]] | None) -> dict[str, tuple[str, ...]] | None:
    return None if groups is None else {path: tuple(ids) for path, ids in groups.items()}
