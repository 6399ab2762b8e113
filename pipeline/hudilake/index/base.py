"""What every index that is looked up answers, what it costs, and what writers must report to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from hudilake.format.files.file_group_write import KeyChanges


@dataclass(slots=True)
class LookupCost:
    """What a lookup cost, in one table.

    Args:
        keys: that were looked up.
        files: base files that could hold a key, by partition alone.
        candidates: base files that could hold a key after ranges and filters.
        files_read: files whose keys were read to make sure.
        bytes_read: bytes read for the lookup, of data files and of the index.
        false_positives: files that were read and held none of the keys.
        seconds: elapsed.
    """

    keys: int = 0
    files: int = 0
    candidates: int = 0
    files_read: int = 0
    bytes_read: int = 0
    false_positives: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class KeyLocations:
    """Where the rows of n record keys are.

    Args:
        partition_paths: string array of n; null where the key has no row.
        file_ids: string array of n; null where the key has no row.
        cost: of the lookup.
    """

    partition_paths: pa.Array
    file_ids: pa.Array
    cost: LookupCost = field(default_factory=LookupCost)


class KeyIndex(Protocol):
    """An index of one open table. It answers for the table's state as of the last refresh."""

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> KeyLocations:
        """Where rows are.

        Args:
            keys: n distinct record keys (distinct within a partition if the index is not global), string without nulls.
            partition_paths: string array of n, the partition that each key's event names. A global index finds the row
                in any partition, any other index in that one.

        Raises CorruptDataError, StorageError.
        """
        ...

    def keep(self, instant: str, changes: Sequence[KeyChanges]) -> None:
        """Take in the changes of a commit, after its files are written and before it completes. A crash or a rollback
        after this call must leave no wrong answer. Raises StorageError."""
        ...
