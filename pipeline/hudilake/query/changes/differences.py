"""The rows that differ between two states of the same file groups, by record key."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import CorruptDataError
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.read.filters.evaluate import Flags

Int64s = npt.NDArray[np.int64]


class ChangeKind(StrEnum):
    """What became of a row, in the letters of Hudi's change data capture."""

    INSERT = "i"
    UPDATE = "u"
    DELETE = "d"


@dataclass(frozen=True)
class Differences:
    """n changes by record key.

    Args:
        keys: string array of n, ascending.
        ops: string array of n, values of ChangeKind.
        before: struct array of n with the values of the row before; null for an insert.
        after: struct array of n with its values afterwards; null for a delete.
    """

    keys: pa.Array
    ops: pa.Array
    before: pa.StructArray
    after: pa.StructArray

    def later_than(self, key: str) -> Differences:
        """Those behind a record key."""
        return self.chosen(np.flatnonzero(pc.greater(self.keys, key).to_numpy(zero_copy_only=False)))

    def chosen(self, which: Int64s) -> Differences:
        """Those with these indexes, int64 array."""
        taken = pa.array(which)
        return Differences(*(part.take(taken) for part in (self.keys, self.ops, self.before, self.after)))

    def __len__(self) -> int:
        return len(self.keys)


def differences(before: pa.Table, after: pa.Table, values: pa.Schema, where: str) -> Differences:
    """Compare two states of rows.

    Args:
        before: n rows with RECORD_KEY_FIELD and the columns of ``values``, no key twice.
        after: m rows with the same columns, no key twice.
        values: the compared and returned columns. NaN equals NaN, and 0.0 does not equal -0.0.
        where: names the rows in an error.

    Raises CorruptDataError for a key that comes twice.
    """
    old_keys, new_keys = _keys(before, where), _keys(after, where)
    keys = pc.unique(pa.chunked_array([old_keys, new_keys], pa.string()))
    keys = keys.take(pc.sort_indices(keys))
    old, new = _places(keys, old_keys), _places(keys, new_keys)
    both = np.flatnonzero((old >= 0) & (new >= 0))
    same = np.zeros(len(keys), np.bool_)
    same[both] = ~_unequal_rows(before, after, values, old[both], new[both])
    chosen = np.flatnonzero(~same)
    old, new = old[chosen], new[chosen]
    ops = np.where(
        old < 0, ChangeKind.INSERT.value, np.where(new < 0, ChangeKind.DELETE.value, ChangeKind.UPDATE.value)
    )
    return Differences(
        keys.take(pa.array(chosen)),
        pa.array(ops.tolist(), pa.string()),
        _structs(before, values, old),
        _structs(after, values, new),
    )


def _keys(rows: pa.Table, where: str) -> pa.Array:
    keys = rows.column(RECORD_KEY_FIELD).cast(pa.string()).combine_chunks()
    counts = pc.value_counts(keys)
    twice = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(twice):
        raise CorruptDataError(
            f"two rows have the record key {twice[0].as_py()!r}, so nobody can say which of them changed",
            do_next="remove one of them, or read the table with scan(since=...)",
            file_group=where,
        )
    return keys


def _places(keys: pa.Array, among: pa.Array) -> Int64s:
    """The index in ``among`` of each key, -1 for none; int64."""
    return np.asarray(pc.index_in(keys, value_set=among).fill_null(-1).to_numpy(), dtype=np.int64)


def _unequal_rows(before: pa.Table, after: pa.Table, values: pa.Schema, old: Int64s, new: Int64s) -> Flags:
    unequal = np.zeros(len(old), np.bool_)
    old_places, new_places = pa.array(old), pa.array(new)
    for name in values.names:
        unequal |= _unequal(
            before.column(name).take(old_places).combine_chunks(), after.column(name).take(new_places).combine_chunks()
        )
    return unequal


def _unequal(left: pa.Array, right: pa.Array) -> Flags:
    """Where two arrays of n values of one type differ; a null equals a null. Bool array of n."""
    if pa.types.is_nested(left.type):
        # The fields of a struct hold values below a null, and Arrow compares no nested values.
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([repr(one) != repr(other) for one, other in pairs], dtype=np.bool_)
    flags = pc.xor(left.is_null(), right.is_null())
    if pa.types.is_floating(left.type):
        bits = pa.int64() if left.type == pa.float64() else pa.int32()
        differ = pc.not_equal(left.view(bits), right.view(bits))
        numbers = pc.and_(pc.is_nan(left).fill_null(False), pc.is_nan(right).fill_null(False))
        differ = pc.and_not(differ.fill_null(False), numbers)
    else:
        differ = pc.not_equal(left, right).fill_null(False)
    return cast(Flags, pc.or_(flags, differ).to_numpy(zero_copy_only=False))


def _structs(rows: pa.Table, values: pa.Schema, places: Int64s) -> pa.StructArray:
    """The rows at these places as a struct array; null where a place is -1."""
    absent = places < 0
    taken = pa.array(np.where(absent, 0, places), mask=absent)
    columns = [rows.column(name).combine_chunks().take(taken) for name in values.names]
    return pa.StructArray.from_arrays(columns, fields=list(values), mask=pa.array(absent))
