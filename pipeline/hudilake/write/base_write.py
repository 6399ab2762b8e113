"""A file group's rows written as base files: the log's winners merged over the base file, in temporary files.

One row group each of the old and of the new base file, the winners and the bloom filter are in memory; all other data
is in temporary files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import pyarrow as pa

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.digest.content_sum import NOTHING, ContentSum, total
from hudilake.format.files.base_file import BaseFileRows, open_base_file, rows_at_once
from hudilake.format.files.file_group_write import WriteContext
from hudilake.format.files.names import BaseFileName
from hudilake.format.files.stored_rows import aligned
from hudilake.format.layout.order import Order, within
from hudilake.storage.base import Storage
from hudilake.write.base_sink import BaseFileSink, BaseFileStatistics
from hudilake.write.form import BaseFileForm
from hudilake.write.merge import NotSortedError, SortedLog, merge_any, merge_sorted
from hudilake.write.ordered import OrderedRows, merge_in_order
from hudilake.write.retention import KeptRows


@dataclass(frozen=True)
class BaseOutline:
    """What the base files of one instant have in common.

    Args:
        instant: of their names.
        schema: their columns, meta fields first.
        avro_schema_json: the same as Avro.
        indexed_columns: whose statistics are kept; None for none.
        form: how they are written.
        target_bytes: where rows may go to any file group, the size of a file at which a further one begins if the rest
            makes more than as much again; None for one file a group.
    """

    instant: str
    schema: pa.Schema
    avro_schema_json: str
    indexed_columns: tuple[str, ...] | None
    form: BaseFileForm
    target_bytes: int | None = None

    @property
    def order(self) -> Order | None:
        """The order of the rows in a file; None for that of the record keys, or as they come where there are none."""
        return within(self.form.order, self.schema)

    @classmethod
    def of(cls, context: WriteContext, form: BaseFileForm, target_bytes: int | None = None) -> BaseOutline:
        """Of the base files of a commit, in its codec."""
        form = replace(form, compression=context.compression, compression_level=context.compression_level)
        schema, avro = context.file_schema, context.avro_schema_json
        return cls(context.instant, schema, avro, context.indexed_columns, form, target_bytes)


@dataclass(frozen=True, slots=True)
class MadeBase:
    """A finished base file in a temporary place: its name, the file, its statistics. ``keys``: its record keys; None
    for the file group's own file."""

    name: BaseFileName
    path: Path
    written: BaseFileStatistics
    keys: pa.ChunkedArray | None = None


def write_bases(
    storage: Storage,
    base: tuple[str, int] | None,
    log: SortedLog,
    outline: BaseOutline,
    file_id: Callable[[int], str],
    directory: Path,
    kept: KeptRows | None = None,
) -> list[MadeBase]:
    """Write the base files of a file group into ``directory``, in the order of the outline, even if the old one has
    another one.

    Args:
        storage: the table's root.
        base: path and bytes of the base file to merge with; None for none.
        log: the winners; records what became of them.
        outline: of the files.
        file_id: gives the file id of the first file (0), the group's own, and of further ones.
        directory: an empty one on local disk.
        kept: leaves live rows out; None for none.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    counted = None if kept is None else _counted(kept, log)
    with _opened(storage, base, outline) as old:
        stored = old.num_rows if old is not None else 0
        start = _start(old, outline) if kept is None else None
        log.difference = None if start is None else NOTHING

        def sink() -> _FilesSink:
            return _FilesSink(outline, file_id, directory, log, stored, start)

        if outline.order is None:
            try:
                merged = merge_sorted(_rows(old, outline.schema), log)
                return _filled(sink(), merged if counted is None else counted(merged))
            except NotSortedError:
                log.forget()
        aside, stored_rows = directory / "aside", _rows(old, outline.schema)
        order, at_once = outline.order, outline.form.at_once
        return _filled(sink(), merge_in_order(stored_rows, log, aside, order, at_once, counted))


def write_joined(
    storage: Storage,
    base: tuple[str, int] | None,
    further: Iterable[pa.Table],
    outline: BaseOutline,
    file_id: str,
    directory: Path,
) -> MadeBase:
    """Write the base file of a file group of an append table: the rows of the old one, then further rows, as they come
    or in the order of the outline. No row is merged with another one.

    Args:
        storage, base, outline, directory: as ``write_bases``.
        further: rows in the columns of ``outline.schema``.
        file_id: of the file group.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    name, path = BaseFileName(file_id, outline.instant), directory / "base"
    form = replace(outline.form, bloom_kind=None)  # nobody looks for a key
    with _opened(storage, base, outline) as old:
        contents = [start] if (start := _start(old, outline)) is not None else []
        sink = BaseFileSink(path, outline.schema, str(name), 0, outline.indexed_columns, form, digests=not contents)
        try:
            rows = chain(_rows(old, outline.schema), _noted(further, contents) if contents else further)
            for some in rows if outline.order is None else _laid_out(rows, outline, directory / "aside"):
                sink.write(some)
        except BaseException:
            sink.abandon()
            raise
    return MadeBase(name, path, sink.close(outline.avro_schema_json, total(contents)))


def merge_in_any_order(
    storage: Storage, base: tuple[str, int] | None, log: SortedLog, outline: BaseOutline
) -> Iterator[pa.Table]:
    """The live rows of a file group with the columns of a base file, in any order. Arguments and errors as
    ``write_bases``."""
    with _opened(storage, base, outline) as old:
        yield from merge_any(_rows(old, outline.schema), log)


