"""The columns of a join's result, and their SQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from hudilake.errors import ConfigError
from hudilake.query.join.engine import quoted
from hudilake.query.join.how import LEFT_ONLY, JoinHow
from hudilake.query.join.keys import ColumnPair


@dataclass(frozen=True)
class JoinColumns:
    """What a join gives.

    Args:
        how: the kind of join.
        schema: of the result.
        values: SQL over the tables ``l`` and ``r``, a value for each column of the schema.
        condition: SQL by which their rows meet.
    """

    how: JoinHow
    schema: pa.Schema
    values: tuple[str, ...]
    condition: str

    def builds_left(self, smaller: bool) -> bool:
        """Whether the hash table is made of the left rows. ``smaller``: whether they are fewer.

        Where the rows of one side only come without a partner, DuckDB makes it of the other side (measured).
        """
        return smaller if self.how in ("inner", "full") else self.how == "right"

    def sql(self, in_left: bool) -> str:
        """One SELECT. ``in_left``: whether the hash table is made of the left rows; DuckDB takes the table named last,
        for it knows the size of neither."""
        values = ", ".join(self.values)
        if not in_left:
            return f"SELECT {values} FROM l {self.how} JOIN r ON {self.condition}"  # noqa: S608 - quoted
        how = "left" if self.how == "right" else self.how
        return f"SELECT {values} FROM r {how} JOIN l ON {self.condition}"  # noqa: S608 - quoted


def join_columns(
    left: pa.Schema, right: pa.Schema, on: Sequence[ColumnPair], how: JoinHow, suffixes: tuple[str, str]
) -> JoinColumns:
    """The left columns, then the right ones; a pair of columns with one name is one column, at its left place.

    Args:
        left, right: the columns of both sides.
        on: the pairs of columns that are equal.
        how: the kind of join; semi and anti give the left columns only.
        suffixes: of the left and of the right columns whose names, compared without case, are in both.

    Raises ConfigError if two columns of the result have the same name.
    """
    shared = [a for a, b in on if a == b]
    right_names = [] if how in LEFT_ONLY else [name for name in right.names if name not in shared]
    clashing = {name.casefold() for name in left.names} & {name.casefold() for name in right_names}
    fields, values = [], []
    for name, kind in zip(left.names, left.types, strict=True):
        if name in shared and how not in LEFT_ONLY:
            fields.append(pa.field(name, _shared_type(kind, right.field(name).type, how)))
            values.append(_shared_value(name, how))
        else:
            fields.append(pa.field(_named(name, clashing, suffixes[0]), kind))
            values.append(f"l.{quoted(name)}")
    for name in right_names:
        fields.append(pa.field(_named(name, clashing, suffixes[1]), right.field(name).type))
        values.append(f"r.{quoted(name)}")
    _require_distinct([item.name for item in fields])
    condition = " AND ".join(f"l.{quoted(a)} = r.{quoted(b)}" for a, b in on)
    return JoinColumns(how, pa.schema(fields), tuple(values), condition)


def _named(name: str, clashing: set[str], suffix: str) -> str:
    return name + suffix if name.casefold() in clashing else name


def _shared_value(name: str, how: JoinHow) -> str:
    both = f"l.{quoted(name)}", f"r.{quoted(name)}"
    return f"coalesce({', '.join(both)})" if how == "full" else both[1] if how == "right" else both[0]


def _shared_type(left: pa.DataType, right: pa.DataType, how: JoinHow) -> pa.DataType:
    if how != "full" or left == right:
        return right if how == "right" else left
    both = [pa.schema([("c", kind)]) for kind in (left, right)]
    return pa.unify_schemas(both, promote_options="permissive").field("c").type


def _require_distinct(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(map(str.casefold, names)).items() if count > 1)
    if repeated:
        raise ConfigError(
            f"two columns of the join have the same name: {', '.join(repeated)}",
            do_next="give suffixes that make the names of both sides distinct, or read fewer columns",
        )
