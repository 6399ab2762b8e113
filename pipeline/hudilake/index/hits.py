"""The file groups in which record keys were found, and the one that has a key's row."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import CorruptDataError
from hudilake.index.key_files import KeyFile, Longs
from hudilake.index.living_keys import living_keys
from hudilake.storage.metered import Meter
from hudilake.table.table import HudiTable


@dataclass
class Hits:
    """Which files hold which of n keys.

    Args:
        count: n.
    """

    count: int
    files: list[KeyFile] = field(default_factory=list)
    _rows: list[Longs] = field(default_factory=list)

    def add(self, file: KeyFile, rows: Longs) -> None:
        """A file, and the numbers of the keys that it holds."""
        if len(rows):
            self.files.append(file)
            self._rows.append(rows)

    def flat(self) -> tuple[Longs, Longs]:
        """(number of the key, number of the file) of every hit, int64 arrays."""
        if not self._rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        sizes = [len(rows) for rows in self._rows]
        return np.concatenate(self._rows), np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


def located(
    table: HudiTable, keys: pa.Array, partition_paths: pa.Array, hits: Hits, meter: Meter
) -> tuple[pa.Array, pa.Array]:
    """(partition path, file id) of each key, string arrays of n, null where no file holds the key.

    Args:
        table: open.
        keys: n record keys.
        partition_paths: those that their events name.
        hits: of the keys.
        meter: counts what is read.

    Of a key that several files hold, the file group with the living row counts; if none lives, the one in the
    partition that the event names, else any. Raises CorruptDataError for a key with two living rows.
    """
    rows, files = hits.flat()
    place = np.full(len(keys), -1, dtype=np.int64)
    place[rows] = files
    several = np.bincount(rows, minlength=len(keys)) > 1
    if several.any():
        disputed = several[rows]
        _settle(table, keys, partition_paths, hits, rows[disputed], files[disputed], place, meter)
    none = place < 0
    numbers = pa.array(np.where(none, 0, place), mask=none)
    paths = pa.array([file.file_slice.partition_path for file in hits.files], pa.string())
    ids = pa.array([file.file_slice.file_id for file in hits.files], pa.string())
    return paths.take(numbers), ids.take(numbers)


def _settle(
    table: HudiTable,
    keys: pa.Array,
    partition_paths: pa.Array,
    hits: Hits,
    rows: Longs,
    files: Longs,
    place: Longs,
    meter: Meter,
) -> None:
    """Choose for each key with several hits. ``rows``, ``files``: these hits; ``place``: the answer, changed here."""
    lives = np.zeros(len(rows), dtype=np.bool_)
    for number in np.unique(files).tolist():
        mine = np.flatnonzero(files == number)
        lives[mine] = living(table, hits.files[number], keys.take(pa.array(rows[mine])), meter)
    named = np.array(
        [
            partition_paths[r].as_py() == hits.files[f].file_slice.partition_path
            for r, f in zip(rows, files, strict=True)
        ]
    )
    order = np.lexsort((files, ~named, ~lives, rows))
    first = np.concatenate(([True], np.diff(rows[order]) > 0))
    chosen = order[first]
    place[rows[chosen]] = files[chosen]
    living_rows = rows[lives]
    twice = living_rows[np.bincount(living_rows, minlength=len(keys))[living_rows] > 1]
    if len(twice):
        where = [hits.files[f].file_slice for f in files[(rows == twice[0]) & lives].tolist()]
        raise CorruptDataError(
            f"record key {keys[int(twice[0])].as_py()!r} has rows in several file groups: "
            + ", ".join(f"{piece.partition_path}/{piece.file_id}" for piece in where),
            do_next="take all but one out (binlake verify --repair), or take a partitioned index",
            table=table.config.name,
        )


def living(table: HudiTable, file: KeyFile, keys: pa.Array, meter: Meter) -> npt.NDArray[np.bool_]:
    """For each key that a base file holds whether its row lives, bool array. Raises CorruptDataError, StorageError."""
    if not file.file_slice.log_files:
        return np.ones(len(keys), dtype=np.bool_)
    flags = pc.is_in(keys, value_set=living_keys(table, file.file_slice, meter))
    return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=np.bool_)
