"""What a restore takes back, what it needs to be there, and how it stands in the timeline (``HoodieRestorePlan``).

The wanted state is that at the completion of a write. Of the other writes those that completed later go. A compaction
goes if it was *requested* after the write: one requested before holds nothing but what completed before it, and the
cleaner promises the write's time with that compaction's file slices, not with those below them (Hudi's rule as well).
Files that cleaning deleted do not come back, so a restore that would need them is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from pipeline.errors import ConfigError, UnsupportedError
from pipeline.hudi.files.names import in_partition, parse_base_name, parse_log_name
from pipeline.hudi.files.view import FileSlice, slices_of_partition
from pipeline.hudi.read.retention import refuse_cleaned
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.avro_container import decode_container, encode_container
from pipeline.hudi.timeline.commit_metadata import WriteStat
from pipeline.hudi.timeline.instant import (
    CLUSTERING,
    COMMIT,
    COMPACTION,
    LOG_COMPACTION,
    RESTORE,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from pipeline.hudi.timeline.timeline import Timeline
from pipeline.storage.base import FileInfo, Storage

_AVRO, _VERSION = "HoodieRestorePlan", 2
#: Pending ones stay if they were requested before the write: their plans name nothing that goes.
_SERVICES = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
_BY_COMPLETION = WRITE_ACTIONS - {COMMIT}
#: Of the history only the newest files are asked for writes that ended late.
_HISTORY_FILES = 10

#: Requested time and action.
Named: TypeAlias = tuple[str, str]
Listing: TypeAlias = Mapping[str, list[FileInfo]]


@dataclass(frozen=True)
class RestorePlan:
    """What a restore would do now.

    Args:
        target: the write whose completion is the wanted moment.
        undone: the instants that go, in the order in which they go: pending ones, then the newest first.
        files: the data files that go, with them, relative to the table's root.
        kept_writes: how many writes of the active timeline stay.
        kept_files: the data files that stay.
    """

    target: Instant
    undone: tuple[Instant, ...]
    files: tuple[FileInfo, ...]
    kept_writes: int
    kept_files: tuple[FileInfo, ...]


def plan_restore(table: HudiTable, instant: str) -> RestorePlan:
    """What ``restore`` would do, as of the table's last refresh; changes nothing.

    Args:
        table: open.
        instant: the requested time of a completed write of the active timeline.

    Raises ConfigError if there is no such write or a savepoint stands in the way, UnsupportedError if files that are
    needed may be gone or the table has replaced file groups, CorruptDataError, StorageError.
    """
    timeline = table.timeline
    if begun := pending_restores(timeline):
        raise ConfigError(
            "a restore of the table has begun and is not finished",
            do_next="open the table for writing, or run binlake restore: both finish it",
            instant=begun[0].requested_time,
        )
    target = _find(table, instant)
    undone = undone_by(timeline, target)
    gone = {i.requested_time for i in undone}
    _check_savepoints(timeline, gone)
    _check_archived(timeline, target)
    listing = list_files(table.storage)
    remaining = _without(table.storage, timeline, gone)
    _check_files(table, listing, target, remaining)
    files = [info for infos in listing.values() for info in infos]
    return RestorePlan(
        target,
        tuple(undone),
        tuple(info for info in files if instant_of(info) in gone),
        len(remaining.completed()),
        tuple(info for info in files if instant_of(info) not in gone),
    )


def undone_by(timeline: Timeline, target: Instant) -> list[Instant]:
    """The instants that go when a table is restored to a completed write, in the order in which they go."""
    pending = [i for i in timeline.pending() if i.identity[1] in WRITE_ACTIONS and not _stays_pending(i, target)]
    later = [i for i in timeline.completed() if _is_later(i, target)]
    return [
        *sorted(pending, reverse=True),
        *sorted(later, key=lambda i: (i.completion_time or "", i.requested_time), reverse=True),
    ]


def encode_request(target: str, undone: Iterable[Instant]) -> bytes:
    """The body of the requested file, as Hudi's own restore would go on with."""
    instants = [{"commitTime": i.requested_time, "action": i.action} for i in undone]
    record = {"instantsToRollback": instants, "version": _VERSION, "savepointToRestoreTimestamp": target}
    return encode_container(_AVRO, record)


def decode_request(data: bytes, path: str) -> list[Named]:
    """The instants that a requested restore, ours or Hudi's, takes back, in their order. Raises CorruptDataError."""
    record = decode_container(data, path)
    return [(i["commitTime"], i["action"]) for i in record.get("instantsToRollback") or []]


def list_files(storage: Storage) -> dict[str, list[FileInfo]]:
    """The table's base and log files by partition path, whatever instants they are of."""
    found: dict[str, list[FileInfo]] = {}
    for info in storage.walk(""):
        if not info.path.startswith(".hoodie/") and instant_of(info) is not None:
            found.setdefault(info.path.rpartition("/")[0], []).append(info)
    return found


