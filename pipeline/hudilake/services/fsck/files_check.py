"""Compares the data files with the commits: each file of a commit exists with its size, and no other file exists."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.files.names import (
    PARTITION_METADATA,
    REPAIRS_PATH,
    BaseFileName,
    in_partition,
    parse_base_name,
    parse_log_name,
)
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.format.timeline.instant import CLEAN
from hudilake.services.fsck.evidence import DataFile, Evidence
from hudilake.services.fsck.findings import Check, Finding, Repair, Severity
from hudilake.storage.base import StorageNotFoundError, UnfinishedWrites
from hudilake.wording import counted

_LOST = "it may be of an archived or a lost commit: restore the timeline, or compare the file's rows with the table's"
_ALIVE = "too young to be sure that its writer is dead: check again later"


def check_files(evidence: Evidence) -> Iterator[Finding]:
    """Files without a commit, commits without their files, wrong sizes, two file groups in a bucket, foreign files."""
    named = _named(evidence)
    for file in evidence.data_files:
        yield from _unreferenced(evidence, file, named)
    yield from _absent(evidence, named)
    yield from _change_logs(evidence, named)
    yield from _wrong_size(evidence, named)
    yield from _unlisted_partitions(evidence)
    yield from _shared_buckets(evidence)
    yield from _foreign(evidence)
    yield from _unfinished(evidence)
    yield from _kept(evidence)


def _named(evidence: Evidence) -> dict[str, WriteStat]:
    """The files of completed commits by path; the later entry of a path is used."""
    bodies = sorted({**evidence.archived, **evidence.bodies}.items())
    return {stat.path: stat for _, body in bodies for stat in body.stats if stat.path}


def _unreferenced(evidence: Evidence, file: DataFile, named: dict[str, WriteStat]) -> Iterator[Finding]:
    instant = file.name.instant
    pending = evidence.timeline.pending_times()
    if file.path in named or instant in pending or instant in evidence.unreadable:
        return
    if instant in evidence.bodies or instant in evidence.archived:
        if not _is_first_base(evidence, file):
            yield Finding(
                Severity.ERROR,
                Check.FILES,
                "a file has the instant of a completed commit that does not name it, and readers use it",
                file.path,
                instant=instant,
                advice="compare its rows with the table's; delete it by hand if the commit's own file has them",
            )
        return
    yield _leftover(evidence, file)


def _leftover(evidence: Evidence, file: DataFile) -> Finding:
    """A file of an instant that is in no timeline. It may go if nothing needs it: a rollback names its instant, or no
    reader sees it, the timeline is whole, and nothing tells that its commit was completed."""
    instant = file.name.instant
    visible, rolled_back = evidence.timeline.is_completed(instant), instant in evidence.rolled_back
    what = "no commit names the file"
    if rolled_back:
        what = "a file of a commit that was rolled back still exists"
    if visible:
        what += ", and readers use it: its instant is older than the active timeline"
    why = _why_not(evidence, file) if rolled_back or not visible else "readers use it"
    if why and not visible:
        what += f", and readers do not see its rows; {why}"
    may_go = not why and evidence.is_old(file.info)
    return Finding(
        Severity.ERROR if visible or why else Severity.WARNING,
        Check.FILES,
        what,
        file.path,
        instant=instant,
        repair=Repair.MOVE_FILE if may_go else None,
        advice="" if may_go else _LOST if why else _ALIVE,
    )


def _why_not(evidence: Evidence, file: DataFile) -> str:
    """Why a file that no reader sees may still be needed; "" if it is a leftover."""
    if file.path in evidence.held:
        return "a savepoint holds it"
    if evidence.is_lost(file.name.instant):
        return "its commit was completed, and the timeline lacks it"
    return evidence.doubt


def _is_first_base(evidence: Evidence, file: DataFile) -> bool:
    """An indexed table's file groups begin with an empty base file, which a commit need not name."""
    if not isinstance(file.name, BaseFileName) or file.name.extension != "parquet":
        return False
    try:
        content = evidence.storage.read(file.path)
        return bool(pq.read_metadata(pa.BufferReader(content)).num_rows == 0)
    except (pa.ArrowException, OSError, StorageNotFoundError):
        return True  # damaged: the content's check reports it


