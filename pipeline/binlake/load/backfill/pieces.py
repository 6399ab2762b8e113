"""The parts of an input: row groups of Parquet files, and portions of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.errors import BadInputError
from hudilake.storage import Storage, StorageNotFoundError, open_storage
from hudilake.storage.ranged import StoredFile


@dataclass(frozen=True)
class Place:
    """A directory with files, for tasks. ``options``: of the store; they are never shown."""

    uri: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def storage(self) -> Storage:
        """The directory."""
        return open_storage(self.uri, self.options)


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group of a Parquet file. ``path``: below the input's place; ``rows``: how many it has."""

    path: str
    row_group: int
    rows: int


@dataclass(frozen=True, slots=True)
class InputPortion:
    """Pieces that one commit takes. ``number``: from 0; ``first``: the number of its first piece in the input."""

    number: int
    first: int
    pieces: tuple[Piece, ...]

    @property
    def rows(self) -> int:
        """The rows of the input that it holds."""
        return sum(piece.rows for piece in self.pieces)


def pieces_of(storage: Storage, paths: Iterable[str]) -> tuple[list[Piece], dict[str, pa.Schema]]:
    """The row groups of Parquet files in order, and the columns of each file by its path. Raises as ``opened``."""
    pieces: list[Piece] = []
    schemas: dict[str, pa.Schema] = {}
    for path in paths:
        with opened(storage, path) as file:
            schemas[path] = file.schema_arrow
            pieces += [Piece(path, n, file.metadata.row_group(n).num_rows) for n in range(file.num_row_groups)]
    return pieces, schemas


def portions(pieces: Iterable[Piece], most_rows: int) -> Iterator[InputPortion]:
    """Pieces in order, cut into portions of at most ``most_rows`` rows, but at least one piece."""
    held: list[Piece] = []
    number = first = rows = 0
    for index, piece in enumerate(pieces):
        if held and rows + piece.rows > most_rows:
            yield InputPortion(number, first, tuple(held))
            number, first, held, rows = number + 1, index, [], 0
        held.append(piece)
        rows += piece.rows
    if held:
        yield InputPortion(number, first, tuple(held))


def opened(storage: Storage, path: str) -> pq.ParquetFile:
    """A Parquet file of the input. Raises BadInputError if it is gone or is none, StorageError."""
    info = storage.stat(path)
    try:
        if info is None:
            raise StorageNotFoundError("there is no such file", path=path)
        return pq.ParquetFile(pa.PythonFile(StoredFile(storage, path, info.size), mode="r"))
    except (pa.ArrowException, OSError, StorageNotFoundError) as error:
        raise BadInputError(
            f"the input file cannot be read: {error}",
            do_next="restore the file, then run the same command again",
            path=f"{storage.uri}/{path}",
        ) from error
