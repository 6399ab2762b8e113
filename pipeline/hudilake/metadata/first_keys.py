"""The record index of the rows that a table has when its metadata table is initialised."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hudilake.format.definition.config import TableConfig
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.files.view import file_slices, first_instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.live_keys import keys_of_slices
from hudilake.metadata.records.base_write import EncodedBase
from hudilake.metadata.records.file_group import FileGroup
from hudilake.storage.base import Storage

_PARALLEL = 4


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

    slices = file_slices(storage, timeline)
    by_owner: dict[str | None, list[tuple[str, KeyChanges]]] = defaultdict(list)
    for piece, keys in zip(slices, keys_of_slices(storage, slices, table.ordering_field, timeline), strict=True):
        owner = piece.partition_path if table.kind.indexes_by_partition else None
        by_owner[owner].append((first_instant(piece), keys))
    if not table.kind.indexes_by_partition:
        by_owner.setdefault(None, [])
    index = RecordIndexGroups(root, [], table.kind.indexes_by_partition, count, expected=False)
    made: list[tuple[FileGroup, EncodedBase]] = []
    for owner, changes in by_owner.items():
        groups: Sequence[FileGroup] = index.new_groups(owner)
        shares = split_changes(changes, count)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            made += zip(groups, pool.map(lambda share: encode_key_base(iter([share])), shares), strict=True)
    return made
