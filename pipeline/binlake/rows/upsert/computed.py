"""Columns computed by SQL expressions over the columns of their own row, all rows at once (DuckDB): of a table, and of
the rows and before images of a change batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from binlake.decode.changes import META_NAMES, ChangeBatch, SourceTable
from hudilake.errors import UnsupportedError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WIDENED = {pa.int8(): pa.int32(), pa.int16(): pa.int32(), pa.uint8(): pa.int32(), pa.uint16(): pa.int32()}
_WIDENED |= {pa.uint32(): pa.int64(), pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
_KEPT = (pa.bool_(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())


@dataclass(frozen=True)
class ComputedColumns:
    """``columns``: one per expression, null in failed rows. ``bad``: the failed rows. ``why``: the error of one."""

    columns: pa.Table
    bad: tuple[int, ...] = ()
    why: str = ""


def compute(rows: pa.Table, expressions: Sequence[tuple[str, str]], source: SourceTable) -> ComputedColumns:
    """Evaluate (name, expression) pairs over n rows; names are distinct, and may be those of columns.

    Raises UnsupportedError for an expression that cannot be evaluated over these columns, or has an unsupported type.
    """
    import duckdb  # few tables have computed columns

    kinds = _kinds(rows.schema, tuple(expressions), source)
    try:
        return ComputedColumns(_cast(_evaluate(rows, expressions), kinds))
    except (duckdb.Error, pa.ArrowInvalid) as error:
        if len(rows) <= 1:
            nulls = pa.table([pa.nulls(len(rows), kind) for kind in kinds.types], schema=kinds)
            return ComputedColumns(nulls, tuple(range(len(rows))), str(error).splitlines()[0])
    middle = len(rows) // 2
    left, right = (compute(part, expressions, source) for part in (rows.slice(0, middle), rows.slice(middle)))
    both = pa.concat_tables([left.columns, right.columns])
    return ComputedColumns(both, (*left.bad, *(middle + i for i in right.bad)), left.why or right.why)


def _evaluate(rows: pa.Table, expressions: Sequence[tuple[str, str]]) -> pa.Table:
    names = ", ".join(f"({text}\n) AS {_quoted(name)}" for name, text in expressions)
    cursor = _connection().cursor()
    try:
        cursor.execute("SET TimeZone = 'UTC'")
        cursor.register("__rows", rows)
        return cursor.sql(f"SELECT {names} FROM __rows").to_arrow_table()  # noqa: S608 - the settings' own text
    finally:
        cursor.close()


@cache
def _connection() -> DuckDBPyConnection:
    """One in-memory database for the process. It reads no files and keeps the order of rows."""
    import duckdb

    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "threads": "1",
        "python_enable_replacements": "false",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
    }
    return duckdb.connect(config=settings)


def _kinds(schema: pa.Schema, expressions: tuple[tuple[str, str], ...], source: SourceTable) -> pa.Schema:
    """The types of the results, determined without rows."""
    import duckdb

    try:
        given = _evaluate(schema.empty_table(), expressions).schema
    except duckdb.Error as error:
        raise UnsupportedError(
            f"the expressions for {', '.join(name for name, _ in expressions)} cannot be evaluated: "
            f"{str(error).splitlines()[0]}",
            do_next="correct columns.computed, or the columns of the source in tables.stitched",
            table=str(source),
        ) from error
    return pa.schema([pa.field(f.name, _kind(f, source)) for f in given])


def held_type(kind: pa.DataType) -> pa.DataType | None:
    """The type in which a lake table holds values of a type, as both judges read it; None if it cannot."""
    kind = _WIDENED.get(kind, kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", tz="UTC")
    return kind if kind in _KEPT or (pa.types.is_decimal128(kind) and kind.precision <= 38) else None


def _kind(field: pa.Field, source: SourceTable) -> pa.DataType:
    kind = held_type(field.type)
    if kind is not None:
        return kind
    raise UnsupportedError(
        f"computed column {field.name!r} is of type {field.type}, which a lake table cannot hold",
        do_next="cast it to a type that a lake table can hold",
        table=str(source),
    )


def _cast(table: pa.Table, kinds: pa.Schema) -> pa.Table:
    """Cast to the table's types, exactly. Raises ArrowInvalid for a value that does not fit."""
    return table.cast(kinds).combine_chunks()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True, slots=True)
class BatchColumns:
    """``rows``, ``before``: one column an expression; without before images, ``before`` has none. ``bad``: the rows for
    which one fails. ``why``: the error of one of them."""

    rows: pa.Table
    before: pa.Table
    bad: frozenset[int] = frozenset()
    why: str = ""


NO_COLUMNS = BatchColumns(pa.table({}), pa.table({}))


def evaluate(batch: ChangeBatch, expressions: Sequence[tuple[str, str]]) -> BatchColumns:
    """Evaluate (name, expression) pairs. Raises UnsupportedError as ``compute``."""
    source = batch.origin or batch.schema.source
    rows = compute(batch.rows.drop_columns(list(META_NAMES)), expressions, source)
    if batch.before is None:
        return BatchColumns(rows.columns, pa.table({}), frozenset(rows.bad), rows.why)
    before = compute(batch.before, expressions, source)
    bad = {*rows.bad, *batch.before_at[list(before.bad)].tolist()}
    return BatchColumns(rows.columns, before.columns, frozenset(bad), rows.why or before.why)
