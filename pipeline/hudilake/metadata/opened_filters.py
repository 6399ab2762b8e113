"""Bloom filters that no longer cover their file slice.

Only base files have filters. For an equality over the record key Hudi Spark 1.2.0 keeps the base files whose filter may
hold the key, and drops every other file slice with its log files (``BloomFiltersIndexSupport``;
measured: rows that are only in log files vanish). So a base file's filter is replaced by one that rules nothing out in
the commit that adds the first log file to its slice. A base file with log files from the start gets such a filter at
once.
"""

from __future__ import annotations

from collections import defaultdict

from hudilake.format.files.names import BaseFileName, LogFileName, parse_base_name, parse_log_name
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import FileKey, Group, MetadataDelta
from hudilake.metadata.records.reader import MetadataReader

Name = BaseFileName | LogFileName


class OutgrownFilters:
    """The file groups whose filter was opened, kept so that most commits need no lookup."""

    def __init__(self, reader: MetadataReader, data_timeline: Timeline) -> None:
        self._reader, self._timeline = reader, data_timeline
        self._opened: set[Group] = set()

    def of(self, instant: str, delta: MetadataDelta) -> set[FileKey]:
        """The base files whose filters must rule nothing out after this action.

        Args:
            instant: the action's requested time.
            delta: the files it adds.
        """
        logs, bases = _split(delta)
        fresh = {group for group in logs if group not in self._opened}
        listed = self._listed({path for path, _ in fresh | bases.keys()})
        base_files = {(path, str(base)) for path, file_id in fresh for base in _newest(listed[path], file_id)}
        for group, base in bases.items():
            if group in logs or _has_later_log(self._timeline, listed[group[0]], base, instant):
                base_files.add((group[0], str(base)))
        return base_files

    def keep(self, delta: MetadataDelta) -> None:
        """Record that the action was committed."""
        logs, bases = _split(delta)
        self._opened -= bases.keys()
        self._opened |= logs

    def _listed(self, paths: set[str]) -> dict[str, list[Name]]:
        files = self._reader.files(paths) if paths else {}
        parsed = {path: [parse_log_name(n) or parse_base_name(n) for n in names] for path, names in files.items()}
        return {path: [name for name in names if name is not None] for path, names in parsed.items()}


def outgrown_of_table(delta: MetadataDelta, timeline: Timeline) -> set[FileKey]:
    """The base files of a whole table whose filters must rule nothing out: all except the newest base file of a file
    group without log files over it.

    Args:
        delta: every file of the table.
        timeline: the data table's.
    """
    names: dict[str, list[Name]] = defaultdict(list)
    for file in delta.added:
        name = parse_log_name(file.name) or parse_base_name(file.name)
        if name is not None:
            names[file.partition_path].append(name)
    return {
        (path, str(base))
        for path, group in names.items()
        for base in group
        if isinstance(base, BaseFileName)
        if base not in _newest(group, base.file_id) or _has_later_log(timeline, group, base, base.instant)
    }


def _has_later_log(timeline: Timeline, names: list[Name], base: BaseFileName, instant: str) -> bool:
    """Whether a log file of the base's group completed, or will complete, after a compaction was requested."""
    return any(
        (timeline.completion_time(name.instant) or "9") >= instant
        for name in names
        if isinstance(name, LogFileName) and name.file_id == base.file_id
    )


def _split(delta: MetadataDelta) -> tuple[set[Group], dict[Group, BaseFileName]]:
    """The file groups that get log files, and the base files added by file group."""
    logs: set[Group] = set()
    bases: dict[Group, BaseFileName] = {}
    for file in delta.added:
        name = parse_log_name(file.name) or parse_base_name(file.name)
        if isinstance(name, LogFileName):
            logs.add((file.partition_path, name.file_id))
        elif name is not None:
            bases[file.partition_path, name.file_id] = name
    return logs, bases


def _newest(names: list[Name], file_id: str) -> list[BaseFileName]:
    """The newest base file of a file group, as a list of none or one."""
    bases = [name for name in names if isinstance(name, BaseFileName) and name.file_id == file_id]
    return [max(bases, key=lambda name: name.instant)] if bases else []
