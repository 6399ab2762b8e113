"""Rows of CSV files, read by the table's types: every field is the value that it spells, or is refused with its line.

A field that is empty and not quoted is null; ``""`` is an empty text. A column that the table does not have gets the
narrowest type that gives every value of it back: BIGINT, DOUBLE, BOOLEAN, DATE, TIMESTAMP, else text. A number with
leading zeros is a text there.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.csv as pcsv

from binlake.decode.types.exact_values import (
    UnfitValueError,
    as_float,
    exactly,
    is_bytes,
    read_date,
    read_moment,
    read_number,
    readable,
)
from binlake.load.backfill.inputs import Input
from hudilake.errors import BadInputError, UnsupportedError
from hudilake.storage import FileInfo
from hudilake.storage.ranged import StoredFile

_PARSE: Final = pcsv.ParseOptions(newlines_in_values=True)
_INTEGER: Final = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)
_FLOAT: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d{1,3})?", re.ASCII)
_UNREADABLE: Final = (csv.Error, OSError, EOFError, zlib.error)
#: A text may be longer than the module's 128 KiB; Arrow's reader has a bound of its own.
csv.field_size_limit(1 << 30)
_CORRECT: Final = "correct the value in the file, or give the rows by a query that converts them (--from)"
_BYTES_OF_HEX: Final = (
    r"write bytes as \x and two hexadecimal digits each, or say by a query what the digits are (--from): "
    "from_hex(raw), or encode(raw) for those of the text itself"
)


@dataclass(frozen=True)
class CsvRows:
    """The rows of an input's CSV files.

    Args:
        given: the input.
        known: types of columns by their names in the files; a column that is not here is typed by its values.
        wanted: the columns whose values are needed, beside the known ones, in lower case.
    """

    given: Input
    known: Mapping[str, pa.DataType]
    wanted: frozenset[str]

    def schema(self) -> pa.Schema:
        """All columns of the files; those that are not needed are texts.

        Raises BadInputError for a file that cannot be read, lacks columns of the first one, or has one twice, and for
        a quoted field without an end or with text behind it: Arrow's reader takes what follows for its value.
        """
        names = self._header(self.given.files[0])
        open_ones = [name for name in dict.fromkeys(names) if name.lower() in self.wanted and name not in self.known]
        kinds = {**dict.fromkeys(names, pa.string()), **self.known, **self._kinds_by_value(open_ones)}
        for file in self.given.files:
            self._check(file, [name for name in names if name.lower() in self.wanted or name in self.known])
        return pa.schema([pa.field(name, kinds[name]) for name in dict.fromkeys(names)])

    def batches(self, schema: pa.Schema, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns in their types. Raises BadInputError for a value that does not fit, with its line,
        UnsupportedError for a type whose values are not read from CSV."""
        fields = [schema.field(name) for name in names]
        if unread := [field for field in fields if not readable(pa.string(), field.type)]:
            raise UnsupportedError(
                f"column {unread[0].name!r} is of type {unread[0].type} in the lake, which is not read from CSV",
                do_next="give the rows in Parquet, or by a query (--from)",
            )
        for file in self.given.files:
            row = 0
            for texts in self._texts(file, names):
                columns = [self._typed(file, row, texts.column(f.name), f.name, f.type) for f in fields]
                yield pa.record_batch(columns, schema=pa.schema(fields))
                row += texts.num_rows

    def _typed(self, file: FileInfo, first: int, values: pa.Array, name: str, kind: pa.DataType) -> pa.Array:
        known = pa.string()
        try:
            texts = exactly(pa.chunked_array([values]), known)
            known = kind
            return exactly(texts, kind).combine_chunks()
        except UnfitValueError as error:
            held = f"the lake's type {kind}" if known is kind else "a text in UTF-8"
            raise BadInputError(
                f"column {name!r} has the value {error.shown}, which {held} cannot hold exactly",
                do_next=_BYTES_OF_HEX if known is kind and is_bytes(kind) else _CORRECT,
                path=self._path(file),
                line=self._line(file, first + error.row),
            ) from error

    def _texts(self, file: FileInfo, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The named columns as bytes; a field without anything is null."""
        convert = pcsv.ConvertOptions(
            include_columns=list(names),
            column_types=dict.fromkeys(names, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        raw = pa.PythonFile(StoredFile(self.given.place.storage(), file.path, file.size), mode="r")
        stream = pa.CompressedInputStream(raw, "gzip") if _is_gzip(file) else raw
        try:
            yield from pcsv.open_csv(stream, parse_options=_PARSE, convert_options=convert)
        except (pa.ArrowException, OSError) as error:
            raise BadInputError(
                f"the file cannot be read: {str(error).splitlines()[0]}",
                do_next="correct the file, then run the command again",
                path=self._path(file),
            ) from error

    def _kinds_by_value(self, names: list[str]) -> dict[str, pa.DataType]:
        if not names:
            return {}
        kinds = {name: _Narrowest() for name in names}
        for file in self.given.files:
            for texts in self._texts(file, names):
                for name, kind in kinds.items():
                    kind.take_in(texts.column(name))
        return {name: kind.found for name, kind in kinds.items()}

    def _check(self, file: FileInfo, names: Sequence[str]) -> None:
        held = self._header(file)
        if unsure := [name for name in names if held.count(name) != 1]:
            twice = unsure[0] in held
            raise BadInputError(
                f"the column {unsure[0]!r} is in the file's first line {'more than once' if twice else 'not at all'}",
                do_next="correct the file, or leave it out",
                path=self._path(file),
            )
        begun = 0
        try:
            with _lines(self.given, file) as text:
                rows = csv.reader(text, strict=True)
                for _ in rows:
                    begun = rows.line_num
        except _UNREADABLE as error:
            raise BadInputError(
                f"a row cannot be read: {error}",
                do_next="correct the file: a quote inside a quoted field is written twice, nothing follows the last",
                path=self._path(file),
                line=begun + 1,
            ) from error

    def _header(self, file: FileInfo) -> list[str]:
        try:
            with _lines(self.given, file) as text:  # bytes that are no UTF-8 are refused where they are read
                return next((row for row in csv.reader(text) if row), [])
        except _UNREADABLE as error:
            raise BadInputError(
                f"the file's first line cannot be read: {error}", do_next="correct the file", path=self._path(file)
            ) from error

    def _line(self, file: FileInfo, row: int) -> int | None:
        """The line in which a row begins, from 1; None if the file has no such line."""
        try:
            with _lines(self.given, file) as text:
                rows, before, row_index = csv.reader(text), 0, -2
                for fields in rows:
                    row_index += bool(fields)
                    if row_index == row:
                        return before + 1
                    before = rows.line_num
        except _UNREADABLE:
            pass
        return None

    def _path(self, file: FileInfo) -> str:
        return f"{self.given.place.uri}/{file.path}"


def _lines(given: Input, file: FileInfo) -> io.TextIOWrapper:
    raw: io.RawIOBase | gzip.GzipFile = StoredFile(given.place.storage(), file.path, file.size)
    if _is_gzip(file):
        raw = gzip.GzipFile(fileobj=raw)
    return io.TextIOWrapper(io.BufferedReader(raw, 1 << 20), "utf-8-sig", "replace", newline="")


def _is_gzip(file: FileInfo) -> bool:
    return file.path.lower().endswith(".gz")


class _Narrowest:
    """The narrowest type that gives the values of a column back."""

    def __init__(self) -> None:
        self._left = dict(_KINDS)
        self._empty = True

    def take_in(self, values: pa.Array) -> None:
        """Take in further values, as bytes."""
        for value in values.unique().drop_null().to_pylist():
            self._empty = False
            self._left = {kind: spells for kind, spells in self._left.items() if _spells(spells, value)}

    @property
    def found(self) -> pa.DataType:
        """The type."""
        return next(iter(self._left), pa.string()) if not self._empty else pa.string()


def _spells(check: Callable[[str], object], value: bytes) -> bool:
    try:
        return check(value.decode()) is not False
    except (ArithmeticError, ValueError):
        return False


def _is_long(text: str) -> bool:
    return _INTEGER.fullmatch(text) is not None and -(1 << 63) <= int(text) < 1 << 63


def _is_double(text: str) -> bool:
    return _FLOAT.fullmatch(text) is not None and as_float(read_number(text), pa.float64()) is not None


_KINDS: Final[Mapping[pa.DataType, Callable[[str], object]]] = {
    pa.int64(): _is_long,
    pa.float64(): _is_double,
    pa.bool_(): lambda text: text.lower() in ("true", "false"),
    pa.date32(): read_date,
    pa.timestamp("us", tz="UTC"): lambda text: read_moment(text, zoned=True),
}