def _counted(kept: KeptRows, log: SortedLog) -> KeptRows:
    """Also counts the rows that it leaves out."""

    def merged(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for some in rows:
            log.counts.dropped += some.num_rows
            yield some

    def counted(rows: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for some in kept(merged(rows)):
            log.counts.dropped -= some.num_rows
            yield some

    return counted


def _laid_out(rows: Iterable[pa.Table], outline: BaseOutline, aside: Path) -> Iterator[pa.Table]:
    with contextlib.closing(OrderedRows(aside, outline.schema, outline.order)) as ordered:
        for some in rows:
            ordered.add(some)
    yield from ordered.in_order(outline.form.at_once)


class _FilesSink:
    """Takes rows in the order of the files; begins a further file when one is full.

    ``log``: what is merged. ``stored``: the number of rows of the old base file. ``start``: what that one shall hold;
    None if it does not say it, or rows are left out. From there on the first file's sum is that of the difference, so
    its footer waits for the end of the merge.
    """

    def __init__(
        self,
        outline: BaseOutline,
        file_id: Callable[[int], str],
        directory: Path,
        log: SortedLog,
        stored: int,
        start: ContentSum | None,
    ) -> None:
        self._outline, self._file_id, self._directory = outline, file_id, directory
        self._log, self._stored, self._start = log, stored, start
        self._own: tuple[BaseFileName, Path, BaseFileSink] | None = None
        self._taken = 0
        self._bytes_a_row = 0.0
        self._made: list[MadeBase] = []
        self._keys: list[pa.ChunkedArray] = []
        self._begin()

    def write(self, rows: pa.Table) -> None:
        """Add rows."""
        form, step = self._outline.form, max(rows.num_rows, 1)
        if self._outline.target_bytes is not None and rows.num_rows:
            step = rows_at_once(rows, *form.at_once)
        for offset in range(0, rows.num_rows, step):
            self._write(rows.slice(offset, step))

    def _write(self, rows: pa.Table) -> None:
        if self._is_full():
            self._end()
            self._begin()
        self._sink.write(rows)
        self._taken += rows.num_rows
        if self._own is not None:
            self._keys.append(rows.column(RECORD_KEY_FIELD))

    def close(self) -> list[MadeBase]:
        """Finish the last file, and the first one."""
        self._end()
        assert self._own is not None
        name, path, sink = self._own
        contents = None
        if self._start is not None and self._log.difference is not None:
            others = total(made.written.contents for made in self._made if made.written.contents is not None)
            contents = self._start + self._log.difference - others
        written = sink.close(self._outline.avro_schema_json, contents)
        return [MadeBase(name, path, written), *self._made]

    def abandon(self) -> None:
        """Close without finishing."""
        self._sink.abandon()
        if self._own is not None:
            self._own[2].abandon()

    def _is_full(self) -> bool:
        """Whether the file has reached its target, and what is left would make it more than twice as large."""
        target = self._outline.target_bytes
        if target is None:
            return False
        rows, size = self._sink.flushed
        self._bytes_a_row = size / rows if rows else self._bytes_a_row
        left = self._stored + self._log.expected_inserts - self._log.counts.deletes - self._taken
        return rows > 0 and size >= target and size + left * self._bytes_a_row > 2 * target

    def _begin(self) -> None:
        outline, number = self._outline, 0 if self._own is None else 1 + len(self._made)
        self._name = BaseFileName(self._file_id(number), outline.instant)
        self._path = self._directory / f"base-{number}"
        expected = max(1, self._stored + self._log.rows.table.num_rows - self._taken)
        if outline.target_bytes is not None and self._bytes_a_row:
            expected = min(expected, int(2 * outline.target_bytes / self._bytes_a_row) + 1)
        self._sink = BaseFileSink(
            self._path,
            outline.schema,
            str(self._name),
            expected,
            outline.indexed_columns,
            outline.form,
            digests=bool(number) or self._start is None,
        )

    def _end(self) -> None:
        if self._own is None:
            self._own = self._name, self._path, self._sink
            return
        written = self._sink.close(self._outline.avro_schema_json)
        keys = pa.chunked_array([c for part in self._keys for c in part.chunks], pa.string())
        self._made.append(MadeBase(self._name, self._path, written, keys))
        self._keys.clear()


def _filled(sink: _FilesSink, merged: Iterator[pa.Table]) -> list[MadeBase]:
    try:
        for rows in merged:
            sink.write(rows)
    except BaseException:
        sink.abandon()
        raise
    return sink.close()


@contextlib.contextmanager
def _opened(storage: Storage, base: tuple[str, int] | None, outline: BaseOutline) -> Iterator[BaseFileRows | None]:
    if base is None:
        yield None
        return
    with open_base_file(storage, base[0], outline.schema.names, base[1]) as opened:
        yield opened


def _start(old: BaseFileRows | None, outline: BaseOutline) -> ContentSum | None:
    """What the rows of the old base file sum up to; None if it does not say it in kinds of the outline's columns."""
    return NOTHING if old is None or not old.num_rows else old.contents_in(outline.schema)


def _noted(rows: Iterable[pa.Table], contents: list[ContentSum]) -> Iterator[pa.Table]:
    for some in rows:
        contents.append(ContentSum.of_rows(some))
        yield some


def _rows(base: BaseFileRows | None, schema: pa.Schema) -> Iterator[pa.Table]:
    if base is not None:
        for rows in base.row_groups():
            yield aligned(rows, schema)
