"""Longs by record key, in memory: exact, compact, and searched a column of keys at a time.

Keys are held as they are, in the order of a 32-bit hash that finds them; a found key is compared with the wanted one,
so equal hashes give no wrong answer. New entries come in runs of their own, which are merged when they have grown, so
that a few keys do not cost a copy of all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.format.definition.java_hash import java_string_hash

Hashes = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
#: Entries of equal hash that are compared one by one, before all of them are searched at once.
_STEPS: Final = 8
#: A run is merged with the one before it if that has at most so many times its entries.
_GROWTH: Final = 4


@dataclass(frozen=True, slots=True)
class KeyRun:
    """n entries, in the order of their hashes, no key twice.

    Args:
        hashes: of the keys, ascending.
        keys: string of n.
        values: int64 (c, n).
    """

    hashes: Hashes
    keys: pa.Array
    values: Longs

    @classmethod
    def of(cls, keys: pa.Array, values: Longs) -> KeyRun:
        """The entries of n distinct keys (string without nulls), values int64 (c, n)."""
        hashes = java_string_hash(keys)
        order = np.argsort(hashes, kind="stable")
        return cls(hashes[order], keys.take(pa.array(order)), np.ascontiguousarray(values[:, order]))

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return int(self.hashes.nbytes + self.keys.nbytes + self.values.nbytes)

    def find(self, keys: pa.Array, hashes: Hashes) -> Longs:
        """The index of the entry of each of m keys, -1 for none. ``hashes``: of these keys."""
        entry_indexes = np.full(len(keys), -1, dtype=np.int64)
        candidates = np.searchsorted(self.hashes, hashes, side="left")
        open_ = np.arange(len(keys), dtype=np.int64)
        for _ in range(_STEPS):
            inside = candidates[open_] < len(self.hashes)
            inside[inside] = self.hashes[candidates[open_[inside]]] == hashes[open_[inside]]
            open_ = open_[inside]
            if not len(open_):
                return entry_indexes
            wanted = keys if len(open_) == len(keys) else keys.take(pa.array(open_))
            same = np.asarray(
                pc.equal(self.keys.take(pa.array(candidates[open_])), wanted).to_numpy(zero_copy_only=False)
            )
            entry_indexes[open_[same]] = candidates[open_[same]]
            open_ = open_[~same]
            candidates[open_] += 1
        rest = pc.index_in(keys.take(pa.array(open_)), value_set=self.keys)
        entry_indexes[open_] = np.asarray(pc.fill_null(rest, -1).to_numpy(), dtype=np.int64)
        return entry_indexes

    def under(self, newer: KeyRun) -> KeyRun:
        """One run of both; the newer one's entries count."""
        covered = newer.find(self.keys, self.hashes) >= 0
        kept = np.flatnonzero(~covered)
        hashes = np.concatenate([self.hashes[kept], newer.hashes])
        order = np.argsort(hashes, kind="stable")
        keys = pa.concat_arrays([self.keys.take(pa.array(kept)), newer.keys]).take(pa.array(order))
        values = np.concatenate([self.values[:, kept], newer.values], axis=1)[:, order]
        return KeyRun(hashes[order], keys, values)


@dataclass
class KeyMap:
    """Entries by key; a later entry of a key replaces an earlier one. ``runs``: oldest first, each shorter."""

    columns: int
    runs: list[KeyRun] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """The bytes in memory."""
        return sum(run.nbytes for run in self.runs)

    def put(self, keys: pa.Array, values: Longs) -> None:
        """Add the entries of n distinct keys (string without nulls), values int64 (columns, n)."""
        if not len(keys):
            return
        run = KeyRun.of(keys, values)
        while self.runs and len(self.runs[-1].hashes) <= _GROWTH * len(run.hashes):
            run = self.runs.pop().under(run)
        self.runs.append(run)

    def get(self, keys: pa.Array, missing: int) -> Longs:
        """The values of m keys, int64 (columns, m); ``missing`` where there is no entry."""
        values = np.full((self.columns, len(keys)), missing, dtype=np.int64)
        hashes, open_ = java_string_hash(keys), np.arange(len(keys), dtype=np.int64)
        for run in reversed(self.runs):
            wanted = keys if len(open_) == len(keys) else keys.take(pa.array(open_))
            indexes = run.find(wanted, hashes[open_])
            met = indexes >= 0
            values[:, open_[met]] = run.values[:, indexes[met]]
            open_ = open_[~met]
            if not len(open_):
                break
        return values
