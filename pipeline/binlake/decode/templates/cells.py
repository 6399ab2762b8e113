"""The values that the kernels found, as columns: for the heads of events, and for Arrow tables of rows.

A column equals the result of pyarrow's JSON reader under the same type. Rows that this reader would refuse, and types
that are not read here, are left to it. It also reads values of types that only it supports, a column at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from binlake.decode.quarantine import Buffer
from binlake.decode.slices import Arrays, ColumnRequest, Slices
from binlake.decode.templates.kernel import PLAIN, RAW, VALUE, read_objects
from binlake.decode.templates.text_kernel import gather
from binlake.decode.templates.value_kernel import ABSENT, ESCAPED, FALSE, INT, KINDS, NESTED, NULL, NUMBER, TEXT, TRUE

_I64 = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]
_MAX_TEXT = (1 << 31) - 1
_MAX_LINES = 1 << 30
_BLOCK_BYTES = 1 << 22
#: Bytes of the reader's line besides the value.
_LINE_BYTES = 16
_NO_TYPE = -1
_TEXTS = (TEXT, ESCAPED)
_FITTING: dict[pa.DataType, tuple[int, ...]] = {
    pa.int64(): (INT,),
    pa.string(): _TEXTS,
    pa.bool_(): (TRUE, FALSE),
    pa.float32(): (INT, NUMBER),
    pa.float64(): (INT, NUMBER),
    pa.uint64(): (INT, NUMBER),
}


def _fitting(kind: pa.DataType) -> tuple[int, ...]:
    """The kinds of cells that fit a column of this reader type, nulls not included."""
    if pa.types.is_decimal(kind):
        return (INT, NUMBER)
    if pa.types.is_struct(kind) or pa.types.is_list(kind):
        return (NESTED,)
    return _FITTING.get(kind, ())


def _among(kinds: Sequence[int]) -> _Bools:
    """By kind of cell, whether it is one of these."""
    among = np.zeros(KINDS, dtype=bool)
    among[list(kinds)] = True
    return among


@lru_cache(maxsize=1024)
def _choices(types: tuple[pa.DataType, ...]) -> npt.NDArray[np.int8]:
    """By kind of cell, the index of the first of these types that fits it; _NO_TYPE if none does."""
    choices = np.full(KINDS, _NO_TYPE, dtype=np.int8)
    for n, kind in reversed(list(enumerate(types))):
        choices[list(_fitting(kind))] = n
    choices[: NULL + 1] = 0
    return choices


@dataclass(frozen=True)
class TemplateCells:
    """The kernel's results: by slot and message ``what``, ``value`` and ``length`` (see ``kernel``).

    Attributes:
        text: all messages, uint8.
        slots: of the columns. names: the columns of each template. template: by message, the one it matched.
        passed: members of each template that were not read, because they are no columns as far as the format tells.
    """

    text: npt.NDArray[np.uint8]
    what: npt.NDArray[np.int8]
    value: _I64
    length: npt.NDArray[np.int32]
    slots: dict[str, int]
    names: Sequence[Sequence[str]]
    template: npt.NDArray[np.int8]
    passed: Sequence[Collection[str]] = ()

    def __len__(self) -> int:
        return len(self.template)

    @staticmethod
    def of_objects(
        text: npt.NDArray[np.uint8], starts: _I64, ends: _I64, members: Mapping[str, int]
    ) -> tuple[_Bools, TemplateCells]:
        """Which objects, from ``starts`` to ``ends`` of ``text``, have no other members than these; and their cells.

        ``members``: by name, the kernel's step for its values.
        """
        spelled = [msgspec.json.encode(name)[1:-1] for name in members]
        bounds = np.cumsum([0, *map(len, spelled)], dtype=np.int64)
        names = np.frombuffer(b"".join(spelled), dtype=np.uint8)
        matched = np.zeros(len(starts), dtype=bool)
        what = np.zeros((len(spelled), len(starts)), dtype=np.int8)
        value = np.zeros(what.shape, dtype=np.int64)
        length = np.zeros(what.shape, dtype=np.int32)
        steps = np.array(list(members.values()), dtype=np.int64)
        read_objects(text, starts, ends, names, bounds, steps, matched, what, value, length)
        slots = {name: slot for slot, name in enumerate(members)}
        return matched, TemplateCells(text, what, value, length, slots, [[]], np.zeros(len(starts), dtype=np.int8))

    def read(self, rows: _I64, wanted: Sequence[ColumnRequest]) -> tuple[_Bools, list[Arrays]]:
        """Tells which rows are read here, bool of n, and returns the arrays of each wanted column for those rows."""
        good = self._known(rows, {column.name for column in wanted})
        for column in wanted:
            if column.name in self.slots and not column.raw:
                good &= _choices(column.types)[self._of(self.what, self.slots[column.name], rows)] != _NO_TYPE
        rows = rows[good]
        try:
            texts = self.texts(rows, {self.slots[c.name]: _spelled(c) for c in wanted if c.name in self.slots})
            return good, [self._arrays(rows, column, texts) for column in wanted]
        except pa.ArrowInvalid:  # a number that Arrow does not accept: the reader finds which
            return np.zeros(len(good), dtype=bool), []

    def texts(self, rows: _I64, kinds: Mapping[int, tuple[int, ...]]) -> dict[int, pa.Array]:
        """For each slot of ``kinds``: its cells of these kinds as strings, without escapes; other cells as null.

        Raises ArrowInvalid if the text is too long for Arrow's strings.
        """
        slots = [slot for slot in kinds if kinds[slot]]
        if not slots or not len(rows):
            return dict.fromkeys(kinds, pa.array([], pa.string()))
        of, among = np.array(slots, dtype=np.int64), np.array([_among(kinds[slot]) for slot in slots])
        what, length = (held[of] if self._is_all(rows) else held[np.ix_(of, rows)] for held in (self.what, self.length))
        there = among[np.arange(len(of))[:, None], what]
        sizes = np.where(there, length, 0).sum(axis=1, dtype=np.int64)
        if sizes.max(initial=0) > _MAX_TEXT:
            raise pa.ArrowInvalid("too much for one piece")
        firsts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sizes)])
        places = np.zeros((len(of), len(rows) + 1), dtype=np.int32)
        data = np.empty(firsts[-1], dtype=np.uint8)
        gather(self.text, rows, of, among, self.what, self.value, self.length, firsts, places, data)
        whole = pa.py_buffer(data)
        arrays = {}
        for i, slot in enumerate(slots):
            valid = None if there[i].all() else pa.array(there[i]).buffers()[1]
            buffers = [valid, pa.py_buffer(places[i]), whole.slice(firsts[i], places[i, -1])]
            arrays[slot] = pa.Array.from_buffers(pa.string(), len(rows), buffers)
        return arrays

    def _is_all(self, rows: _I64) -> bool:
        return len(rows) == len(self.template)

    def _of(self, held: npt.NDArray[Any], slot: int, rows: _I64) -> npt.NDArray[Any]:
        part: npt.NDArray[Any] = held[slot] if self._is_all(rows) else held[slot, rows]
        return part

    def _known(self, rows: _I64, names: set[str]) -> _Bools:
        """Whether a row has no other members than these, and all of these that it has were read."""
        known = np.array([names.issuperset(columns) for columns in self.names])
        for n, passed in enumerate(self.passed):
            known[n] &= names.isdisjoint(passed)
        return np.ones(len(rows), dtype=bool) if known.all() else known[self.template[rows]]

    def _arrays(self, rows: _I64, column: ColumnRequest, texts: dict[int, pa.Array]) -> Arrays:
        """The cells by the type that they fit, others as null. The first is always there; others are None if empty."""
        slot = self.slots.get(column.name)
        if slot is None:
            return (pa.nulls(len(rows), column.types[0]), *[None] * (len(column.types) - 1))
        if column.raw:
            return (self._raw(rows, slot), *[None] * (len(column.types) - 1))
        what = self._of(self.what, slot, rows)
        chosen = _choices(column.types)[what] if len(column.types) > 1 else np.zeros(0, dtype=np.int8)
        return tuple(
            self._array(rows, slot, what, kind, texts) if n == 0 or (chosen == n).any() else None
            for n, kind in enumerate(column.types)
        )

    def _array(
        self, rows: _I64, slot: int, what: npt.NDArray[np.int8], kind: pa.DataType, texts: dict[int, pa.Array]
    ) -> pa.Array:
        if pa.types.is_string(kind):
            return texts[slot]
        if pa.types.is_boolean(kind):
            return pa.array(what == TRUE, mask=(what != TRUE) & (what != FALSE))
        if pa.types.is_int64(kind):
            return self._integers(rows, slot, what)
        if not _among(_fitting(kind))[what].any():
            return pa.nulls(len(rows), kind)
        if pa.types.is_struct(kind):
            return _structs(texts[slot], kind)
        if NESTED in _fitting(kind):
            return _read_alone(texts[slot], kind)
        return self._numbers(rows, slot, what, kind, texts[slot])

    def _raw(self, rows: _I64, slot: int) -> pa.Array:
        """The values as they stand in the messages."""
        what, value, length = (held[slot, rows] for held in (self.what, self.value, self.length))
        quoted, there = _among(_TEXTS)[what], _among((*_TEXTS, NUMBER, NESTED))[what]
        spelled = TemplateCells(
            self.text,
            np.where(there, np.int8(TEXT), np.int8(NULL))[None],
            (value - quoted)[None],
            (length + 2 * quoted).astype(np.int32)[None],
            {"": 0},
            [[]],
            np.zeros(len(rows), dtype=np.int8),
        ).texts(np.arange(len(rows)), {0: (TEXT,)})[0]
        for kind, text in ((TRUE, "true"), (FALSE, "false")):
            if (what == kind).any():
                spelled = pc.if_else(pa.array(what == kind), text, spelled)
        if (what == INT).any():  # JSON has one spelling for each
            spelled = pc.coalesce(spelled, self._integers(rows, slot, what).cast(pa.string()))
        return spelled

    def _integers(self, rows: _I64, slot: int, what: npt.NDArray[np.int8]) -> pa.Array:
        return pa.array(self._of(self.value, slot, rows), mask=what != INT)

    def _numbers(
        self, rows: _I64, slot: int, what: npt.NDArray[np.int8], kind: pa.DataType, spelled: pa.Array
    ) -> pa.Array:
        """Numbers that Arrow does not take as integers. ``spelled``: those that the kernel has not read."""
        whole = self._integers(rows, slot, what) if (what == INT).any() else None
        if pa.types.is_floating(kind):
            numbers = spelled.cast(kind)
            return numbers if whole is None else pc.coalesce(numbers, whole.cast(kind, safe=False))
        if whole is not None:
            spelled = pc.coalesce(whole.cast(pa.string()), spelled)
        if pa.types.is_decimal(kind) and _is_plain(spelled, kind.precision):
            return spelled.cast(kind)
        return _read_alone(spelled, kind)


def _spelled(column: ColumnRequest) -> tuple[int, ...]:
    """The kinds of cells whose text a column needs."""
    if column.raw:
        return ()
    if pa.types.is_string(column.types[0]):
        return _TEXTS
    return tuple(kind for kind in (NUMBER, NESTED) if kind in _fitting(column.types[0]))


def _is_plain(numbers: pa.Array, digits: int) -> bool:
    """Whether no number has an exponent or more digits: then a cast accepts what the reader accepts."""
    longest = pc.max(pc.binary_length(numbers)).as_py()
    return longest <= digits and not pc.any(pc.match_substring(numbers, "e", ignore_case=True)).as_py()


def _structs(spelled: pa.Array, kind: pa.DataType) -> pa.Array:
    """Objects as structs. Raises ArrowInvalid if any of them has other members or values."""
    places = np.frombuffer(spelled.buffers()[1], dtype=np.int32).astype(np.int64)
    text = np.frombuffer(spelled.buffers()[2], dtype=np.uint8)
    matched, inner = TemplateCells.of_objects(
        text, places[:-1], places[1:], dict.fromkeys((f.name for f in kind), VALUE)
    )
    good, members = inner.read(np.arange(len(spelled)), [ColumnRequest(f.name, (f.type,)) for f in kind])
    absent = spelled.is_null()
    if not (good & (matched | absent.to_numpy(zero_copy_only=False))).all():
        raise pa.ArrowInvalid("an object that is none of its column")
    if any(pa.types.is_floating(f.type) and _any_infinite(m[0]) for f, m in zip(kind, members, strict=True)):
        raise pa.ArrowInvalid("a number beyond the range of its member")
    return pa.StructArray.from_arrays([member[0] for member in members], fields=list(kind), mask=absent)


def _any_infinite(numbers: pa.Array | None) -> bool:
    return bool(pc.any(pc.invert(pc.is_finite(numbers))).as_py())


def _read_alone(spelled: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values of one column by pyarrow's reader. Raises ArrowInvalid if it does not accept every one."""
    sizes = pc.binary_length(spelled)
    if pc.sum(sizes).as_py() + _LINE_BYTES * len(spelled) > _MAX_LINES:
        raise pa.ArrowInvalid("too much for one piece")
    lines = pc.binary_join_element_wise('{"v":', pc.fill_null(spelled, "null"), "}\n", "")
    block = max(_BLOCK_BYTES, pc.max(sizes).as_py() + _LINE_BYTES)
    table = pj.read_json(
        pa.BufferReader(lines.buffers()[2]),
        read_options=pj.ReadOptions(use_threads=False, block_size=block),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema([pa.field("v", kind)]), unexpected_field_behavior="error"
        ),
    )
    if table.num_rows != len(spelled):
        raise pa.ArrowInvalid(f"{len(spelled)} values gave {table.num_rows} rows")
    return pa.concat_arrays(table["v"].chunks)


