"""Steps applied to a table of value columns: which values rows from before a statement have after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.ddl.columns import ColumnDefinition, Default
from binlake.decode.ddl.constants import constant_of
from binlake.decode.types.zero_dates import texts_of
from binlake.schema.rules.conversion.columns import converted
from binlake.schema.rules.conversion.undetermined import why_undetermined, why_zero_dates
from binlake.schema.rules.evolution import TypeChange, common_type
from binlake.schema.rules.retyping import becomes_now, why_not_now
from binlake.schema.rules.steps import Compute, Convert, Copy, Fill, Follow, Step
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

Mask = npt.NDArray[np.bool_]


@lru_cache(maxsize=512)
def _constant(column: ColumnDefinition) -> pa.Scalar:
    return constant_of(column)


def stepped(rows: pa.Table, steps: Sequence[Step], sure: Mask, unsure: Mask) -> pa.Table:
    """Apply one statement: its clauses refer to the columns before it, so that two columns may swap their names."""
    original = rows
    for step in steps:
        if isinstance(step, Copy) and step.move:
            rows = _without(rows, step.old, sure | unsure)
    for step in steps:
        if isinstance(step, Copy):
            rows = _copy(rows, original, step, sure, unsure)
    for step in steps:
        if isinstance(step, Convert):
            rows = _convert(rows, step, sure, unsure)
    for step in steps:
        if isinstance(step, Fill):
            rows = _fill(rows, step, sure, unsure)
    for step in steps:
        if isinstance(step, Compute):
            rows = _compute(rows, step, sure | unsure)
    for step in steps:
        if isinstance(step, Follow):
            rows = _follow(rows, original, step, sure | unsure)
    return rows


def _without(rows: pa.Table, name: str, mask: Mask) -> pa.Table:
    column_index = place_of(rows, name)
    if column_index is None:
        return rows
    field = rows.schema.field(column_index)
    return rows.set_column(
        column_index, field, pc.if_else(pa.array(mask), pa.scalar(None, field.type), rows.column(column_index))
    )


def place_of(rows: pa.Table, name: str) -> int | None:
    """The index of the column of that name, without regard to case; None if there is none."""
    return next((i for i, n in enumerate(rows.column_names) if n.lower() == name.lower()), None)


def _fill(rows: pa.Table, step: Fill, sure: Mask, unsure: Mask) -> pa.Table:
    constant = _constant(step.column)
    column_index = place_of(rows, step.column.name)
    if column_index is None:
        if not constant.is_valid:
            return rows
        values = pc.if_else(pa.array(sure | unsure), constant, pa.nulls(len(rows), constant.type))
        return rows.append_column(pa.field(step.column.name, constant.type), values)
    present = rows.column(column_index)
    mask = sure
    if unsure.any() and not step.column.nullable:
        mask = sure | (unsure & present.is_null().to_numpy())
    if not mask.any():
        return rows
    constant, present = _one_type(constant, present)
    field = rows.schema.field(column_index).with_type(present.type)
    return rows.set_column(column_index, field, pc.if_else(pa.array(mask), constant, present))


def _one_type(constant: pa.Scalar, present: pa.ChunkedArray) -> tuple[pa.Scalar, pa.ChunkedArray]:
    """Both in the type that the column has from now on: the wider one of two alike, else the constant's."""
    kind = _common(present.type, constant.type)
    return constant.cast(kind), as_type(present, kind)


def _common(present: pa.DataType, new: pa.DataType) -> pa.DataType:
    kind, change = common_type(present, new)
    return new if kind is None or change is TypeChange.OTHER else kind


