"""What the statements about one source table make of its rows: the source writes no row events for DDL.

Each statement is a function of the rows before it. It is applied to stored rows once, by a commit of its own. Rows from
before it that come later are restated while they are prepared. A row keeps its ordering value, so a later event still
wins.

Some rows are refused, some wait, some are gone. The place of a row among the statements alone decides that, so
all rows are judged at once, by masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch, Column
from binlake.schema.rules.definitions import OTHER_COLUMNS, Definition, misnamed
from binlake.schema.rules.partitions.members import members
from binlake.schema.rules.row_places import RowPlaces
from binlake.schema.rules.stepping import as_type, place_of, sent_otherwise, stepped
from binlake.schema.rules.steps import Compute, Remove, Step

_Mask = npt.NDArray[np.bool_]
#: Why rows after a refused statement are in quarantine.
DDL_REFUSED = "ddl_refused"
#: Why rows are in quarantine that come after their table has lost its key: what they change cannot be found any more.
LATE_ROW = "late_row"
_LATE = "the table has lost its key since, so the row that it changes cannot be found"


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
        column_index = place_of(rows, name)
        if column_index is not None and pa.types.is_integer(rows.schema.field(column_index).type):
            field = pa.field(rows.column_names[column_index], pa.string())
            rows = rows.set_column(column_index, field, rows.column(column_index).cast(pa.string()))
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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Rows after a refused statement are refused, up to the statement that undoes it, if there is one.

    ``since``, ``until``: ordering values of the statements. ``seconds``, ``until_seconds``: their times, as in
    ``RowPlaces.before``.
    """

    since: int
    until: int | None
    why: str
    seconds: int | None = None
    until_seconds: int | None = None

    def of(self, places: RowPlaces) -> _Mask:
        """A mask of the rows that are refused."""
        earlier, unsure = places.before(self.since, self.seconds)
        mask = ~earlier & ~unsure
        if self.until is not None:
            mask &= places.before(self.until, self.until_seconds)[0]
        return mask


@dataclass(frozen=True, slots=True)
class RowFates:
    """What the statements make of n rows: disjoint masks, bool of n.

    Args:
        moments: where the n rows stand among the statements.
        left: the rows that go on.
        refused: (mask, reason, detail) of the rows whose records go to the quarantine.
        dropped: rows that were removed with a dropped table.
        waiting: rows that wait until all rows before a statement are applied.
    """

    moments: RowPlaces
    left: _Mask
    refused: tuple[tuple[_Mask, str, str], ...]
    dropped: _Mask
    waiting: _Mask


@dataclass(frozen=True, slots=True)
class RestatedRows:
    """Rows as they are after the statements.

    ``removed``: bool of n, rows that a statement about their partition has removed; they stay in the batch. ``doubt``:
    where the source sent another value for a computed column than binlake computes; None if it nowhere did.
    """

    batch: ChangeBatch
    removed: _Mask
    doubt: str | None


@dataclass(frozen=True, slots=True)
class SourceDdl:
    """The DDL for the rows of one source table.

    ``texts``: its integer columns that the lake stores as text. ``key``: the key columns (lake names) that a
    statement gave the lake table; None if none did. ``held``: ordering value and time of a statement; rows after it
    wait until all rows before it are applied. ``keyless_since``: those of the statement that took the key from the lake
    table, which is without one now. ``definitions``: the columns that its statements give the source table, in order.
    """

    restatements: tuple[Restatement, ...] = ()
    texts: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    key: tuple[str, ...] | None = None
    held: tuple[int, int | None] | None = None
    keyless_since: tuple[int, int | None] | None = None
    definitions: tuple[Definition, ...] = ()

    def fates(self, rows: pa.Table, fresh: _Mask) -> RowFates:
        """What the statements make of n rows with META_FIELDS.

        A row has the first fate that applies: refused, dropped (its columns and its key are another table's), waiting,
        late. A row that is ``fresh`` no more does not wait: the table has applied it. Rows from before the statement
        that took the table's key are late: all of them were applied when it was carried out, so they came again.
        """
        places = RowPlaces.incoming(rows)
        left, waiting = np.ones(len(fresh), dtype=bool), np.zeros(len(fresh), dtype=bool)
        refused: list[tuple[_Mask, str, str]] = []
        for refusal in self.refusals:
            refused.append((refusal.of(places) & left, DDL_REFUSED, refusal.why))
            left = left & ~refused[-1][0]
        for mask, why in misnamed(rows, places, self.definitions):
            refused.append((mask & left, OTHER_COLUMNS, why))
            left = left & ~mask
        dropped = deleted(places, self.restatements) & left
        left = left & ~dropped
        if self.held is not None:
            earlier, unsure = places.before(*self.held)
            waiting = left & ~earlier & ~unsure & fresh
            left = left & (earlier | unsure)
        if self.keyless_since is not None:
            refused.append((places.before(*self.keyless_since)[0] & left, LATE_ROW, _LATE))
            left = left & ~refused[-1][0]
        return RowFates(places, left, tuple(refused), dropped, waiting)

    def restated(self, batch: ChangeBatch, places: RowPlaces) -> RestatedRows:
        """The batch with the statements applied to its rows from before them.

        Args:
            batch: n rows as decoded.
            places: of the rows.

        Raises UnsupportedError where a value cannot be computed.
        """
        doubt = differing(batch.rows, places, self.restatements)
        return RestatedRows(*restate_batch(batch, places, self.restatements, self.texts), doubt)


NO_DDL = SourceDdl()
