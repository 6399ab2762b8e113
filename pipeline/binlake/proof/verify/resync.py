"""A whole table brought anew by reading the source: all its rows, then deletes for what the source does not have.

All rows get the ordering value of one snapshot. Whatever the lake holds with a lower one after that is a row that the
source does not have: it is deleted. Events that arrive meanwhile or later, from before the snapshot or from behind it,
find their place by their own ordering values, so the stream may run. A resync that died is simply done again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from binlake.proof.verify.canonical import is_in
from binlake.proof.verify.repair import Repairer, refuse_unrepairable, whole_rows
from binlake.proof.verify.rows import KnownRows
from binlake.proof.verify.settle import Look
from binlake.proof.verify.source_rows import SourceRows
from binlake.proof.verify.table_check import TableCheck
from binlake.source.database.snapshot import SourcePosition, snapshot
from hudilake.format.digest.rows import Ulongs
from hudilake.table.table import HudiTable

#: Rows of one commit.
_ROWS_A_COMMIT = 500_000


@dataclass(frozen=True, slots=True)
class ResyncResult:
    """The result: the position the rows were read at, its ordering value, the numbers of rows written and deleted."""

    position: str
    order: int
    rows: int
    deletes: int


def resync_from_source(check: TableCheck, repairer: Repairer, rows_a_commit: int = _ROWS_A_COMMIT) -> ResyncResult:
    """Write all rows of a source table into its lake table, and delete all others.

    Args:
        check: of the table.
        repairer: of the lake.
        rows_a_commit: about the most rows of one commit.

    Raises UnsupportedError for a table without a key, or ordered by Kafka's offsets, TransientError where the source's
    table may have another name at the position; as ``Repairer.write``.
    """
    nothing = KnownRows.joined([], check.plan)
    check.refuse_other_server()
    written, check.newest = 0, _newest_of_some(check)
    with snapshot(check.connection, replica=check.options.replica) as position:
        order = position.order(check.settings.source)
        refuse_unrepairable(check)
        check.refuse_unsure(order)
        source = SourceRows(check.connection, check.described, whole_rows(check), check.pace)
        for rows in _gathered(source.all(), rows_a_commit, source):
            written += repairer.write(check, position, rows, nothing)
    return ResyncResult(str(position), order, written, _delete_others(check, repairer, position, order))


def _newest_of_some(check: TableCheck) -> int:
    """The newest ordering value of the first rows of the lake, which shows what orders them; -1 without rows."""
    if not HudiTable.exists(check.table.storage):
        return -1
    first = next(check.lake().all(), None)
    return -1 if first is None or first.orders is None else int(first.orders.max(initial=-1))


def _gathered(parts: Iterator[KnownRows], most: int, source: SourceRows) -> Iterator[KnownRows]:
    """The parts joined to about ``most`` rows each."""
    held: list[KnownRows] = []
    for rows in parts:
        held.append(rows)
        if sum(map(len, held)) >= most:
            yield KnownRows.joined(held, source.plan)
            held = []
    if held:
        yield KnownRows.joined(held, source.plan)


def _delete_others(check: TableCheck, repairer: Repairer, position: SourcePosition, order: int) -> int:
    """Delete the stored rows that are older than the snapshot: every row of the source is as old as it, or newer.

    A delete finds the row of its key that the table's writer finds. So rows that are astray are taken out of their file
    groups, and of a key that has a new row beside the old one none is deleted: ``verify`` names such keys.
    """
    deleted, nothing = 0, KnownRows.joined([], whole_rows(check))
    newer: list[KnownRows] = []
    for rows in check.lake().all():
        assert rows.orders is not None
        newer.append(rows.where(rows.orders > order))
        old = rows.where(rows.orders < order)
        assert old.astray is not None
        strays = old.where(old.astray)
        if len(strays):
            deleted += repairer.tidy(check, Look(position, order, nothing, strays, True))
        sure = old.where(~is_in(old.keys, np.union1d(strays.keys, _renewed(check, old, order))))
        if len(sure):
            deleted += repairer.write(check, position, nothing, sure)
    _replace_impossible(check, repairer, KnownRows.joined(newer, check.plan))
    return deleted


def _replace_impossible(check: TableCheck, repairer: Repairer, newer: KnownRows) -> None:
    """Repair those of the newer rows that are ahead of the source: what was written has lost to them."""
    assert newer.orders is not None
    if not len(newer) or not check.learn_impossible(newer.orders):
        return
    ahead = newer.where(np.isin(newer.orders, check.impossible))
    check.doubtful |= check.groups.of(ahead.groups)
    repairer(check, check.look(ahead.rows.select(check.key)))


def _renewed(check: TableCheck, old: KnownRows, order: int) -> Ulongs:
    """The keys of old rows that have a new row too, where an index says in which file group."""
    lake = check.lake()
    if not (len(old) and lake.reader.table.config.kind.looks_up):
        return old.keys[:0]
    lake_parts = lake.of_keys(old.rows.select(check.key))
    return np.unique(
        np.concatenate([old.keys[:0], *(p.keys[p.orders >= order] for p in lake_parts if p.orders is not None)])
    )
