"""How far a table has counted facts: what tells an event that is delivered again from a new one.

A connector that starts again goes back in its log and delivers a suffix of it again, in the same order. In one topic
partition, an event below the highest order that was counted was therefore delivered before, and one above it is new.

An order is not always one event: MariaDB gives all events of a transaction one position, and an update has two halves.
At the highest order, what tells is the row that an event is about (a *fact*). Its events form a chain: each begins with
what the one before it left, a content or nothing. An event that does not begin with what is there now was delivered
before. Where the chain returns to an earlier content, events that come again may be taken for new ones; they lead from
that content back to it, so together they change nothing. The same is true of the facts of one file group alone.

Formats without binlog positions are ordered by Kafka offset: an event that comes again has a new order there.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from binlake.decode.changes import Op
from binlake.decode.order import OrderKind, OrderPlace
from binlake.rows.merging.columns import Flags
from binlake.rows.upsert.collapse import Int64s
from binlake.rows.upsert.engines.facts import FACT, FEED
from binlake.rows.upsert.keyless import digests
from binlake.rows.upsert.route import KEY
from hudilake.errors import UnsupportedError

#: The content of a fact that is not there.
_GONE: Final = 0


@dataclass(frozen=True, slots=True)
class FeedHeight:
    """How far one topic partition was counted.

    Args:
        order: the highest order of its events.
        facts: fact -> content, for the facts of the events at this order: what the last of them left.
    """

    order: int
    facts: Mapping[int, int] = field(default_factory=dict)

    def merged(self, other: FeedHeight) -> FeedHeight:
        """The higher one; of equal ones the facts of both, ``other``'s before these."""
        if self.order != other.order:
            return max(self, other, key=lambda height: height.order)
        return FeedHeight(self.order, {**self.facts, **other.facts})


@dataclass(frozen=True, slots=True)
class FactHeights:
    """How far a table has counted facts.

    Args:
        feeds: by topic partition (``binlake.rows.upsert.engines.facts.FEED``).
        snapshot: the order of the snapshot whose rows are counted; None before anything is counted, -1 for none.
        in_turn: whether events come after those of their partition that are counted, so that none takes back a fact
            before it is counted.
    """

    feeds: Mapping[int, FeedHeight] = field(default_factory=dict)
    snapshot: int | None = None
    in_turn: bool = True

    @property
    def newest(self) -> int:
        """The highest order of all events so far, -1 for none."""
        return max((height.order for height in self.feeds.values()), default=-1)

    def merged(self, others: Iterable[FactHeights]) -> FactHeights:
        """These heights and those that several file groups have reached from here."""
        feeds, snapshot = dict(self.feeds), self.snapshot
        for other in others:
            snapshot = other.snapshot if snapshot is None or (other.snapshot or -1) > snapshot else snapshot
            for feed, height in other.feeds.items():
                feeds[feed] = feeds[feed].merged(height) if feed in feeds else height
        return FactHeights(feeds, -1 if feeds and snapshot is None else snapshot)

    def counted(self, rows: pa.Table) -> tuple[Flags, FactHeights]:
        """Which halves of events are new, and how far these reach.

        Args:
            rows: n halves of one file group, as ``binlake.rows.upsert.engines.facts`` packs them.

        Raises UnsupportedError for rows of a second snapshot.
        """
        fresh = np.zeros(len(rows), dtype=np.bool_)
        feeds = np.asarray(rows.column(FEED).to_numpy(), dtype=np.int64)
        names = [name for name in rows.column_names if name != KEY and not name.startswith("__")]
        reached: dict[int, FeedHeight] = {}
        for feed in np.unique(feeds).tolist():
            positions = _as_delivered(rows, np.flatnonzero(feeds == feed))
            mask, height = _counted(rows, positions, names, self.feeds.get(feed))
            fresh[positions[mask]] = True
            if height is not None:
                reached[feed] = height
        return fresh, FactHeights(reached, self._snapshot_after(rows, fresh))

    def _snapshot_after(self, rows: pa.Table, fresh: Flags) -> int | None:
        orders = np.asarray(rows.column("__order").to_numpy(), dtype=np.int64)[fresh]
        lowest = list[int]()
        while len(orders) and len(lowest) < _SNAPSHOTS:
            lowest.append(int(orders.min()))
            orders = orders[orders > lowest[-1]]
        taken = {one for one in lowest if OrderPlace.of(one).kind is OrderKind.SNAPSHOT}
        known = self.snapshot
        if known is None and len(taken) == 1:
            return min(taken)
        if taken - {known}:
            raise UnsupportedError(
                "rows of a second snapshot came, and facts that are counted already cannot be told from new ones",
                do_next="drop the lake table, and stream the source's table again from one snapshot",
                snapshot=str(OrderPlace.of(max(taken))),
            )
        return known

    def to_text(self) -> str:
        """A compact text for the commit's extra metadata."""
        feeds = [[feed, height.order, _packed(height.facts)] for feed, height in sorted(self.feeds.items())]
        return json.dumps({"feeds": feeds, "snapshot": self.snapshot}, separators=(",", ":"))

    @staticmethod
    def from_text(text: str | None) -> FactHeights:
        """The heights that ``to_text`` wrote; empty ones for None."""
        if text is None:
            return FactHeights()
        said = json.loads(text)
        return FactHeights({f: FeedHeight(o, _unpacked(facts)) for f, o, facts in said["feeds"]}, said["snapshot"])


