"""The plan of a restore: the writes to undo, the files that it needs, and its form in the timeline
(``HoodieRestorePlan``).

The target state is that at the completion of a write. Writes that completed later are undone. A compaction is undone if
it was *requested* after the write: one requested before holds only rows that completed before it, and the cleaner
retains the write's time with that compaction's file slices, not with the slices before them (Hudi's rule as well).
Cleaned files cannot be restored, so a restore that needs them is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.files.names import in_partition, parse_base_name, parse_log_name, parse_written_name
from hudilake.format.files.view import FileSlice, slices_of_partition
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.commit_metadata import WriteStat
from hudilake.format.timeline.instant import (
    CLUSTERING,
    COMPACTION,
    DELTA_COMMIT,
    LOG_COMPACTION,
    REPLACE_COMMIT,
    RESTORE,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.retention import refuse_cleaned
from hudilake.storage.base import FileInfo, Storage
from hudilake.table.table import HudiTable

_AVRO, _VERSION = "HoodieRestorePlan", 2
#: Pending ones are kept if they were requested before the write: their plans name no file to delete.
_SERVICES = frozenset({COMPACTION, LOG_COMPACTION, CLUSTERING})
#: Only the newest files of the history are searched for writes that ended late.
_HISTORY_FILES = 10

#: Requested time and action.
Named: TypeAlias = tuple[str, str]
Listing: TypeAlias = Mapping[str, list[FileInfo]]


@dataclass(frozen=True)
class RestorePlan:
    """The plan of a restore as of now.

    Args:
        target: the write whose completion is the target moment.
        undone: the instants to undo in their order: pending ones, then the newest first.
        files: their data files, relative to the table's root.
        kept_writes: the number of writes of the active timeline that are kept.
        kept_files: the data files that are kept.
    """

    target: Instant
    undone: tuple[Instant, ...]
    files: tuple[FileInfo, ...]
    kept_writes: int
    kept_files: tuple[FileInfo, ...]


def plan_restore(table: HudiTable, instant: str) -> RestorePlan:
    """The plan of ``restore``, as of the table's last refresh; changes nothing.

    Args:
        table: open.
        instant: the requested time of a completed write of the active timeline.

    Raises ConfigError if there is no such write or a savepoint holds a later one, UnsupportedError if needed files may
    have been deleted, CorruptDataError, StorageError.
    """
    timeline = table.timeline
    if begun := pending_restores(timeline):
        raise ConfigError(
            "a restore of the table is pending",
            do_next="open the table for writing, or run binlake restore: both finish it",
            instant=begun[0].requested_time,
        )
    target = _find(table, instant)
    undone = undone_by(timeline, target)
    undone_times = {i.requested_time for i in undone}
    _check_savepoints(timeline, undone_times)
    _check_archived(table, target)
    listing = list_files(table.storage)
    remaining = _without(table.storage, timeline, undone_times)
    _check_files(table, listing, target, remaining)
    files = [info for infos in listing.values() for info in infos]
    return RestorePlan(
        target,
        tuple(undone),
        tuple(info for info in files if instant_of(info) in undone_times),
        len(remaining.completed()),
        tuple(info for info in files if instant_of(info) not in undone_times),
    )


def undone_by(timeline: Timeline, target: Instant) -> list[Instant]:
    """The instants to undo for a restore to a completed write, in their order."""
    pending = [i for i in timeline.pending() if i.identity[1] in WRITE_ACTIONS and not _stays_pending(i, target)]
    later = [i for i in timeline.completed() if _is_later(timeline, i, target)]
    return [
        *sorted(pending, reverse=True),
        *sorted(later, key=lambda i: (i.completion_time or "", i.requested_time), reverse=True),
    ]


def encode_request(target: str, undone: Iterable[Instant]) -> bytes:
    """The body of the requested file, in the form that Hudi's own restore can continue."""
    instants = [{"commitTime": i.requested_time, "action": i.action} for i in undone]
    record = {"instantsToRollback": instants, "version": _VERSION, "savepointToRestoreTimestamp": target}
    return encode_container(_AVRO, record)


def decode_request(data: bytes, path: str) -> list[Named]:
    """The instants that a requested restore, ours or Hudi's, undoes, in their order. Raises CorruptDataError."""
    record = decode_container(data, path)
    return [(i["commitTime"], i["action"]) for i in record.get("instantsToRollback") or []]


def list_files(storage: Storage) -> dict[str, list[FileInfo]]:
    """The table's base and log files, and its change logs, of all instants, by partition path."""
    files: dict[str, list[FileInfo]] = {}
    for info in storage.walk(""):
        if not info.path.startswith(".hoodie/") and instant_of(info) is not None:
            files.setdefault(info.path.rpartition("/")[0], []).append(info)
    return files


