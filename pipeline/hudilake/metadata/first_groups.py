"""The first instant of a metadata partition: its file groups and what they begin with, the keys of the rows that the
table has among them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hudilake.clock import InstantClock
from hudilake.commit.commit import publish
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.files.names import PARTITION_METADATA, BaseFileName, LogFileName
from hudilake.format.files.view import file_slices, first_instant
from hudilake.format.timeline.commit_metadata import SCHEMA_KEY, CommitMetadata, WriteStat
from hudilake.format.timeline.instant import DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.live_keys import keys_of_slices
from hudilake.metadata.records.base_write import EncodedBase, encode_base
from hudilake.metadata.records.delta import KeyedRecords
from hudilake.metadata.records.file_group import FileGroup
from hudilake.metadata.records.layout import first_log_file, initial_instant, partition_metadata
from hudilake.metadata.records.reader import split_by_group
from hudilake.metadata.records.records import table_schema
from hudilake.storage.base import Storage

_PARALLEL = 8
#: Encoding takes the processor and memory.
_PARALLEL_ENCODING = 4


def make_partition(
    root: Storage, partition: MetadataPartition, number: int, count: int, records: KeyedRecords, clock: InstantClock
) -> None:
    """One metadata partition under its first instant: ``count`` file groups with an empty log file, and a base file if
    it begins with records. ``number``: of the metadata table."""
    groups = [FileGroup(root, partition, index) for index in range(count)]
    split = split_by_group(groups, list(records))
    shares = [{key: records[key] for key in split.get(group.index, [])} for group in groups]
    begun = [(group, _base(share)) for group, share in zip(groups, shares, strict=True)]
    publish_partition(root, partition, number, begun, clock)


def publish_partition(
    root: Storage,
    partition: MetadataPartition,
    number: int,
    groups: Sequence[tuple[FileGroup, EncodedBase]],
    clock: InstantClock,
) -> None:
    """One metadata partition under its first instant, of file groups with their base files. ``number``: of the metadata
    table. Raises StorageError."""
    requested = Instant(initial_instant(partition, number), DELTA_COMMIT, State.REQUESTED)
    root.create(requested.path, b"")
    root.create(requested.in_state(State.INFLIGHT).path, b"")
    root.write(f"{partition.value}/{PARTITION_METADATA}", partition_metadata(partition))
    with ThreadPoolExecutor(_PARALLEL) as pool:
        made = list(pool.map(lambda group: _make_group(root, requested.requested_time, *group), groups))
    body = CommitMetadata(
        stats=tuple(stat for stat in made if stat is not None),
        extra={SCHEMA_KEY: table_schema()},
        operation="BULK_INSERT_PREPPED",
    )
    publish(root, requested.in_state(State.COMPLETED, clock.next()), body.to_bytes())


def _base(records: KeyedRecords) -> EncodedBase:
    entries = sorted((key.encode(), value) for key, value in records.items() if value is not None)
    return encode_base(entries), len(entries)


def _make_group(root: Storage, instant: str, group: FileGroup, base: EncodedBase) -> WriteStat | None:
    root.write(group.path(LogFileName(group.file_id, instant)), first_log_file(instant))
    data, count = base
    if not count:
        return None
    name = BaseFileName(group.file_id, instant, extension="hfile")
    root.write(group.path(name), data)
    return WriteStat(
        partition_path=group.partition.value,
        file_id=group.file_id,
        path=group.path(name),
        prev_commit="null",
        num_writes=count,
        num_inserts=count,
        file_size=len(data),
    )


def first_key_groups(
    storage: Storage, root: Storage, table: TableConfig, timeline: Timeline, count: int
) -> list[tuple[FileGroup, EncodedBase]]:
    """The file groups that a record index begins with, and their base files.

    Args:
        storage: rooted at the data table.
        root: rooted at the metadata table.
        table: the data table's configuration.
        timeline: the data table's.
        count: file groups of the index, or of each data partition.

    Reads the key column of every base file, and the log files. Raises CorruptDataError if a key has two rows where one
    is allowed, StorageError.
    """
    from hudilake.metadata.records.key_group import encode_key_base  # needs compiled loops, seconds to import
    from hudilake.metadata.records.record_index import RecordIndexGroups, split_changes

    slices, scope = file_slices(storage, timeline), table.kind.scope
    by_owner: dict[str | None, list[tuple[str, KeyChanges]]] = defaultdict(list)
    for piece, keys in zip(slices, keys_of_slices(storage, slices, table.ordering_field, timeline), strict=True):
        by_owner[scope.owner(piece.partition_path)].append((first_instant(piece), keys))
    if not scope.by_partition:
        by_owner.setdefault(None, [])
    index = RecordIndexGroups(root, [], scope.by_partition, count, expected=False)
    made: list[tuple[FileGroup, EncodedBase]] = []
    for owner, changes in by_owner.items():
        groups: Sequence[FileGroup] = index.new_groups(owner)
        shares = split_changes(changes, count)
        with ThreadPoolExecutor(_PARALLEL_ENCODING) as pool:
            made += zip(groups, pool.map(lambda share: encode_key_base(iter([share])), shares), strict=True)
    return made
