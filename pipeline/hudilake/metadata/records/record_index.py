"""The record index as a whole: keys to file groups, lookups, and the logs of a commit's changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.file_group_write import KeyChanges
from hudilake.format.files.hfile.columns import Entries
from hudilake.format.files.names import LogFileName
from hudilake.metadata.records.file_group import FileGroup
from hudilake.metadata.records.key_group import KeyGroup, deletions, encode_key_log
from hudilake.metadata.records.keys import file_group_indices
from hudilake.metadata.records.layout import first_log_file
from hudilake.metadata.records.log_write import GroupLog
from hudilake.metadata.records.places import FileGroupPlace, encode_place, located
from hudilake.storage.base import Storage

Longs = npt.NDArray[np.int64]

_PARALLEL = 4


@dataclass(frozen=True)
class RecordIndexLocations:
    """Where n keys are.

    Args:
        partition_paths, file_ids: string arrays of n; null for a key without a row.
        groups: how many file groups of the index were asked.
    """

    partition_paths: pa.Array
    file_ids: pa.Array
    groups: int


@dataclass
class RecordIndexGroups:
    """The file groups of a record index.

    Args:
        storage: rooted at the metadata table.
        groups: from ``load_file_groups``.
        by_partition: whether each data partition has file groups of its own. A key then has a place in each partition.
        count: how many file groups a new data partition gets.
        expected: whether the index exists, so that one of the whole table has file groups.
    """

    storage: Storage
    groups: list[FileGroup]
    by_partition: bool
    count: int
    expected: bool = True
    _owned: dict[str | None, list[KeyGroup]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._owned = {}
        if self.expected and not self.groups and not self.by_partition:
            raise CorruptDataError("the record index has no file groups", do_next="run binlake repair")
        for group in self.groups:
            assert isinstance(group, KeyGroup)
            if (group.owner is not None) != self.by_partition:
                raise CorruptDataError(
                    "the record index has file groups of another form than the table's properties say",
                    do_next="run binlake repair",
                    file_group=group.file_id,
                )
            self._owned.setdefault(group.owner, []).append(group)

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> RecordIndexLocations:
        """Where the rows of some keys are.

        Args:
            keys: string array of n.
            partition_paths: string array of n, asked in an index by partition only.

        Raises CorruptDataError, StorageError.
        """
        paths = pc.fill_null(partition_paths, "").cast(pa.string()) if self.by_partition else None
        shares = self._shares(keys, paths)
        with ThreadPoolExecutor(_PARALLEL) as pool:
            parts = list(pool.map(lambda share: _find(share[0], keys.take(pa.array(share[1]))), shares))
        out = np.full(len(keys), -1, dtype=np.int64)
        rows = [rows for _, rows in shares]
        if rows:
            out[np.concatenate(rows)] = np.arange(sum(map(len, rows)))
        picked = pa.array(out, mask=out < 0)
        places = [_chained([part[i] for part in parts]).take(picked) for i in range(2)]
        return RecordIndexLocations(places[0], places[1], len(shares))

    def _shares(self, keys: pa.Array, paths: pa.Array | None) -> list[tuple[KeyGroup, Longs]]:
        """The indexes of the keys by file group that may have them; no keys of partitions without file groups."""
        shares: list[tuple[KeyGroup, Longs]] = []
        for owner, rows in _by_owner(len(keys), paths):
            groups = self._owned.get(owner, [])
            if groups:
                numbers = file_group_indices(keys.take(pa.array(rows)), len(groups))
                split = ((group, rows[numbers == group.index]) for group in groups)
                shares += [share for share in split if len(share[1])]
        return shares

    def scan(self) -> Iterator[pa.Table]:
        """Every record: a table of ``key``, ``partition_path``, ``file_id`` (strings) for each file group."""
        for groups in self._owned.values():
            for group in groups:
                for part in group.merged():
                    paths, ids = located(part.values)
                    keys = part.keys.cast(pa.large_string()).cast(pa.string())
                    yield pa.table({"key": keys, "partition_path": paths, "file_id": ids})

    def logs(self, instant: str, changes: Sequence[KeyChanges]) -> list[GroupLog]:
        """The log files that record a commit's changes, those that make new file groups included.

        Raises CorruptDataError if the commit puts a key into two places, UnsupportedError for a partition that cannot
        have file groups.
        """
        logs: list[GroupLog] = []
        for owner, mine in self._changes_by_owner(changes).items():
            groups = self._owned.get(owner, [])
            is_new = not groups
            groups = groups or self.new_groups(owner)
            shares = split_changes([(instant, change) for change in mine], len(groups))
            for group, entries in zip(groups, shares, strict=True):
                if len(entries) or is_new:
                    logs.append(self._log(instant, group, entries, is_new))
        return logs

    def new_groups(self, owner: str | None) -> list[KeyGroup]:
        """The file groups to make for a data partition, or for the whole table (None)."""
        return [
            KeyGroup(self.storage, MetadataPartition.RECORD_INDEX, number, owner=owner) for number in range(self.count)
        ]

    def _changes_by_owner(self, changes: Sequence[KeyChanges]) -> dict[str | None, list[KeyChanges]]:
        if not self.by_partition:
            return {None: list(changes)}
        by_owner: dict[str | None, list[KeyChanges]] = {}
        for change in changes:
            by_owner.setdefault(change.partition_path, []).append(change)
        return by_owner

    def _log(self, instant: str, group: KeyGroup, entries: Entries, is_new: bool) -> GroupLog:
        name = LogFileName(group.file_id, instant)
        data = encode_key_log(instant, group.partition.value, entries) or first_log_file(instant)
        deletes = entries.values.null_count

        def keep(log: GroupLog) -> None:
            group.add(log.log_file, entries)
            if is_new:
                self._owned.setdefault(group.owner, []).append(group)
                self.groups.append(group)

        return GroupLog(group, name, data, len(entries) - deletes, deletes, keep)


def split_changes(changes: Sequence[tuple[str, KeyChanges]], count: int) -> list[Entries]:
    """The records of some changes for each of ``count`` file groups: new places of inserted keys; deletions of keys
    that are not inserted elsewhere.

    Args:
        changes: each with the instant that makes it.
        count: of file groups.

    Raises CorruptDataError if a key is inserted twice.
    """
    inserted = [(instant, change) for instant, change in changes if len(change.inserted)]
    values = [encode_place(FileGroupPlace(c.partition_path, c.file_id), instant) for instant, c in inserted]
    codes = np.repeat(np.arange(len(inserted), dtype=np.int32), [len(change.inserted) for _, change in inserted])
    keys = _keys([change.inserted for _, change in inserted])
    gone = _keys([change.deleted for _, change in changes]).unique()
    numbers, gone_numbers = file_group_indices(_text(keys), count), file_group_indices(_text(gone), count)

    def share(number: int) -> Entries:
        rows, deleted = np.flatnonzero(numbers == number), gone.filter(pa.array(gone_numbers == number))
        placed = pa.DictionaryArray.from_arrays(pa.array(codes[rows]), pa.array(values, pa.binary()))
        entries = Entries.sorted(keys.take(pa.array(rows)), placed)
        return deletions(deleted).under(entries) if len(deleted) else entries

    with ThreadPoolExecutor(_PARALLEL) as pool:
        return list(pool.map(share, range(count)))


def _keys(parts: Sequence[pa.Array]) -> pa.Array:
    plain = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in parts]
    return _chained([part.cast(pa.large_binary()) for part in plain], pa.large_binary())


def _text(keys: pa.Array) -> pa.Array:
    return keys.cast(pa.large_string())


def _find(group: KeyGroup, keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """(partition paths, file ids) of some keys, in their order."""
    wanted = keys.cast(pa.large_binary())
    order = pc.sort_indices(wanted)
    back = pc.sort_indices(order)
    paths, ids = located(group.find(wanted.take(order)))
    return paths.take(back), ids.take(back)


def _by_owner(count: int, paths: pa.Array | None) -> Iterator[tuple[str | None, Longs]]:
    if paths is None:
        yield None, np.arange(count, dtype=np.int64)
        return
    encoded = paths.dictionary_encode()
    codes = encoded.indices.to_numpy()
    for code, path in enumerate(encoded.dictionary.to_pylist()):
        yield path, np.flatnonzero(codes == code)


def _chained(parts: Sequence[pa.Array], kind: pa.DataType | None = None) -> pa.Array:
    chained = pa.chunked_array(list(parts), type=kind or pa.string()).combine_chunks()
    return chained if not isinstance(chained, pa.ChunkedArray) else chained.chunk(0)
