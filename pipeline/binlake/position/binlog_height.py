"""Detects a restart of the binlog: within a topic partition, newer events must not have lower binlog positions.

After RESET MASTER or a failover the server numbers its binlog from the start again, and new changes would lose to old
ones. Records that a connector delivers twice also lie before the newest position, but their times are old as well. A
change before the newest position with a later time than any seen so far is therefore new data at an old position. Times
are whole seconds, so a restart is detected only when the clock has moved on. Snapshot rows, and records without a
binlog position or a time, are not examined.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from binlake.decode.changes import FILE_BITS, POSITION_BITS, ChangeBatch, SourceTable
from hudilake.errors import BadInputError

_FILES = (1 << FILE_BITS) - 1
_POSITIONS = (1 << POSITION_BITS) - 1

#: Table -> topic -> partition -> (newest ordering value, newest source time in ms) of its changes.
Heights = Mapping[SourceTable, Mapping[str, Mapping[int, tuple[int, int]]]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive changes of a table in one topic partition.

    Args:
        source, topic, partition: the table and the topic partition of the changes.
        first_offset: the offset of the first change.
        order, millis: the newest ordering value, and the newest source time in milliseconds.
        newest: (offset, ordering value) of a change that has the newest source time.
        back: (offset, ordering value, highest ordering value before it) of the first new change at an old position;
            None if there is none.
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
    """The binlog's positions began again; ``where`` holds the topic, the partition and the offset of the restart."""


def stretch_of(batch: ChangeBatch, source: SourceTable) -> Stretch | None:
    """The stretch of a change batch; None if no change of it has both a binlog position and a time."""
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
    newest_index = int(millis.argmax())
    return Stretch(
        source=source,
        topic=batch.topic,
        partition=int(rows.column("__partition")[0].as_py()),
        first_offset=int(offsets[0]),
        order=int(orders.max()),
        millis=int(millis[newest_index]),
        newest=(int(offsets[newest_index]), int(orders[newest_index])),
        back=_back(orders, millis, offsets),
    )


def _back(orders: np.ndarray, millis: np.ndarray, offsets: np.ndarray) -> tuple[int, int, int] | None:
    if (orders[1:] >= orders[:-1]).all():
        return None
    highest, latest = np.maximum.accumulate(orders)[:-1], np.maximum.accumulate(millis)[:-1]
    indices = np.flatnonzero((orders[1:] < highest) & (millis[1:] > latest))
    if not len(indices):
        return None
    index = int(indices[0])
    return int(offsets[index + 1]), int(orders[index + 1]), int(highest[index])


def climbed(heights: Heights, stretches: Iterable[Stretch]) -> Heights:
    """The heights after these stretches. Raises BinlogRestartedError where new data lies before old data."""
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
            # the first change may be the first new one; the tables drop records that are delivered again
            raise _restarted(stretch, stretch.first_offset, stretch.newest[1], order)
        parts[stretch.partition] = max(order, stretch.order), max(millis, stretch.millis)
    return {**heights, **changed}


def place_of(order: int) -> str:
    """An ordering value in readable form: the number of the binlog file, and the position in it."""
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
    """The heights as JSON values for the ledger."""
    return [
        [source.database, source.table, topic, partition, *topics[topic][partition]]
        for source, topics in heights.items()
        for topic in topics
        for partition in topics[topic]
    ]


def heights_from_json(data: Iterable[tuple[str, str, str, int, int, int]]) -> Heights:
    """The reverse of ``heights_to_json``."""
    heights: dict[SourceTable, dict[str, dict[int, tuple[int, int]]]] = {}
    for database, table, topic, partition, order, millis in data:
        heights.setdefault(SourceTable(database, table), {}).setdefault(topic, {})[partition] = (order, millis)
    return heights
