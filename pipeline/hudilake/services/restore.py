"""Restores a table to the moment at which a write completed: every later write is undone, the newest first.

Order on storage, each step repeatable:

1. ``<t>.restore.requested`` with the instants to undo. From here on the next start continues it.
2. ``.inflight``, with the metadata partitions that the table listed. The metadata table is dropped: readers list files.
3. For each instant, the newest first: its completed file is deleted, then its data files, then its other files in the
   timeline. So readers see earlier states of the table one after the other, each of them complete. (Without its
   completed file the instant is pending, and readers ignore files of pending instants.)
4. The metadata table is initialised again from the remaining files.
5. ``<t>_<completion>.restore``.

No writer may run meanwhile: Hudi's refuse to while a restore is pending, and the table's lock is held from the first
step to the last. A writer that had the table open must open it again.

The stream positions in the undone commits are undone with them. The stream itself must deliver the later events again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hudilake.clock import monotonic_s
from hudilake.commit.commit import check_not_completed, drop_markers, publish
from hudilake.commit.hashing_files import delete_rings
from hudilake.commit.rollback import RollbackPlan, roll_back
from hudilake.errors import CorruptDataError, LostOwnershipError
from hudilake.format.definition.hashing_config import hashing_config_path
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.timeline.avro_container import decode_container, encode_container
from hudilake.format.timeline.instant import (
    CLUSTERING,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    TIMELINE_PATH,
    WRITE_ACTIONS,
    Instant,
    State,
    parse_name,
)
from hudilake.metadata.config import MetadataConfig
from hudilake.services import cleaning
from hudilake.services.restore_plan import (
    Named,
    RestorePlan,
    decode_request,
    encode_request,
    instant_of,
    list_files,
    pending_restores,
    plan_restore,
)
from hudilake.storage.base import AlreadyExistsError, FileInfo, Storage
from hudilake.table.table import HudiTable

__all__ = ["RestorePlan", "finish_pending_restores", "plan_restore", "restore"]

_AVRO, _VERSION = "HoodieRestoreMetadata", 1
_PARALLEL = 8
_ORDER = (State.COMPLETED, State.INFLIGHT, State.REQUESTED)


def restore(
    table: HudiTable, instant: str, index: MetadataConfig | None = None, agreed: RestorePlan | None = None
) -> Instant | None:
    """Restore a table to its state when a write completed; returns the completed restore, None if no write came later.

    Args:
        table: open; it is refreshed by the restore. Open it again after an error.
        instant: the requested time of a completed write of the active timeline.
        index: settings of the new metadata table, if it has one: it keeps its partitions; None for the defaults.
        agreed: the plan that the user has confirmed; only its writes are undone.

    Pending commits of dead writers are rolled back first. Raises as ``plan_restore``; LostOwnershipError if a living
    writer has a pending commit, or there are other writes than agreed; CommitUnknownError, StorageError: then
    ``finish_pending_restores`` goes on.
    """
    table.config.check_writable()
    with table.exclusively():
        table.refresh()
        finish_pending_restores(table, index)
        table.rollback_pending()
        cleaning.finish_pending(table)
        plan = plan_restore(table, instant)
        _check_no_writer(table, plan, agreed)
        if not plan.undone:
            return None
        requested = Instant(table.clock.next(), RESTORE, State.REQUESTED)
        table.storage.create(requested.path, encode_request(instant, plan.undone))
        table.timeline.record(requested)
        return _execute(table, requested, [(i.requested_time, i.action) for i in plan.undone], index)


def finish_pending_restores(table: HudiTable, index: MetadataConfig | None = None) -> list[Instant]:
    """Finish the restores of a dead process, ours or Hudi's. Call it first after a table was opened. It makes no
    storage call without pending restores. Arguments and errors as ``restore``."""
    if not pending_restores(table.timeline):
        return []
    table.config.check_writable()
    completed_restores = []
    with table.exclusively():
        table.refresh()
        for pending in pending_restores(table.timeline):
            named = _read(table.storage, pending)
            if named is None:
                table.storage.delete(pending.in_state(State.REQUESTED).path)
                table.timeline.forget(pending)
            else:
                completed_restores.append(_execute(table, pending, named, index))
        table.state.reload()
    return completed_restores


def _check_no_writer(table: HudiTable, plan: RestorePlan, agreed: RestorePlan | None) -> None:
    new_writes = [i for i in plan.undone if i.completed and i not in (agreed or plan).undone]
    if new_writes:
        raise LostOwnershipError(
            "another writer has written since the restore was planned",
            do_next="stop the table's writers and compactors, then restore",
            instant=new_writes[0].requested_time,
        )
    alive = [i for i in plan.undone if not i.completed and not table.ownership.is_abandoned(i.requested_time)]
    if alive:
        raise LostOwnershipError(
            f"a {alive[0].action} of another writer is pending, and that writer is alive",
            do_next="stop the table's writers and compactors, then restore",
            instant=alive[0].requested_time,
        )


def _read(storage: Storage, pending: Instant) -> list[Named] | None:
    """The instants that a pending restore undoes; None if a crash came before its plan was complete."""
    requested = pending.in_state(State.REQUESTED)
    try:
        return decode_request(storage.read(requested.path), requested.path)
    except CorruptDataError:
        if pending.state is State.REQUESTED:
            return None
        raise


@dataclass
class _Traces:
    """The files of instants: in the timeline, and data files."""

    timeline: dict[str, list[Instant]] = field(default_factory=dict)
    rollbacks: list[Instant] = field(default_factory=list)
    data: dict[str, list[FileInfo]] = field(default_factory=dict)

    @classmethod
    def of(cls, storage: Storage, times: Collection[str], since: str) -> _Traces:
        """The files of some writes, and the rollbacks requested since a time."""
        traces = cls()
        for info in storage.list(TIMELINE_PATH):
            instant = parse_name(info.path.rpartition("/")[2])
            if instant is None:
                continue
            if instant.requested_time in times and instant.identity[1] in WRITE_ACTIONS:
                traces.timeline.setdefault(instant.requested_time, []).append(instant)
            elif instant.action == ROLLBACK and instant.requested_time > since:
                traces.rollbacks.append(instant)
        for infos in list_files(storage).values():
            for info in infos:
                if (time := instant_of(info)) in times and time is not None:
                    traces.data.setdefault(time, []).append(info)
        return traces


def _execute(table: HudiTable, restoring: Instant, named: Sequence[Named], index: MetadataConfig | None) -> Instant:
    """Steps 2 to 5."""
    started, storage = monotonic_s(), table.storage
    check_not_completed(storage, restoring.requested_time)
    listed = _put_in_flight(table, restoring)
    table.state.lock.check()
    table.keep_metadata(None)
    traces = _Traces.of(storage, {time for time, _ in named}, restoring.requested_time)
    for time, _ in named:
        table.state.lock.check()
        _undo(storage, time, traces)
    _delete(storage, traces.rollbacks)  # those of a restore by Hudi, one for each instant that it undid
    table.state.reload()
    if listed:
        table.state.lock.check()
        _roll_back_begun(table)
        table.keep_metadata(_as_it_was(listed, index))
    completed = restoring.in_state(State.COMPLETED, table.clock.next())
    millis = int((monotonic_s() - started) * 1000)
    publish(storage, completed, _metadata(storage.uri, restoring.requested_time, millis, named, traces.data))
    table.timeline.record(completed)
    return completed


def _put_in_flight(table: HudiTable, restoring: Instant) -> list[str]:
    """Write the inflight file; returns the metadata partitions that the table listed when the restore began."""
    listed = sorted(table.config.metadata_partitions)
    inflight = restoring.in_state(State.INFLIGHT)
    try:
        table.storage.create(inflight.path, json.dumps({"metadataPartitions": listed}).encode())
    except AlreadyExistsError:
        with contextlib.suppress(ValueError, KeyError):  # Hudi's is empty
            listed = json.loads(table.storage.read(inflight.path))["metadataPartitions"] or listed
    table.timeline.record(inflight)
    return list(listed)


def _undo(storage: Storage, time: str, traces: _Traces) -> None:
    """Step 3 for one instant."""
    instants = traces.timeline.get(time, [])
    if any(instant.identity[1] == REPLACE_COMMIT for instant in instants):
        delete_rings(storage, time)
    _delete(storage, [instant for instant in instants if instant.completed])
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(storage.delete, (info.path for info in traces.data.get(time, []))))
    if any(instant.identity[1] == REPLACE_COMMIT for instant in instants):
        storage.delete(hashing_config_path(time))
    _delete(storage, [instant for instant in instants if not instant.completed])
    drop_markers(storage, time)


def _delete(storage: Storage, instants: Iterable[Instant]) -> None:
    for instant in sorted(instants, key=lambda i: _ORDER.index(i.state)):
        storage.delete(instant.path)


def _roll_back_begun(table: HudiTable) -> None:
    """Roll back the commits that others have begun since the restore was planned: a metadata table cannot be
    initialised with pending commits. They cannot complete any more, because their writers see the restore first."""
    for begun in [i for i in table.timeline.pending() if i.action in (table.state.action, REPLACE_COMMIT, CLUSTERING)]:
        roll_back(table.storage, table.timeline, table.clock, begun)


def _as_it_was(partitions: Collection[str], index: MetadataConfig | None) -> MetadataConfig:
    kept = {
        "column_stats": MetadataPartition.COLUMN_STATS in partitions,
        "bloom_filters": MetadataPartition.BLOOM_FILTERS in partitions,
    }
    return (index or MetadataConfig()).model_copy(update=kept)


def _metadata(
    uri: str, start: str, millis: int, named: Sequence[Named], data: Mapping[str, Sequence[FileInfo]]
) -> bytes:
    """The body of the completed file."""
    rollbacks: dict[str, list[dict[str, Any]]] = {}
    for time, action in named:
        files = [tuple(info.path.rpartition("/")[::2]) for info in data.get(time, ())]
        metadata = RollbackPlan(time, action, tuple((path, name) for path, name in files)).metadata(uri, start, 0)
        rollbacks[time] = [decode_container(metadata, start)]
    record = {
        "startRestoreTime": start,
        "timeTakenInMillis": millis,
        "instantsToRollback": [time for time, _ in named],
        "hoodieRestoreMetadata": rollbacks,
        "version": _VERSION,
        "restoreInstantInfo": [{"commitTime": time, "action": action} for time, action in named],
    }
    return encode_container(_AVRO, record)
