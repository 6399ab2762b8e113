"""CH-benCHmark's queries: the server's answers, and those of the lake through hudilake's SQL."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

import sqlglot

import hudilake
from embedded.mariadb import EmbeddedMariaDB
from tests.programs.oracle.session import SqlSession
from tests.programs.tpcc.recording import DATABASE

#: A cell: a number, or text; None is null.
Cell = float | str | None
#: MariaDB rounds averages and quotients to four more digits than their arguments have.
_ROUNDED = 5e-5


def of_server(database: EmbeddedMariaDB, queries: Mapping[str, str]) -> dict[str, list[tuple[Cell, ...]]]:
    """The server's answers by query."""
    with SqlSession(database) as session:
        session.query(f"USE {DATABASE}")
        return {name: [tuple(map(_parsed, row)) for row in session.query(sql)] for name, sql in queries.items()}


def of_lake(tables: Mapping[str, hudilake.Table], queries: Mapping[str, str]) -> dict[str, list[tuple[Cell, ...]]]:
    """The lake's answers by query.

    Args:
        tables: by the names that the queries have.
        queries: in MySQL's dialect.
    """
    answers = {}
    for name, sql in queries.items():
        (text,) = sqlglot.transpile(sql, read="mysql", write="duckdb", identify=False)
        used = {table.name.lower() for table in sqlglot.parse_one(sql, read="mysql").find_all(sqlglot.exp.Table)}
        named = {table: tables[table] for table in sorted(used & tables.keys())}
        rows = hudilake.sql(text, named).to_pylist()
        answers[name] = [tuple(map(_plain, row.values())) for row in rows]
    return answers


def difference(server: Sequence[tuple[Cell, ...]], lake: Sequence[tuple[Cell, ...]]) -> str:
    """What two answers differ in, in any order of their rows; "" if in nothing."""
    if len(server) != len(lake):
        return f"{len(server)} rows, the lake has {len(lake)}"
    pairs = zip(sorted(server, key=_order), sorted(lake, key=_order), strict=True)
    return next((f"{one} is {other} in the lake" for one, other in pairs if not _equal(one, other)), "")


def _equal(one: tuple[Cell, ...], other: tuple[Cell, ...]) -> bool:
    return len(one) == len(other) and all(
        math.isclose(a, b, rel_tol=1e-9, abs_tol=_ROUNDED) if isinstance(a, float) and isinstance(b, float) else a == b
        for a, b in zip(one, other, strict=True)
    )


def _order(row: tuple[Cell, ...]) -> list[str]:
    """By texts first: numbers may differ in their last digits."""
    return [
        *(f"{cell}" for cell in row if not isinstance(cell, float)),
        *(f"{cell:025.2f}" for cell in row if isinstance(cell, float)),
    ]


def _parsed(text: str | None) -> Cell:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _plain(value: object) -> Cell:
    if isinstance(value, int | float | Decimal):
        return float(value)
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value) if isinstance(value, date) else _parsed(value)  # type: ignore[arg-type]
