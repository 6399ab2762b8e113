"""The values that the compiled Avro reader found, as Arrow columns in the types of the JSON reader.

A column equals what the record, written as JSON, would give under the same type. Bytes come as binary to columns that
accept them so; JSON has them as base64. Whatever has no such column here is left to the record's JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.slices import Arrays, ColumnRequest
from binlake.decode.templates.avro_program import AvroColumn
from binlake.decode.templates.cells import TemplateCells
from binlake.decode.templates.value_kernel import BINARY, DOUBLE, FALSE, FLOAT, INT, NESTED, TEXT, TRUE

_I64 = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_TEXTS = {TEXT: pa.string(), BINARY: pa.binary()}


@dataclass(frozen=True)
class AvroCells:
    """The cells of records of one schema.

    Attributes:
        read_cells: what the kernel found; its texts and bytes are not escaped.
        columns: the columns of the row images.
    """

    read_cells: TemplateCells
    columns: Mapping[str, AvroColumn]

    def __len__(self) -> int:
        return len(self.read_cells)

    def read(self, rows: _I64, wanted: Sequence[ColumnRequest]) -> tuple[_Bools, list[Arrays]]:
        """Tells which rows are read here, bool of n, and returns the arrays of each wanted column for those rows."""
        none = np.zeros(len(rows), dtype=bool), list[Arrays]()
        chosen = [_choice(self.columns[request.name], request) for request in wanted if request.name in self.columns]
        if None in chosen or not {request.name for request in wanted}.issuperset(self.columns):
            return none
        good = np.ones(len(rows), dtype=bool)
        for request in wanted:
            column = self.columns.get(request.name)
            if column is not None and column.kind == DOUBLE and pa.types.is_float32(request.types[0]):
                good &= self._is_sure_float(rows, column)
        rows = rows if good.all() else rows[good]
        slots = [column for column in _all_columns(self.columns) if column.kind in _TEXTS]
        try:
            texts = self.read_cells.texts(rows, {column.slot: (column.kind,) for column in slots})
            return good, [self._arrays(rows, request, texts) for request in wanted]
        except pa.ArrowInvalid:  # more text than Arrow's strings hold, or a number beyond its type: JSON tells which
            return none

    def _arrays(self, rows: _I64, request: ColumnRequest, texts: Mapping[int, pa.Array]) -> Arrays:
        """The cells as the type that they fit. The first type always has an array."""
        column = self.columns.get(request.name)
        arrays: list[pa.Array | None] = [None] * len(request.types)
        chosen = None if column is None else _choice(column, request)
        if column is not None and chosen is not None:
            arrays[chosen] = self._array(rows, column, request.types[chosen], texts, None)
        if arrays[0] is None:
            arrays[0] = pa.nulls(len(rows), request.types[0])
        return tuple(arrays)

    def _array(
        self, rows: _I64, column: AvroColumn, kind: pa.DataType, texts: Mapping[int, pa.Array], inside: _Bools | None
    ) -> pa.Array:
        """The cells of a column as a type. ``inside``: where there are any."""
        what, value = self._of(self.read_cells.what, column, rows), self._of(self.read_cells.value, column, rows)
        if column.kind in _TEXTS:
            return _text(texts[column.slot], _TEXTS[column.kind], inside)
        if column.kind == TRUE:
            there = (what == TRUE) | (what == FALSE)
            return pa.array(what == TRUE, mask=_absent(there, inside))
        absent = _absent(what == column.kind, inside)
        if column.kind == INT:
            return pa.array(value, kind, mask=absent)
        if column.kind == NESTED:
            members = [
                self._array(rows, column.members[member.name], member.type, texts, ~absent)
                if member.name in column.members
                else pa.nulls(len(rows), member.type)
                for member in kind
            ]
            fields = [pa.field(m.name, array.type) for m, array in zip(kind, members, strict=True)]
            return pa.StructArray.from_arrays(members, fields=fields, mask=pa.array(absent))
        numbers = np.where(absent, 0, value)
        floats = numbers.view(np.float64) if column.kind == DOUBLE else numbers.astype(np.uint32).view(np.float32)
        return pa.array(floats.astype(kind.to_pandas_dtype()), mask=absent)

    def _is_sure_float(self, rows: _I64, column: AvroColumn) -> _Bools:
        """Which doubles are the same float of 32 bits, whether they are rounded as they are or as the decimal that JSON
        has for them, which lies between their neighbours."""
        there = self._of(self.read_cells.what, column, rows) == DOUBLE
        numbers = np.where(there, self._of(self.read_cells.value, column, rows), 0).view(np.float64)
        with np.errstate(over="ignore"):
            near = [n.astype(np.float32) for n in (np.nextafter(numbers, -np.inf), np.nextafter(numbers, np.inf))]
            return np.asarray((near[0] == near[1]) | (numbers == numbers.astype(np.float32)))

    def _of(self, held: npt.NDArray[Any], column: AvroColumn, rows: _I64) -> npt.NDArray[Any]:
        part: npt.NDArray[Any] = held[column.slot] if len(rows) == len(self) else held[column.slot, rows]
        return part


def _absent(there: _Bools, inside: _Bools | None) -> _Bools:
    return ~there if inside is None else ~(there & inside)


def _text(spelled: pa.Array, kind: pa.DataType, inside: _Bools | None) -> pa.Array:
    array = pa.Array.from_buffers(kind, len(spelled), spelled.buffers(), offset=spelled.offset)
    if inside is None or inside.all():
        return array
    return pa.array(np.where(inside, array.to_numpy(zero_copy_only=False), None), kind)


def _all_columns(columns: Mapping[str, AvroColumn]) -> list[AvroColumn]:
    return [inner for column in columns.values() for inner in (column, *_all_columns(column.members))]


def _choice(column: AvroColumn, request: ColumnRequest) -> int | None:
    """The index of the first type of a request that a column's values fit; None if they fit none."""
    if request.raw:
        return None
    return next((n for n, kind in enumerate(request.types) if _fits(column, kind, binary=request.binary)), None)


def _fits(column: AvroColumn, kind: pa.DataType, *, binary: bool) -> bool:
    if pa.types.is_struct(kind):
        names = {member.name: member.type for member in kind}
        return column.kind == NESTED and all(
            name in names and _fits(member, names[name], binary=binary) for name, member in column.members.items()
        )
    if column.kind == BINARY:
        return binary and bool(pa.types.is_string(kind))
    fitting = {
        INT: (pa.int64(), pa.int32()),
        TRUE: (pa.bool_(),),
        TEXT: (pa.string(),),
        DOUBLE: (pa.float64(), pa.float32()),
        FLOAT: (pa.float32(), pa.float64()),
    }
    return kind in fitting.get(column.kind, ())
