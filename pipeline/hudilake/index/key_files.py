"""The record keys of base files: read column-pruned, row groups skipped by their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hudilake.errors import UnsupportedError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.view import BaseFile, FileSlice
from hudilake.index.key_map import KeyMap
from hudilake.storage.base import Storage

Longs: TypeAlias = npt.NDArray[np.int64]
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A file slice with the base file that holds its keys."""

    file_slice: FileSlice
    base: BaseFile


def key_files(slices: list[FileSlice]) -> list[KeyFile]:
    """The file slices with their base files.

    Raises UnsupportedError for a file group without a base file: an index that is looked up sees base files only, so
    the keys of that file group would be taken for new ones.
    """
    files = []
    for piece in slices:
        if piece.base_file is None:
            raise UnsupportedError(
                "a file group has log files only, so the index does not see its record keys",
                do_next="compact the table with the writer that wrote it, then start again",
                partition=piece.partition_path,
                file_group=piece.file_id,
            )
        files.append(KeyFile(piece, piece.base_file))
    return files


def keys_held(storage: Storage, base: BaseFile, wanted: KeyMap, bounds: tuple[str, str]) -> Longs:
    """Which of the wanted keys a base file holds.

    Args:
        storage: the table's root.
        base: the file.
        wanted: the positions of the wanted record keys.
        bounds: the least and the greatest key that the file may hold.

    Returns their positions, ascending. Raises CorruptDataError, StorageError.
    """
    low, high = bounds[0].encode(), bounds[1].encode()
    positions: list[Longs] = []
    with open_base_file(storage, base.path, [RECORD_KEY_FIELD], base.size) as rows:
        ranges = rows.key_ranges()
        numbers = [i for i, pair in enumerate(ranges) if pair is None or _meets(pair, low, high)]
        for table in rows.row_groups(numbers):
            places = wanted.get(table.column(RECORD_KEY_FIELD).combine_chunks(), _NONE)[0]
            positions.append(places[places != _NONE])
    return np.unique(np.concatenate(positions)) if positions else np.zeros(0, dtype=np.int64)


def _meets(pair: tuple[str, str], low: bytes, high: bytes) -> bool:
    """Bounds of Parquet are in the order of UTF-8 bytes, as Arrow sorts text."""
    return pair[0].encode() <= high and pair[1].encode() >= low