def as_type(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values of another type, which the source no longer has: null where they have no form in the type."""
    try:
        return values.cast(kind)
    except pa.ArrowException:
        return pa.chunked_array([pa.nulls(len(values), kind)])


def _in_former_type(step: Convert, present: pa.ChunkedArray) -> pa.Array:
    """The values in the type that the column had before the statement. Raises UnsupportedError where they are no values
    of it: what they become is not known then, and null would stand for it without a word."""
    assert step.old is not None
    try:
        return present.cast(step.old.lake_type).combine_chunks()
    except pa.ArrowException as error:
        column, former = step.column, step.old.text or step.old.base
        raise UnsupportedError(
            f"column {column.name} becomes {column.type_text} and was {former}, but rows before have values that are "
            f"no {former}: {str(error).splitlines()[0]}",
            do_next="load the table again",
        ) from error


def _convert(rows: pa.Table, step: Convert, sure: Mask, unsure: Mask) -> pa.Table:
    column_index = place_of(rows, step.column.name)
    new = step.column.type
    if column_index is None or new is None:
        return rows
    present, mask = rows.column(column_index), sure | unsure
    if present.type == new.lake_type and step.old is not None and step.old.lake_type != new.lake_type:
        mask = sure  # the others are read after the statement; the lake's type may have been wider than the former one
    if not mask.any():
        return rows
    kind = _common(present.type, new.lake_type)
    concerned = pa.array(mask)
    rest = pc.if_else(concerned, pa.scalar(None, present.type), present)
    values = converted_values(step, pc.if_else(concerned, present, pa.scalar(None, present.type))).cast(kind)
    merged = pc.if_else(concerned, values, as_type(rest, kind))
    return rows.set_column(column_index, rows.schema.field(column_index).with_type(kind), merged)


def is_null(step: Convert) -> bool:
    """Whether rows from before the statement hold null, as no value's new form is determined."""
    new = step.column.type
    return new is None or step.old is None or why_undetermined(step.old, new, step.session) is not None


def converted_values(step: Convert, present: pa.ChunkedArray) -> pa.Array:
    """The values as the statement makes them; null where that is not determined, also for NOT NULL."""
    new = step.column.type
    assert new is not None
    if step.old is None or is_null(step):
        return pa.nulls(len(present), new.lake_type)
    before = _in_former_type(step, present)
    values = converted(step.old, new, before, step.session)
    if becomes_now(step.column, step.session):
        if why_not_now(step.old, new) is not None:
            return values
        now = pa.scalar(step.session.seconds, pa.int64()).cast(pa.timestamp("s")).cast(pa.timestamp("us"))
        if pa.types.is_string(values.type):
            now = texts_of(pa.array([now]))[0]
        return pc.if_else(before.is_null(), now.cast(values.type), values)
    if why_zero_dates(step.old, new) is not None:
        return values  # null stands for NULL and for dates that no calendar has
    return _without_nulls(values, before.is_null(), step.column)


def _compute(rows: pa.Table, step: Compute, mask: Mask) -> pa.Table:
    new = step.column.type
    if new is None or not mask.any():
        return rows
    from binlake.schema.rules.generated import computed  # needs an SQL engine

    values = computed(step.expression, new, _with_scales(rows, step), step.session)
    column_index = place_of(rows, step.column.name)
    if column_index is None:
        values = pc.if_else(pa.array(mask), values, pa.scalar(None, values.type))
        return rows.append_column(pa.field(step.column.name, values.type), values)
    kind = _common(rows.column(column_index).type, values.type)
    merged = pc.if_else(pa.array(mask), values.cast(kind), as_type(rows.column(column_index), kind))
    return rows.set_column(column_index, rows.schema.field(column_index).with_type(kind), merged)


def _with_scales(rows: pa.Table, step: Compute) -> pa.Table:
    """The rows with all decimal places of the columns that an expression reads: it may print them."""
    for name, scale in step.scales:
        column_index = place_of(rows, name) if place_of(rows, name) is not None else place_of(rows, lake_name(name))
        kind = rows.schema.field(column_index).type if column_index is not None else None
        if kind is None or not pa.types.is_decimal(kind) or kind.scale >= scale:
            continue
        wide = pa.decimal128(min(kind.precision + scale - kind.scale, 38), scale)
        rows = rows.set_column(column_index, rows.column_names[column_index], rows.column(column_index).cast(wide))
    return rows


def _follow(rows: pa.Table, original: pa.Table, step: Follow, mask: Mask) -> pa.Table:
    for base in step.bases:
        before, after = place_of(original, base), place_of(rows, base)
        if before is not None and after is not None:
            new = rows.column(after)
            old = as_type(original.column(before), new.type)
            same = pc.if_else(old.is_null(), new.is_null(), pc.fill_null(pc.equal(old, new), False))
            rows = _without(rows, step.column.name, mask & ~same.to_numpy())
    return rows


def sent_otherwise(rows: pa.Table, step: Compute) -> str | None:
    """The first row whose sent value is not the computed one, in words; None if there is none. Nulls that were sent do
    not count: a deleted row may come without its values."""
    column_index, new = place_of(rows, step.column.name), step.column.type
    if column_index is None or new is None:
        return None
    sent = as_type(rows.column(column_index), new.lake_type).combine_chunks()
    from binlake.schema.rules.generated import computed  # needs an SQL engine

    own = computed(step.expression, new, _with_scales(rows, step), step.session)
    wrong = pc.and_(sent.is_valid(), pc.invert(pc.fill_null(pc.equal(sent, own), False)))
    if not pc.any(wrong).as_py():
        return None
    first = pc.index(wrong, True).as_py()
    return (
        f"column {step.column.name} = {step.expression}: the source sent {sent[first].as_py()!r} where "
        f"{own[first].as_py()!r} was computed: rows from before the statement may be wrong, load the table again"
    )


def _without_nulls(values: pa.Array, were_null: pa.Array, column: ColumnDefinition) -> pa.Array:
    """NOT NULL: what was null becomes the type's zero, not the column's default. A date stays null, as the zero date is
    null in the lake; so does a value whose new form is not known."""
    if column.nullable or not values.null_count:
        return values
    assert column.type is not None
    if column.type.base == "enum":  # the error value, which no option is
        zero = pa.scalar("", values.type)
    else:
        try:
            zero = _constant(replace(column, default=Default.NONE, literal=None))
        except UnsupportedError:
            return values
    return pc.if_else(were_null, zero, values)


def _copy(rows: pa.Table, original: pa.Table, step: Copy, sure: Mask, unsure: Mask) -> pa.Table:
    source, target = place_of(original, step.old), place_of(rows, step.new)
    if source is None and target is None:
        return rows
    if source is not None:
        values = original.column(source)
    elif sure.all():  # rows from before the old column: an earlier column that had the new name is not this one
        return rows.remove_column(target)
    else:
        values = pa.chunked_array([pa.nulls(len(rows), rows.schema.field(target).type)])
    kind = copied_type(values.type, step.column)
    if kind is None:
        return rows
    present = rows.column(target) if target is not None else pa.chunked_array([pa.nulls(len(rows), kind)])
    mask = sure | (unsure & present.is_null().to_numpy())
    kind = _common(present.type, kind)
    copied = pc.if_else(pa.array(mask), as_type(values, kind), as_type(present, kind))
    field = pa.field(step.new, kind)
    if target is None:
        return rows.append_column(field, copied)
    return rows.set_column(target, rows.schema.field(target).with_type(kind), copied)


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
