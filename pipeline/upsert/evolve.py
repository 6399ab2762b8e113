"""The next schema of a lake table, from the present one and from what came.

Columns are added (old rows read as null) and widened where both judges read old files under the new type (measured,
shared notes section 18); a column that comes no more stays, and is null in new rows.
"""

from __future__ import annotations

import pyarrow as pa

from pipeline.errors import UnsupportedError

_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())


def evolved(current: pa.Schema, incoming: pa.Schema) -> pa.Schema:
    """``current`` with new columns appended and types widened as ``incoming`` asks; ``current`` itself if it holds all.

    Raises UnsupportedError where a column's types have no common one.
    """
    fields = {f.name: f for f in current}
    for field in incoming:
        known = fields.get(field.name)
        if known is None:
            fields[field.name] = field.with_nullable(True)
        elif known.type != field.type:
            fields[field.name] = known.with_type(_common(field.name, known.type, field.type))
    result = pa.schema(list(fields.values()))
    return current if result == current else result


def _common(name: str, known: pa.DataType, incoming: pa.DataType) -> pa.DataType:
    for ladder in (_INTEGERS, _FLOATS):
        if known in ladder and incoming in ladder:
            return max(known, incoming, key=ladder.index)
    if pa.types.is_decimal(known) and pa.types.is_decimal(incoming):
        scale = max(known.scale, incoming.scale)
        precision = scale + max(known.precision - known.scale, incoming.precision - incoming.scale)
        if precision <= 38:
            return pa.decimal128(precision, scale)
    raise UnsupportedError(
        f"column {name!r} was {known} and now comes as {incoming}",
        do_next="load the table again under a new path, or map the column's type in source.schemas",
    )
