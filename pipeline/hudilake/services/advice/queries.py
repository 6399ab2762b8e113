"""The queries that a table is asked, as filters: which columns they name, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import sqlglot
from sqlglot.errors import SqlglotError

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.query.sql.needs import table_needs
from hudilake.read.filters.evaluate import matches
from hudilake.read.filters.expressions import (
    Compare,
    Constant,
    Filter,
    In,
    IsNull,
    Op,
    StartsWith,
    Unknown,
    leaves,
)


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """One query.

    Args:
        text: its SQL, or what it stands for.
        times: how often it is asked.
        condition: the rows that it needs of the table, normalised.
    """

    text: str
    times: int
    condition: Filter


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A statement that does not count, and why."""

    text: str
    why: str


def statements(text: str) -> list[str]:
    """The statements of a file: apart by semicolons, or one a line where there is no semicolon. Lines that begin with
    ``--`` are comments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("--")]
    if not any(";" in line for line in lines):
        return [line.strip() for line in lines]
    try:
        parts = sqlglot.parse("\n".join(lines), read="duckdb")
    except SqlglotError:  # one that cannot be parsed must not hide the others
        return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]
    return [part.sql(dialect="duckdb") for part in parts if part is not None]


def asked_queries(
    texts: Iterable[str], schema: pa.Schema, names: Sequence[str]
) -> tuple[list[AskedQuery], list[LeftOut]]:
    """The queries over a table, the most frequent first, and the statements that do not count.

    Args:
        texts: SQL statements of DuckDB's dialect; equal ones count together.
        schema: the table's columns, meta fields included.
        names: the table's possible names, as ``table_needs`` takes them.
    """
    asked, left_out = [], []
    for text, times in Counter(texts).most_common():
        try:
            condition = table_needs(text, schema, names).condition
            matches(condition, schema.empty_table())  # are its literals comparable with their columns?
            asked.append(AskedQuery(text, times, condition))
        except (ConfigError, UnsupportedError) as error:
            left_out.append(LeftOut(text, error.what))
    return asked, left_out


def filtered_columns(queries: Iterable[AskedQuery]) -> dict[str, int]:
    """The columns whose ranges can skip files for the queries, and how often they are named; the most frequent first.

    ``<>``, ``not in`` and ``not like`` are no reason to order rows by a column: nearly all values pass.
    """
    counts: Counter[str] = Counter()
    for query in queries:
        named = {
            leaf.column for leaf in leaves(query.condition) if not isinstance(leaf, Constant | Unknown) and _skips(leaf)
        }
        counts.update(dict.fromkeys(sorted(named), query.times))
    return dict(counts.most_common())


def _skips(leaf: Compare | In | IsNull | StartsWith) -> bool:
    if isinstance(leaf, Compare):
        return leaf.op is not Op.NE
    return isinstance(leaf, IsNull) or not leaf.negated
