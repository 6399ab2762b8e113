"""A table's successive metadata tables: each has a number, and files that no other one had.

A store may carry out a deletion late, or once more after it was answered. Such a deletion names files. So a metadata
table that is made anew begins with instants of its own number, and a drop leaves the files whose names have no number:
the properties, which keep the number, and those of the partitions, which are the same for all.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.properties import PROPERTIES_PATH, load_properties
from hudilake.format.files.names import PARTITION_METADATA
from hudilake.metadata.records.layout import METADATA_PATH, NUMBER_KEY, metadata_properties
from hudilake.storage.base import Storage, StorageNotFoundError, UnfinishedWrites

_PARALLEL = 8
_PROPERTIES = f"{METADATA_PATH}/{PROPERTIES_PATH}"


def begin_anew(storage: Storage, table_name: str) -> int:
    """Write the properties of the next metadata table, and delete what an earlier one has left; returns its number.

    Args:
        storage: rooted at the data table, whose properties list no metadata table.
        table_name: of the data table.
    """
    left = list(_files(storage))
    number = _next_number(storage) if left else 0
    storage.write(_PROPERTIES, metadata_properties(table_name, number))
    _delete(storage, left)
    return number


def delete_files(storage: Storage) -> None:
    """Delete a metadata table, but for the files that the next one has too. ``storage`` as for ``begin_anew``."""
    _delete(storage, list(_files(storage)))


def _next_number(storage: Storage) -> int:
    with contextlib.suppress(StorageNotFoundError, CorruptDataError, ValueError):
        last = load_properties(storage.read(_PROPERTIES)).get(NUMBER_KEY, "0")
        return (int(last) + 1) % MetadataPartition.numbers()
    return 1


def _files(storage: Storage) -> Iterator[str]:
    for info in storage.walk(METADATA_PATH):
        yield info.path
    if isinstance(storage, UnfinishedWrites):
        for info in storage.unfinished(METADATA_PATH):
            yield info.path


def _delete(storage: Storage, paths: list[str]) -> None:
    gone = [path for path in paths if path != _PROPERTIES and path.rpartition("/")[2] != PARTITION_METADATA]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(storage.delete, gone))
