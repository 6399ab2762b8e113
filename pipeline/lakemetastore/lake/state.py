"""The state of a Hudi table that its log gives: instants, files, statistics, and the history of its schema."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.names import in_partition
from hudilake.format.files.view import FileSlice, slices_of_partition
from hudilake.storage.base import FileInfo
from lakemetastore.lake.entries import (
    FullState,
    LakeEntry,
    LakeFile,
    LakeInstant,
    RegisteredName,
    SchemaVersion,
    TakenIn,
)
from lakemetastore.lake.partition_files import PartitionFiles
from lakemetastore.lake.recorded_timeline import RecordedTimeline

E = TypeVar("E", covariant=True)


class LakeState(msgspec.Struct, frozen=True):
    """A Hudi table as of a version of its log. Nothing changes it.

    Args:
        uri: the table's root; "" if the log has no entry.
        identity: of the table at that place.
        indexed: the columns that have statistics.
        instants: those of the active timeline, by ``requested time.action``.
        files: by partition path; a partition without files is not in it.
        texts: Avro schemas by key.
        archived: the schema versions of the archived writes.
        named: database and name by which the catalog has the table; None if it was never registered there. It is the
            only thing here that the table does not say itself.
    """

    uri: str = ""
    identity: str = ""
    indexed: tuple[str, ...] = ()
    instants: Mapping[str, LakeInstant] = {}
    files: Mapping[str, PartitionFiles] = {}
    texts: Mapping[str, str] = {}
    archived: tuple[SchemaVersion, ...] = ()
    named: tuple[str, str] | None = None

    def timeline(self) -> list[LakeInstant]:
        """The instants of the active timeline, oldest first."""
        return [self.instants[key] for key in sorted(self.instants)]

    def partitions(self) -> list[str]:
        """The partition paths, sorted. A partition that lost its last file is none."""
        return sorted(self.files)

    def stored(self, partition: str) -> list[LakeFile]:
        """The files of a partition with their statistics, by name; empty for an unknown one."""
        return self.files[partition].files() if partition in self.files else []

    def listed(self, partition: str) -> list[FileInfo]:
        """The files of a partition as a storage lists them, without times of change."""
        return [FileInfo(in_partition(partition, file.name), file.size, 0) for file in self.stored(partition)]

    def ranges(self, partition: str) -> dict[str, dict[str, ColumnRange]]:
        """The statistics of the files of a partition by bare name and column; a file without any is not in it."""
        return {f.name: {r.column: r.range for r in f.ranges} for f in self.stored(partition) if f.ranges}

    def slices(self, partition: str, as_of: str | None = None) -> list[FileSlice]:
        """The newest file slice of each file group of a partition, by file id, without replaced file groups.

        ``as_of``: only writes requested at or before this time; files that a clean deleted are not in it.
        """
        stored = self.stored(partition)
        infos = (FileInfo(in_partition(partition, file.name), file.size, 0) for file in stored)
        return slices_of_partition(partition, infos, RecordedTimeline.of(self.instants.values(), stored), as_of)

    def seen(self) -> list[str]:
        """The partition paths of which readers see a file, sorted: those whose file groups are not all replaced."""
        replaced = {path for instant in self.instants.values() for path, _ in instant.replaced}
        return [path for path in self.partitions() if path not in replaced or self.slices(path)]

    def schemas(self) -> list[SchemaVersion]:
        """The history of the table's columns, oldest first: a version for each write whose schema differs from that of
        the write before it."""
        active = [SchemaVersion(i.requested, i.schema) for i in self.timeline() if i.schema]
        return runs([*self.archived, *active])

    def schema(self, as_of: str | None = None) -> str | None:
        """The Avro schema of the newest write, or of the newest one requested at or before a time; None if none is
        known."""
        known = [v for v in self.schemas() if as_of is None or v.requested <= as_of]
        return self.texts[known[-1].schema] if known else None


def runs(versions: Sequence[SchemaVersion]) -> list[SchemaVersion]:
    """Schema versions by requested time, without those that change nothing."""
    kept: list[SchemaVersion] = []
    for version in sorted(versions, key=lambda one: one.requested):
        if not kept or kept[-1].schema != version.schema:
            kept.append(version)
    return kept


class _Change(Protocol[E]):
    @property
    def change(self) -> E: ...


def apply(state: LakeState, changes: Sequence[_Change[LakeEntry]]) -> LakeState:
    """The state after some entries of its log."""
    for versioned in changes:
        entry = versioned.change
        match entry:
            case FullState():
                emptied = LakeState(entry.uri, entry.identity, entry.indexed, named=state.named)
                state = _with(emptied, entry.taken)
            case TakenIn():
                state = _with(state, entry)
            case RegisteredName():
                state = msgspec.structs.replace(state, named=(entry.database, entry.name))
    return state


def _with(state: LakeState, taken: TakenIn) -> LakeState:
    instants = dict(state.instants)
    for requested, action in taken.gone:
        instants.pop(f"{requested}.{action}", None)
    for instant in taken.instants:
        instants[key_of(instant)] = instant
    files = dict(state.files)
    for path, change in taken.partitions.items():
        changed = files.get(path, PartitionFiles()).changed(change)
        if len(changed):
            files[path] = changed
        else:
            files.pop(path, None)
    archived = state.archived if taken.archived is None else taken.archived
    named = {version.schema for version in archived} | {instant.schema for instant in instants.values()}
    texts = {key: text for key, text in {**state.texts, **taken.texts}.items() if key in named}
    return msgspec.structs.replace(state, instants=instants, files=files, archived=archived, texts=texts)


def key_of(instant: LakeInstant) -> str:
    """The key of an instant, the same in all its states."""
    return ".".join(instant.instant.identity)
