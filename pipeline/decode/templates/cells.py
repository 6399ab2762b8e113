"""The values that the template kernel found, as columns: for the heads of events, and for Arrow tables of rows.

A column comes out as pyarrow's JSON reader would give it under the same type. Rows that it would not take, and types
that are not read here, are left to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.decode.templates.kernel import ESCAPED, FALSE, INT, NULL, NUMBER, TEXT, TRUE, gather

_I64 = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_TYPES_OF_CELLS = 8
_MAX_TEXT = (1 << 31) - 1
_BAD = (msgspec.MsgspecError, UnicodeDecodeError)
_decode_texts = msgspec.json.Decoder(list[str | None]).decode


def _decoded(spelled: bytes) -> str | None:
    try:
        return msgspec.json.decode(spelled, type=str)
    except _BAD:
        return None


def _fitting(*kinds: int) -> _Bools:
    """By kind of cell, whether a column takes it: one of ``kinds``, null, or no such member."""
    fits = np.zeros(_TYPES_OF_CELLS, dtype=bool)
    fits[: NULL + 1] = True
    fits[list(kinds)] = True
    return fits


#: By the type that the JSON reader would be told.
_FITS: dict[pa.DataType, _Bools] = {
    pa.int64(): _fitting(INT),
    pa.string(): _fitting(TEXT, ESCAPED),
    pa.bool_(): _fitting(TRUE, FALSE),
    pa.float32(): _fitting(INT, NUMBER),
    pa.float64(): _fitting(INT, NUMBER),
}
_ONLY_NULL = _fitting()


@dataclass(frozen=True)
class Cells:
    """What the kernel found: by slot and message ``what``, ``value`` and ``length`` (see there).

    Attributes:
        text: all messages, uint8.
        slots: of the columns. names: the columns of each template. template: by message, the one it matched.
    """

    text: npt.NDArray[np.uint8]
    what: npt.NDArray[np.int8]
    value: _I64
    length: npt.NDArray[np.int32]
    slots: dict[str, int]
    names: Sequence[Sequence[str]]
    template: npt.NDArray[np.int8]

    def table(self, rows: _I64, schema: pa.Schema) -> tuple[_Bools, pa.Table]:
        """See ``slices.Cells``."""
        good = self._known(rows, set(schema.names))
        slots = [self.slots[c.name] for c in schema if pa.types.is_string(c.type) and c.name in self.slots]
        escaped = {slot: self._unescaped(rows, slot) for slot in slots}
        for column in schema:
            good &= self._readable(rows, column, escaped)
        rows = rows[good]
        try:
            texts = self.texts(rows, slots)
            for slot in slots:
                texts[slot] = self._with_unescaped(texts[slot], rows, slot, escaped[slot])
            arrays = [self._array(rows, column, texts) for column in schema]
        except pa.ArrowInvalid:  # a number that is none to Arrow: the reader tells which
            return np.zeros(len(good), dtype=bool), schema.empty_table()
        return good, pa.Table.from_arrays(arrays, schema=schema)

    def texts(self, rows: _I64, slots: Sequence[int], kind: int = TEXT) -> dict[int, pa.Array]:
        """Of each slot the cells of this kind as strings, as they stand; others as null.

        Raises ArrowInvalid if they are too much for Arrow's strings.
        """
        if not slots:
            return {}
        of = np.array(slots, dtype=np.int64)
        there = self.what[np.ix_(of, rows)] == kind
        places = np.zeros((len(of), len(rows) + 1), dtype=np.int64)
        np.cumsum(np.where(there, self.length[np.ix_(of, rows)], 0), axis=1, out=places[:, 1:])
        if places[:, -1].max(initial=0) > _MAX_TEXT:
            raise pa.ArrowInvalid("too much for one piece")
        firsts = np.concatenate([[0], np.cumsum(places[:, -1])])
        data = np.empty(firsts[-1], dtype=np.uint8)
        gather(self.text, rows, of, self.value, places + firsts[:-1, None], data)
        whole = pa.py_buffer(data)
        found = {}
        for i, slot in enumerate(slots):
            valid = None if there[i].all() else pa.array(there[i]).buffers()[1]
            buffers = [valid, pa.py_buffer(places[i].astype(np.int32)), whole.slice(firsts[i], places[i, -1])]
            found[slot] = pa.Array.from_buffers(pa.string(), len(rows), buffers)
        return found

    def _known(self, rows: _I64, names: set[str]) -> _Bools:
        """Whether a row has no other members than these."""
        known = np.array([names.issuperset(columns) for columns in self.names])
        return np.ones(len(rows), dtype=bool) if known.all() else known[self.template[rows]]

    def _readable(self, rows: _I64, column: pa.Field, escaped: Mapping[int, Mapping[int, str]]) -> _Bools:
        slot = self.slots.get(column.name)
        if slot is None:
            return np.ones(len(rows), dtype=bool)
        what = self.what[slot, rows]
        good: _Bools = _FITS.get(column.type, _ONLY_NULL)[what]
        if slot in escaped:
            at = np.flatnonzero(what == ESCAPED)
            good[[i for i in at.tolist() if rows[i] not in escaped[slot]]] = False
        return good

    def _array(self, rows: _I64, column: pa.Field, texts: dict[int, pa.Array]) -> pa.Array:
        slot = self.slots.get(column.name)
        if slot is None or column.type not in _FITS:
            return pa.nulls(len(rows), column.type)
        what = self.what[slot, rows]
        if pa.types.is_string(column.type):
            return texts[slot]
        mask = what <= NULL
        if pa.types.is_boolean(column.type):
            return pa.array(what == TRUE, mask=mask)
        if pa.types.is_int64(column.type):
            return pa.array(self.value[slot, rows], mask=mask)
        return self._floats(rows, slot, what, column.type)

    def _with_unescaped(self, strings: pa.Array, rows: _I64, slot: int, escaped: Mapping[int, str]) -> pa.Array:
        if not escaped:
            return strings
        there = self.what[slot, rows] == ESCAPED
        texts = [escaped[row] for row in rows[there].tolist()]
        return pc.replace_with_mask(strings, pa.array(there), pa.array(texts, pa.string()))

    def _unescaped(self, rows: _I64, slot: int) -> dict[int, str]:
        """The ESCAPED texts of a slot that are UTF-8, by row."""
        there = rows[self.what[slot, rows] == ESCAPED]
        firsts = self.value[slot, there] - 1
        ends = firsts + self.length[slot, there] + 2
        spelled = [self.text[a:b].tobytes() for a, b in zip(firsts.tolist(), ends.tolist(), strict=True)]
        try:
            texts: list[str | None] = _decode_texts(b"[%s]" % b",".join(spelled))
        except _BAD:
            texts = [_decoded(one) for one in spelled]
        return {row: text for row, text in zip(there.tolist(), texts, strict=True) if text is not None}

    def _floats(self, rows: _I64, slot: int, what: npt.NDArray[np.int8], kind: pa.DataType) -> pa.Array:
        numbers = self.value[slot, rows].astype(kind.to_pandas_dtype())
        spelled = what == NUMBER
        if spelled.any():
            texts = self.texts(rows[spelled], [slot], NUMBER)[slot]
            numbers[spelled] = texts.cast(kind).to_numpy(zero_copy_only=False)
        return pa.array(numbers, mask=what <= NULL)
