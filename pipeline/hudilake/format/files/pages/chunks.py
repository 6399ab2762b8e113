"""A Parquet file whose row groups and pages are chosen before they are fetched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.parquet as pq

from hudilake.errors import CorruptDataError
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.pages.excerpt import PageRun, check_page, excerpt
from hudilake.format.files.pages.footer import TAIL, Chunk, ChunkFields, ColumnFields, Footer, number, start_of
from hudilake.format.files.pages.page_index import DataPages, RowRanges, read_column_index, read_offset_index
from hudilake.format.files.pages.parts import FileParts
from hudilake.format.files.pages.statistics import chunk_range
from hudilake.format.files.parquet_file import check_keys, open_parquet
from hudilake.storage.base import Storage

#: So many bytes of the file's end are fetched at first: the footer, and often the page index before it.
END_BYTES = 128 * 1024
#: A file up to this size is fetched whole: a request costs more than the bytes.
WHOLE_BYTES = 1024 * 1024


class ChunkedFile:
    """An open Parquet file.

    Args:
        storage: the table's root.
        path: the file.
        size: its bytes.

    Raises CorruptDataError, also in its methods, and StorageError.
    """

    def __init__(self, storage: Storage, path: str, size: int) -> None:
        self._path, self._size = path, size
        self.parts = FileParts(storage, path, size)
        self._chunks: dict[tuple[int, str], Chunk] = {}
        self._pages: dict[tuple[int, str], DataPages] = {}
        with self._errors():
            if size <= WHOLE_BYTES:
                self._size = self.parts.fetch_whole()
            else:
                self.parts.fetch([(size - END_BYTES, size)])
            self._file = open_parquet(pa.PythonFile(self.parts, mode="r"))
        self.metadata: pq.FileMetaData = self._file.metadata
        leaves = [self.metadata.schema.column(i) for i in range(self.metadata.num_columns)]
        #: The columns that are no structs, lists or maps: name -> number among the leaves.
        self.flat = {
            leaf.path: i for i, leaf in enumerate(leaves) if not leaf.max_repetition_level and "." not in leaf.path
        }
        self._kinds = {field.name: field.type for field in self._file.schema_arrow}

    @property
    def group_rows(self) -> list[int]:
        """The rows of each row group."""
        return [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]

    def held(self, columns: Iterable[str]) -> list[str]:
        """Those of the columns that the file has."""
        return [name for name in columns if name in self._kinds]

    def group_ranges(self, name: str) -> list[ColumnRange | None]:
        """The statistics of a column in each row group; None where they are not known."""
        leaf = self.flat.get(name)
        if leaf is None:
            return [None] * self.metadata.num_row_groups
        with self._errors():
            groups = [self.metadata.row_group(i) for i in range(self.metadata.num_row_groups)]
            return [chunk_range(name, self._kinds[name], one.column(leaf), one.num_rows) for one in groups]

    def can_pick_pages(self, columns: Iterable[str]) -> bool:
        """Whether pages can be left out if these columns are read: all of them flat and with an offset index."""
        held = self.held(columns)
        groups = [self.metadata.row_group(i) for i in range(self.metadata.num_row_groups)]
        return (
            bool(held)
            and all(name in self.flat for name in held)
            and all(group.column(self.flat[name]).has_offset_index for group in groups for name in held)
        )

    def fetch_index(self, groups: Sequence[int], bounded: Sequence[str], columns: Iterable[str] = ()) -> None:
        """Fetch the page index at once: all of it for ``bounded``, which the file has, the offset index for others."""
        with self._errors():
            wanted = [self._place(group, name, ChunkFields.COLUMN_INDEX) for group in groups for name in bounded]
            located = self.held({*bounded, *columns})
            wanted += [self._place(group, name, ChunkFields.OFFSET_INDEX) for group in groups for name in located]
            self.parts.fetch(place for place in wanted if place is not None)

    def pages(self, group: int, name: str) -> DataPages:
        """The pages of a column chunk that has an offset index."""
        known = self._pages.get((group, name))
        if known is None:
            known = self._pages[group, name] = self._read_pages(group, name)
        return known

    def _read_pages(self, group: int, name: str) -> DataPages:
        with self._errors():
            place, chunk = self._place(group, name, ChunkFields.OFFSET_INDEX), self._chunk(group, name)
            if place is None:
                raise ValueError("its offset index is missing")
            rows = self.metadata.row_group(group).num_rows
            return read_offset_index(bytes(self.parts.part(*place)), chunk.begin, chunk.end, rows)

    def page_ranges(self, group: int, name: str) -> list[ColumnRange | None] | None:
        """The statistics of a column chunk's pages; None where it has none that can be believed."""
        with self._errors():
            chunk = self.metadata.row_group(group).column(self.flat[name])
            statistics = chunk.statistics if chunk.is_stats_set else None
            place = self._place(group, name, ChunkFields.COLUMN_INDEX)
            if place is None or statistics is None:
                return None
            index_bytes = bytes(self.parts.part(*place))
            pages = self.pages(group, name)
            ranges = read_column_index(index_bytes, name, self._kinds[name], chunk.physical_type, pages)
            return ranges if statistics.has_min_max else [_without_bounds(item) for item in ranges]

    def stored_bytes(self, group: int, columns: Sequence[str]) -> int:
        """The bytes of a row group's column chunks of these columns."""
        return sum(end - start for start, end in self._whole(group, columns))

    def pages_read(self, group: int, columns: Iterable[str], ranges: RowRanges) -> tuple[int, int, int]:
        """(pages that hold some rows of a row group, their bytes, all pages), of these columns. Their dictionary pages
        count as bytes."""
        read = size = total = 0
        for name in self.held(columns):
            pages, chunk = self.pages(group, name), self._chunk(group, name)
            runs = pages.runs(ranges)
            read += sum(b - a for a, b in runs)
            size += sum(int(pages.size[a:b].sum()) for a, b in runs) + chunk.begin - chunk.dictionary
            total += len(pages.offset)
        return read, size, total

    def read(self, columns: Sequence[str], chosen: Mapping[int, RowRanges | None]) -> pa.Table:
        """Some rows.

        Args:
            columns: to read; those it lacks are left out.
            chosen: row group -> its rows to read, None for all. Row groups that it lacks are skipped.
        """
        held = self.held(columns)
        with self._errors():
            self._fetch(held, chosen)
            whole = [group for group, ranges in chosen.items() if ranges is None]
            parts = [self._file.read_row_groups(whole, columns=held, use_threads=False)]
            partial = {group: ranges for group, ranges in chosen.items() if ranges is not None}
            if partial:
                rows = pa.table({name: self._partial(name, partial) for name in held})
                parts.append(rows.cast(parts[0].schema.remove_metadata()))
            table = pa.concat_tables(part.replace_schema_metadata(None) for part in parts)
            check_keys(table)
        return table

    def _fetch(self, columns: Sequence[str], chosen: Mapping[int, RowRanges | None]) -> None:
        """Fetch what is read, at once."""
        self.fetch_index([group for group, ranges in chosen.items() if ranges is not None], (), columns)
        wanted = list[tuple[int, int]]()
        for group, ranges in chosen.items():
            if ranges is None:
                wanted += self._whole(group, columns)
                continue
            for name in columns:
                chunk, pages = self._chunk(group, name), self.pages(group, name)
                wanted += [pages.place(first, last) for first, last in pages.runs(ranges)]
                if chunk.dictionary < chunk.begin:
                    wanted.append((chunk.dictionary, chunk.begin))
        self.parts.fetch(wanted)

    def _whole(self, group: int, columns: Sequence[str]) -> Iterator[tuple[int, int]]:
        """The ranges of all of a row group's column chunks of these columns."""
        row_group_metadata = self.metadata.row_group(group)
        tops = set(columns)
        for leaf in range(row_group_metadata.num_columns):
            chunk = row_group_metadata.column(leaf)
            if chunk.path_in_schema.split(".")[0] in tops:
                start = start_of(chunk)
                yield start, start + chunk.total_compressed_size

    def _partial(self, name: str, chosen: Mapping[int, RowRanges]) -> pa.ChunkedArray:
        """A column's rows in these ranges."""
        runs, slices, before = [], [], 0
        for group, ranges in chosen.items():
            pages, chunk = self.pages(group, name), self._chunk(group, name)
            ends = pages.ends
            for first, last in pages.runs(ranges):
                run = self._run(chunk, pages, first, last)
                begin, end = int(pages.first_row[first]), int(ends[last - 1])
                inside = [(max(a, begin), min(b, end)) for a, b in ranges if a < end and b > begin]
                slices += [(before + a - begin, b - a) for a, b in inside]
                runs.append(run)
                before += run.rows
        element = self._footer.schema[1 + self._places[name]]
        data = pa.py_buffer(excerpt(self._footer, element, runs))
        column = pq.ParquetFile(data, page_checksum_verification=True).read(use_threads=False).column(0)
        if len(column) != before:
            raise ValueError("a page is not what its page index says")
        chunks = [piece for start, length in slices for piece in column.slice(start, length).chunks]
        return pa.chunked_array(chunks, column.type)

    def _run(self, chunk: Chunk, pages: DataPages, first: int, last: int) -> PageRun:
        rows = (pages.ends - pages.first_row).tolist()
        for page in range(first, last):
            check_page(self.parts.part(*pages.place(page, page + 1)), rows[page])
        dictionary = self.parts.part(chunk.dictionary, chunk.begin)
        return PageRun(chunk.stored, dictionary, self.parts.part(*pages.place(first, last)), sum(rows[first:last]))

    @cached_property
    def _footer(self) -> Footer:
        end = self._size - TAIL
        size = int.from_bytes(self.parts.part(end, end + 4), "little")
        return Footer(bytes(self.parts.part(end - size, end)))

    @cached_property
    def _places(self) -> dict[str, int]:
        """The flat columns' numbers among the SchemaElements after the root."""
        names = [element[4][1].decode("utf-8") for element in self._footer.schema[1:]]
        return {name: names.index(name) for name in self.flat}

    def _chunk(self, group: int, name: str) -> Chunk:
        known = self._chunks.get((group, name))
        if known is None:
            stored = self._footer.chunk(group, self.flat[name])
            meta = stored[ChunkFields.META][1]
            begin = number(meta, ColumnFields.DATA_OFFSET) or 0
            start = start_of(self.metadata.row_group(group).column(self.flat[name]))
            end = start + (number(meta, ColumnFields.STORED_BYTES) or 0)
            known = self._chunks[group, name] = Chunk(stored, start, begin, end)
        return known

    def _place(self, group: int, name: str, field: int) -> tuple[int, int] | None:
        """Where a part of a column chunk's page index is."""
        stored = self._chunk(group, name).stored
        start, size = number(stored, field), number(stored, field + 1)
        return None if start is None or size is None else (start, start + size)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (pa.ArrowException, OSError, ValueError, KeyError, IndexError) as error:
            text = f"a base file cannot be read: {error}"
            raise CorruptDataError(text, do_next="run binlake fsck", path=self._path) from error


def _without_bounds(item: ColumnRange | None) -> ColumnRange | None:
    """Pages of nulls alone are known whatever the order of the values."""
    return item if item is not None and item.null_count == item.value_count else None