@dataclass
class _CommittedGroup:
    """The files that commits name for one file group: (instant, path)."""

    bases: list[tuple[str, str]]
    logs: list[tuple[str, str]]

    def latest(self, evidence: Evidence) -> set[str]:
        """The paths of the newest file slice."""
        since, base = max(self.bases, default=("", ""))
        logs = {path for instant, path in self.logs if (evidence.timeline.completion_time(instant) or "9") >= since}
        return logs | ({base} if base else set())


def _absent(evidence: Evidence, named: dict[str, WriteStat]) -> Iterator[Finding]:
    missing = {path: stat for path, stat in named.items() if path not in evidence.files}
    if not missing:
        return
    needed = _needed(evidence, named)
    cleaned = _cleaned(evidence)
    if cleaned is None or evidence.timeline.history().files:
        missing = {path: stat for path, stat in missing.items() if path in needed}
    for path, stat in sorted(missing.items()):
        if (path in (cleaned or ()) or path in evidence.going) and path not in needed:
            continue
        lost = path in needed
        yield Finding(
            Severity.ERROR if lost else Severity.WARNING,
            Check.FILES,
            "a completed commit names a file that does not exist" + ("" if lost else "; only time travel needs it"),
            path,
            instant=_instant_of(stat),
            advice="restore it from a copy, or load the rows of that commit's offsets again" if lost else "none needed",
        )


def _change_logs(evidence: Evidence, named: dict[str, WriteStat]) -> Iterator[Finding]:
    """Hudi's CDC query needs the change log of a commit as long as the base file that it wrote."""
    logs = {path: (stat, size) for stat in named.values() for path, size in stat.change_log}
    for file in evidence.change_logs:
        yield from _unreferenced(evidence, file, {path: stat for path, (stat, _) in logs.items()})
    for path, (stat, size) in sorted(logs.items()):
        info = evidence.files.get(path)
        if stat.path not in evidence.files or path in evidence.going or (info is not None and info.size == size):
            continue
        what = "does not exist" if info is None else f"has {info.size} bytes, it wrote {size}"
        yield Finding(
            Severity.ERROR,
            Check.FILES,
            f"a completed commit names a change log that {what}: Hudi's CDC query fails for it",
            path,
            instant=_instant_of(stat),
            advice="restore it from a copy; the table's rows do not need it",
        )


def _needed(evidence: Evidence, named: dict[str, WriteStat]) -> set[str]:
    """The named files of every file group's newest slice."""
    groups: dict[tuple[str, str], _CommittedGroup] = {}
    for path, stat in named.items():
        if (stat.partition_path, stat.file_id) in evidence.replaced:
            continue
        group = groups.setdefault((stat.partition_path, stat.file_id), _CommittedGroup([], []))
        if (log := parse_log_name(stat.file_name)) is not None:
            group.logs.append((log.instant, path))
        elif (base := parse_base_name(stat.file_name)) is not None:
            group.bases.append((base.instant, path))
    return {path for group in groups.values() for path in group.latest(evidence)}


def _cleaned(evidence: Evidence) -> set[str] | None:
    """The paths that completed cleans deleted, by their metadata; None if one of them cannot be read."""
    paths: set[str] = set()
    for clean in evidence.timeline.completed_actions({CLEAN}):
        try:
            record = decode_container(evidence.storage.read(clean.path), clean.path)
        except (CorruptDataError, StorageNotFoundError):
            return None
        for partition, deletions in (record.get("partitionMetadata") or {}).items():
            names = [*(deletions.get("deletePathPatterns") or ()), *(deletions.get("successDeleteFiles") or ())]
            paths.update(in_partition(partition, name.rpartition("/")[2]) for name in names)
    return paths


