"""How far a wide table is behind its table of cells."""

from __future__ import annotations

from dataclasses import dataclass

from binlake.hbase.derive.pairs import DerivedPair
from binlake.hbase.derive.touched import newest_moment
from binlake.position.record_reader import RecordReader
from hudilake.clock import parse_instant
from hudilake.storage import Storage
from hudilake.table.table import HudiTable


@dataclass(frozen=True, slots=True)
class WideStatus:
    """The position of a wide table.

    Args:
        cells: the table of cells.
        until: the completion time up to which its commits are derived; None if no derivation has ended.
        lag_ms: from there to the newest commit of the table of cells, in milliseconds; None if one of both is unknown.
        commits: the commits of the active timeline that are not derived.
        swept_ms: up to when expired cells are taken out, in ms since the epoch; 0 if they never were.
        state: ``ok``, ``behind``, ``under way`` (several portions), or ``declared anew``: every row will be derived.
    """

    cells: str
    until: str | None
    lag_ms: int | None
    commits: int
    swept_ms: int
    state: str


def wide_status(root: Storage, pair: DerivedPair) -> WideStatus | None:
    """The position of a wide table of a lake; None if one of the two tables does not exist. Changes nothing.

    Raises CorruptDataError, StorageError.
    """
    places = [root.sub(rules.path) for rules in (pair.cells_rules, pair.wide_rules)]
    if not all(HudiTable.exists(place) for place in places):
        return None
    cells, wide = map(HudiTable.open, places)
    note, newest = RecordReader.newest_of(wide).derived, newest_moment(cells)
    until = note.until.completed if note is not None and note.until is not None else None
    later = [w for w in cells.timeline.completed() if until is None or (w.completion_time or "") > until]
    waiting = [w for w in later if not (cells.timeline.is_compaction(w) or cells.timeline.is_clustering(w))]
    lag_ms = None
    if until is not None and newest is not None:
        lag_ms = max(0, parse_instant(newest.completed) - parse_instant(until))
    state = "behind" if waiting else "ok"
    if note is not None and note.under_way:
        state = "under way"
    elif note is not None and until is not None and note.fingerprint != pair.fingerprint:
        state = "declared anew"
    swept_ms = note.swept_ms if note is not None else 0
    return WideStatus(str(pair.cells), until, lag_ms, len(waiting), swept_ms, state)
