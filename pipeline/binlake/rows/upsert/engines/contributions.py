"""What a fact adds to the row of an aggregated table: its columns as values that the table's functions combine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from binlake.decode.changes import Mask, Op, SourceTable
from binlake.rows.upsert.computed import compute
from binlake.rows.upsert.place import PlacedRows
from binlake.rows.upsert.target import Target
from hudilake.errors import UnsupportedError
from hudilake.format.definition.merging import Function

#: Functions whose result does not tell what remains without one value.
FINAL: Final = ("min", "max", "collect")
_MAX_DIGITS: Final = 38
#: Digits that a sum has more than its values, as in MySQL's SUM (manual, "Precision Math").
_SUM_DIGITS: Final = 22

_Longs = npt.NDArray[np.int64]


def irrevocable(rows: PlacedRows) -> tuple[Mask, str]:
    """The events that a function of the table cannot take back, bool of n, and why.

    A delete, and an update that changes such a column, the key or the partition, takes a value back. Minimum, maximum
    and list do not tell what remains. A sum of floating point numbers would not be exact.

    ``rows``: n rows of facts, with the before images of updates.
    """
    functions, schema = dict(rows.target.merging.functions), rows.rows.schema
    final = {
        column: lake
        for column, lake in rows.names.items()
        if functions.get(lake) in FINAL
        or (functions.get(lake) == "sum" and pa.types.is_floating(schema.field(lake).type))
    }
    if not final:
        return np.zeros(len(rows), dtype=np.bool_), ""
    bad = np.asarray(rows.rows.column("__op").to_numpy() == Op.DELETE)
    if rows.before is not None:
        after = rows.rows.take(pa.array(rows.before_at))
        placing = [lake for lake in rows.names.values() if lake in _places(rows.target)]
        bad[rows.before_at[_differs(rows.before.rows, after, [*final.values(), *placing])]] = True
    used = ", ".join(sorted({functions[lake] for lake in final.values()}))
    why = f"the result of {used} does not tell what remains when a value is taken back"
    return bad, f"{', '.join(final)}: {why}"


def _places(target: Target) -> set[str]:
    return {*target.key, *((target.partition.column,) if target.partition is not None else ())}


def _differs(before: pa.Table, after: pa.Table, columns: list[str]) -> Mask:
    """Which of n rows differ in one of the columns; null equals null."""
    differing = np.zeros(len(before), dtype=np.bool_)
    for name in columns:
        old, new = before.column(name), after.column(name)
        same = pc.or_(pc.fill_null(pc.equal(old, new), False), pc.and_(pc.is_null(old), pc.is_null(new)))
        differing |= ~np.asarray(same.to_numpy(), dtype=np.bool_)
    return differing


def contributions(rows: pa.Table, functions: Mapping[str, Function], source: SourceTable) -> pa.Table:
    """The rows with the columns that have a function as contributions: n rows, the same columns.

    ``sum``: LONG, decimal with 22 more digits, or double; ``count``: 1 for a value, 0 for null (LONG); ``collect``: the
    value as JSON text.

    A function of a column that is not there has no effect: the column may be added later.

    Raises UnsupportedError for a type that a function cannot take.
    """
    for name, function in functions.items():
        if name not in rows.column_names:
            continue
        made = _MAKERS[function](rows.column(name), name, source)
        rows = rows.set_column(rows.column_names.index(name), name, made)
    return rows


def without_values(rows: pa.Table, functions: Mapping[str, Function], at: _Longs) -> pa.Table:
    """Contributions of which the rows ``at`` add nothing to lists: both halves of an update hold the same value."""
    for name, function in functions.items():
        if function == "collect" and name in rows.column_names:
            mask = np.zeros(len(rows), dtype=np.bool_)
            mask[at] = True
            column = pc.if_else(pa.array(mask), pa.scalar(None, pa.string()), rows.column(name))
            rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _summed(column: pa.ChunkedArray, name: str, source: SourceTable) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        return column.cast(pa.float64())
    if pa.types.is_decimal(kind):
        return column.cast(pa.decimal128(min(kind.precision + _SUM_DIGITS, _MAX_DIGITS), kind.scale))
    raise UnsupportedError(
        f"column {name} of type {kind} cannot be summed",
        do_next="sum a column of numbers, or a computed column that casts it to a number",
        table=str(source),
    )


def _counted(column: pa.ChunkedArray, _name: str, _source: SourceTable) -> pa.ChunkedArray:
    return column.is_valid().cast(pa.int64())


def _listed(column: pa.ChunkedArray, name: str, source: SourceTable) -> pa.ChunkedArray:
    if pa.types.is_binary(column.type):
        raise UnsupportedError(
            f"column {name} of bytes cannot be collected as JSON",
            do_next="collect a computed column, for example hex(...)",
            table=str(source),
        )
    return compute(pa.table({"value": column}), [("json", "to_json(value)::VARCHAR")], source).columns.column(0)


def _unchanged(column: pa.ChunkedArray, _name: str, _source: SourceTable) -> pa.ChunkedArray:
    return column


_MAKERS: Mapping[Function, Callable[[pa.ChunkedArray, str, SourceTable], pa.ChunkedArray]] = {
    "sum": _summed,
    "count": _counted,
    "collect": _listed,
    "min": _unchanged,
    "max": _unchanged,
    "last_non_null": _unchanged,
}


def check_functions(functions: Mapping[str, Function], target: Target) -> None:
    """Raise UnsupportedError if a column of the key or the partition has a function."""
    if both := sorted(_places(target) & set(functions)):
        raise UnsupportedError(
            f"{', '.join(both)} decides where a row is, and can have no function",
            do_next="correct merge.columns in tables.overrides for this table",
            table=str(target.source),
        )
