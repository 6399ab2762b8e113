"""What is computed of the rows of a group: as SQL of DuckDB, and how parts of a group come together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.query.join.engine import quoted

AggregateFunction: TypeAlias = Literal["count", "count_distinct", "sum", "min", "max", "mean"]
_FUNCTIONS: Final = ("count", "count_distinct", "sum", "min", "max", "mean")
#: How the parts of a group come together: by adding, or by the least or greatest.
Merge: TypeAlias = Literal["sum", "min", "max"]
_MERGES: Final[dict[str, Merge]] = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_DIGITS: Final = 38


@dataclass(frozen=True)
class Aggregate:
    """A value of each group. Nulls are left out, as in SQL.

    Args:
        function: ``count`` (int64), ``count_distinct`` (int64), ``sum`` (exact: decimal(38, scale) of integers and
            decimals, float64 of floats), ``min``, ``max`` (the column's type), ``mean`` (float64).
        column: of the table; None counts rows.
        name: of the result; None makes it of function and column.
    """

    function: AggregateFunction
    column: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.function not in _FUNCTIONS:
            raise ConfigError(f"{self.function!r} is no aggregate", do_next=f"choose one of {', '.join(_FUNCTIONS)}")
        if self.column is None and self.function != "count":
            raise ConfigError(f"{self.function} has no column", do_next="name the column")

    @property
    def called(self) -> str:
        """The name of the result."""
        return self.name or (self.function if self.column is None else f"{self.function}_{self.column}")

    def result_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the value. Raises UnsupportedError for a column that the function does not take."""
        if self.column is None or self.function in ("count", "count_distinct"):
            return pa.int64()
        kind = schema.field(self.column).type
        if self.function in ("min", "max") and not pa.types.is_nested(kind):
            return kind
        if pa.types.is_floating(kind) or (self.function == "mean" and _is_number(kind)):
            return pa.float64()
        if self.function == "sum" and _is_number(kind):
            return pa.decimal128(_DIGITS, kind.scale if pa.types.is_decimal(kind) else 0)
        raise UnsupportedError(
            f"{self.function} does not take the column {self.column} of type {kind}", do_next="choose another column"
        )

    def sql(self, schema: pa.Schema) -> str:
        """The value in SQL."""
        if self.column is None:
            return "count(*)"
        value = quoted(self.column)
        if self.function == "count_distinct":
            return f"count(DISTINCT {value})"
        if self.function == "mean":
            return f"avg({value})"
        text = f"{self.function}({value})"
        kind = self.result_type(schema)
        return (
            f"CAST({text} AS DECIMAL({_DIGITS}, {kind.scale}))"
            if self.function == "sum" and pa.types.is_decimal(kind)
            else text
        )

    def parts(self) -> tuple[PartialAggregate, ...]:
        """The values of a part of a group of which this one is made: one, or sum and count of a mean.

        Raises UnsupportedError for a function whose parts cannot be put together.
        """
        if self.function == "mean":
            own = Aggregate("count", self.column, f"{self.called} count")
            return PartialAggregate(Aggregate("sum", self.column, f"{self.called} sum"), "sum"), PartialAggregate(
                own, "sum"
            )
        if self.function not in _MERGES:
            raise UnsupportedError(
                f"{self.called}: distinct values of a group that is in several buckets cannot be counted in parts",
                do_next="group by columns that hold the bucket key, or use a frame of read_dataframe",
            )
        return (PartialAggregate(self, _MERGES[self.function]),)


@dataclass(frozen=True)
class PartialAggregate:
    """A value of a part of a group, and how such values come together."""

    aggregate: Aggregate
    merge: Merge


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind))
