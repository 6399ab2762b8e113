"""The state of a Hudi table read from the table alone: its timeline, archived or not, its listing and its statistics.

What ``taking_in`` makes step by step must be equal to this at every moment.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.names import parse_data_name
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata
from hudilake.format.timeline.instant import COMPLETED_ACTIONS, WRITE_ACTIONS, Instant
from hudilake.metadata.records.delta import FileKey
from hudilake.metadata.records.layout import INDEX_DEFINITIONS_PATH, indexed_fields
from hudilake.read.index import INDEX_FAILURES, TableIndex
from hudilake.storage.base import FileInfo, StorageNotFoundError
from lakemetastore.lake.entries import (
    FileRange,
    FullState,
    LakeFile,
    LakeInstant,
    PartitionChange,
    SchemaVersion,
    TakenIn,
)
from lakemetastore.lake.opened import OpenedTable
from lakemetastore.lake.state import runs

_log = logging.getLogger(__name__)


def renewed(opened: OpenedTable) -> FullState:
    """The whole state. Raises CorruptDataError for a commit that cannot be read, StorageError."""
    texts: dict[str, str] = {}
    instants = tuple(recorded(opened, instant, texts) for instant in active(opened))
    archived = tuple(runs(list(_archived_schemas(opened, texts))))
    indexed = indexed_columns(opened)
    partitions = {path: PartitionChange(added=files) for path, files in _visible(opened, indexed).items() if files}
    named = {version.schema for version in archived} | {instant.schema for instant in instants}
    kept = {key: text for key, text in texts.items() if key in named}
    taken = TakenIn(instants, (), partitions, kept, archived)
    return FullState(opened.storage.uri, identity(opened), indexed, taken)


def identity(opened: OpenedTable) -> str:
    """A digest of the properties on which a state rests. A table with others must be read anew."""
    config = opened.config
    parts = (
        config.name,
        config.kind.properties().get("hoodie.table.type", ""),
        ",".join(config.partition_fields),
        ",".join(config.record_key_fields),
        ",".join(sorted(config.metadata_partitions)),
    )
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def active(opened: OpenedTable) -> list[Instant]:
    """The instants of the active timeline, pending ones among them, oldest first."""
    return sorted([*opened.timeline.completed_actions(COMPLETED_ACTIONS), *opened.timeline.pending()])


def recorded(opened: OpenedTable, instant: Instant, texts: dict[str, str]) -> LakeInstant:
    """An instant as a state has it; the Avro schema of a completed write is added to ``texts``.

    Raises CorruptDataError, StorageError.
    """
    if not instant.completed or instant.action not in WRITE_ACTIONS:
        return LakeInstant(instant.requested_time, instant.action, instant.state.value, instant.completion_time or "")
    body = opened.timeline.commit_metadata(instant)
    groups = tuple((path, name) for path, names in sorted((body.replaced or {}).items()) for name in names)
    return LakeInstant(
        requested=instant.requested_time,
        action=instant.action,
        state=instant.state.value,
        completed=instant.completion_time or "",
        operation=body.operation,
        schema=_schema_key(body, texts),
        replaced=groups,
    )


def indexed_columns(opened: OpenedTable) -> tuple[str, ...]:
    """The columns of which the metadata table has statistics; none if it keeps no such.

    Raises CorruptDataError, StorageError.
    """
    if MetadataPartition.COLUMN_STATS.value not in opened.config.metadata_partitions:
        return ()
    try:
        return tuple(indexed_fields(opened.storage.read(INDEX_DEFINITIONS_PATH)) or ())
    except StorageNotFoundError:
        return ()


def statistics(
    index: TableIndex | None, indexed: Collection[str], files: Iterable[FileKey]
) -> Mapping[FileKey, Mapping[str, ColumnRange]]:
    """The statistics of some files, of those that have any. Where the metadata table cannot be read there are none:
    readers then skip less."""
    wanted = list(files)
    if index is None or not indexed or not wanted:
        return {}
    try:
        return index.lookups(MetadataPartition.COLUMN_STATS).column_ranges(indexed, wanted)
    except INDEX_FAILURES as error:
        _log.warning("the column statistics of %d files cannot be read: %s", len(wanted), error)
        return {}


def with_statistics(found: Mapping[str, ColumnRange]) -> tuple[FileRange, ...]:
    """The statistics of a file as a state has them."""
    return tuple(FileRange.of(found[column]) for column in sorted(found))


def _visible(opened: OpenedTable, indexed: Collection[str]) -> dict[str, tuple[LakeFile, ...]]:
    """The files of completed writes by partition path."""
    listing = opened.listing()
    listed = listing.files(listing.partitions())
    completed = {path: list(_completed(opened, infos)) for path, infos in listed.items()}
    keys = [(path, name) for path, files in completed.items() for name, _, _ in files]
    known = statistics(opened.index, indexed, keys)
    return {
        path: tuple(LakeFile(n, size, time, with_statistics(known.get((path, n), {}))) for n, size, time in files)
        for path, files in completed.items()
    }


def _completed(opened: OpenedTable, infos: Iterable[FileInfo]) -> Iterator[tuple[str, int, str]]:
    for info in infos:
        name = info.path.rpartition("/")[2]
        parsed = parse_data_name(name)
        time = opened.timeline.completion_time(parsed.instant) if parsed is not None else None
        if time is not None:
            yield name, info.size, time


def _archived_schemas(opened: OpenedTable, texts: dict[str, str]) -> Iterator[SchemaVersion]:
    """The schema of each archived write that the active timeline has not."""
    history = opened.timeline.history()
    for entry in history.entries:
        rows = history.read(entry, ["instantTime", "action", "metadata"])
        for time, action, body in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            if action not in WRITE_ACTIONS or not body or opened.timeline.find(time) is not None:
                continue
            if key := _schema_key(CommitMetadata.from_bytes(body, f"history of {time}"), texts):
                yield SchemaVersion(time, key)


def _schema_key(body: CommitMetadata, texts: dict[str, str]) -> str:
    text = body.extra.get(SCHEMA_KEY)
    if not text:
        return ""
    key = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    texts[key] = text
    return key
