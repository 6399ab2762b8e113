"""Pieces of the input -> parcels: rows of the lake table by file group. Runs in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.types.exact_values import UnfitValueError, exactly
from binlake.load.backfill.pieces import Piece, Place, opened
from binlake.load.backfill.row_plan import ReadColumn, RowPlan, condition
from binlake.rows.upsert.computed import compute
from binlake.rows.upsert.parcel import Parcel
from binlake.rows.upsert.route import KEY, cut
from binlake.rows.upsert.target import partition_values
from hudilake.errors import BadInputError
from hudilake.format.definition.keys import record_keys, shared_keys
from hudilake.storage import Storage
from hudilake.wording import counted

#: The place of a row in the whole input, int64: of two rows with one key the later one counts.
AT = "__at"
#: The bits of AT with the row's index in its piece.
_ROW_BITS = (1 << 32) - 1


@dataclass
class RowCounts:
    """What became of rows of the input.

    Args:
        read: all of them.
        filtered: left out by ``where``.
        without_key: with null in the key.
        repeated: overruled by a later row with the same key.
        missing: the table does not have the key.
        older: the table has newer values.
        changed: rows of the table that were changed.
        inserted: new rows.
    """

    read: int = 0
    filtered: int = 0
    without_key: int = 0
    repeated: int = 0
    missing: int = 0
    older: int = 0
    changed: int = 0
    inserted: int = 0

    def add(self, other: RowCounts) -> None:
        """Add the counts of other rows."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def read_parcels(place: Place, plan: RowPlan, numbered: Iterator[tuple[int, Piece]]) -> Iterator[Parcel | RowCounts]:
    """The parcels of pieces, and the counts of each.

    Args:
        place: of the files.
        plan: how rows become rows of the lake.
        numbered: the pieces with their numbers in the input.

    Raises BadInputError for rows that cannot be read or converted, StorageError.
    """
    storage = place.storage()
    for number, piece in numbered:
        rows, counts = _rows(storage, plan, number, piece)
        yield counts
        if rows.num_rows:
            every = np.arange(rows.num_rows, dtype=np.int64)
            yield from cut(rows, plan.target.config.layout.paths(rows), every, plan.target)


def _rows(storage: Storage, plan: RowPlan, number: int, piece: Piece) -> tuple[pa.Table, RowCounts]:
    """KEY, the lake columns and AT of the rows that count."""
    where = f"{storage.uri}/{piece.path}"
    try:
        with opened(storage, piece.path) as file:
            given = file.read_row_group(piece.row_group, columns=list(plan.names))
    except (pa.ArrowException, OSError) as error:
        raise BadInputError(
            f"the input file cannot be read: {error}", do_next="restore the file, then run the same command", path=where
        ) from error
    counts = RowCounts(read=given.num_rows)
    positions = np.arange(given.num_rows, dtype=np.int64) + (number << 32)
    given = given.append_column(AT, pa.array(positions))
    if plan.where is not None:
        given = _kept(given, plan, where)
        counts.filtered = counts.read - given.num_rows
    rows = pa.table({c.lake: _converted(given, c, plan.key, where) for c in plan.lake_columns} | {AT: given.column(AT)})
    whole = np.ones(rows.num_rows, dtype=np.bool_)
    for column in plan.key:
        whole &= rows.column(column.lake).is_valid().to_numpy()
    counts.without_key = int((~whole).sum())
    rows = rows.filter(pa.array(whole)) if counts.without_key else rows
    rule = plan.target.partition
    if rule is not None and rule.transform != "identity":
        rows = rows.append_column(pa.field(rule.field, pa.string()), partition_values(rule, rows))
    keys = record_keys(rows, plan.target.key)
    if len(shared := np.flatnonzero(shared_keys(rows, plan.target.key))):
        raise BadInputError(
            f"other values have the same record key ({counted(len(shared), 'row')})",
            do_next="leave the rows out (--where), then run it with --restart, for the portions before this one are in "
            "the table",
            path=where,
            row=int(rows.column(AT)[shared[0]].as_py() & _ROW_BITS) + 1,
            key=keys[shared[0]].as_py(),
        )
    return rows.add_column(0, pa.field(KEY, pa.string()), keys), counts


def _kept(given: pa.Table, plan: RowPlan, where: str) -> pa.Table:
    assert plan.where is not None
    evaluation = compute(given.select(list(plan.needed)), [condition(plan.where)], plan.target.source)
    if evaluation.bad:
        raise BadInputError(
            f"--where cannot be evaluated for {counted(len(evaluation.bad), 'row')}: {evaluation.why}",
            do_next="correct the condition",
            path=where,
        )
    return given.filter(pc.fill_null(evaluation.columns.column(0), False))


def _converted(given: pa.Table, column: ReadColumn, key: Sequence[ReadColumn], where: str) -> pa.ChunkedArray:
    values = given.column(column.name)
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    try:
        return exactly(values, column.kind)
    except UnfitValueError as error:
        row = int(given.column(AT)[error.row].as_py() & _ROW_BITS) + 1
        raise BadInputError(
            f"column {column.name!r} of type {values.type} has the value {error.shown}, which the lake's type "
            f"{column.kind} cannot hold exactly",
            do_next='correct the value, or convert the column in a query (--from "SELECT ..."); then run it with '
            "--restart, for the portions before this one are in the table",
            path=where,
            row=row,
            key=", ".join(f"{c.name}={given.column(c.name)[error.row]}" for c in key),
        ) from error
