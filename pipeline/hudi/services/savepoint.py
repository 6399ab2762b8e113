"""Savepoints: moments of the table that cleaning leaves the files of, and archival the commits since.

``<t>.savepoint.inflight``, then ``<t>_<completion>.savepoint`` with the files of the slices as of ``t``, the requested
time of a completed write. Deleting goes the other way round. A crash leaves an inflight file, which holds nothing;
making or deleting the savepoint again takes it along.
"""

from __future__ import annotations

import contextlib

from pipeline.clock import now_ms
from pipeline.errors import ConfigError
from pipeline.hudi.actions.clean import promised_since
from pipeline.hudi.actions.commit import publish
from pipeline.hudi.actions.savepoint_record import Savepoint, encode_savepoint, read_savepoint
from pipeline.hudi.files.view import file_slices, slices_of_partition
from pipeline.hudi.table.table import HudiTable
from pipeline.hudi.timeline.instant import SAVEPOINT, Instant, State
from pipeline.storage.base import AlreadyExistsError


def create_savepoint(table: HudiTable, instant: str, user: str, comment: str = "") -> Savepoint:
    """Hold the table as of a completed write, until ``delete_savepoint``; one that there is stays as it is.

    Args:
        table: refreshed here, under its lock.
        instant: the requested time of a write of the active timeline.
        user: who wants it.
        comment: what for.

    Raises ConfigError if there is no such write, or files of that time may have been cleaned; CommitUnknownError,
    CorruptDataError, StorageError.
    """
    table.config.check_writable()
    with table.exclusively():
        table.refresh()
        return _create(table, instant, user, comment)


def _create(table: HudiTable, instant: str, user: str, comment: str) -> Savepoint:
    inflight = Instant(instant, SAVEPOINT, State.INFLIGHT)
    known = [i for i in table.timeline.completed_actions({SAVEPOINT}) if i.requested_time == instant]
    if known:
        return read_savepoint(table.storage, known[0])
    _check_held(table, instant)
    files = _files_as_of(table, instant)
    with contextlib.suppress(AlreadyExistsError):
        table.storage.create(inflight.path, b"")
    table.timeline.record(inflight)
    made = Savepoint(instant, user, comment, now_ms(), files)
    completed = inflight.in_state(State.COMPLETED, table.clock.next())
    publish(table.storage, completed, encode_savepoint(made))
    table.timeline.record(completed)
    return made


def delete_savepoint(table: HudiTable, instant: str) -> bool:
    """Let go of a savepoint; the next clean may take its files. False if there was none. Raises StorageError."""
    with table.exclusively():
        table.refresh()
        return _delete(table, instant)


def _delete(table: HudiTable, instant: str) -> bool:
    found = [i for i in table.timeline.completed_actions({SAVEPOINT}) if i.requested_time == instant]
    for completed in found:
        table.storage.delete(completed.path)
        table.timeline.archived([completed])
    inflight = Instant(instant, SAVEPOINT, State.INFLIGHT)
    left = table.storage.delete(inflight.path)
    table.timeline.forget(inflight)
    return bool(found) or left


def _check_held(table: HudiTable, instant: str) -> None:
    completed = table.timeline.completed()
    if not any(write.requested_time == instant for write in completed):
        raise ConfigError(
            "there is no completed commit of that requested time in the active timeline",
            do_next="name one that binlake inspect lists",
            instant=instant,
            table=table.config.name,
        )
    since = promised_since(table.storage, table.timeline)
    if since is not None and instant < since:
        raise ConfigError(
            "files of that time may have been cleaned",
            do_next="choose a later commit; raise the cleaner's retention to keep more",
            instant=instant,
            retained_since=since,
        )


def _files_as_of(table: HudiTable, instant: str) -> dict[str, tuple[str, ...]]:
    index, timeline = table.metadata_table, table.timeline
    if index is None:
        slices = file_slices(table.storage, timeline, instant)
    else:
        listed = index.reader.listed(sorted(index.partition_paths()))
        slices = [s for path, names in listed.items() for s in slices_of_partition(path, names, timeline, instant)]
    files: dict[str, tuple[str, ...]] = {}
    for found in slices:
        names = [str(found.base_file.name)] if found.base_file is not None else []
        names += [str(log.name) for log in found.log_files]
        files[found.partition_path] = (*files.get(found.partition_path, ()), *names)
    return files
