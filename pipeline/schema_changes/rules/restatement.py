"""Applies DDL to existing rows: the source writes no row events for it.

Each statement is a function of the rows before it. It is applied to stored rows once, by a commit of its own. Rows from
before it that come later are restated while they are routed. A row keeps its ordering value, so a later event still
wins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.changes import META_NAMES, ChangeBatch, Column
from pipeline.decode.ddl.columns import ColumnDefinition, Default
from pipeline.decode.ddl.constants import constant_of
from pipeline.decode.types.mysql_types import parse_type
from pipeline.errors import UnsupportedError
from pipeline.hudi.definition.column_names import lake_name
from pipeline.schema_changes.rules.row_places import RowPlaces

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Fill:
    """A column was added: rows before it hold its default."""

    column: ColumnDefinition


@dataclass(frozen=True, slots=True)
class Copy:
    """A column was renamed: rows before it hold its values under the new name. ``move``: the old name is removed."""

    old: str
    new: str
    column: ColumnDefinition | None = None
    move: bool = False


Step = Fill | Copy


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


@lru_cache(maxsize=512)
def _constant(column: ColumnDefinition) -> pa.Scalar:
    return constant_of(column)


def restate_batch(batch: ChangeBatch, restatements: Sequence[Restatement], texts: Iterable[str] = ()) -> ChangeBatch:
    """The batch with all statements applied to its rows from before them.

    Args:
        batch: as decoded.
        restatements: in order.
        texts: integer columns that the lake stores as text.
    """
    if not restatements and not texts:
        return batch
    places = RowPlaces.incoming(batch.rows)
    values = batch.rows.drop_columns(list(META_NAMES))
    changed = _as_texts(restated(values, places, restatements), texts)
    if changed is values:
        return batch
    before = batch.before
    if before is not None:
        before = _as_texts(restated(before, places.take(batch.before_at), restatements), texts)
        before = _like(before, changed.schema)
    known = {c.name: c for c in batch.schema.columns}
    columns = tuple(_column(known.get(f.name), f) for f in changed.schema)
    rows = changed
    for name in META_NAMES:
        rows = rows.append_column(batch.rows.schema.field(name), batch.rows.column(name))
    return replace(batch, schema=replace(batch.schema, columns=columns), rows=rows, before=before)


def _column(known: Column | None, field: pa.Field) -> Column:
    return Column(field.name, "", field.type) if known is None else replace(known, lake_type=field.type)


def _like(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with exactly the columns of a schema; missing columns are null."""
    arrays = [rows.column(f.name) if f.name in rows.column_names else pa.nulls(len(rows), f.type) for f in schema]
    return pa.table(arrays, schema=schema)


def _as_texts(rows: pa.Table, texts: Iterable[str]) -> pa.Table:
    for name in texts:
        at = _place(rows, name)
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
            rows = _done(rows, one.steps, sure, unsure)
    return rows


def _done(rows: pa.Table, steps: Sequence[Step], sure: _Mask, unsure: _Mask) -> pa.Table:
    """Apply one statement: its clauses refer to the columns before it, so that two columns may swap their names."""
    original = rows
    for step in steps:
        if isinstance(step, Copy) and step.move:
            rows = _without(rows, step.old, sure | unsure)
    for step in steps:
        if isinstance(step, Copy):
            rows = _copy(rows, original, step, sure, unsure)
    for step in steps:
        if isinstance(step, Fill):
            rows = _fill(rows, step, sure, unsure)
    return rows


def _without(rows: pa.Table, name: str, mask: _Mask) -> pa.Table:
    at = _place(rows, name)
    if at is None:
        return rows
    field = rows.schema.field(at)
    return rows.set_column(at, field, pc.if_else(pa.array(mask), pa.scalar(None, field.type), rows.column(at)))


def _place(rows: pa.Table, name: str) -> int | None:
    """The index of the column of that name, without regard to case; None if there is none."""
    return next((i for i, n in enumerate(rows.column_names) if n.lower() == name.lower()), None)


