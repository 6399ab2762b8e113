"""Which candidates are differences: each is looked at again, at later positions, until its state says so.

A candidate is settled as equal as soon as both sides show the same row once. It is a difference when two looks, one
after the other, show the same two states, the lake had reached the position both times and its row is not newer than
it. A row that is newer than the position at every look is changing: each change replaces it whole, so that nothing of
what was compared before is left of it. A key that has two rows in the lake at two looks is a difference, whatever they
are and however often they change.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.proof.verify.canonical import is_in
from binlake.proof.verify.rows import KnownRows
from binlake.source.database.snapshot import SourcePosition

#: After so many looks at which a row was newer than the position it counts as changing.
_LOOKS_AT_CHANGING = 3

#: After so many looks in a row at which the lake had not reached the position the rest stays unsettled.
_LOOKS_WHILE_BEHIND = 3

#: The digests of the rows of one key: of the source, and of the lake.
State: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Look:
    """Some keys on both sides.

    Args:
        position: of the source's snapshot.
        order: its ordering value.
        source, lake: the rows of the keys that exist.
        covered: whether the lake had applied everything up to the position.
        keyless: whether the table has no key, so that several rows may be the same.
    """

    position: SourcePosition
    order: int
    source: KnownRows
    lake: KnownRows
    covered: bool
    keyless: bool = False

    def of(self, keys: npt.NDArray[np.uint64]) -> Look:
        """The same look at fewer keys. ``keys``: hashes, ascending."""
        source, lake = (rows.where(is_in(rows.keys, keys)) for rows in (self.source, self.lake))
        return replace(self, source=source, lake=lake)

    @property
    def doubled(self) -> npt.NDArray[np.uint64]:
        """The keys that more than one row of the lake has: hashes, ascending."""
        return self.lake.keys[:0] if self.keyless else self.lake.doubled()


#: Of a key with two rows in the lake.
_DOUBLED: State = ((), ((-1, -1),))

#: Looks again at some keys (the key columns of n rows, in canonical types).
LookAgain: TypeAlias = Callable[[pa.Table], Look]


@dataclass
class Settlement:
    """What remained of the candidates.

    Args:
        differences: looks at keys that differ, each at the position where it was confirmed.
        unsettled: how many keys differed and could not be confirmed.
        changing: how many keys changed behind the position at every look.
        looks: how many times the candidates were looked at again.
        behind: whether the lake did not reach the source's position in time.
    """

    differences: list[Look] = field(default_factory=list)
    unsettled: int = 0
    changing: int = 0
    looks: int = 0
    behind: bool = False


def settle(first: Look, changed: pa.Table, again: LookAgain, key: list[str], most_looks: int) -> Settlement:
    """Settle the candidates of a comparison.

    Args:
        first: the candidates, rows of the lake not newer than the position.
        changed: the keys of rows that are newer than the position (key columns of n rows, in canonical types).
        again: another look.
        key: names of the key columns.
        most_looks: after so many further looks the rest is unsettled.
    """
    done = Settlement()
    seen: Mapping[int, State] = _states(first) if first.covered else {}
    newer_at: Counter[int] = Counter()
    waiting, behind = pa.concat_tables([_keys(first, key), changed]), 0
    while waiting.num_rows and done.looks < most_looks and behind < _LOOKS_WHILE_BEHIND:
        look = again(waiting)
        done.looks += 1
        behind = 0 if look.covered else behind + 1
        newer = _newer(look)
        newer_at.update(newer)
        changing = {k for k in newer if newer_at[k] >= _LOOKS_AT_CHANGING}
        done.changing += len(changing)
        differ = {k: s for k, s in _states(look).items() if s[0] != s[1] and k not in newer}
        confirmed = {k for k, state in differ.items() if look.covered and seen.get(k) == state}
        if confirmed:
            done.differences.append(look.of(_ascending(confirmed)))
        seen = differ if look.covered else {}
        still = (differ.keys() - confirmed) | (newer - changing)
        waiting = _keys(look.of(_ascending(still)), key)
        done.unsettled, done.behind = len(still), not look.covered
    return done


def _ascending(keys: Collection[int]) -> npt.NDArray[np.uint64]:
    return np.sort(np.fromiter(keys, np.uint64, len(keys)))


def _states(look: Look) -> dict[int, State]:
    source, lake = _digests_by_key(look.source), _digests_by_key(look.lake)
    states: dict[int, State] = {k: (source.get(k, ()), lake.get(k, ())) for k in source.keys() | lake.keys()}
    return states | dict.fromkeys(look.doubled.tolist(), _DOUBLED)


def _digests_by_key(rows: KnownRows) -> dict[int, tuple[tuple[int, int], ...]]:
    key_digests: dict[int, tuple[tuple[int, int], ...]] = {}
    digests = zip(rows.keys.tolist(), rows.digests.low.tolist(), rows.digests.high.tolist(), strict=True)
    for key, low, high in digests:
        key_digests[key] = tuple(sorted((*key_digests.get(key, ()), (low, high))))
    return key_digests


def _newer(look: Look) -> set[int]:
    """The keys whose one row in the lake is newer than the position."""
    assert look.lake.orders is not None
    return set(look.lake.keys[look.lake.orders > look.order].tolist()) - set(look.doubled.tolist())


def _keys(look: Look, key: list[str]) -> pa.Table:
    """The key columns of all rows, each key once."""
    rows = pa.concat_tables([look.source.rows.select(key), look.lake.rows.select(key)])
    hashes = np.concatenate([look.source.keys, look.lake.keys])
    return rows.take(pa.array(np.unique(hashes, return_index=True)[1]))
