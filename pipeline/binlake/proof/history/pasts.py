"""Reads all changes of the rows of which some are to be undone, where more than these decide.

That is so in a table with earlier reverts, and if several transactions are named: other changes may lie between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from binlake.decode.changes import SourceTable
from binlake.decode.formats.trace import SNAPSHOT_ROW
from binlake.proof.history.changes import ChangeReader
from binlake.proof.history.records import Records, reach
from binlake.proof.history.row_change import Identity, RowChange, in_order
from binlake.proof.history.selection import ChangeSelection
from binlake.proof.history.standing import Past
from binlake.proof.history.transaction import OpenTable, RowChanges
from binlake.source.offsets import describe
from hudilake.errors import BadInputError

_Row = tuple[SourceTable, str, str]


def with_pasts(
    rows: Sequence[RowChanges],
    records: Records,
    reader: ChangeReader,
    tables: Mapping[SourceTable, OpenTable],
    selection: ChangeSelection,
    most: int,
) -> list[RowChanges]:
    """The selected changes of rows, with the pasts of the rows that need one.

    Raises BadInputError if that takes more than ``most`` records; the errors of ``reader`` and ``records``.
    """
    wanted = {_place(row) for row in rows if tables[row.source].log.reverts or len(selection.transactions) > 1}
    if not wanted:
        return list(rows)
    logs = [tables[source].log for source in {source for source, _, _ in wanted}]
    reached = reach(records, (r for log in logs for commit in log.commits.values() for r in commit.ranges), most)
    if reached.left:
        raise BadInputError(
            f"{reached.left.records} records may hold other changes of the rows and were not read",
            do_next="raise --kafka-records",
            offsets=describe(reached.left),
        )
    keys = _keys(wanted)
    changes = (c for chunk in records.read(reached.there) for c in reader.read(chunk, keys=keys))
    pasts = _pasts(changes, wanted, whole=not reached.gone)
    return [replace(row, past=pasts.get(_place(row))) for row in rows]


def _place(row: RowChanges | RowChange) -> _Row:
    return row.source, row.path, row.key


def _keys(wanted: Iterable[_Row]) -> dict[SourceTable, pa.Array]:
    keys: dict[SourceTable, list[str]] = {}
    for source, _, key in wanted:
        keys.setdefault(source, []).append(key)
    return {source: pa.array(mine, pa.string()) for source, mine in keys.items()}


def _pasts(found: Iterable[object], wanted: set[_Row], *, whole: bool) -> dict[_Row, Past]:
    """The pasts of rows, from all changes in the order of their delivery.

    A change that came again counts as it came first: the reverts since then have undone it.
    """
    changes: dict[_Row, dict[Identity, RowChange]] = {}
    reread: dict[_Row, RowChange] = {}
    for change in found:
        if not isinstance(change, RowChange) or _place(change) not in wanted:
            continue
        place = _place(change)
        if change.trace.op != SNAPSHOT_ROW:
            changes.setdefault(place, {}).setdefault(change.identity, change)
        elif place not in reread or reread[place].order < change.order:
            reread[place] = change
    return {place: Past(tuple(in_order(mine.values())), whole, reread.get(place)) for place, mine in changes.items()}
