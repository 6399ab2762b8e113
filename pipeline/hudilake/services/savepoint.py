"""Savepoints: states of the table whose files cleaning keeps, and whose later commits archival keeps.

``<t>_<completion>.savepoint`` has the files of the slices as of ``t``, the requested time of a completed write. It is
created at once, without a pending state: while one lies there, Hudi does not compact the metadata table, and counts no
entry of the time ``t`` in it that the write itself does not vouch for (``HoodieTableMetadataUtil``). Hudi's savepoints
have an inflight file first, which is deleted first here. What a death of Hudi leaves, the table's next writer removes
(``commit.rollback``).
"""

from __future__ import annotations

from hudilake.clock import now_ms
from hudilake.commit.clean import promised_since
from hudilake.commit.commit import publish
from hudilake.commit.rollback import forget_pending
from hudilake.commit.savepoint_record import Savepoint, encode_savepoint, read_savepoint
from hudilake.errors import ConfigError
from hudilake.format.files.view import file_slices, slices_of_partition
from hudilake.format.timeline.instant import SAVEPOINT, Instant, State
from hudilake.table.table import HudiTable


def create_savepoint(table: HudiTable, instant: str, user: str, comment: str = "") -> Savepoint:
    """Hold the table as of a completed write until ``delete_savepoint``; an existing savepoint is returned unchanged.

    Args:
        table: refreshed here, under its lock.
        instant: the requested time of a write of the active timeline.
        user: the user who makes it.
        comment: its purpose.

    Raises ConfigError if there is no such write, or files of that time may have been cleaned; CommitUnknownError,
    CorruptDataError, StorageError.
    """
    table.config.check_writable()
    with table.exclusively():
        table.refresh()
        return _create(table, instant, user, comment)


def _create(table: HudiTable, instant: str, user: str, comment: str) -> Savepoint:
    existing = [i for i in table.timeline.completed_actions({SAVEPOINT}) if i.requested_time == instant]
    if existing:
        return read_savepoint(table.storage, existing[0])
    _check_held(table, instant)
    files = _files_as_of(table, instant)
    made = Savepoint(instant, user, comment, now_ms(), files)
    completed = Instant(instant, SAVEPOINT, State.COMPLETED, table.clock.next())
    publish(table.storage, completed, encode_savepoint(made))
    table.timeline.record(completed)
    return made


def delete_savepoint(table: HudiTable, instant: str) -> bool:
    """Delete a savepoint; the next clean may delete its files. False if there was none. Raises StorageError."""
    with table.exclusively():
        table.refresh()
        return _delete(table, instant)


def _delete(table: HudiTable, instant: str) -> bool:
    was_pending = forget_pending(table.storage, table.timeline, Instant(instant, SAVEPOINT, State.INFLIGHT))
    savepoints_of_instant = [i for i in table.timeline.completed_actions({SAVEPOINT}) if i.requested_time == instant]
    for completed in savepoints_of_instant:
        table.storage.delete(completed.path)
        table.timeline.archived([completed])
    return bool(savepoints_of_instant) or was_pending


def _check_held(table: HudiTable, instant: str) -> None:
    completed = table.timeline.completed()
    if not any(write.requested_time == instant for write in completed):
        raise ConfigError(
            "there is no completed commit of that requested time in the active timeline",
            do_next="give the requested time of a commit in the list of binlake inspect",
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
    for file_slice in slices:
        names = [str(file_slice.base_file.name)] if file_slice.base_file is not None else []
        names += [str(log.name) for log in file_slice.log_files]
        files[file_slice.partition_path] = (*files.get(file_slice.partition_path, ()), *names)
    return files
