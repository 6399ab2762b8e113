"""Row images as slices of one text, copied only on access, with their values if these are already read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from binlake.decode.quarantine import Buffer

_I64 = npt.NDArray[np.int64]
_ELSEWHERE = -1
_NULL = b"null"


@dataclass(frozen=True)
class ColumnRequest:
    """A column to be read.

    Attributes:
        types: candidate types for the JSON reader, the column's own first.
        raw: any value becomes text, unchanged byte for byte.
        binary: bytes may come as binary where the type is a string of base64.
    """

    name: str
    types: tuple[pa.DataType, ...]
    raw: bool = False
    binary: bool = False


#: One column as read: for each type the values of that type, null elsewhere; None (never the first) if there are none.
Arrays = tuple[pa.Array | None, ...]


class CellReader(Protocol):
    """The values of images, by their rows in the text; of the first rows alone."""

    def __len__(self) -> int:
        """How many rows have values."""

    def read(self, rows: _I64, wanted: Sequence[ColumnRequest]) -> tuple[npt.NDArray[np.bool_], list[Arrays]]:
        """Which of ``rows`` have no other columns and only values of these types; and each column of those rows."""


@dataclass(frozen=True)
class Slices(Sequence[Buffer]):
    """Images: slice ``rows[i]`` of ``text``, or ``others[i]`` where that row is -1.

    Attributes:
        starts, ends: int64, by row. rows: int64, by image.
        cells: the values that were read from the slices.
        spelled: gives the image of a row as JSON where the slices are none; an empty slice is null.
    """

    text: bytes
    starts: _I64
    ends: _I64
    rows: _I64
    cells: CellReader | None = None
    others: Mapping[int, Buffer] = field(default_factory=dict)
    spelled: Callable[[int], Buffer] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, at: int) -> Buffer: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Buffer]: ...

    def __getitem__(self, at: int | slice) -> Buffer | Sequence[Buffer]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        row = self.rows[at]
        if row == _ELSEWHERE:
            return self.others[int(at)]
        return self.text[self.starts[row] : self.ends[row]] if self.spelled is None else self.spelled(int(row))

    def nulls(self) -> list[bool]:
        """Whether each image is JSON's null."""
        here = np.flatnonzero(self.rows != _ELSEWHERE)
        first, behind = self.starts[self.rows[here]], self.ends[self.rows[here]]
        null = np.zeros(len(self.rows), dtype=np.bool_)
        if self.spelled is not None:
            null[here] = first == behind
        else:
            short = np.flatnonzero(behind - first == len(_NULL))
            letters = np.frombuffer(self.text, np.uint8)[first[short, None] + np.arange(len(_NULL))]
            null[here[short]] = (letters == np.frombuffer(_NULL, np.uint8)).all(axis=1)
        for index, image in self.others.items():
            null[index] = bytes(image) == _NULL
        return null.tolist()

    def __iter__(self) -> Iterator[Buffer]:
        return (self[i] for i in range(len(self)))

    def select(self, chosen: Sequence[int]) -> Slices:
        """The images at these indices."""
        others = (
            {i: self.others[index] for i, index in enumerate(chosen) if index in self.others} if self.others else {}
        )
        return replace(self, rows=self.rows[np.asarray(chosen, dtype=np.int64)], others=others)

    def replaced(self, images: Mapping[int, Buffer]) -> Slices:
        """With other images at some indices."""
        rows = self.rows.copy()
        rows[list(images)] = _ELSEWHERE
        return replace(self, rows=rows, others={**self.others, **images})

    def extended(self, images: Sequence[Buffer]) -> Slices:
        """These images followed by ``images``."""
        more = dict(enumerate(images, len(self)))
        rows = np.concatenate([self.rows, np.full(len(images), _ELSEWHERE)])
        return replace(self, rows=rows, others={**self.others, **more})

    def read(self, wanted: Sequence[ColumnRequest]) -> tuple[_I64, list[Arrays]]:
        """Indices of the images whose values were read and are of the wanted types, and each column of these images."""
        if self.cells is None:
            return np.empty(0, dtype=np.int64), []
        indices = np.flatnonzero((self.rows != _ELSEWHERE) & (self.rows < len(self.cells)))
        if not len(indices):
            return indices, []
        good, columns = self.cells.read(self.rows[indices], wanted)
        return indices[good], columns


def selected(values: Sequence[Any], chosen: Sequence[int]) -> Any:  # noqa: ANN401 - images or other parallel values
    """The values at these indices: Slices of Slices, a list of any others."""
    return values.select(chosen) if isinstance(values, Slices) else [values[i] for i in chosen]


def nulls_of(images: Sequence[Buffer]) -> list[bool]:
    """Whether each of n images is JSON's null."""
    return images.nulls() if isinstance(images, Slices) else [bytes(image) == _NULL for image in images]