def _instant_of(stat: WriteStat) -> str:
    name = parse_log_name(stat.file_name) or parse_base_name(stat.file_name)
    return name.instant if name is not None else ""


def _wrong_size(evidence: Evidence, named: dict[str, WriteStat]) -> Iterator[Finding]:
    for path, stat in sorted(named.items()):
        info = evidence.files.get(path)
        if info is None or not stat.file_size or info.size == stat.file_size:
            continue
        what = "the file is empty" if not info.size else f"the file has {info.size} bytes"
        yield Finding(
            Severity.ERROR,
            Check.FILES,
            f"{what} where its commit wrote {stat.file_size}",
            path,
            instant=_instant_of(stat),
            advice="restore it from a copy, or load the rows of that commit's offsets again",
        )


def _unlisted_partitions(evidence: Evidence) -> Iterator[Finding]:
    for partition in sorted({file.partition_path for file in evidence.visible}):
        if evidence.data_path(partition, PARTITION_METADATA) is None:
            yield Finding(
                Severity.ERROR,
                Check.FILES,
                "a partition has no metadata file: readers that list storage do not see its rows",
                in_partition(partition, PARTITION_METADATA),
                repair=Repair.ADD_PARTITION_METADATA,
            )


def _shared_buckets(evidence: Evidence) -> Iterator[Finding]:
    """Two file groups in one bucket: a key is then updated in one and read from both (hudi#9303)."""
    if not evidence.config.bucket_count or evidence.config.kind.hashes:
        return
    groups: dict[tuple[str, str], set[str]] = {}
    for file in evidence.visible:
        if (file.partition_path, file.name.file_id) in evidence.replaced:
            continue
        groups.setdefault((file.partition_path, file.name.file_id[:8]), set()).add(file.name.file_id)
    for (partition, bucket), ids in sorted(groups.items()):
        if len(ids) > 1:
            yield Finding(
                Severity.ERROR,
                Check.FILES,
                f"bucket {bucket} has {counted(len(ids), 'file group')}: {', '.join(sorted(ids))}",
                partition or ".",
                advice="stop all writers but one; load the bucket's keys again under a new table path",
            )


def _foreign(evidence: Evidence) -> Iterator[Finding]:
    data_paths = {file.path for file in evidence.data_files}
    for path in sorted(evidence.files):
        name = path.rpartition("/")[2]
        ignored = name == PARTITION_METADATA or name.startswith(PARTITION_METADATA + ".") or name.endswith(".crc")
        if path.startswith(".hoodie/") or path in data_paths or ignored or ".cdc" in name:
            continue
        yield Finding(
            Severity.INFO,
            Check.FILES,
            "a file that does not belong to a Hudi table",
            path,
            advice="readers ignore it; delete it by hand if it is not needed",
        )


def _unfinished(evidence: Evidence) -> Iterator[Finding]:
    """Half-written files of killed writers."""
    storage = evidence.storage
    for info in storage.unfinished("") if isinstance(storage, UnfinishedWrites) else ():
        old = evidence.is_old(info)
        yield Finding(
            Severity.INFO,
            Check.FILES,
            f"a half-written file of {info.size} bytes",
            info.path,
            repair=Repair.MOVE_UNFINISHED if old else None,
            advice="" if old else _ALIVE,
        )


def _kept(evidence: Evidence) -> Iterator[Finding]:
    """What earlier repairs have kept."""
    for name in sorted({info.path.split("/")[2] for info in evidence.below(REPAIRS_PATH)}):
        yield Finding(
            Severity.INFO,
            Check.FILES,
            "an earlier repair keeps files as they were before it",
            f"{REPAIRS_PATH}/{name}",
            advice="binlake repair --take-back puts them back; delete the folder by hand once the table is right",
        )
