"""The columns by which two bucketed tables are joined, and the hash by which rows with equal values meet.

Hudi hashes the text of a record key. Values that are equal have the same text only in columns of the same kind, so
other pairs of columns are refused. The text of a row is hashed under the same column names on both sides: Hudi's rule
reads names out of texts that hold both ``,`` and ``:``. A row that its table has in another bucket than this hash says
is found when it is read (``rows.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucket import bucket_hashes
from hudilake.format.definition.keys import record_keys
from hudilake.query.join.bucketed import BucketedScan

#: (column of the left table, column of the right table).
ColumnPair: TypeAlias = tuple[str, str]
Hashes: TypeAlias = npt.NDArray[np.uint32]
#: Kinds of partition columns whose values have one text in a path, whatever the type was when the path was made.
_PARTITION_TEXTS = frozenset({"integer", "string", "bool", str(pa.date32())})


@dataclass(frozen=True)
class HashedKey:
    """The columns of one side that are hashed.

    Args:
        columns: in the order of the table's record key.
        names: under which their texts are hashed, the same for both sides.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]

    def hashes(self, rows: pa.Table | pa.RecordBatch) -> Hashes:
        """The hash of each of n rows, uint32 below 2**31; a row is in the bucket ``hash % number of buckets``."""
        columns = [rows.column(name) for name in self.columns]
        return bucket_hashes(record_keys(pa.table(columns, names=list(self.names)), self.names), self.names)


@dataclass(frozen=True)
class JoinKeys:
    """How rows of two tables meet.

    Args:
        on: the pairs of columns whose values must be equal.
        left: the hashed columns of the left table.
        right: those of the right table.
        by_partition: whether rows with equal values are always in partitions of equal values.
    """

    on: tuple[ColumnPair, ...]
    left: HashedKey
    right: HashedKey
    by_partition: bool

    @classmethod
    def of(cls, left: BucketedScan, right: BucketedScan, on: Sequence[ColumnPair]) -> JoinKeys:
        """The keys of a join.

        Args:
            left, right: the tables.
            on: pairs of columns, those of both bucket keys among them; further pairs are conditions like them.

        Raises UnsupportedError if the pairs do not hold both bucket keys in the same order, or pair columns of kinds
        that spell equal values differently.
        """
        if tuple(_partners(left.fields, on)) != right.fields:
            raise UnsupportedError(
                f"the join is not by the bucket keys of both tables: {left.table} has ({', '.join(left.fields)}), "
                f"{right.table} has ({', '.join(right.fields)})",
                do_next="join by these columns in this order, or join frames of read_dataframe",
                on=[f"{a} = {b}" for a, b in on],
            )
        for pair in on:
            _require_same_text(left, right, pair, pair[0] in left.fields)
        by_partition = _same_partitions(left, right, on)
        return cls(tuple(on), HashedKey(left.fields, left.fields), HashedKey(right.fields, left.fields), by_partition)


def _partners(fields: Sequence[str], on: Sequence[ColumnPair]) -> list[str | None]:
    pairs = dict(on)
    return [pairs.get(name) for name in fields]


def _require_same_text(left: BucketedScan, right: BucketedScan, pair: ColumnPair, hashed: bool) -> None:
    one, other = left.schema.field(pair[0]).type, right.schema.field(pair[1]).type
    if _text_kind(one) != _text_kind(other) and (hashed or one != other):
        raise UnsupportedError(
            f"the columns {pair[0]} ({one}) and {pair[1]} ({other}) cannot be joined bucket by bucket: equal values "
            "may have other texts in the record keys, and so lie in other buckets",
            do_next="give both columns the same type",
            left=left.table,
            right=right.table,
        )


def _text_kind(kind: pa.DataType) -> str:
    """Equal for types in which equal values have equal texts in a record key."""
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_decimal(kind):
        return f"decimal of scale {kind.scale}"
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return "binary"
    return str(kind)


def _same_partitions(left: BucketedScan, right: BucketedScan, on: Sequence[ColumnPair]) -> bool:
    """Whether rows with equal values of the pairs are in partitions whose paths have the same texts."""
    one, other = _partition_fields(left), _partition_fields(right)
    if not one or len(one) != len(other) or not set(zip(one, other, strict=True)) <= set(on):
        return False
    kinds = {_text_kind(scan.schema.field(name).type) for scan in (left, right) for name in _partition_fields(scan)}
    return kinds <= _PARTITION_TEXTS


def _partition_fields(scan: BucketedScan) -> tuple[str, ...]:
    return scan.layout.fields if scan.layout is not None else ()
