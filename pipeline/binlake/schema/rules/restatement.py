"""Applies DDL to existing rows: the source writes no row events for it.

Each statement is a function of the rows before it. It is applied to stored rows once, by a commit of its own. Rows from
before it that come later are restated while they are routed. A row keeps its ordering value, so a later event still
wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch, Column
from binlake.schema.rules.partitions.members import members
from binlake.schema.rules.row_places import RowPlaces
from binlake.schema.rules.stepping import as_type, place_of, sent_otherwise, stepped
from binlake.schema.rules.steps import Compute, Remove, Step

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Restatement:
    """The effect of a statement on the rows before it.

    ``order``, ``seconds``: as in ``RowPlaces.before``. ``deletes``: whether the rows are deleted because the table was
    dropped.
    """

    order: int
    seconds: int | None
    steps: tuple[Step, ...]
    deletes: bool = False

    def before(self, rows: RowPlaces) -> tuple[_Mask, _Mask]:
        """Two masks of n: rows from before the statement, and rows of which it cannot be said."""
        return rows.before(self.order, self.seconds)


def deleted(rows: RowPlaces, restatements: Sequence[Restatement]) -> _Mask:
    """A mask of the rows that were deleted with a dropped table. Undecidable rows stay."""
    gone = np.zeros(len(rows.orders), dtype=bool)
    for one in restatements:
        if one.deletes:
            gone |= one.before(rows)[0]
    return gone


def removed(rows: pa.Table, places: RowPlaces, restatements: Sequence[Restatement]) -> _Mask:
    """A mask of the rows that were in a partition when a statement removed its rows. Undecidable rows stay.

    ``rows``: value columns as they were before all these statements.
    """
    gone = np.zeros(len(rows), dtype=bool)
    if not any(isinstance(step, Remove) for one in restatements for step in one.steps):
        return gone
    for one in restatements:
        sure, unsure = one.before(places)
        removals = [step.removal for step in one.steps if isinstance(step, Remove)]
        if removals and (left := sure & ~gone).any():
            spots = np.flatnonzero(left)
            part = rows.take(pa.array(spots))
            for removal in removals:
                gone[spots[members(part, removal)]] = True
        if one.steps and (sure.any() or unsure.any()):
            rows = stepped(rows, one.steps, sure, unsure)
    return gone


def restate_batch(
    batch: ChangeBatch, places: RowPlaces, restatements: Sequence[Restatement], texts: Iterable[str] = ()
) -> tuple[ChangeBatch, _Mask]:
    """The batch with all statements applied to its rows from before them, and a mask of the rows that a statement about
    their partition has removed. These rows stay in the batch: what becomes of them depends on the lake table.

    Args:
        batch: n rows as decoded.
        places: of its rows.
        restatements: in order.
        texts: integer columns that the lake stores as text.
    """
    if not restatements and not texts:
        return batch, np.zeros(len(batch.rows), dtype=bool)
    values = batch.rows.drop_columns(list(META_NAMES))
    gone = removed(values, places, restatements)
    batch = _without_before(batch, places, restatements)
    changed = _as_texts(restated(values, places, restatements), texts)
    if changed is values:
        return batch, gone
    before = batch.before
    if before is not None:
        before = _as_texts(restated(before, places.take(batch.before_at), restatements), texts)
        before = _like(before, changed.schema)
    known = {c.name: c for c in batch.schema.columns}
    columns = tuple(_column(known.get(f.name), f) for f in changed.schema)
    rows = changed
    for name in META_NAMES:
        rows = rows.append_column(batch.rows.schema.field(name), batch.rows.column(name))
    return replace(batch, schema=replace(batch.schema, columns=columns), rows=rows, before=before), gone


def differing(rows: pa.Table, places: RowPlaces, restatements: Sequence[Restatement]) -> str | None:
    """Where the source sent another value for a computed column than binlake computes; None if it nowhere did.

    Rows from before the statement hold computed values, rows after it come with the server's: these show whether the
    expression was translated rightly.

    Args:
        rows: n rows of a change batch, as decoded.
        places: of the rows.
        restatements: in order.
    """
    for number, one in enumerate(restatements):
        steps = [step for step in one.steps if isinstance(step, Compute)]
        if not steps:
            continue
        until = next((later.order for later in restatements[number + 1 :]), np.iinfo(np.int64).max)
        sent = (places.orders >= one.order) & (places.orders < until)
        after = rows.filter(pa.array(sent)).drop_columns(list(META_NAMES)) if sent.any() else None
        for step in steps if after is not None else ():
            why = sent_otherwise(after, step)
            if why is not None:
                return why
    return None


def _without_before(batch: ChangeBatch, places: RowPlaces, restatements: Sequence[Restatement]) -> ChangeBatch:
    """The batch without the removed rows among its before images: a table without a key would look for them."""
    if batch.before is None or batch.schema.key:
        return batch
    left = ~removed(batch.before, places.take(batch.before_at), restatements)
    if left.all():
        return batch
    return replace(batch, before=batch.before.filter(pa.array(left)), before_at=batch.before_at[left])


def _column(known: Column | None, field: pa.Field) -> Column:
    return Column(field.name, "", field.type) if known is None else replace(known, lake_type=field.type)


def _like(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns of a schema; missing columns are null. Rows that no statement restates may
    still have a former type that Arrow does not cast."""
    names = set(rows.column_names)
    arrays = [as_type(rows.column(f.name), f.type) if f.name in names else pa.nulls(len(rows), f.type) for f in schema]
    return pa.table(arrays, schema=schema)


def _as_texts(rows: pa.Table, texts: Iterable[str]) -> pa.Table:
    for name in texts:
        at = place_of(rows, name)
        if at is not None and pa.types.is_integer(rows.schema.field(at).type):
            field = pa.field(rows.column_names[at], pa.string())
            rows = rows.set_column(at, field, rows.column(at).cast(pa.string()))
    return rows


def restated(rows: pa.Table, places: RowPlaces, restatements: Sequence[Restatement]) -> pa.Table:
    """Value columns (no others) with the statements applied; the same object if no row is before any statement."""
    if not len(rows) or not restatements or int(places.orders.min()) >= max(r.order for r in restatements):
        return rows
    for one in restatements:
        sure, unsure = one.before(places)
        if sure.any() or unsure.any():
            rows = stepped(rows, one.steps, sure, unsure)
    return rows