NOTHING_COUNTED: Final = FactHeights()
#: For records of the quarantine, which are taken once, whatever is counted.
OUT_OF_TURN: Final = FactHeights(in_turn=False)
#: So many of the lowest orders are looked at for snapshots: streamed orders are above them.
_SNAPSHOTS: Final = 2


def _as_delivered(rows: pa.Table, at: Int64s) -> Int64s:
    """Rows of one partition in the sequence of their delivery; of one event, first what it removes."""
    offsets = rows.column("__offset").to_numpy()[at]
    if (np.diff(offsets) > 0).all():  # as they mostly come
        return at
    adds = rows.column("__op").to_numpy()[at] == Op.UPSERT
    return at[np.lexsort([adds, rows.column("__row").to_numpy()[at], offsets])]


def _counted(
    rows: pa.Table, positions: Int64s, names: list[str], known: FeedHeight | None
) -> tuple[Flags, FeedHeight | None]:
    """Which halves of one partition, in the sequence of their delivery, are new; and the height after them.

    ``positions``: those of its halves among the rows, in that sequence. ``names``: the columns that are their content.
    """
    known = known or FeedHeight(-1)
    orders = np.asarray(rows.column("__order").to_numpy(), dtype=np.int64)[positions]
    facts = np.asarray(rows.column(FACT).to_numpy(), dtype=np.int64)[positions]
    adds = np.asarray(rows.column("__op").to_numpy() == Op.UPSERT)[positions]
    fresh = orders >= np.maximum.accumulate(np.append(known.order, orders))[:-1]
    chained = np.flatnonzero(fresh)[_repeated(orders[fresh], facts[fresh], adds[fresh], known)]
    top = max(int(orders[fresh].max(initial=-1)), known.order)
    needed = np.union1d(chained, np.flatnonzero(fresh & (orders == top)))
    marks = digests(rows.select(names).take(pa.array(positions[needed])), names)
    contents = dict(zip(needed.tolist(), (_content(mark) for mark in marks), strict=True))
    states: dict[tuple[int, int], int] = {(known.order, fact): content for fact, content in known.facts.items()}
    for index in chained.tolist():
        place, content = (int(orders[index]), int(facts[index])), contents[index]
        now = states.get(place)
        fresh[index] = now is None or now == (_GONE if adds[index] else content)
        if fresh[index]:
            states[place] = content if adds[index] else _GONE
    if not fresh.any():
        return fresh, None
    left = dict(known.facts) if known.order == top else {}
    for index in np.flatnonzero(fresh & (orders == top)).tolist():
        left[int(facts[index])] = contents[index] if adds[index] else _GONE
    return fresh, FeedHeight(top, left)


def _repeated(orders: Int64s, facts: Int64s, adds: Flags, known: FeedHeight) -> Int64s:
    """The halves whose fact has more at their order than one event: another one here, or one that is known. ``orders``
    ascend."""
    same = orders[1:] == orders[:-1]
    rivals = orders == known.order
    rivals[1:] |= same
    rivals[:-1] |= same
    shared = np.flatnonzero(rivals)
    if not len(shared):
        return shared
    ranked = shared[np.lexsort([facts[shared], orders[shared]])]
    order, fact, add = orders[ranked], facts[ranked], adds[ranked]
    new = np.append(True, (order[1:] != order[:-1]) | (fact[1:] != fact[:-1]))
    starts = np.flatnonzero(new)
    sizes = np.diff(np.append(starts, len(ranked)))
    update = (sizes == 2) & ~add[starts] & add[np.minimum(starts + 1, len(ranked) - 1)]
    several = (sizes > 1) & ~update
    if known.facts:
        held = np.fromiter(known.facts, dtype=np.int64, count=len(known.facts))
        several |= (order[starts] == known.order) & np.isin(fact[starts], held)
    repeated: Int64s = ranked[np.repeat(several, sizes)]
    return np.sort(repeated)


def _content(digest: str) -> int:
    """64 bits of a digest, signed and not _GONE."""
    return int.from_bytes(bytes.fromhex(digest[:16]), "little", signed=True) or 1


def _packed(facts: Mapping[int, int]) -> str:
    if not facts:
        return ""
    pairs = np.array(sorted(facts.items()), dtype="<i8")
    return base64.b64encode(zlib.compress(pairs.T.tobytes(), 1)).decode()


def _unpacked(text: str) -> dict[int, int]:
    if not text:
        return {}
    pairs = np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i8").reshape(2, -1)
    return dict(pairs.T.tolist())
