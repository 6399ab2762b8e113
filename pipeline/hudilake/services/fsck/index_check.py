"""Compares the metadata table with the data: its entries of a file must be exact, or admit more than the file has.

A statistic that is too tight, a filter without one of its file's keys, or a listing without a file makes readers skip
rows. A file without any entry is read; a column without an entry, in a file with others, is treated as all null.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import PROPERTIES_PATH, load_properties
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.column_stats import ColumnRange, LogRanges, unknown_range, widen
from hudilake.format.files.names import (
    LogFileName,
    in_partition,
    parse_base_name,
    parse_data_name,
    parse_log_name,
    parse_written_name,
)
from hudilake.format.files.view import slices_of_partition
from hudilake.format.timeline.instant import DELTA_COMMIT
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.layout import (
    INDEX_DEFINITIONS_PATH,
    METADATA_PATH,
    indexed_fields,
    metadata_properties,
)
from hudilake.metadata.records.reader import MetadataReader, load_groups
from hudilake.read.index import INDEX_FAILURES
from hudilake.services.fsck.content import FileContent, damaged_spans
from hudilake.services.fsck.evidence import DataFile, Evidence
from hudilake.services.fsck.findings import Check, Finding, Repair, Severity
from hudilake.storage.base import FileInfo, StorageNotFoundError

_Ranges = Mapping[str, ColumnRange]


@dataclass
class IndexCheck:
    """One table's metadata table. Call ``open`` first; without a readable metadata table the other checks give nothing.

    ``columns``: the indexed columns.
    """

    evidence: Evidence
    reader: MetadataReader | None = None
    columns: tuple[str, ...] = ()
    _ranges: dict[FileKey, dict[str, ColumnRange]] = field(default_factory=dict)
    _filters: dict[FileKey, BloomFilter] = field(default_factory=dict)
    _whole: _Ranges = field(default_factory=dict)
    _base_of: dict[FileKey, FileKey] = field(default_factory=dict)
    _latest: set[FileKey] = field(default_factory=set)

    def open(self) -> Iterator[Finding]:
        """Read all of the metadata table; unreadable parts give a finding with a rebuild."""
        listed = self.evidence.config.metadata_partitions
        if not listed:
            what = "the table has no metadata table"
            if any(True for _ in self.evidence.below(METADATA_PATH)):
                what = "the table lists no metadata table; the files of an old one are ignored"
            yield Finding(Severity.INFO, Check.INDEX, what)
            return
        foreign = sorted(set(listed) - set(MetadataPartition))
        if foreign:
            yield Finding(Severity.INFO, Check.INDEX, f"not checked: metadata partitions {', '.join(foreign)}")
        yield from self._other_forms()
        yield from self._damaged_files()
        try:
            self.reader, self.columns = self._open(
                [MetadataPartition(name) for name in listed if name in set(MetadataPartition)]
            )
        except INDEX_FAILURES as error:
            what = getattr(error, "what", None) or str(error)
            yield _rebuild(f"the metadata table cannot be read: {what}", METADATA_PATH)
            return
        yield from self._pending()

    def _other_forms(self) -> Iterator[Finding]:
        """Readers take the form of the metadata table for granted; its own properties may state another one."""
        path = f"{METADATA_PATH}/{PROPERTIES_PATH}"
        try:
            stated = load_properties(self.evidence.storage.read(path))
        except (StorageNotFoundError, CorruptDataError):
            stated = {}
        ours = load_properties(metadata_properties(""))
        for name in ("hoodie.table.version", "hoodie.timeline.layout.version", "hoodie.table.base.file.format"):
            if stated.get(name) != ours[name]:
                what = f"{name} of the metadata table is {stated.get(name, 'not set')}, not {ours[name]}"
                yield _rebuild(what, path)

    def _open(self, partitions: list[MetadataPartition]) -> tuple[MetadataReader, tuple[str, ...]]:
        storage, data = self.evidence.storage, self.evidence.timeline
        root = storage.sub(METADATA_PATH)
        reader = MetadataReader(load_groups(root, partitions, Timeline.load(root), data))
        for groups in reader.groups.values():
            for group in groups:
                group.check()
        if MetadataPartition.COLUMN_STATS not in partitions:
            return reader, ()
        columns = indexed_fields(storage.read(INDEX_DEFINITIONS_PATH))
        if columns is None:
            raise CorruptDataError(
                "hoodie.properties lists column_stats, but the index definitions lack it",
                do_next="run binlake repair",
                path=INDEX_DEFINITIONS_PATH,
            )
        return reader, columns

    def _damaged_files(self) -> Iterator[Finding]:
        """Readers also skip a damaged block of the metadata table, and with it the entries of a commit."""
        for partition in MetadataPartition:
            for info in self.evidence.below(f"{METADATA_PATH}/{partition.value}"):
                name = info.path.rpartition("/")[2]
                if not info.size and (parse_log_name(name) or parse_base_name(name)):
                    yield _rebuild("a file of the metadata table is empty", info.path)
                elif parse_log_name(name) is not None:
                    for part in damaged_spans(self.evidence.storage.read(info.path), info.path):
                        if isinstance(part, tuple):
                            yield _rebuild(f"{part[2]} ({part[1] - part[0]} bytes)", info.path, part[0])

    def _pending(self) -> Iterator[Finding]:
        data = self.evidence.timeline
        on_data = data.pending_times()
        for pending in Timeline.load(self.evidence.storage.sub(METADATA_PATH)).pending():
            path = f"{METADATA_PATH}/{pending.path}"
            time = pending.requested_time
            if pending.action == DELTA_COMMIT and data.is_completed(time) and data.find(time) is not None:
                what = "a commit completed on the table but not in its metadata table, which lacks its files"
                yield _rebuild(what, path, instant=time)
            elif time not in on_data:
                sure = self.evidence.is_dead(pending) and all(map(self.evidence.is_old, self._traces(time)))
                yield Finding(
                    Severity.WARNING,
                    Check.INDEX,
                    f"a {pending.action} of the metadata table is {pending.state.value}",
                    path,
                    instant=time,
                    repair=Repair.RECOVER_INDEX if sure else None,
                    advice="" if sure else "the writer's next start finishes or undoes it",
                )

    def _traces(self, time: str) -> list[FileInfo]:
        prefix = f"{METADATA_PATH}/.hoodie/timeline/{time}"
        return [info for path, info in self.evidence.files.items() if path.startswith(prefix)]

    def listing(self) -> Iterator[Finding]:
        """Compares the files partition with storage."""
        if self.reader is None or not self.reader.has(MetadataPartition.FILES):
            return
        stored: dict[str, dict[str, int]] = {}
        for file in (*self.evidence.visible, *self.evidence.change_logs):
            if self.evidence.timeline.is_completed(file.name.instant):
                stored.setdefault(file.partition_path, {})[str(file.name)] = file.info.size
        indexed_paths = self.reader.partition_paths()
        for path in sorted(set(stored) - set(indexed_paths)):
            yield _rebuild("the metadata table does not know the partition: its rows are not seen", path or ".")
        listed = self.reader.files(sorted({*indexed_paths, *stored}))
        for path in sorted(listed):
            yield from self._listing_of(path, listed[path], stored.get(path, {}))

    def _listing_of(self, path: str, listed: Mapping[str, int], stored: Mapping[str, int]) -> Iterator[Finding]:
        for name in sorted(stored.keys() - listed.keys()):
            if stored[name] and self._ought_to_be_listed(name):
                what = "its rows are not seen" if parse_data_name(name) else "it is not cleaned with its base file"
                yield _rebuild(f"the metadata table does not list the file: {what}", in_partition(path, name))
        for name in sorted(listed.keys() - stored.keys()):
            parsed = parse_written_name(name)
            if in_partition(path, name) in self.evidence.going:
                continue
            if parsed is None or self.evidence.timeline.is_completed(parsed.instant):
                yield _rebuild("the metadata table lists a file that is gone", in_partition(path, name))
        for name in sorted(listed.keys() & stored.keys()):
            if listed[name] != stored[name]:
                what = f"the metadata table lists the file with {listed[name]} bytes, it has {stored[name]}"
                yield _rebuild(what, in_partition(path, name))

    def _ought_to_be_listed(self, name: str) -> bool:
        """A file that no commit wrote is reported by another check, not as missing in the index."""
        parsed = parse_written_name(name)
        return parsed is not None and (
            parsed.instant in self.evidence.bodies or parsed.instant in self.evidence.archived
        )

    def enter(self, path: str, files: list[DataFile]) -> Iterator[Finding]:
        """Look up all entries of a partition's files, for the calls of ``compare``."""
        self._ranges, self._filters, self._whole, self._base_of, self._latest = {}, {}, {}, {}, set()
        if self.reader is None:
            return
        keys = [file.key for file in files]
        try:
            if self.columns:
                self._ranges = self.reader.column_ranges(self.columns, keys)
            if self.columns and self.reader.has(MetadataPartition.PARTITION_STATS):
                self._whole = self.reader.partition_ranges(self.columns, [path]).get(path, {})
            if self.reader.has(MetadataPartition.BLOOM_FILTERS):
                self._filters = self.reader.bloom_filters(k for k in keys if not k[1].startswith("."))
        except INDEX_FAILURES as error:
            yield _rebuild(f"the metadata table cannot be read: {error}", METADATA_PATH)
            return
        self._note_slices(path, files)
        without = [name for _, name in keys if self.columns and not self._ranges.get((path, name))]
        if without:
            what = f"{len(without)} of {len(keys)} files have no statistics: readers skip none of them"
            yield Finding(Severity.INFO, Check.INDEX, what, path or ".")

    def _note_slices(self, path: str, files: list[DataFile]) -> None:
        try:
            slices = slices_of_partition(path, (file.info for file in files), self.evidence.timeline)
        except UnsupportedError:
            return
        for item in slices:
            logs = [(path, str(log.name)) for log in item.log_files]
            self._latest.update(logs)
            if item.base_file is not None:
                base = path, str(item.base_file.name)
                self._latest.add(base)
                self._base_of.update(dict.fromkeys(logs, base))

    def compare(self, file: DataFile, content: FileContent) -> Iterator[Finding]:
        """Compare the metadata table's entries of one file of the current partition with its rows."""
        if self.reader is None or not content.sound:
            return
        actual = content.ranges(self.columns) if self.columns else LogRanges(None)
        if actual.ranges is not None:
            held = self._ranges.get(file.key)
            if held:
                yield from _too_tight(file, held, actual.ranges, "the file's")
                known = self.evidence.columns_at(file.name.instant)
                yield from _bounding(file, held, actual.lacking if known is None else actual.lacking & known)
            if self._whole and file.key in self._latest:
                yield from _too_tight(file, self._whole, actual.ranges, "its partition's")
        yield from self._filter_misses(file, content)

    def _filter_misses(self, file: DataFile, content: FileContent) -> Iterator[Finding]:
        """A base file's filter is used for its whole slice: the keys of its log files must pass it too."""
        base = self._base_of.get(file.key) if isinstance(file.name, LogFileName) else file.key
        held = self._filters.get(base) if base is not None else None
        if base is None or held is None:
            return
        missing = sum(int((~held.might_contain(keys)).sum()) for keys in content.record_keys() if len(keys))
        if missing and base == file.key:
            yield _rebuild(
                f"the file's bloom filter rules out {missing} of its keys", file.path, instant=file.name.instant
            )
        elif missing:
            yield Finding(
                Severity.WARNING,
                Check.INDEX,
                f"{missing} keys of a log file are ruled out by the bloom filter of {base[1]}, as Hudi leaves it: "
                "Hudi Spark misses them when it looks up a key",
                file.path,
                instant=file.name.instant,
                repair=Repair.REBUILD_INDEX,
            )


