"""Row images in bulk: many JSON objects of one table and schema -> one Arrow table of lake types.

Compiled loops read the images and skip those that are invalid or do not fit the schema (templates/cells.py); then
each column is converted. The skipped images are joined and read together with an explicit schema (nothing is
inferred). A failure is narrowed down to the records concerned; other records are not affected.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from binlake.decode.changes import Column, TableSchema
from binlake.decode.messages.envelopes import FLAT_LONGS
from binlake.decode.messages.images import with_json_as_text
from binlake.decode.quarantine import Buffer, Fault, Reason, row_fault, unknown_columns_fault
from binlake.decode.slices import Arrays, ColumnRequest, Slices, selected
from binlake.decode.types.columns import forms_of
from binlake.decode.types.wires import DOCUMENTS, ENCODED, WIRES, read_as, to_lake

#: The JSON reader works in blocks; one row must fit into one block.
_BLOCK_BYTES = 1 << 22
#: Arrow's string columns hold 2 GiB: longer JSON is read in parts.
_MAX_JOINED_BYTES = 1 << 30
_BAD = (msgspec.MsgspecError, RecursionError, UnicodeDecodeError)
_ANY = msgspec.json.Decoder().decode


@dataclass
class DecodedRows:
    """``table``: the good rows, in order; ``at``: their indices among the images; ``faults``: of all other images."""

    table: pa.Table
    at: npt.NDArray[np.int64]
    faults: dict[int, Fault] = field(default_factory=dict)


Added = tuple[tuple[str, pa.DataType], ...]
_Part = tuple[npt.NDArray[np.int64], pa.Table]


@dataclass(frozen=True)
class RowReader:
    """Reads the images of one table under one schema.

    Attributes:
        schema: the columns.
        max_nesting: see DecodeOptions.
        added_prefix: flat form: fields with this prefix that are not columns are skipped; None: there are none.
        added: those fields that are known so far, with the types that the JSON reader expects.
    """

    schema: TableSchema
    max_nesting: int
    added_prefix: str | None = None
    added: Added = ()

    def read(self, images: Sequence[Buffer]) -> DecodedRows:
        """Read all images; bad ones become faults."""
        faults: dict[int, Fault] = {}
        reader = self
        if self.added_prefix is not None and images and (row := _decoded(images[0])) is not None:
            reader = self._adapted(row) or self
        parts = list(reader._parts(images, faults))
        if len(parts) == 1:
            return DecodedRows(parts[0][1], parts[0][0], faults)
        indices = np.concatenate([np.empty(0, dtype=np.int64), *(indices for indices, _ in parts)])
        table = pa.concat_tables([self.schema.arrow().empty_table(), *(table for _, table in parts)])
        if (np.diff(indices) > 0).all():
            return DecodedRows(table, indices, faults)
        order = np.argsort(indices, kind="stable")
        return DecodedRows(table.take(pa.array(order)), indices[order], faults)

    @cached_property
    def _forms(self) -> list[tuple[Column, ...]]:
        return [forms_of(column) for column in self.schema.columns]

    @cached_property
    def _documents(self) -> frozenset[str]:
        return frozenset(c.name for c in self.schema.columns if c.wire in DOCUMENTS)

    def _parts(self, images: Sequence[Buffer], faults: dict[int, Fault]) -> Iterator[_Part]:
        """The images whose values were read with their events, then other valid ones, then all others."""
        # imported here: numba needs half a second, and commands that decode nothing import this module too
        from binlake.decode.templates.cells import read_images

        rest = np.arange(len(images))
        wanted = [
            ColumnRequest(
                forms[0].name, tuple(map(read_as, forms)), forms[0].wire in DOCUMENTS, forms[0].wire in ENCODED
            )
            for forms in self._forms
        ]
        if isinstance(images, Slices):
            indices, arrays = images.read(wanted)
            if len(indices):
                yield self._convert(arrays, lambda i: self._as_text(images[i]), indices, faults)
                rest = np.setdiff1d(rest, indices, assume_unique=True)
        if len(rest):
            chosen = images if len(rest) == len(images) else selected(images, rest.tolist())
            among, arrays = read_images(chosen, wanted, [name for name, _ in self.added])
            if len(among):
                indices, rest = rest[among], np.delete(rest, among)
                yield self._convert(arrays, lambda i: self._as_text(images[i]), indices, faults)
        if len(rest) and self._documents:
            left = set(rest.tolist())
            images = [self._as_text(image) if i in left else image for i, image in enumerate(images)]
        yield from self._read(images, rest, faults)

    def _as_text(self, image: Buffer) -> Buffer:
        """The image with its JSON documents as text."""
        return with_json_as_text(image, self._documents) if self._documents else image

    def _read(self, images: Sequence[Buffer], at: npt.NDArray[np.int64], faults: dict[int, Fault]) -> Iterator[_Part]:
        if not len(at):
            return
        chosen = images if len(at) == len(images) else [images[i] for i in at]
        try:
            raw = self._parse(chosen)
        except (pa.ArrowInvalid, UnicodeDecodeError):
            yield from self._read_around(images, at, faults)
            return
        columns = [raw[c.name] for c in self.schema.columns]
        arrays: list[Arrays] = [(pa.concat_arrays(c.chunks) if c.num_chunks != 1 else c.chunk(0),) for c in columns]
        yield self._convert(arrays, images.__getitem__, at, faults)

    def _parse(self, images: Sequence[Buffer]) -> pa.Table:
        text, longest = _joined(images)
        wanted = [pa.field(c.name, read_as(c)) for c in self.schema.columns]
        added = [pa.field(name, kind) for name, kind in self.added]
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=False, block_size=max(_BLOCK_BYTES, longest + 2)),
            parse_options=pj.ParseOptions(explicit_schema=pa.schema(wanted + added), unexpected_field_behavior="error"),
        )
        if table.num_rows != len(images):
            raise pa.ArrowInvalid(f"{len(images)} images gave {table.num_rows} rows")
        return table.select([c.name for c in self.schema.columns]).combine_chunks()

    def _read_around(
        self, images: Sequence[Buffer], at: npt.NDArray[np.int64], faults: dict[int, Fault]
    ) -> Iterator[_Part]:
        """The reader refused the images: split them by a strict check of each image, or else into halves."""
        others: dict[RowReader, list[int]] = {}
        rest = []
        for i in at.tolist():
            row = _decoded(images[i])
            if row is not None and (reader := self._adapted(row)) is not None:
                others.setdefault(reader, []).append(i)
            elif row is None or self._is_odd(row):
                faults[i] = self._quick_fault(row) or self._explain(images[i])
            else:
                rest.append(i)
        if len(rest) == len(at) == 1:
            faults[rest[0]] = self._explain(images[rest[0]])
            return
        for half in np.array_split(np.array(rest, dtype=np.int64), 2 if len(rest) == len(at) else 1):
            yield from self._read(images, half, faults)
        for reader, chosen in others.items():
            yield from reader._read(images, np.array(chosen, dtype=np.int64), faults)

    def _adapted(self, row: dict[str, Any]) -> RowReader | None:
        """A reader for this row: with wires for its values, and with added fields not seen before."""
        columns = tuple(_form_for(forms, row.get(forms[0].name)) for forms in self._forms)
        added = self._added_in(row)
        if columns == self.schema.columns and added == self.added:
            return None
        return replace(self, schema=replace(self.schema, columns=columns), added=added)

    def _is_odd(self, row: dict[str, Any]) -> bool:
        """Whether the row has other names than the schema, or other JSON types than its columns."""
        wires = {c.name: WIRES[c.wire].json for c in self.schema.columns}
        names = {name for name, _ in self.added}
        for name, value in row.items():
            wire = wires.get(name)
            if wire is None:
                if name not in names:
                    return True
            elif value is not None and type(value) not in wire:
                return True
        return False

    def _added_in(self, row: dict[str, Any]) -> Added:
        if self.added_prefix is None:
            return ()
        columns = {c.name for c in self.schema.columns}
        known = dict(self.added)
        for name, value in row.items():
            if name.startswith(self.added_prefix) and name not in columns:
                known[name] = _added_type(name[len(self.added_prefix) :], value, known.get(name))
        return tuple(sorted(known.items()))

    def _quick_fault(self, row: dict[str, Any] | None) -> Fault | None:
        """A fault without a long search: many rows at once have a new column when a schema change is not known yet."""
        unknown = (row or {}).keys() - self._names()
        if not row or not unknown or any(isinstance(row[name], (dict, list)) for name in unknown):
            return None
        return unknown_columns_fault(unknown)

    def _explain(self, image: Buffer) -> Fault:
        fault = row_fault(image, self._names(), self.max_nesting)
        if fault is not None:
            return fault
        row = _ANY(image)
        for column in self.schema.columns:
            cell = msgspec.json.encode({column.name: row.get(column.name)})
            alone = RowReader(replace(self.schema, columns=(column,)), self.max_nesting)
            try:
                to_lake(alone._parse([cell])[column.name].combine_chunks(), column)
            except (ValueError, NotImplementedError):
                return _bad_value(column, cell)
        return Fault(Reason.BAD_VALUE, "the row cannot be read as its columns' types")

    def _convert(
        self, read: list[Arrays], image_of: Callable[[int], Buffer], at: npt.NDArray[np.int64], faults: dict[int, Fault]
    ) -> _Part:
        """``read``: the arrays by column and form. ``image_of``: an image by its index."""
        good = np.ones(len(at), dtype=bool)
        columns = []
        for forms, arrays in zip(self._forms, read, strict=True):
            converted = []
            for column, array in zip(forms, arrays, strict=False):
                if array is None:
                    continue
                values, bad = _converted(array, column)
                for i in bad:
                    good[i] = False
                    faults.setdefault(int(at[i]), self._fault_of_cell(image_of(int(at[i])), column, array[i]))
                converted.append(values)
            columns.append(converted[0] if len(converted) == 1 else pc.coalesce(*converted))
        table = pa.Table.from_arrays(columns, schema=self.schema.arrow())
        return (at, table) if good.all() else (at[good], table.filter(pa.array(good)))

    def _fault_of_cell(self, image: Buffer, column: Column, cell: pa.Scalar) -> Fault:
        added = {name for name, _ in self._added_in(_decoded(image) or {})}
        fault = row_fault(image, self._names() | added, self.max_nesting)
        return fault or _bad_value(column, repr(_as_json(cell.as_py())).encode())

    def _names(self) -> set[str]:
        return {c.name for c in self.schema.columns} | {name for name, _ in self.added}


def _form_for(forms: tuple[Column, ...], value: object) -> Column:
    """The form of a value; the column's own form for null, and for a value that fits no form."""
    return next((form for form in forms if type(value) in WIRES[form.wire].json), forms[0])


