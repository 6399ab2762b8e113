"""Archival of the table's timeline: old instants go to the history, so that the active timeline stays short.

Commits are archived from the oldest on without a gap, because readers treat an instant before the active timeline as
completed and a missing one inside it as not completed. As in Hudi's archival, these stay active, with all later ones:

- the last completed write before the oldest pending instant;
- the oldest savepoint;
- a delta commit that completed after one that stays;
- the writes that cleaning retains, and two more before them (``ArchivalConfig.around``);
- the writes since the last compaction of the metadata table (without a compaction: all), because the entries of the
  metadata table's log files are valid by the instants of this timeline;
- of a table without a metadata table, the writes whose log files are in the newest file slices: hudi-rs ignores log
  files of archived commits there (measured, 0.5);
- the first write that replaced file groups of which files remain: without it readers would see their rows again.

Cleans, rollbacks and restores older than the newest archived commit are archived with it. ``timeline.history_writer``
moves the instants, under the table's lock. Before that, files of rolled-back commits that landed late are deleted
(``late_files``): they would be older than the active timeline.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hudilake.commit.late_files import delete_late_files
from hudilake.errors import ConfigError
from hudilake.format.files.names import TEMP_PATH, marker_directory, parse_data_name
from hudilake.format.timeline.history_writer import move_to_history
from hudilake.format.timeline.instant import (
    CLEAN,
    COMMIT,
    REPLACE_COMMIT,
    RESTORE,
    ROLLBACK,
    SAVEPOINT,
    WRITE_ACTIONS,
    Instant,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.services import cleaning as cleaning_service
from hudilake.services.cleaning import CleaningConfig, oldest_retained
from hudilake.table.table import HudiTable

_HOLD_BACK = frozenset({*WRITE_ACTIONS, CLEAN, ROLLBACK, RESTORE, SAVEPOINT})
_BESIDE_COMMITS = frozenset({CLEAN, ROLLBACK, RESTORE})
#: Writes that stay active before those that cleaning retains.
_SPARE = 2


@dataclass(frozen=True)
class ArchivalConfig:
    """The bounds of the active timeline, in completed commits, delta commits and compactions.

    Args:
        min_commits: how many stay. More than the delta commits that make a compaction due, for those are counted there.
        max_commits: how many there may be before the timeline is cut down to ``min_commits``.
        newest_only: keys of the commits' extra metadata of which the history keeps the newest value alone.
    """

    min_commits: int = 20
    max_commits: int = 30
    newest_only: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.min_commits < self.max_commits:
            raise ConfigError(
                f"min_commits ({self.min_commits}) lies between 1 and max_commits ({self.max_commits})",
                do_next="fix the settings",
            )

    def around(self, timeline: Timeline, cleaning: CleaningConfig | None) -> ArchivalConfig:
        """The bounds that leave cleaning what it retains: as they are, or both raised by the same."""
        retained = oldest_retained(timeline, cleaning) if cleaning is not None else None
        if retained is None:
            return self
        later = [write for write in timeline.completed() if write.requested_time > retained.requested_time]
        missing = max(0, len(later) + _SPARE - self.min_commits)
        return replace(self, min_commits=self.min_commits + missing, max_commits=self.max_commits + missing)


def archive(table: HudiTable, config: ArchivalConfig, cleaning: CleaningConfig | None = None) -> int:
    """Archive old instants if the active timeline is too long; returns how many.

    Args:
        table: open.
        config: the bounds.
        cleaning: the cleaner's settings; None for a table that is not cleaned.

    Reads counters only while the timeline is short. Raises CorruptDataError for a history or a metadata table that
    cannot be read, StorageError: then call again.
    """
    bounds = config.around(table.timeline, cleaning)
    if len(table.timeline.completed()) <= bounds.max_commits:
        return 0
    table.config.check_writable()
    with table.exclusively():
        table.refresh()
        table.state.delete_late_completions()
        table.state.settle_buckets()
        instants = archivable(table, config.around(table.timeline, cleaning))
        if instants:
            delete_late_files(table.storage, table.timeline, instants)
            table.state.lock.check()
            move_to_history(table.storage, instants, config.newest_only)
            table.timeline.archived(instants)
            _drop_markers(table, instants)
    return len(instants)


def archivable(table: HudiTable, bounds: ArchivalConfig) -> list[Instant]:
    """The instants that ``archive`` would move, oldest first, under bounds that leave cleaning what it retains."""
    timeline = table.timeline
    writes = timeline.completed()
    if len(writes) <= bounds.max_commits:
        return []
    ends = [*_held_back(timeline), *_index_end(table), *_compacted_until(table)]
    room = len(writes) - bounds.min_commits
    old = [write for write in writes if all(write.requested_time < end for end in ends)][:room]
    if old and table.metadata_table is None:
        first = _first_log(table)
        ends.append(first)
        old = [write for write in old if write.requested_time < first]
    if any(write.action == REPLACE_COMMIT for write in old):
        first = _first_replaced(table)
        ends.append(first)
        old = [write for write in old if write.requested_time < first]
    old = _completed_first(old, writes, table.state.action)
    if not old:
        return []
    others = [
        instant
        for instant in timeline.completed_actions(_BESIDE_COMMITS)
        if instant.requested_time < min([old[-1].requested_time, *ends])
    ]
    return sorted([*old, *others])


def _completed_first(old: list[Instant], writes: list[Instant], action: str) -> list[Instant]:
    """The longest beginning of ``old`` in which every commit of rows completed before all later ones.

    Commits of several writers may complete in another order than they were requested in, and the one that completed
    last has the newest commit record: it must not be archived before others. ``action``: of commits of rows, beside
    replacecommits."""
    ended = [(write.completion_time or "") if write.action in (action, REPLACE_COMMIT) else "" for write in writes]
    count = len(old)
    while count and max(ended[:count]) > min((time for time in ended[count:] if time), default="~"):
        count -= 1
    return old[:count]


def _held_back(timeline: Timeline) -> list[str]:
    """Requested times from which on all instants stay active."""
    writes = timeline.completed()
    pending = [i.requested_time for i in timeline.pending() if i.identity[1] in _HOLD_BACK]
    before = [write.requested_time for write in writes if pending and write.requested_time < min(pending)]
    saved = [instant.requested_time for instant in timeline.completed_actions({SAVEPOINT})]
    return [*before[-1:], *pending[:1], *saved[:1]]


def _index_end(table: HudiTable) -> list[str]:
    """The first write that the metadata table's base files may lack; "" without base files: then all stay active."""
    index = table.metadata_table
    if index is None:
        return []
    compactions = [i.requested_time for i in index.timeline.completed() if i.action == COMMIT]
    if not compactions:
        return [""]
    later = [w for w in table.timeline.completed() if (w.completion_time or "~") > compactions[-1]]
    return [write.requested_time for write in later[:1]]