# Row images of any form as cells: members are found by name, one image after the other.


def joined(images: Sequence[Buffer]) -> tuple[npt.NDArray[np.uint8], _I64, _I64]:
    """One text with all images, and where each begins and ends in it."""
    if isinstance(images, Slices) and not images.others and images.spelled is None:
        text = np.frombuffer(images.text, dtype=np.uint8)
        return text, images.starts[images.rows], images.ends[images.rows]
    images = list(images)  # an image may be made on access
    ends = np.cumsum(np.fromiter(map(len, images), dtype=np.int64, count=len(images)))
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])
    return np.frombuffer(b"".join(images), dtype=np.uint8), starts, ends


def read_images(
    images: Sequence[Buffer], wanted: Sequence[ColumnRequest], passed: Sequence[str]
) -> tuple[_I64, list[Arrays]]:
    """Indices of the images that are valid objects of the wanted columns, and each column of these images.

    ``passed``: members that are skipped because they are not columns.
    """
    members = {column.name: RAW if column.raw else VALUE for column in wanted}
    text, starts, ends = joined(images)
    matched, cells = TemplateCells.of_objects(text, starts, ends, members | dict.fromkeys(passed, PLAIN))
    indices = np.flatnonzero(matched)
    good, columns = cells.read(indices, [replace(column, raw=False) for column in wanted])
    return indices[good], columns


def keeps_key(
    text: npt.NDArray[np.uint8], starts: _I64, ends: _I64, names: Sequence[str], key: Sequence[str]
) -> _Bools:
    """By object of old values, whether it is valid, of these columns alone, and of none of the key."""
    matched, cells = TemplateCells.of_objects(text, starts, ends, dict.fromkeys(names, RAW))
    for name in key:
        if name in cells.slots:
            matched &= cells.what[cells.slots[name]] == ABSENT
    return matched
