"""Checks that a moment can still be read: a time whose files were cleaned is refused.

From the cleaner's oldest retained time on all files exist. Before it, a file group can be read if its file slice of
that moment is the one that the cleaner retained, or if all files exist that the commits up to that moment name: a
savepoint may hold a slice while later ones are deleted. A file group that was replaced is deleted whole: its commits
tell whether it lived. If those commits are archived, they are not looked up, and the
time is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hudilake.commit.clean import pending_cleans, promised_since, read_plan
from hudilake.commit.savepoint_record import Savepoint, savepoints
from hudilake.errors import UnsupportedError
from hudilake.format.files.names import BaseFileName, parse_base_name, parse_data_name, parse_log_name
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.timeline import Timeline
from hudilake.storage.base import FileInfo, Storage


def refuse_cleaned(
    files: Mapping[str, Sequence[FileInfo]],
    slices: Iterable[FileSlice],
    timeline: Timeline,
    storage: Storage,
    moment: str,
) -> None:
    """Raise UnsupportedError if files of a moment may have been deleted.

    Args:
        files: all present files of the partitions to read.
        slices: the file slices as of the moment.
        timeline: the table's.
        storage: the table's root.
        moment: a time as instants are written.
    """
    promised = retained_since(timeline, storage)
    if moment >= promised:
        return
    saved = next((s for s in savepoints(storage, timeline) if s.instant == moment), None)
    if saved is not None:
        _refuse_absent(files, saved)
        return
    plans = [read_plan(storage, clean) for clean in pending_cleans(timeline)]
    going = {name for plan in plans for names in plan.files.values() for name in names}
    slices_by_group = {(s.partition_path, s.file_id): s for s in slices}
    _refuse_gone(files, timeline, moment, going)
    for path, infos in files.items():
        names = {info.path.rpartition("/")[2] for info in infos} - going
        bases, logs = _instants(names, timeline)
        for file_id, group_bases in bases.items():
            group = _RetainedGroup(
                path, file_id, group_bases, logs.get(file_id, "~"), slices_by_group.get((path, file_id))
            )
            if not group.is_whole(timeline, moment, promised, names):
                raise _refusal(moment, file_id)


def _refuse_gone(
    files: Mapping[str, Sequence[FileInfo]], timeline: Timeline, moment: str, going: Collection[str]
) -> None:
    """Raise UnsupportedError if a file group that was replaced after a moment lived then and has no files any more.
    ``going``: names of files that are being deleted."""
    replaced = {group for group, instant in timeline.replaced().items() if instant > moment and group[0] in files}
    for path in {path for path, _ in replaced}:
        names = {info.path.rpartition("/")[2] for info in files[path]} - set(going)
        replaced -= {(path, name.file_id) for name in map(parse_data_name, names) if name is not None}
    if not replaced:
        return
    early = (write for write in timeline.completed() if write.requested_time <= moment)
    lived = {(s.partition_path, s.file_id) for write in early for s in timeline.commit_metadata(write).stats}
    for group in sorted(replaced):
        if group in lived or timeline.history().files:
            raise _refusal(moment, group[1])


@dataclass(frozen=True)
class _RetainedGroup:
    """A file group with base files: its present base files, the instant of its oldest log file, and its slice as of a
    moment."""

    path: str
    file_id: str
    bases: list[BaseFileName]
    first_log: str
    slice: FileSlice | None

    def is_whole(self, timeline: Timeline, moment: str, promised: str, names: set[str]) -> bool:
        """Whether the slice is complete. ``names``: the present files of the partition."""
        held = self.slice.base_file.name if self.slice is not None and self.slice.base_file is not None else None
        if held is not None and str(held) not in names:
            return False
        retained = max((base for base in self.bases if base.instant < promised), key=_instant, default=None)
        if retained is None:
            first = min(self.bases, key=_instant)
            return self.slice is not None or self.first_log < first.instant or _began(timeline, first)
        if held == retained or (self.slice is None and _began(timeline, retained)):
            return True
        return self._all_there(timeline, held.instant if held is not None else "", moment, names)

    def _all_there(self, timeline: Timeline, since: str, until: str, names: set[str]) -> bool:
        """Whether all files exist that the group's writes after a slice's base file and up to a moment name."""
        writes = timeline.completed()
        if timeline.history().files and (not writes or since < writes[0].requested_time):
            return False
        return all(
            stat.file_name in names
            for write in writes
            if since < write.requested_time <= until
            for stat in timeline.commit_metadata(write).stats
            if (stat.partition_path, stat.file_id) == (self.path, self.file_id)
        )


def _instant(base: BaseFileName) -> str:
    return base.instant


def _began(timeline: Timeline, base: BaseFileName) -> bool:
    """Whether a file group began with a base file: a commit of rows wrote it and names no base file before it."""
    write = timeline.find(base.instant)
    if write is None or not write.completed or timeline.is_compaction(write):
        return False
    stats = timeline.commit_metadata(write).stats
    return not any(stat.file_name == str(base) and stat.prev_commit != "null" for stat in stats)


def retained_since(timeline: Timeline, storage: Storage) -> str:
    """The time as of which, and later, all file slices exist; "" for a table that was never cleaned."""
    promised = promised_since(storage, timeline)
    if promised is not None:
        return promised
    first = timeline.completed()[:1]
    return first[0].requested_time if first and timeline.history().files else ""


def _instants(names: Iterable[str], timeline: Timeline) -> tuple[dict[str, list[BaseFileName]], dict[str, str]]:
    """By file id: the base files, and the instant of the oldest log file."""
    bases: dict[str, list[BaseFileName]] = {}
    logs: dict[str, str] = {}
    for name in names:
        if (log := parse_log_name(name)) is not None and timeline.is_completed(log.instant):
            logs[log.file_id] = min(log.instant, logs.get(log.file_id, "~"))
        elif (base := parse_base_name(name)) is not None and timeline.is_completed(base.instant):
            bases.setdefault(base.file_id, []).append(base)
    return bases, logs


def _refuse_absent(files: Mapping[str, Sequence[FileInfo]], saved: Savepoint) -> None:
    for path, infos in files.items():
        absent = set(saved.files.get(path, ())) - {info.path.rpartition("/")[2] for info in infos}
        if absent:
            raise _refusal(saved.instant, min(absent))


def _refusal(moment: str, file_group: str) -> UnsupportedError:
    return UnsupportedError(
        "files of that time may have been cleaned",
        do_next="ask for a later time; raise the cleaner's retention to keep more",
        instant=moment,
        file_group=file_group,
    )
