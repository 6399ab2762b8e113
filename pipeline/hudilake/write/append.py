"""Rows of an append table: they have no key, so they go to the end of any open file group.

A commit of a writer adds one file to an open file group: a log file, or, in a copy-on-write table, a base file with the
rows of the old one and the new rows. A new file group begins with a base file. Nothing is looked up or merged.

Names and bytes depend on the commit, the writer's number and the rows alone, so a retried or speculative task
overwrites its own files with the same bytes.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa

from hudilake.format.definition.new_file_id import new_file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.append import OpenGroup, append_keys
from hudilake.format.files.base_file import rows_at_once
from hudilake.format.files.file_group_write import FileGroupWrite, WriteContext, WriteResult, write_file_group
from hudilake.format.files.names import in_partition, marker_path
from hudilake.format.files.stored_rows import aligned, stored_rows
from hudilake.format.files.view import BaseFile
from hudilake.policies import FileSizePolicy
from hudilake.storage.base import Storage
from hudilake.write.base_sink import mapped
from hudilake.write.base_write import BaseOutline, write_joined
from hudilake.write.form import BaseFileForm

#: How many decoded bytes make one stored byte at least: a piece of so many times the room of a file group fits in it.
_LEAST_COMPRESSION = 2


@dataclass(frozen=True)
class AppendedRows:
    """Rows of one writer for one partition. ``rows``: the record key and columns of the table."""

    number: int
    partition_path: str
    rows: pa.Table


@dataclass(frozen=True)
class AppendWriter:
    """Writes rows of one commit of an append table. It can be pickled; several writers of a commit have numbers.

    Args:
        context: of the commit.
        sizes: how large files become.
        groups: the open file groups by partition path; writer n takes the n-th.
        copies: whether it is a copy-on-write table.
        form: of the base files.
    """

    context: WriteContext
    sizes: FileSizePolicy
    groups: Mapping[str, tuple[OpenGroup, ...]]
    copies: bool = False
    form: BaseFileForm = field(default_factory=BaseFileForm)

    def keyed(self, number: int, by_path: Mapping[str, pa.Table]) -> list[AppendedRows]:
        """The rows of one writer with their record keys.

        Args:
            number: of the writer, unique in the commit.
            by_path: rows by partition path: columns of the table.
        """
        parts, first = [], 0
        for path, rows in by_path.items():
            keys = append_keys(self.context.instant, number, first, rows.num_rows)
            keyed = rows.add_column(0, pa.field(RECORD_KEY_FIELD, pa.string()), keys)
            parts.append(AppendedRows(number, path, keyed))
            first += rows.num_rows
        return parts

    def write(self, storage: Storage, part: AppendedRows) -> list[WriteResult]:
        """Write rows of one partition: to the writer's open file group as far as they fit, and to new ones.

        Args:
            storage: the table's root.
            part: n rows; no file for none.

        Raises UnsupportedError for columns that the schema lacks or values it cannot hold, CorruptDataError for a base
        file that cannot be read, StorageError.
        """
        return list(self._written(storage, part.number, part.partition_path, part.rows))

    def group_of(self, number: int, path: str) -> OpenGroup | None:
        """The open file group that a writer takes in a partition; None if it begins a new one."""
        groups = self.groups.get(path, ())
        return groups[number] if number < len(groups) else None

    def _written(self, storage: Storage, number: int, path: str, rows: pa.Table) -> Iterator[WriteResult]:
        held = self.group_of(number, path)
        offset = piece = 0
        while offset < rows.num_rows:
            room = self.sizes.target_bytes - (held.size if held is not None else 0)
            taken = rows.slice(offset, rows_at_once(rows, rows.num_rows, max(room, 1) * _LEAST_COMPRESSION))
            name = new_file_id(self.context.table_name, self.context.instant, path, f"{number}.{piece}")
            group = FileGroupWrite(path, held.file_id if held else name, taken, only_inserts=True)
            if held is None or self.copies:
                yield self._base(storage, group, held.base if held is not None else None)
            else:
                yield replace(write_file_group(storage, self.context, group), num_inserts=taken.num_rows)
            held, offset, piece = None, offset + taken.num_rows, piece + 1

    def _base(self, storage: Storage, group: FileGroupWrite, old: BaseFile | None) -> WriteResult:
        """A base file with the rows of the old one, if there is one, and those of the commit."""
        context, path = self.context, group.partition_path
        assert group.upserts is not None
        stored = stored_rows(group.upserts, context.arrow_schema, context.instant, path, group.file_id)
        further = aligned(stored, context.file_schema)
        source = (old.path, old.size) if old is not None else None
        with tempfile.TemporaryDirectory(prefix="binlake-append-") as directory:
            made = write_joined(
                storage, source, [further], BaseOutline.of(context, self.form), group.file_id, Path(directory)
            )
            content, name, keys = mapped(made.path), str(made.name), made.written.keys or ("", "")
            storage.write(marker_path(context.instant, path, name), b"")
            storage.write(in_partition(path, name), content)
        return WriteResult(
            partition_path=path,
            file_id=group.file_id,
            file_name=name,
            size_bytes=len(content),
            num_upserts=made.written.rows,
            num_deletes=0,
            min_record_key=keys[0],
            max_record_key=keys[1],
            ranges=made.written.ranges,
            replaces=str(old.name) if old is not None else None,
            num_inserts=group.upserts.num_rows,
            contents=made.written.contents,
        )
