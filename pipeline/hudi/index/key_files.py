"""The record keys of base files: read column-pruned, row groups skipped by their statistics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.schema import RECORD_KEY_FIELD
from pipeline.hudi.files.base_file import open_base_file
from pipeline.hudi.files.view import BaseFile, FileSlice
from pipeline.storage.base import Storage

Longs: TypeAlias = npt.NDArray[np.int64]


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


def keys_held(storage: Storage, base: BaseFile, wanted: pa.Array) -> Longs:
    """Which of the wanted keys a base file holds.

    Args:
        storage: the table's root.
        base: the file.
        wanted: n distinct record keys, ascending, string without nulls; n > 0.

    Returns their positions in ``wanted``, ascending. Raises CorruptDataError, StorageError.
    """
    low, high = wanted[0].as_py().encode(), wanted[len(wanted) - 1].as_py().encode()
    found: list[Longs] = []
    with open_base_file(storage, base.path, [RECORD_KEY_FIELD], base.size) as rows:
        ranges = rows.key_ranges()
        numbers = [i for i, pair in enumerate(ranges) if pair is None or _meets(pair, low, high)]
        for table in rows.row_groups(numbers):
            places = pc.index_in(table.column(RECORD_KEY_FIELD), value_set=wanted).drop_null()
            found.append(np.asarray(places.to_numpy(), dtype=np.int64))
    return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)


def _meets(pair: tuple[str, str], low: bytes, high: bytes) -> bool:
    """Bounds of Parquet are in the order of UTF-8 bytes, as Arrow sorts text."""
    return pair[0].encode() <= high and pair[1].encode() >= low