def instant_of(info: FileInfo) -> str | None:
    """The instant in a data file's name; None for any other file."""
    name = info.path.rpartition("/")[2]
    parsed = parse_written_name(name)
    return parsed.instant if parsed is not None else None


def _find(table: HudiTable, instant: str) -> Instant:
    write = next((i for i in table.timeline.completed() if i.requested_time == instant), None)
    if write is None:
        raise ConfigError(
            "there is no completed write of that requested time in the active timeline",
            do_next="give the requested time of a write in the list of binlake inspect",
            instant=instant,
            table=table.config.name,
        )
    return write


def _is_later(timeline: Timeline, write: Instant, target: Instant) -> bool:
    if timeline.is_compaction(write):
        return write.requested_time > target.requested_time
    return (write.completion_time or "") > (target.completion_time or "")


def _stays_pending(pending: Instant, target: Instant) -> bool:
    return pending.action in _SERVICES and pending.requested_time <= target.requested_time


def _check_savepoints(timeline: Timeline, undone_times: set[str]) -> None:
    held = [i.requested_time for i in timeline.completed_actions({SAVEPOINT}) if i.requested_time in undone_times]
    if held:
        raise ConfigError(
            "a savepoint holds a write that the restore would undo",
            do_next="delete the savepoint first",
            savepoint=held[0],
        )


def _check_archived(table: HudiTable, target: Instant) -> None:
    """Refuse if the history has a write that began before all active ones and ended after the target moment."""
    history, moment = table.timeline.history(), target.completion_time or ""
    by_completion = {table.state.action, DELTA_COMMIT, REPLACE_COMMIT}
    for entry in sorted(history.entries, key=lambda entry: entry.last, reverse=True)[:_HISTORY_FILES]:
        rows = history.read(entry, ["instantTime", "completionTime", "action"]).to_pylist()
        # An archived compaction was requested before, and is kept.
        late = [r for r in rows if r["action"] in by_completion and (r["completionTime"] or "") > moment]
        if late:
            raise UnsupportedError(
                "a write that completed later has been archived and cannot be undone",
                do_next="choose a later time",
                instant=late[0]["instantTime"],
            )


def _without(storage: Storage, timeline: Timeline, undone_times: set[str]) -> Timeline:
    """The timeline after the restore."""
    remaining = Timeline(storage)
    for instant in [*timeline.completed_actions(WRITE_ACTIONS), *timeline.pending()]:
        if instant.requested_time not in undone_times or instant.identity[1] not in WRITE_ACTIONS:
            remaining.record(instant)
    return remaining


def _check_files(table: HudiTable, listing: Listing, target: Instant, remaining: Timeline) -> None:
    """Refuse if files of the target state were deleted, by the clean's metadata and by the files that commits name."""
    moment, timeline = target.requested_time, table.timeline
    then = [s for path, infos in listing.items() for s in slices_of_partition(path, infos, timeline, moment)]
    refuse_cleaned(listing, then, timeline, table.storage, moment)
    after = [s for path, infos in listing.items() for s in slices_of_partition(path, infos, remaining)]
    if absent := _absent(remaining, listing, after):
        raise UnsupportedError(
            "a file of the state to restore was deleted",
            do_next="choose a later time; raise the cleaner's retention to keep more",
            instant=moment,
            file=min(absent),
        )


def _absent(remaining: Timeline, listing: Listing, after: Iterable[FileSlice]) -> set[str]:
    """The files that active commits name and their file groups' slices lack."""
    stats = [(write, stat) for write in remaining.completed() for stat in remaining.commit_metadata(write).stats]
    bases = {(s.partition_path, s.file_id): s.base_file.name.instant for s in after if s.base_file is not None}
    replaced = remaining.replaced()
    stats = [(write, stat) for write, stat in stats if (stat.partition_path, stat.file_id) not in replaced]
    for write, stat in stats:
        if parse_base_name(stat.file_name) is not None:
            group = stat.partition_path, stat.file_id
            bases[group] = max(bases.get(group, ""), write.requested_time)
    existing = {info.path for infos in listing.values() for info in infos}
    needed = {
        in_partition(stat.partition_path, stat.file_name) for write, stat in stats if _is_needed(write, stat, bases)
    }
    return needed - existing


def _is_needed(write: Instant, stat: WriteStat, bases: Mapping[tuple[str, str], str]) -> bool:
    base = bases.get((stat.partition_path, stat.file_id), "")
    if parse_base_name(stat.file_name) is not None:
        return write.requested_time == base
    return parse_log_name(stat.file_name) is not None and (write.completion_time or "") >= base


def pending_restores(timeline: Timeline) -> list[Instant]:
    """The restores that are requested or inflight, oldest first."""
    return [instant for instant in timeline.pending() if instant.action == RESTORE]
