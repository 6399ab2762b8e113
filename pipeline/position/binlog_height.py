"""Whether the binlog's position goes on, as a topic partition shows it: later events must not lie before earlier ones.

After RESET MASTER or a failover the server counts its binlog from the start again, and new changes would lose to old
ones. What a connector delivers twice lies before the newest place too, but is no news: its times are old as well. So a
change before the newest place, with a later time than any seen, is new data at an old place (times are of whole
seconds: a restart shows when the clock has moved on). Snapshot rows, and records without a place or a time, tell
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.decode.changes import FILE_BITS, POSITION_BITS, ChangeBatch, SourceTable
from pipeline.errors import BadInputError

_FILES = (1 << FILE_BITS) - 1
_POSITIONS = (1 << POSITION_BITS) - 1

#: Of a table, by topic and partition: the newest ordering value and the newest source time (ms) among its changes.
Heights = Mapping[SourceTable, Mapping[str, Mapping[int, tuple[int, int]]]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive changes of a table in one topic partition.

    Args:
        source, topic, partition: whose they are.
        first_offset: of the first of them.
        order, millis: the newest ordering value and source time.
        newest: (offset, ordering value) of a change of that time.
        back: (offset, ordering value, ordering value before) where new data lies before old; None if nowhere.
    """

    source: SourceTable
    topic: str
    partition: int
    first_offset: int
    order: int
    millis: int
    newest: tuple[int, int]
    back: tuple[int, int, int] | None


class BinlogRestartedError(BadInputError):
    """The binlog's positions began again; ``where`` holds topic, partition and the offset where they did."""


def stretch_of(batch: ChangeBatch, source: SourceTable) -> Stretch | None:
    """What a change batch shows; None if it has no change with a place in the binlog and a time."""
    rows = batch.rows
    orders, millis = rows.column("__order").to_numpy(), rows.column("__source_ms").to_numpy()
    offsets = rows.column("__offset").to_numpy()
    telling = ((orders >> POSITION_BITS) & _FILES > 0) & (millis > 0)
    if not telling.all():
        orders, millis, offsets = orders[telling], millis[telling], offsets[telling]
    if not len(orders):
        return None
    if (offsets[1:] < offsets[:-1]).any():
        sequence = np.argsort(offsets, kind="stable")
        orders, millis, offsets = orders[sequence], millis[sequence], offsets[sequence]
    at = int(millis.argmax())
    return Stretch(
        source=source,
        topic=batch.topic,
        partition=int(rows.column("__partition")[0].as_py()),
        first_offset=int(offsets[0]),
        order=int(orders.max()),
        millis=int(millis[at]),
        newest=(int(offsets[at]), int(orders[at])),
        back=_back(orders, millis, offsets),
    )


def _back(orders: np.ndarray, millis: np.ndarray, offsets: np.ndarray) -> tuple[int, int, int] | None:
    if (orders[1:] >= orders[:-1]).all():
        return None
    highest, latest = np.maximum.accumulate(orders)[:-1], np.maximum.accumulate(millis)[:-1]
    found = np.flatnonzero((orders[1:] < highest) & (millis[1:] > latest))
    if not len(found):
        return None
    at = int(found[0])
    return int(offsets[at + 1]), int(orders[at + 1]), int(highest[at])


def climbed(heights: Heights, stretches: Iterable[Stretch]) -> Heights:
    """The heights after these stretches. Raises BinlogRestartedError where new data lies before old."""
    stretches = list(stretches)
    changed = {
        source: {topic: dict(parts) for topic, parts in heights.get(source, {}).items()}
        for source in {stretch.source for stretch in stretches}
    }
    for stretch in sorted(stretches, key=lambda s: (s.topic, s.partition, s.first_offset)):
        parts = changed[stretch.source].setdefault(stretch.topic, {})
        order, millis = parts.get(stretch.partition, (0, 0))
        if stretch.back is not None:
            raise _restarted(stretch, *stretch.back)
        if stretch.newest[1] < order and stretch.millis > millis:
            # its first change may be the first of the new ones; what is delivered again is dropped by the tables
            raise _restarted(stretch, stretch.first_offset, stretch.newest[1], order)
        parts[stretch.partition] = max(order, stretch.order), max(millis, stretch.millis)
    return {**heights, **changed}


def place_of(order: int) -> str:
    """An ordering value as people know it: the number of the binlog file, and the position in it."""
    return f"file {(order >> POSITION_BITS) & _FILES}, position {order & _POSITIONS}"


def _restarted(stretch: Stretch, offset: int, order: int, before: int) -> BinlogRestartedError:
    return BinlogRestartedError(
        f"the source's binlog began again: {stretch.source} goes on at {place_of(order)} after {place_of(before)}, "
        "and its later changes would lose to older ones",
        do_next="check whether the server failed over or its binlog was reset; then raise "
        "source.epoch by one (or give the "
        "new server an epoch in source.epoch_of_server) and start again: all before this offset is applied",
        topic=stretch.topic,
        partition=stretch.partition,
        offset=offset,
    )


def heights_to_json(heights: Heights) -> list[list[object]]:
    """For the ledger."""
    return [
        [source.database, source.table, topic, partition, order, millis]
        for source, topics in heights.items()
        for topic, parts in topics.items()
        for partition, (order, millis) in parts.items()
    ]


def heights_from_json(data: Iterable[tuple[str, str, str, int, int, int]]) -> Heights:
    """What ``heights_to_json`` gave."""
    found: dict[SourceTable, dict[str, dict[int, tuple[int, int]]]] = {}
    for database, table, topic, partition, order, millis in data:
        found.setdefault(SourceTable(database, table), {}).setdefault(topic, {})[partition] = (order, millis)
    return found
