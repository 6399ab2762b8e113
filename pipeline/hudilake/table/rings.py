"""The hash rings of a table with consistent hashing: which metadata file of a partition counts.

The newest file counts whose resize has completed: its ``.commit`` file exists, or the timeline says so; the first file
of a partition always does. Hudi also counts a file whose instant is unknown if a file group of one of its nodes has a
base file (``ConsistentBucketIndexUtils.recommitMetadataFile``, 1.2.0). So whoever undoes a resize deletes its file
before its instant (``actions.rollback``).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from hudilake.commit.commit import create_files
from hudilake.errors import TransientError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.consistent import (
    COMMIT_SUFFIX,
    FIRST_INSTANT,
    HASHING_PATH,
    META_SUFFIX,
    HashingMetadata,
    hashing_file,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import Storage

_PARALLEL_READS = 8


@dataclass
class Rings:
    """The hash rings of one open table. Metadata files never change, so each is read once.

    ``_known``: the partitions that have a file. ``_read``: path -> content.
    """

    storage: Storage
    _known: set[str] = field(default_factory=set)
    _read: dict[str, HashingMetadata] = field(default_factory=dict)

    def taken_in(self, config: TableConfig, timeline: Timeline) -> TableConfig:
        """The configuration with the rings as of the timeline. Raises CorruptDataError, StorageError."""
        if not config.kind.hashes:
            return config
        counting = self._counting(timeline)
        first = {path: HashingMetadata.first(path, config.bucket_count) for path in counting}
        sizes = {path: len(ring.to_bytes()) for path, ring in first.items()}
        other = {path: file for path, (file, size) in counting.items() if not _is_first(file) or size != sizes[path]}
        self._read_all(set(other.values()))
        rings_by_path = {path: self._read[file] for path, file in other.items()}
        self._known = set(counting)
        return replace(config, rings={path: ring for path, ring in rings_by_path.items() if ring != first[path]})

    def begin(self, config: TableConfig, partition_paths: tuple[str, ...]) -> None:
        """Write the metadata of new partitions, before the first commit to them completes: a Hudi writer without it
        would take its own number of buckets. A crash leaves a partition without rows.

        Raises TransientError if another writer has begun one of them with other buckets, StorageError.
        """
        if not config.kind.hashes:
            return
        new = {path: hashing_file(path, FIRST_INSTANT) for path in partition_paths if path not in self._known}
        bodies = {file: HashingMetadata.first(path, config.bucket_count).to_bytes() for path, file in new.items()}
        for file in create_files(self.storage, bodies):
            if self.storage.read(file) != bodies[file]:
                raise TransientError(
                    "another writer has begun a partition with other buckets",
                    do_next="start again: the rows then go to the partition's own buckets",
                    table=config.name,
                    path=file,
                )
        self._known.update(new)

    def _counting(self, timeline: Timeline) -> dict[str, tuple[str, int]]:
        """Partition path -> the metadata file that counts, with its size in bytes."""
        files: dict[str, list[tuple[str, int]]] = {}
        marked: set[tuple[str, str]] = set()
        for info in self.storage.walk(HASHING_PATH):
            folder, _, name = info.path.rpartition("/")
            path = folder[len(HASHING_PATH) + 1 :]
            if name.endswith(META_SUFFIX):
                files.setdefault(path, []).append((name.removesuffix(META_SUFFIX), info.size))
            elif name.endswith(COMMIT_SUFFIX):
                marked.add((path, name.removesuffix(COMMIT_SUFFIX)))
        metadata_files = {}
        for path, instants in files.items():
            for instant, size in sorted(instants, reverse=True):
                if instant == FIRST_INSTANT or (path, instant) in marked or has_completed(timeline, instant):
                    metadata_files[path] = hashing_file(path, instant), size
                    break
        return metadata_files

    def _read_all(self, files: set[str]) -> None:
        new = sorted(files - self._read.keys())
        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            for file, body in zip(new, pool.map(self.storage.read, new), strict=True):
                self._read[file] = HashingMetadata.from_bytes(body, file)


def has_completed(timeline: Timeline, instant: str) -> bool:
    """Whether the timeline, with its archive, says that a resize has completed."""
    known = timeline.find(instant)
    return known.completed if known is not None else timeline.history().completion_time(instant) is not None


def _is_first(file: str) -> bool:
    return file.endswith(f"/{FIRST_INSTANT}{META_SUFFIX}")
