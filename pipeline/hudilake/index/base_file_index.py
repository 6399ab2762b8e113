"""Indexes that find a record key in base files: SIMPLE and BLOOM, for a partition or for the whole table.

They differ only in which base files they read (``CandidateFilter``). A key may be in the base files of several file
groups: a log file over one of them deleted the row, and a later commit inserted the key elsewhere. Then the file group
whose row lives is the answer (``living``).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.files.file_group_write import KeyChanges
from hudilake.index.base import KeyLocations, LookupCost
from hudilake.index.hits import Hits, located
from hudilake.index.key_files import KeyFile, Longs, key_files, keys_held
from hudilake.index.key_map import KeyMap
from hudilake.storage.metered import Meter, MeteredStorage
from hudilake.table.table import HudiTable

_PARALLEL_READS: Final = 8


@dataclass(frozen=True, slots=True)
class KeyProbe:
    """Which of some files hold some keys.

    Args:
        keys: n distinct record keys, ascending, string without nulls.
        rows: int64 array of n, their positions in the lookup.
        files: that may hold them, by partition alone.
    """

    keys: pa.Array
    rows: Longs
    files: Sequence[KeyFile]


class CandidateFilter(Protocol):
    """Which files may hold which keys, without reading the files' keys."""

    def candidates(self, questions: Sequence[KeyProbe]) -> list[list[Longs]]:
        """For each question, for each of its files the positions of keys that it may hold, ascending. Raises
        CorruptDataError, StorageError."""
        ...

    @property
    def bytes_read(self) -> int:
        """Bytes read so far."""
        ...


class EveryFile:
    """SIMPLE: every file may hold every key."""

    bytes_read = 0

    def candidates(self, questions: Sequence[KeyProbe]) -> list[list[Longs]]:
        """All of them."""
        return [[np.arange(len(one.keys), dtype=np.int64)] * len(one.files) for one in questions]


class BaseFileIndex:
    """An index over the base files of an open table (see ``base.KeyIndex``). It keeps nothing of its own.

    Args:
        table: open.
        narrowing: which files are read.
    """

    def __init__(self, table: HudiTable, narrowing: CandidateFilter) -> None:
        self._table, self._narrowing = table, narrowing

    def locate(self, keys: pa.Array, partition_paths: pa.Array) -> KeyLocations:
        """As ``KeyIndex.locate``. Raises UnsupportedError for a file group without a base file."""
        begun, meter, narrowed = time.perf_counter(), Meter(), self._bytes_of_index()
        cost = LookupCost(keys=len(keys))
        hits = Hits(len(keys))
        storage = MeteredStorage(self._table.storage, meter)
        questions = self._questions(keys, partition_paths)
        for question, places in zip(questions, self._narrowing.candidates(questions), strict=True):
            self._ask(question, places, hits, cost, storage)
        locations = located(self._table, keys, partition_paths, hits, meter)
        cost.bytes_read = meter.bytes_read + self._bytes_of_index() - narrowed
        cost.seconds = time.perf_counter() - begun
        return KeyLocations(*locations, cost)

    def keep(self, instant: str, changes: Sequence[KeyChanges]) -> None:
        """Nothing: base files are the index."""

    def _bytes_of_index(self) -> int:
        listing = self._table.metadata_table
        return self._narrowing.bytes_read + (0 if listing is None else listing.meter.bytes_read)

    def _questions(self, keys: pa.Array, partition_paths: pa.Array) -> list[KeyProbe]:
        """One for each partition, or a single one for all of them."""
        if not len(keys):
            return []
        if not self._table.config.kind.scope.by_partition:
            rows = np.arange(len(keys), dtype=np.int64)
            return [_question(keys, rows, key_files(self._table.file_slices()))]
        paths = partition_paths.dictionary_encode()
        codes = np.asarray(paths.indices.to_numpy())
        order = np.argsort(codes, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
        names: list[str] = paths.dictionary.to_pylist()
        files: dict[str, list[KeyFile]] = {name: [] for name in names}
        for file in key_files(self._table.file_slices(names)):
            files[file.file_slice.partition_path].append(file)
        return [_question(keys, rows, files[names[codes[rows[0]]]]) for rows in parts]

    def _ask(
        self, question: KeyProbe, candidates: list[Longs], hits: Hits, cost: LookupCost, storage: MeteredStorage
    ) -> None:
        """Read the keys of the candidates. ``hits`` and ``cost`` are added to."""
        cost.files += len(question.files)
        asked = [one for one in zip(question.files, candidates, strict=True) if len(one[1])]

        wanted = KeyMap(1)  # made once: a hash table for each file would cost more than reading the files (measured)
        wanted.put(question.keys, np.arange(len(question.keys), dtype=np.int64)[np.newaxis, :])

        def held(one: tuple[KeyFile, Longs]) -> Longs:
            file, places = one
            bounds = question.keys[int(places[0])].as_py(), question.keys[int(places[-1])].as_py()
            positions = keys_held(storage, file.base, wanted, bounds)
            return (
                positions
                if len(places) == len(question.keys)
                else np.intersect1d(positions, places, assume_unique=True)
            )

        with ThreadPoolExecutor(_PARALLEL_READS) as pool:
            for (file, _), places in zip(asked, pool.map(held, asked), strict=True):
                hits.add(file, question.rows[places])
                cost.false_positives += not len(places)
        cost.candidates += len(asked)
        cost.files_read += len(asked)


def _question(keys: pa.Array, rows: Longs, files: Sequence[KeyFile]) -> KeyProbe:
    mine = keys.take(pa.array(rows))
    order = np.asarray(pc.array_sort_indices(mine).to_numpy(), dtype=np.int64)
    return KeyProbe(mine.take(pa.array(order)), rows[order], files)
