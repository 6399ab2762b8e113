"""Generated columns and defaults that are expressions over their own row, computed as the server computes them.

The expression is translated from MySQL to DuckDB by sqlglot. Only operations with the same result in both are
translated (``expression_kinds`` lists them, by the MySQL types of the columns that they read): whole numbers and
decimals with + - *, DIV of whole numbers, text, dates and conditions on numbers and null. Other division, comparison of
text (a collation decides), and every function whose result the two give differently, or that is not deterministic, are
not determined.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache

import duckdb
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from binlake.decode.types.mysql_types import MysqlType
from binlake.schema.rules.conversion.columns import converted
from binlake.schema.rules.conversion.session import Session
from binlake.schema.rules.conversion.undetermined import lacks_zero_dates
from binlake.schema.rules.expression_kinds import LISTED, RESULTS, Kind, Kinds, NotListedError
from binlake.schema.rules.retyping import assumed_type
from hudilake.errors import UnsupportedError
from hudilake.format.definition.column_names import lake_name

_TEXTS = frozenset({"char", "varchar", "text"})


def check_expression(text: str, new: MysqlType | None, schema: pa.Schema, types: Mapping[str, MysqlType]) -> None:
    """Raise UnsupportedError, with the reason, unless an expression can be computed over these columns of the lake.

    ``new``: the type of the column that takes its value; ``types``: of the source's columns, by name in lower case. A
    column that they lack is not known.
    """
    tree, values = _translated(text), schema.empty_table()
    names = {node.name.lower(): _place(values, node.name) for node in tree.find_all(exp.Column)}
    lake = {name: schema.field(place).type for name, place in names.items() if place is not None}
    try:
        kind = Kinds(types, lake).of(tree)
    except NotListedError as error:
        raise _not_known(text, str(error)) from error
    if kind not in RESULTS or (kind is Kind.TEXT and (new is None or new.base not in _TEXTS)):
        raise _not_known(text, f"a {kind} is converted by rules of the server")
    _evaluate(tree, values, text)


def why_open(text: str, new: MysqlType | None, types: Mapping[str, MysqlType]) -> str | None:
    """Why rows may have another value than is computed: a date whose month or day is zero is null in the lake, and its
    YEAR or its text at the source is none. None if no such date has a say. ``new``, ``types``: as ``check_expression``.
    """
    tree = _translated(text)
    dates = sorted({n.name for n in tree.find_all(exp.Column) if _is_date(types.get(n.name.lower()))})
    if not dates or (_is_date(new) and tree.find(exp.Year, exp.Month, exp.Day, exp.DayOfMonth) is None):
        return None
    return f"{', '.join(dates)} may have dates whose month or day is zero, null in the lake"


def _is_date(kind: MysqlType | None) -> bool:
    return kind is not None and lacks_zero_dates(kind)


def computed(text: str, new: MysqlType, rows: pa.Table, session: Session) -> pa.Array:
    """The values of a column that is defined by a MySQL expression over the other columns of its row.

    ``rows``: n rows under the source's or the lake's column names. A column that they lack was added without a value
    before, and is null: ``check_expression`` has looked whether the table has it, and what its values are. Raises
    UnsupportedError where the expression cannot be computed.
    """
    tree = _translated(text).copy()
    for node in list(tree.find_all(exp.Column)):
        if _place(rows, node.name) is None:
            tree = exp.null() if node is tree else tree
            node.replace(exp.null())
    values = _evaluate(tree, rows, text)
    kind = assumed_type(values.type) if values.type != pa.int64() else _BIGINT
    if kind is None:
        raise _not_known(text, f"its result is {values.type}")
    return converted(kind, new, values, session)


_BIGINT = MysqlType("bigint", text="bigint")


@lru_cache(maxsize=256)
def _translated(text: str) -> exp.Expression:
    try:
        tree: exp.Expression = sqlglot.parse_one(text, dialect="mysql")  # type: ignore[assignment]
    except SqlglotError as error:
        raise _not_known(text, "it cannot be parsed") from error
    for node in tree.walk():
        if not isinstance(node, LISTED):
            raise _not_known(text, f"{type(node).__name__} may have another result here")
    return tree


def _evaluate(tree: exp.Expression, rows: pa.Table, text: str) -> pa.Array:
    tree = tree.copy()
    for node in list(tree.find_all(exp.Column)):
        name = _place(rows, node.name)
        if name is None:
            raise _not_known(text, f"column {node.name} is not in the lake")
        node.replace(exp.column(exp.to_identifier(name, quoted=True)))
    sql = _null_safe(tree).sql(dialect="duckdb")
    cursor = _connection().cursor()
    try:
        cursor.execute("SET TimeZone = 'UTC'")
        cursor.register("__rows", _wide(rows))
        result_table = cursor.sql(f"SELECT ({sql}) AS v FROM __rows").to_arrow_table()  # noqa: S608 - built from a tree of known nodes
    except duckdb.Error as error:
        raise _not_known(text, str(error).splitlines()[0]) from error
    finally:
        cursor.close()
    values = result_table.column("v").combine_chunks()
    return values.cast(_PLAIN.get(values.type, values.type))


_PLAIN = {pa.int8(): pa.int64(), pa.int16(): pa.int64(), pa.int32(): pa.int64(), pa.bool_(): pa.int64()}


def _wide(rows: pa.Table) -> pa.Table:
    """The rows with whole numbers of 64 bits, in which MySQL computes."""
    fields = [f.with_type(pa.int64()) if pa.types.is_integer(f.type) else f for f in rows.schema]
    return rows.cast(pa.schema(fields))


def _null_safe(tree: exp.Expression) -> exp.Expression:
    """CONCAT is null in MySQL where one of its arguments is; in DuckDB only ``||`` is. DIV is put in brackets."""

    def piped(node: exp.Expression) -> exp.Expression:
        if isinstance(node, exp.IntDiv) and not isinstance(node.parent, exp.Paren):
            return exp.paren(node.copy(), copy=False)
        if not isinstance(node, exp.Concat):
            return node
        parts: list[exp.Expression] = [exp.cast(part.copy(), "text") for part in node.expressions]
        joined = parts[0]
        for part in parts[1:]:
            joined = exp.DPipe(this=joined, expression=part)
        return exp.paren(joined, copy=False)

    return tree.transform(piped)


def _place(rows: pa.Table, name: str) -> str | None:
    wanted = {name.lower(), lake_name(name).lower()}
    return next((n for n in rows.column_names if n.lower() in wanted), None)


def _not_known(text: str, why: str) -> UnsupportedError:
    return UnsupportedError(f"the expression {text} is not known to be computed as in MySQL: {why}", do_next="")


@cache
def _connection() -> duckdb.DuckDBPyConnection:
    """One in-memory database for the process. It reads no files and keeps the order of rows."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "threads": "1",
        "python_enable_replacements": "false",
    }
    return duckdb.connect(config=settings)
