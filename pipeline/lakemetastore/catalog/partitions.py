"""The partitions of a table at one version, ascending by name.

They are kept in chunks that later versions share: a change copies the chunks that it touches and the list of chunks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise

import numpy as np
import numpy.typing as npt

from hudilake.format.definition.keys import DEFAULT_PARTITION
from lakemetastore.catalog.filters.columns import Codes, Dictionary, KeyColumn
from lakemetastore.model import Column, Partition

Positions = npt.NDArray[np.int64]
_CHUNK = 1024


class Chunk:
    """Neighbouring partitions. It never changes, so that what is derived from it may be kept by its identity."""

    __slots__ = ("__weakref__", "_coded", "names", "partitions")

    def __init__(self, names: list[str], partitions: list[Partition]) -> None:
        self.names = names
        self.partitions = partitions
        self._coded: tuple[Dictionary | None, list[Codes]] = (None, [])

    def codes(self, dictionaries: Sequence[Dictionary]) -> list[Codes]:
        """The codes of the values of each key, kept for as long as the dictionaries are the same ones."""
        first, codes = self._coded
        if first is not dictionaries[0]:
            columns = zip(*(partition.values for partition in self.partitions), strict=True)
            codes = [dictionary.encode(values) for dictionary, values in zip(dictionaries, columns, strict=True)]
            self._coded = (dictionaries[0], codes)
        return codes

    def changed(self, dropped: Iterable[str], put: Mapping[str, Partition]) -> list[Chunk]:
        """This chunk without some partitions and with others, in pieces that are not too large."""
        merged = dict(zip(self.names, self.partitions, strict=True))
        for name in dropped:
            merged.pop(name, None)
        merged.update(put)
        names = sorted(merged)
        pieces = -(-len(names) // _CHUNK)
        bounds = [len(names) * i // pieces for i in range(pieces + 1)] if pieces else [0]
        parts = (names[low:high] for low, high in pairwise(bounds))
        return [Chunk(part, [merged[name] for name in part]) for part in parts]


class Partitions:
    """All partitions of a table at one version, in the order of their names. Positions are from 0 in that order."""

    def __init__(
        self, keys: Sequence[Column], chunks: Sequence[Chunk] = (), dictionaries: Sequence[Dictionary] | None = None
    ) -> None:
        self.keys = tuple(keys)
        self.chunks = tuple(chunks)
        self._dictionaries = tuple(dictionaries or (Dictionary() for _ in self.keys))

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, position: int) -> Partition:
        chunk, offset = self._place(position)
        return chunk.partitions[offset]

    def __iter__(self) -> Iterator[Partition]:
        return chain.from_iterable(chunk.partitions for chunk in self.chunks)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(chunk.names) for chunk in self.chunks), initial=0))

    @cached_property
    def _firsts(self) -> list[str]:
        return [chunk.names[0] for chunk in self.chunks]

    @cached_property
    def columns(self) -> tuple[KeyColumn, ...]:
        """The values of each key as a column for conditions."""
        coded = [chunk.codes(self._dictionaries) for chunk in self.chunks]
        empty = np.empty(0, dtype=np.int32)
        return tuple(
            KeyColumn(key.name.lower(), key.type, dictionary, np.concatenate([empty, *(codes[i] for codes in coded)]))
            for i, (key, dictionary) in enumerate(zip(self.keys, self._dictionaries, strict=True))
        )

    def names(self, positions: Positions | None = None) -> list[str]:
        """The names of all partitions, or of those at some positions, in that order."""
        if positions is None:
            return list(chain.from_iterable(chunk.names for chunk in self.chunks))
        return [chunk.names[offset] for chunk, offset in self.places(positions)]

    def select(self, positions: Positions) -> list[Partition]:
        """The partitions at some positions, in that order."""
        return [chunk.partitions[offset] for chunk, offset in self.places(positions)]

    def places(self, positions: Positions) -> Iterator[tuple[Chunk, int]]:
        """The chunk of each position and the offset in it."""
        chunks = np.searchsorted(self._starts, positions, side="right") - 1
        offsets = positions - np.asarray(self._starts, dtype=np.int64)[chunks]
        return ((self.chunks[i], j) for i, j in zip(chunks.tolist(), offsets.tolist(), strict=True))

    def position(self, name: str) -> int | None:
        """The position of the partition of a name, None if there is none."""
        i = self._chunk_of(name)
        if not self.chunks:
            return None
        names = self.chunks[i].names
        offset = bisect_left(names, name)
        return self._starts[i] + offset if offset < len(names) and names[offset] == name else None

    def named(self, name: str) -> Partition | None:
        """The partition of a name, None if there is none."""
        position = self.position(name)
        return None if position is None else self[position]

    def with_values(self, values: Sequence[str]) -> Positions:
        """The positions of partitions with the given values for the first keys; the empty text is any value.

        Values are compared as they stand in names, where the empty one is ``__HIVE_DEFAULT_PARTITION__``.
        """
        mask = np.ones(len(self), dtype=np.bool_)
        for key, value in zip(self.columns, values, strict=False):
            if value:
                spelled = (value, "") if value == DEFAULT_PARTITION else (value,)
                codes = [code for code in map(key.dictionary.code, spelled) if code is not None]
                mask &= np.isin(key.codes, codes)
        return np.flatnonzero(mask)

    def changed(self, dropped: Iterable[str], put: Mapping[str, Partition]) -> Partitions:
        """The partitions after some names are dropped and some partitions added or replaced, by name."""
        touched: dict[int, tuple[list[str], dict[str, Partition]]] = {}
        for name in dropped:
            touched.setdefault(self._chunk_of(name), ([], {}))[0].append(name)
        for name, partition in put.items():
            touched.setdefault(self._chunk_of(name), ([], {}))[1][name] = partition
        chunks: list[Chunk] = []
        for i, chunk in enumerate(self.chunks or (Chunk([], []),)):
            chunks += chunk.changed(*touched[i]) if i in touched else [chunk]
        return Partitions(self.keys, [chunk for chunk in chunks if chunk.names], self._kept_dictionaries(chunks))

    def with_keys(self, keys: Sequence[Column]) -> Partitions:
        """The same partitions with other types or comments of the keys."""
        return Partitions(keys, self.chunks, self._dictionaries)

    def _kept_dictionaries(self, chunks: Sequence[Chunk]) -> tuple[Dictionary, ...] | None:
        """The dictionaries, or None if most of their values belong to partitions that are gone."""
        count = sum(len(chunk.names) for chunk in chunks)
        return self._dictionaries if all(len(d) <= 2 * count + _CHUNK for d in self._dictionaries) else None

    def _chunk_of(self, name: str) -> int:
        return max(bisect_right(self._firsts, name) - 1, 0)

    def _place(self, position: int) -> tuple[Chunk, int]:
        i = bisect_right(self._starts, position) - 1
        return self.chunks[i], position - self._starts[i]
