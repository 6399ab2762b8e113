"""Writes a base file in row groups of a bounded size to a temporary file, with its statistics and bloom filter.

Only the current row group and the bloom filter (a byte for each of its bits) are in memory. The finished file is
mapped into memory, not read, when it is written to storage.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hudilake.format.definition.schema import META_FIELDS, RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import NOTHING, ContentSum
from hudilake.format.files.base_file import base_footer, naming_file, rows_at_once
from hudilake.format.files.bloom import DYNAMIC, BloomFilter
from hudilake.format.files.column_stats import ColumnRange, column_ranges, unknown_range, widen
from hudilake.format.files.parquet_file import Pages, parquet_writer
from hudilake.write.form import BaseFileForm

_FILE_NAME = "_hoodie_file_name"
_CONSTANT = pa.dictionary(pa.int32(), pa.string())


@dataclass(frozen=True)
class BaseFileStatistics:
    """The statistics of a finished base file. ``ranges``: None if no statistics are kept. ``keys``: the least and the
    greatest record key; None without rows. ``contents``: what the file shall hold."""

    rows: int
    ranges: tuple[ColumnRange, ...] | None
    bloom: tuple[str, str] | None
    keys: tuple[str, str] | None = None
    contents: ContentSum | None = None


class BaseFileSink:
    """Takes rows, in the order of the file.

    Args:
        path: the temporary file.
        schema: the rows' schema, meta fields first.
        name: the base file's name, which every row gets in ``_hoodie_file_name``.
        expected: the largest possible number of rows; it sizes the bloom filter.
        indexed: the columns to keep statistics of; None for none.
        form: of base files.
        digests: whether the rows are digested; else ``close`` needs what the file shall hold.
    """

    def __init__(
        self,
        path: Path,
        schema: pa.Schema,
        name: str,
        expected: int,
        indexed: tuple[str, ...] | None,
        form: BaseFileForm,
        *,
        digests: bool = True,
    ) -> None:
        self._path, self._name, self._indexed, self._form = path, name, indexed, form
        #: Of the rows taken so far, if they are digested.
        self.contents = NOTHING
        self._digests = digests
        self._schema = schema.set(schema.get_field_index(_FILE_NAME), pa.field(_FILE_NAME, _CONSTANT))
        self._pages = form.pages(self._schema)
        self._writer = self._opened(path, self._pages)
        self._bloom = _filter(form, expected)
        self._group_rows = 0
        self._waiting: list[pa.Table] = []
        self._waiting_rows = self._rows = 0
        self._keys: tuple[str, str] | None = None
        self._ranges: dict[str, ColumnRange] = {}
        self._with_nan: set[str] = set()

    @property
    def flushed(self) -> tuple[int, int]:
        """The rows and the bytes in the file so far: those of the row groups that are full."""
        return self._rows, self._path.stat().st_size

    def write(self, rows: pa.Table) -> None:
        """Add rows."""
        if not rows.num_rows:
            return
        if self._digests:
            self.contents += ContentSum.of_rows(rows)
        if not self._group_rows:
            self._group_rows = rows_at_once(rows, *self._form.at_once)
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        while self._waiting_rows >= self._group_rows:
            waiting = pa.concat_tables(self._waiting)
            self._put(waiting.slice(0, self._group_rows))
            rest = waiting.slice(self._group_rows)
            self._waiting, self._waiting_rows = [rest], rest.num_rows

    def close(self, avro_schema_json: str, contents: ContentSum | None = None) -> BaseFileStatistics:
        """Write the last row group and the footer. ``contents``: what the file shall hold, if the rows are not
        digested."""
        contents = self.contents if self._digests else contents
        if self._waiting_rows or not self._rows:
            self._put(pa.concat_tables(self._waiting or [self._empty()]))
        bloom = (self._bloom.kind, self._bloom.to_base64()) if self._bloom is not None else None
        if self._pages is not None and self._with_nan:
            self._copy(self._pages)
        self._writer.add_key_value_metadata(base_footer(avro_schema_json, self._keys, bloom, contents))
        self._writer.close()
        ranges = None
        if self._indexed is not None:
            ranges = tuple(self._ranges[column] for column in self._indexed if column in self._ranges)
        return BaseFileStatistics(self._rows, ranges, bloom, self._keys, contents)

    def abandon(self) -> None:
        """Close without finishing."""
        self._writer.close()

    def _put(self, rows: pa.Table) -> None:
        rows = naming_file(rows, self._name, self._schema.field(_FILE_NAME))
        self._writer.write_table(rows, row_group_size=max(rows.num_rows, 1))
        self._rows += rows.num_rows
        self._note_ranges(rows)
        if self._pages is not None:
            self._with_nan.update(field.name for field in rows.schema if _has_nan(rows.column(field.name)))
        if rows.num_rows:
            keys = rows.column(RECORD_KEY_FIELD)
            span = pc.min_max(keys).as_py()
            low, high = self._keys or (span["min"], span["max"])
            self._keys = min(low, span["min"]), max(high, span["max"])
            if self._bloom is not None:
                self._bloom.add(keys)

    def _opened(self, path: Path, pages: Pages | None) -> pq.ParquetWriter:
        form = self._form
        return parquet_writer(str(path), self._schema, form.compression, form.compression_level, pages)

    def _copy(self, pages: Pages) -> None:
        """Write the row groups again, without statistics of the columns that have NaN."""
        self._writer.close()
        old = self._path.rename(self._path.with_name(f"{self._path.name}.nan"))
        columns = tuple(name for name in pages.columns if name not in self._with_nan)
        self._writer = self._opened(self._path, replace(pages, columns=columns))
        with pq.ParquetFile(str(old)) as file:
            for number in range(file.num_row_groups):
                rows = file.read_row_group(number, use_threads=False).replace_schema_metadata(None)
                self._writer.write_table(naming_file(rows, self._name, self._schema.field(_FILE_NAME)))
        old.unlink()

    def _note_ranges(self, rows: pa.Table) -> None:
        for item in column_ranges(rows, self._indexed) if self._indexed is not None else ():
            previous = self._ranges.get(item.column)
            whole = item if previous is None else widen(previous, item)
            self._ranges[item.column] = whole or unknown_range(item.column, item.value_type, item.info)

    def _empty(self) -> pa.Table:
        plain = pa.schema([pa.field(f.name, pa.string()) if f.name in META_FIELDS else f for f in self._schema])
        return plain.empty_table()


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def mapped(path: Path) -> bytes:
    """A file's bytes without reading them into memory: an object that can be sliced and written as bytes can.

    It stays valid after the file is unlinked, and is freed with its last reference.
    """
    with path.open("rb") as file:
        return cast("bytes", mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _filter(form: BaseFileForm, expected: int) -> BloomFilter | None:
    if form.bloom_kind is None:
        return None
    if form.bloom_kind == DYNAMIC:
        return BloomFilter.dynamic(form.bloom_entries, form.bloom_filter_fpp, form.bloom_max_entries)
    return BloomFilter.simple(expected, form.bloom_filter_fpp)