def _fill(rows: pa.Table, step: Fill, sure: _Mask, unsure: _Mask) -> pa.Table:
    constant = _constant(step.column)
    at = _place(rows, step.column.name)
    if at is None:
        if not constant.is_valid:
            return rows
        values = pc.if_else(pa.array(sure | unsure), constant, pa.nulls(len(rows), constant.type))
        return rows.append_column(pa.field(step.column.name, constant.type), values)
    present = rows.column(at)
    mask = sure
    if unsure.any() and not step.column.nullable:
        mask = sure | (unsure & present.is_null().to_numpy())
    if not mask.any():
        return rows
    constant, present = _one_type(constant, present)
    field = rows.schema.field(at).with_type(present.type)
    return rows.set_column(at, field, pc.if_else(pa.array(mask), constant, present))


def _one_type(constant: pa.Scalar, present: pa.ChunkedArray) -> tuple[pa.Scalar, pa.ChunkedArray]:
    if constant.type == present.type:
        return constant, present
    try:
        return constant.cast(present.type), present
    except pa.ArrowException:
        return constant, present.cast(constant.type)


def _copy(rows: pa.Table, original: pa.Table, step: Copy, sure: _Mask, unsure: _Mask) -> pa.Table:
    source, at = _place(original, step.old), _place(rows, step.new)
    if source is None and at is None:
        return rows
    if source is not None:
        values = original.column(source)
    else:  # rows from before the old column: it is null in them, even if an earlier column had the new name
        values = pa.chunked_array([pa.nulls(len(rows), rows.schema.field(at).type)])
    kind = copied_type(values.type, step.column)
    if kind is None:
        return rows
    present = rows.column(at) if at is not None else pa.chunked_array([pa.nulls(len(rows), kind)])
    mask = sure | (unsure & present.is_null().to_numpy())
    kind = present.type if at is not None else kind
    copied = pc.if_else(pa.array(mask), values.cast(kind), present)
    field = pa.field(step.new, kind)
    return rows.append_column(field, copied) if at is None else rows.set_column(at, rows.schema.field(at), copied)


def copied_type(old: pa.DataType, column: ColumnDefinition | None) -> pa.DataType | None:
    """The type of a renamed column's copied values; None if the new type cannot hold them exactly."""
    new = old if column is None or column.type is None else column.type.lake_type
    if new == old or (pa.types.is_string(new) and pa.types.is_integer(old)):
        return new
    if pa.types.is_integer(new) and pa.types.is_integer(old):
        return max(new, old, key=lambda kind: kind.bit_width)
    if pa.types.is_decimal(new) and pa.types.is_decimal(old):
        fits = new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale
        return new if fits else None
    return new if (old, new) == (pa.float32(), pa.float64()) else None


def stored_step(step: Step) -> Step:
    """The step with the names of the lake's columns."""
    if isinstance(step, Fill):
        return Fill(replace(step.column, name=lake_name(step.column.name)))
    return replace(step, old=lake_name(step.old), new=lake_name(step.new))


def step_to_json(step: Step) -> list[Any]:
    """The step as commits record it."""
    if isinstance(step, Fill):
        return ["fill", _definition_to_json(step.column)]
    return ["copy", step.old, step.new, step.move, step.column and _definition_to_json(step.column)]


def step_from_json(said: Sequence[Any]) -> Step:
    """The reverse of ``step_to_json``. Raises ValueError, TypeError for other data."""
    if said[0] == "fill":
        return Fill(_definition_from_json(said[1]))
    return Copy(said[1], said[2], _definition_from_json(said[4]) if said[4] else None, said[3])


def _definition_to_json(column: ColumnDefinition) -> list[Any]:
    return [column.name, column.type_text, column.nullable, column.default.value, column.literal, column.as_bytes]


def _definition_from_json(said: Sequence[Any]) -> ColumnDefinition:
    name, text, nullable, default, literal, as_bytes = said
    try:
        kind = parse_type(text)
    except UnsupportedError as error:
        raise ValueError(f"unknown type {text!r}") from error
    return ColumnDefinition(name, text, kind, nullable, Default(default), literal, as_bytes)