def covers(indexed: ColumnRange, actual: ColumnRange) -> bool:
    """Whether a statistic admits every value and every null of the other one."""
    if actual.null_count and not indexed.null_count:
        return False
    if actual.min is None or actual.max is None:
        return True
    if indexed.min is None or indexed.max is None or indexed.null_count >= indexed.value_count:
        return False
    whole = widen(actual, indexed)
    if whole is None:
        whole = widen(indexed, actual)
    return whole is not None and _same(whole.min, indexed.min) and _same(whole.max, indexed.max)


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def _too_tight(file: DataFile, held: _Ranges, actual: Iterable[ColumnRange], whose: str) -> Iterator[Finding]:
    tight = sorted(i.column for i in actual if i.column in held and not covers(held[i.column], i))
    absent = sorted(i.column for i in actual if i.column not in held and i.min is not None)
    if tight:
        what = f"{whose} statistics are too tight for its rows: {', '.join(tight)}"
        yield _rebuild(what, file.path, instant=file.name.instant)
    if absent:
        what = f"{whose} statistics lack {', '.join(absent)}: readers treat them as all null"
        yield _rebuild(what, file.path, instant=file.name.instant)


def _bounding(file: DataFile, held: _Ranges, lacking: Iterable[str]) -> Iterator[Finding]:
    """Statistics that bound a column that rows of the file lack: other files of the slice have its values. ``lacking``:
    without columns that the table got later, of which the file has no value."""
    unknown = {item.column: unknown_range(item.column, item.value_type, item.info) for item in held.values()}
    bounding = sorted(c for c in lacking if c not in held or not covers(held[c], unknown[c]))
    if bounding:
        what = f"the file's statistics bound columns that its partial rows lack: {', '.join(bounding)}"
        yield _rebuild(what, file.path, instant=file.name.instant)


def _rebuild(what: str, path: str, offset: int | None = None, instant: str = "") -> Finding:
    return Finding(Severity.ERROR, Check.INDEX, what, path, offset, instant, Repair.REBUILD_INDEX)
