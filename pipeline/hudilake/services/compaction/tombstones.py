"""Durable tombstones: the deletes that a compaction restates in the new slice.

Hudi loses a delete when it is compacted, and an older event that comes late restores the row. So the new slice begins
with a log file of the compaction's own instant that holds delete blocks only: every delete with an ordering value that
is younger than the retention and that no newer row has overruled. All readers treat them as deletes of absent rows
(measured: Hudi Spark 1.2.0 and hudi-rs 0.5.0, with and without the
metadata table; the log file is of the new slice, for its instant completes after it was requested).

The age of a delete is in the header of its block: the header has the instant of the delta commit that deleted, not the
compaction's, so that the next compaction restates the block unchanged or drops it. Commits close together share a
block, under the instant of the youngest of them. A block spans at most 1/32 of the retention, in windows fixed in time,
so that a delete does not become younger with each restatement.

Hudi's own compactor merges these log files like any others and does not restate the deletes: the retention ends with a
compaction by Hudi. A delete without an ordering value, which Hudi Spark writes, never survives a compaction. A row with
exactly the ordering value of a delete stays deleted if its commit began before the compaction and completed after its
schedule: its log file is merged before the restated delete. So a table merged by its writer, where every row and delete
has the same ordering value, restates no deletes: its writer keeps the orders of deleted rows elsewhere. So does the
writer of a table whose index is looked up: a file group with a log file would take no new rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hudilake.clock import parse_instant
from hudilake.format.digest.content_sum import NOTHING, ContentSum
from hudilake.format.files.delete_block import encode_deletes
from hudilake.format.files.log_file import encode_delete_block
from hudilake.format.files.log_rows import Flags, Longs
from hudilake.write.merge import SortedLog

_MS_PER_HOUR = 3_600_000
_BLOCKS = 32


@dataclass(frozen=True)
class SliceTombstones:
    """The tombstones of one slice: the bytes of their log file, their number, and what the file shall hold."""

    data: bytes
    count: int
    contents: ContentSum


def restate(
    log: SortedLog,
    retention_hours: float,
    instant: str,
    schema_json: str,
    partition_path: str,
    among: Flags | None = None,
) -> SliceTombstones | None:
    """The deletes to restate; None if there are none.

    Args:
        log: after its merge with the base file.
        retention_hours: the largest age of a delete.
        instant: the compaction's; ages are counted up to it.
        schema_json: the table's Avro schema with the meta fields.
        partition_path: of the file group.
        among: the winners in question, bool array over all; None for all of them.
    """
    retention_ms = int(retention_hours * _MS_PER_HOUR)
    winners = log.winners
    asked = np.True_ if among is None else among
    live = np.flatnonzero((winners.row < 0) & ~winners.unconditional & ~log.lost & asked)
    if retention_ms <= 0 or not len(live):
        return None
    now, blocks, contents = parse_instant(instant), list[bytes](), NOTHING
    for time, places in _by_window(log, live, max(1, retention_ms // _BLOCKS)):
        if now - parse_instant(time) < retention_ms:
            keys = winners.keys.take(pa.array(places))
            ordering = pa.array(winners.ordering[places])
            content = encode_deletes(keys, ordering, partition_path)
            blocks.append(encode_delete_block(time, schema_json, content))
            contents += ContentSum.of_deletes(keys, ordering)
    return SliceTombstones(b"".join(blocks), contents.rows, contents) if blocks else None


def _by_window(log: SortedLog, places: Longs, width_ms: int) -> list[tuple[str, Longs]]:
    """(instant of the youngest commit, its window's winners in key order), oldest window first."""
    block = log.winners.block[places]
    windows: dict[int, list[int]] = {}
    for number in np.unique(block):
        windows.setdefault(parse_instant(log.instants[number]) // width_ms, []).append(int(number))
    return [
        (max(log.instants[number] for number in numbers), places[np.isin(block, numbers)])
        for _, numbers in sorted(windows.items())
    ]