def instant_of(info: FileInfo) -> str | None:
    """The instant in a data file's name; None for any other file."""
    name = info.path.rpartition("/")[2]
    parsed = parse_log_name(name) or parse_base_name(name)
    return parsed.instant if parsed is not None else None


def _find(table: HudiTable, instant: str) -> Instant:
    found = next((i for i in table.timeline.completed() if i.requested_time == instant), None)
    if found is None:
        raise ConfigError(
            "there is no completed write of that requested time in the active timeline",
            do_next="name one that binlake inspect lists",
            instant=instant,
            table=table.config.name,
        )
    return found


def _is_later(write: Instant, target: Instant) -> bool:
    if write.action == COMMIT:
        return write.requested_time > target.requested_time
    return (write.completion_time or "") > (target.completion_time or "")


def _stays_pending(pending: Instant, target: Instant) -> bool:
    return pending.action in _SERVICES and pending.requested_time <= target.requested_time


def _check_savepoints(timeline: Timeline, gone: set[str]) -> None:
    held = [i.requested_time for i in timeline.completed_actions({SAVEPOINT}) if i.requested_time in gone]
    if held:
        raise ConfigError(
            "a savepoint holds a write that the restore would take back",
            do_next="delete the savepoint first",
            savepoint=held[0],
        )


def _check_archived(timeline: Timeline, target: Instant) -> None:
    """Refuse if the history holds a write that began before all active ones and ended after the wanted moment."""
    history, moment = timeline.history(), target.completion_time or ""
    for entry in sorted(history.entries, key=lambda entry: entry.last, reverse=True)[:_HISTORY_FILES]:
        rows = history.read(entry, ["instantTime", "completionTime", "action"]).to_pylist()
        # An archived compaction was requested before, and stays.
        late = [r for r in rows if r["action"] in _BY_COMPLETION and (r["completionTime"] or "") > moment]
        if late:
            raise UnsupportedError(
                "a write that completed later has been archived and cannot be taken back",
                do_next="choose a later time",
                instant=late[0]["instantTime"],
            )


def _without(storage: Storage, timeline: Timeline, gone: set[str]) -> Timeline:
    """The timeline as it will be."""
    remaining = Timeline(storage)
    for instant in [*timeline.completed_actions(WRITE_ACTIONS), *timeline.pending()]:
        if instant.requested_time not in gone or instant.identity[1] not in WRITE_ACTIONS:
            remaining.record(instant)
    return remaining


def _check_files(table: HudiTable, listing: Listing, target: Instant, remaining: Timeline) -> None:
    """Refuse if files of the wanted state are gone: by what the cleaner says, and by what the commits name."""
    moment, timeline = target.requested_time, table.timeline
    then = [s for path, infos in listing.items() for s in slices_of_partition(path, infos, timeline, moment)]
    refuse_cleaned(listing, then, timeline, table.storage, moment)
    after = [s for path, infos in listing.items() for s in slices_of_partition(path, infos, remaining)]
    if absent := _absent(remaining, listing, after):
        raise UnsupportedError(
            "a file that the wanted state needs is gone",
            do_next="choose a later time; raise the cleaner's retention to keep more",
            instant=moment,
            file=min(absent),
        )


def _absent(remaining: Timeline, listing: Listing, after: Iterable[FileSlice]) -> set[str]:
    """Of the files that the active commits name those that their file groups' slices lack."""
    stats = [(write, stat) for write in remaining.completed() for stat in remaining.commit_metadata(write).stats]
    bases = {(s.partition_path, s.file_id): s.base_file.name.instant for s in after if s.base_file is not None}
    for write, stat in stats:
        if parse_base_name(stat.file_name) is not None:
            group = stat.partition_path, stat.file_id
            bases[group] = max(bases.get(group, ""), write.requested_time)
    there = {info.path for infos in listing.values() for info in infos}
    needed = {_path(stat) for write, stat in stats if _is_needed(write, stat, bases)}
    return needed - there


def _is_needed(write: Instant, stat: WriteStat, bases: Mapping[tuple[str, str], str]) -> bool:
    base = bases.get((stat.partition_path, stat.file_id), "")
    if parse_base_name(stat.file_name) is not None:
        return write.requested_time == base
    return parse_log_name(stat.file_name) is not None and (write.completion_time or "") >= base


def _path(stat: WriteStat) -> str:
    return in_partition(stat.partition_path, stat.file_name)


def pending_restores(timeline: Timeline) -> list[Instant]:
    """The restores that are requested or inflight, oldest first."""
    return [instant for instant in timeline.pending() if instant.action == RESTORE]