def _compacted_until(table: HudiTable) -> list[str]:
    """Of a table without a metadata table, the first write whose log files no compaction has read; "" without a
    compaction: then all stay."""
    if table.metadata_table is not None:
        return []
    compactions = [write for write in table.timeline.completed() if write.action == COMMIT]
    if not compactions:
        return [""]
    last = compactions[-1].requested_time
    return [w.requested_time for w in table.timeline.completed() if (w.completion_time or "~") > last][:1]


def _first_log(table: HudiTable) -> str:
    """The oldest instant of a log file in the newest file slices; lists storage. A compaction may leave file groups
    out, so that its time alone does not tell."""
    logs = [log.name.instant for file_slice in table.file_slices() for log in file_slice.log_files]
    return min(logs, default="~")


def _first_replaced(table: HudiTable) -> str:
    """The first write that replaced a file group of which files remain; "~" if there is none."""
    remaining = {
        (path, name.file_id)
        for path, infos in cleaning_service.listing(table).items()
        for info in infos
        if (name := parse_data_name(info.path.rpartition("/")[2])) is not None
    }
    return min((time for group, time in table.timeline.replaced().items() if group in remaining), default="~")


def _drop_markers(table: HudiTable, instants: list[Instant]) -> None:
    """Delete the markers of archived instants, which a crash after a commit left."""
    archived = {instant.requested_time for instant in instants}
    for name in table.storage.list_dirs(TEMP_PATH):
        if name in archived:
            table.storage.delete_tree(marker_directory(name))
