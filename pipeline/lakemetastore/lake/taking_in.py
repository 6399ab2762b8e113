"""What a Hudi table's timeline says that a state has not yet: the next entry of its log.

Call it with a table whose timeline was listed after the state was known; then no entry takes back a newer one. Only the
bodies of new instants are read. Where the timeline alone does not say what became of an instant, the state is read
anew from the table (``fresh``): after a restore, after a rollback of a completed write, if writes were archived unseen,
if the table is another one, or if the metadata table has statistics of other columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from hudilake.format.files.names import parse_base_name, parse_data_name, parse_log_name
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import CLEAN, DELTA_COMMIT, RESTORE, ROLLBACK, WRITE_ACTIONS, Instant
from hudilake.metadata.records.delta import FileKey
from lakemetastore.lake.entries import LakeEntry, LakeFile, LakeInstant, PartitionChange, SchemaVersion, TakenIn
from lakemetastore.lake.fresh import (
    active,
    identity,
    indexed_columns,
    recorded,
    renewed,
    statistics,
    with_statistics,
)
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.state import LakeState, runs


def next_entry(state: LakeState, opened: OpenedTable) -> LakeEntry | None:
    """The entry that brings a state up to a table; None if it is.

    Raises CorruptDataError for a body that cannot be read, StorageError.
    """
    listed = {".".join(instant.identity): instant for instant in active(opened)}
    new = [instant for key, instant in listed.items() if not _is_known(state.instants.get(key), instant)]
    gone = [known for key, known in state.instants.items() if key not in listed]
    if _must_renew(state, opened, listed, new, gone):
        return renewed(opened)
    if not new and not gone:
        return None
    texts: dict[str, str] = {}
    instants = tuple(recorded(opened, instant, texts) for instant in new)
    versions = [SchemaVersion(one.requested, one.schema) for one in gone if one.schema]
    archived = tuple(runs([*state.archived, *versions])) if versions else None
    return TakenIn(
        instants=instants,
        gone=tuple(known.instant.identity for known in gone),
        partitions=_file_changes(state, opened, new),
        texts={key: text for key, text in texts.items() if key not in state.texts},
        archived=archived if archived != state.archived else None,
    )


def _is_known(known: LakeInstant | None, instant: Instant) -> bool:
    return known is not None and known.instant == instant


def _must_renew(
    state: LakeState,
    opened: OpenedTable,
    listed: dict[str, Instant],
    new: Iterable[Instant],
    gone: Iterable[LakeInstant],
) -> bool:
    if not state.uri or state.identity != identity(opened) or state.indexed != indexed_columns(opened):
        return True
    if any(instant.action == RESTORE for instant in new):
        return True
    done = {key: known for key, known in state.instants.items() if known.completed}
    if any(listed[key].completion_time != known.completed for key, known in done.items() if key in listed):
        return True
    now = [key for key, instant in listed.items() if instant.action in WRITE_ACTIONS and instant.completed]
    knew = any(known.action in WRITE_ACTIONS for known in done.values())
    if not any(key in done for key in now) and (knew or (now and opened.timeline.history().files)):
        return True  # writes may have been archived unseen, or it is another table
    first = min((listed[key].requested_time for key in now), default="")
    return any(_is_doubtful(known, first) for known in gone)


def _is_doubtful(gone: LakeInstant, first: str) -> bool:
    """Whether the active timeline does not say what became of an instant. Writes before its ``first`` one are archived;
    a completed one after it was rolled back, and a pending one before it may have completed and been archived."""
    action = gone.instant.identity[1]
    if action not in WRITE_ACTIONS:
        return False
    return gone.requested >= first if gone.completed else gone.requested < first


@dataclass
class _Files:
    """The files that partitions lose and get, in the order in which instants completed."""

    removed: dict[str, set[str]] = field(default_factory=dict)
    added: dict[FileKey, tuple[int, str]] = field(default_factory=dict)

    def add(self, path: str, name: str, size: int, completed: str) -> None:
        self.added[(path, name)] = size, completed
        self.removed.get(path, set()).discard(name)

    def remove(self, path: str, name: str) -> None:
        self.added.pop((path, name), None)
        self.removed.setdefault(path, set()).add(name)


def _file_changes(state: LakeState, opened: OpenedTable, new: Iterable[Instant]) -> dict[str, PartitionChange]:
    files = _Files()
    completed = [instant for instant in new if instant.completed]
    for instant in sorted(completed, key=lambda one: (one.completion_time or "", one.requested_time)):
        if instant.action in WRITE_ACTIONS:
            for stat in opened.timeline.commit_metadata(instant).stats:
                if stat.path:
                    files.add(stat.partition_path, stat.file_name, stat.file_size, instant.completion_time or "")
        elif instant.action in (CLEAN, ROLLBACK):
            for path, name in _deleted(opened, instant):
                files.remove(path, name)
    _add_first_files(files, state, opened, completed)
    known = statistics(opened.index, state.indexed, files.added)
    changes: dict[str, list[LakeFile]] = {path: [] for path, names in files.removed.items() if names}
    for (path, name), (size, time) in sorted(files.added.items()):
        ranges = with_statistics(known.get((path, name), {}))
        changes.setdefault(path, []).append(LakeFile(name, size, time, ranges))
    return {
        path: PartitionChange(tuple(sorted(files.removed.get(path, ()))), tuple(added))
        for path, added in sorted(changes.items())
    }


def _add_first_files(files: _Files, state: LakeState, opened: OpenedTable, completed: Iterable[Instant]) -> None:
    """Add the empty base files that file groups of log files begin with (``metadata.first_base``): the metadata table
    has them, and no commit names them."""
    if not opened.config.metadata_partitions:
        return
    times = {i.requested_time: i.completion_time or "" for i in completed if i.action == DELTA_COMMIT}
    logs = {(path, log.file_id) for path, name in files.added if (log := parse_log_name(name)) is not None}
    paths = {path for path, _ in logs}
    stored = ((path, parse_data_name(file.name)) for path in paths for file in state.stored(path))
    known = {(path, name.file_id) for path, name in stored if name is not None}
    for path, infos in opened.files(sorted({path for path, _ in logs - known})).items():
        for info in infos:
            base = parse_base_name(info.path.rpartition("/")[2])
            if base is not None and base.instant in times and (path, str(base)) not in files.added:
                files.add(path, str(base), info.size, times[base.instant])


def _deleted(opened: OpenedTable, instant: Instant) -> Iterator[FileKey]:
    """The files that a clean or a rollback deleted. Hudi names them by their paths or bare."""
    body: dict[str, Any] = decode_container(opened.storage.read(instant.path), instant.path)
    for path, partition in (body.get("partitionMetadata") or {}).items():
        for name in partition.get("successDeleteFiles") or ():
            yield path, str(name).rpartition("/")[2]