def _added_type(name: str, value: object, known: pa.DataType | None) -> pa.DataType:
    """The type of an added field: from the value; for null, the type known so far."""
    if value is None:
        return known or (pa.int64() if name in FLAT_LONGS else pa.string())
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int64()
    return pa.float64() if isinstance(value, float) else pa.string()


def _bad_value(column: Column, shown: bytes) -> Fault:
    text = shown[:200].decode("utf-8", "replace")
    return Fault(Reason.BAD_VALUE, f"column {column.name} ({column.mysql_type or column.wire}) cannot take {text}")


def _as_json(cell: object) -> object:
    """A cell as the JSON reader gives it: bytes as base64."""
    if isinstance(cell, dict):
        return {name: _as_json(member) for name, member in cell.items()}
    return b64encode(cell).decode() if isinstance(cell, bytes) else cell


def _joined(images: Sequence[Buffer]) -> tuple[bytes, int]:
    """Images as lines, and the length of the longest. Raises ArrowInvalid for an image that is not an object.

    The check is necessary: a line ``null`` ends the process inside the reader (measured, pyarrow 26).
    """
    text = b"\n".join(images)
    lines = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(lines == ord("\n"))
    if len(ends) != len(images) - 1 or b"\r" in text:
        return _joined([bytes(image).translate(_BLANKS) for image in images])
    starts = np.concatenate([[0], ends + 1])
    if len(text) > _MAX_JOINED_BYTES and len(images) > 1:
        raise pa.ArrowInvalid("too much for one piece")
    if not text or starts[-1] >= len(text) or (lines[starts] != ord("{")).any():
        raise pa.ArrowInvalid("an image that is no object")
    return text, int(np.diff(np.concatenate([starts, [len(text)]])).max())


#: Unescaped line ends occur between tokens only (strings must escape them), so blanks can replace them.
_BLANKS = bytes.maketrans(b"\r\n", b"  ")


def _converted(array: pa.Array, column: Column) -> tuple[pa.Array, list[int]]:
    """The converted column, and the indices of its bad values (null in the column)."""
    try:
        converted = to_lake(array, column)
        converted.validate(full=True)
        return converted, []
    except ValueError:
        if len(array) == 1:
            return pa.nulls(1, column.lake_type), [0]
    middle = len(array) // 2
    left, bad_left = _converted(array.slice(0, middle), column)
    right, bad_right = _converted(array.slice(middle), column)
    return pa.concat_arrays([left, right]), bad_left + [middle + i for i in bad_right]


def _decoded(image: Buffer) -> dict[str, Any] | None:
    """The image as an object of Python values; None if it is not an object."""
    try:
        row = _ANY(image)
    except _BAD:
        return None
    return row if isinstance(row, dict) else None
