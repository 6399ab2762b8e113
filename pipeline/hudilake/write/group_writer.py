"""How the rows of a commit are written to a file group: as a log file, or by a new base file."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.errors import UnsupportedError
from hudilake.format.definition.new_file_id import new_file_id
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.change_log import MergeChanges, encode_change_log
from hudilake.format.files.file_group_write import (
    FileGroupWrite,
    KeyChanges,
    WriteContext,
    WriteResult,
    data_rows,
    write_file_group,
)
from hudilake.format.files.first_write import WriteBase, refuse_partials, write_base_anew, write_new_file_group
from hudilake.format.files.log_events import LogEvents
from hudilake.format.files.names import ChangeLogName, in_partition, marker_path
from hudilake.format.files.view import BaseFile
from hudilake.policies import FileSizePolicy
from hudilake.storage.base import Storage
from hudilake.write.base_sink import mapped
from hudilake.write.base_write import BaseOutline, MadeBase, write_bases
from hudilake.write.form import BaseFileForm
from hudilake.write.merge import SortedLog

NO_KEYS: Final = pa.nulls(0, pa.string())


class GroupWriter(Protocol):
    """Writes file groups of one commit. Picklable, for tasks use it; the same write gives the same files."""

    @property
    def context(self) -> WriteContext:
        """The context of the commit."""
        ...

    @property
    def keeps_deletes(self) -> bool:
        """Whether the orders of deletes must be kept beside the files, which forget them
        (``binlake.rows.merging.deleted_keys``).
        """
        ...

    def write(self, storage: Storage, group: FileGroupWrite) -> list[WriteResult]:
        """Write a file group's rows. Returns the files; none if no row changes.

        Where the table keeps an index of its keys (``context.states_keys``), the results say which keys come and go:
        deletes are of rows that live in this file group, and a log file gets no rows of new keys.

        Raises UnsupportedError for columns that the schema lacks, values it cannot hold, or partial rows of a new file
        group; CorruptDataError for a base file that cannot be read; StorageError.
        """
        ...

    def write_anew(self, storage: Storage, group: FileGroupWrite, gone: pa.Array = NO_KEYS) -> list[WriteResult]:
        """Write all rows that a file group shall have, whatever it has now: ``group.upserts``, a table without rows for
        none. The file group begins a new file slice.

        ``gone``: the keys of the rows that lived in the file group and are not in it any more, string array: the index
        of the keys is given them. ``group.deletes`` may have more, of rows that live elsewhere by now. Errors as
        ``write``.
        """
        ...


@dataclass(frozen=True)
class LogWriter:
    """Writes log files, and the first rows of a file group as a base file if ``context.base_from_rows`` says so.

    Args:
        context: of the commit.
        existing: partition path and file id of the existing file groups; needed only with ``base_from_rows``.
        form: of base files whose rows have an order; those in key order are made in memory.
    """

    context: WriteContext
    existing: Collection[tuple[str, str]] = frozenset()
    keeps_deletes: bool = False
    form: BaseFileForm = field(default_factory=BaseFileForm)

    def write(self, storage: Storage, group: FileGroupWrite) -> list[WriteResult]:
        """Writes the rows to a log file, those of a new file group to a base file. Errors as ``GroupWriter.write``."""
        if group.is_empty:
            return []
        first = (group.partition_path, group.file_id) not in self.existing
        if first and self.context.base_from_rows is not None:
            return write_new_file_group(storage, self.context, group, self._write_base)
        written = write_file_group(storage, self.context, group)
        deleted = NO_KEYS if group.deletes is None else _one(group.deletes.column(RECORD_KEY_FIELD))
        return _stating(self.context, group, [written], deleted)

    def write_anew(self, storage: Storage, group: FileGroupWrite, gone: pa.Array = NO_KEYS) -> list[WriteResult]:
        """Writes all rows to a new base file, the deletes to a log file over it. Errors as ``GroupWriter.write``."""
        return _stating(self.context, group, write_base_anew(storage, self.context, group, self._write_base), gone)

    @property
    def _write_base(self) -> WriteBase | None:
        return None if self.form.order is None else self._write_in_order

    def _write_in_order(self, storage: Storage, context: WriteContext, group: FileGroupWrite) -> WriteResult:
        writer = BaseWriter(context, {}, form=self.form)
        (result,) = writer.write_anew(storage, replace(group, deletes=None))
        return replace(result, keys=None)


@dataclass(frozen=True)
class BaseWriter:
    """Writes a new base file of the same file group: the commit's rows merged over the rows of the base file.

    Args:
        context: of the commit.
        bases: the base files to merge with, by file id; a file group without one is new.
        sizes: where rows may go to any file group, how large files become: what is too much for one goes to new file
            groups. None where a row's file group is computed.
        keeps_deletes: as ``GroupWriter``.
        form: of the base files.
        tells: whether change logs have what changes. An erasure writes empty ones: they would have the erased rows.
    """

    context: WriteContext
    bases: Mapping[str, BaseFile]
    sizes: FileSizePolicy | None = None
    keeps_deletes: bool = False
    form: BaseFileForm = field(default_factory=BaseFileForm)
    tells: bool = True

    def write(self, storage: Storage, group: FileGroupWrite) -> list[WriteResult]:
        """Merges the rows over the base file and writes new base files. Errors as ``GroupWriter.write``."""
        base = self.bases.get(group.file_id)
        if base is None:
            refuse_partials(group)
            if group.upserts is None and (group.deletes is None or self.sizes is not None):
                return []
        # Deletes of rows that never came are kept beside the file group: with an empty file, its id lasts.
        return self._write(storage, group, base, anew=base is None)

    def write_anew(self, storage: Storage, group: FileGroupWrite, gone: pa.Array = NO_KEYS) -> list[WriteResult]:
        """Writes all rows to new base files, which have no deletes. Errors as ``GroupWriter.write``."""
        refuse_partials(group)
        if self.context.change_log is not None and group.file_id in self.bases:
            raise UnsupportedError(
                "the table has change logs: a file group cannot be written anew, for it is not said what changes in it",
                do_next="make a new table for this, or set hoodie.table.cdc.enabled to false with Hudi",
                table=self.context.table_name,
                file_group=group.file_id,
            )
        own, *further = self._write(storage, replace(group, deletes=None), None, anew=True)
        if own.keys is not None:
            own = replace(own, keys=replace(own.keys, deleted=gone))
        return [own, *further]

    def _write(
        self, storage: Storage, group: FileGroupWrite, base: BaseFile | None, *, anew: bool
    ) -> list[WriteResult]:
        log = SortedLog(_events(self.context, group))
        logs_changes = self.context.change_log is not None and base is not None
        log.changes = MergeChanges() if logs_changes else None
        source = None if base is None else (base.path, base.size)
        with tempfile.TemporaryDirectory(prefix="binlake-rewrite-") as directory:
            outline = self._outline(may_split=not logs_changes)
            made = write_bases(storage, source, log, outline, _file_ids(self.context, group), Path(directory))
            if not (anew or log.changes_base or not self.tells):
                return []
            return [self._published(storage, group, log, made, number) for number in range(len(made))]

    def _outline(self, *, may_split: bool) -> BaseOutline:
        """``may_split``: whether rows may go to further file groups. Hudi's CDC query takes all rows of a file group's
        first file for new ones, so rows that lived elsewhere may not be in it."""
        form, target = self.form, self.sizes.target_bytes if self.sizes is not None and may_split else None
        if target is not None:  # a file ends after a row group
            form = replace(form, row_group_bytes=min(form.row_group_bytes, target))
        return BaseOutline.of(self.context, form, target)

    def _published(
        self, storage: Storage, group: FileGroupWrite, log: SortedLog, files: Sequence[MadeBase], number: int
    ) -> WriteResult:
        """Move one of the finished files to its place. ``number``: 0 for the file group's own, which states the
        commit's updates and deletes."""
        made = files[number]
        name, old = str(made.name), self.bases.get(group.file_id)
        storage.write(marker_path(self.context.instant, group.partition_path, name), b"")
        content = mapped(made.path)
        storage.write(in_partition(group.partition_path, name), content)
        own, keys = number == 0, made.written.keys or ("", "")
        change_log = self._write_changes(storage, group, log.changes) if log.changes is not None else None
        return WriteResult(
            partition_path=group.partition_path,
            file_id=made.name.file_id,
            file_name=name,
            size_bytes=len(content),
            num_upserts=made.written.rows,
            num_deletes=log.counts.deletes if own else 0,
            min_record_key=keys[0],
            max_record_key=keys[1],
            ranges=made.written.ranges,
            bloom=made.written.bloom,
            keys=_key_changes(group, log, files, number) if self.context.states_keys else None,
            replaces=str(old.name) if own and old is not None else None,
            num_inserts=min(log.counts.inserts, made.written.rows) if own else None,
            num_updates=log.counts.updates if own else 0,
            contents=made.written.contents,
            change_log=change_log,
        )

    def _write_changes(self, storage: Storage, group: FileGroupWrite, changes: MergeChanges) -> tuple[str, int]:
        """Write the change log of the file group. Returns its name and bytes."""
        context, name = self.context, str(ChangeLogName(group.file_id, self.context.instant))
        assert context.change_log is not None
        mode, columns = context.change_log, context.arrow_schema
        data = encode_change_log(context.instant, mode, columns, context.table_name, changes.rows if self.tells else ())
        storage.write(marker_path(context.instant, group.partition_path, name), b"")
        storage.write(in_partition(group.partition_path, name), data)
        return name, len(data)


def _events(context: WriteContext, group: FileGroupWrite) -> LogEvents:
    events = LogEvents(context.file_schema, context.ordering_field)
    whole, partials = data_rows(context, group)
    events.add_write(context.instant, whole, partials, group.deletes)
    return events


def _file_ids(context: WriteContext, group: FileGroupWrite) -> Callable[[int], str]:
    """The file group's own id, then those of new file groups: every attempt of a task computes the same."""

    def name(number: int) -> str:
        if number == 0:
            return group.file_id
        return new_file_id(context.table_name, context.instant, group.partition_path, group.file_id, str(number))

    return name


def _stating(
    context: WriteContext, group: FileGroupWrite, results: list[WriteResult], deleted: pa.Array
) -> list[WriteResult]:
    """The files of a file group whose keys were all in it before; the first one says which are deleted."""
    if not context.states_keys:
        return results
    changes = (KeyChanges(group.partition_path, group.file_id, NO_KEYS, gone) for gone in (deleted, NO_KEYS))
    return [replace(result, keys=keys) for result, keys in zip(results, changes, strict=False)]


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays([*column.chunks, NO_KEYS])


def _key_changes(group: FileGroupWrite, log: SortedLog, files: Sequence[MadeBase], number: int) -> KeyChanges:
    """The keys of a further file are all new in its file group. Rows that went there are not deleted."""
    made = files[number]
    if made.keys is not None:
        return KeyChanges(group.partition_path, made.name.file_id, _one(made.keys), NO_KEYS)
    inserted = log.winners.keys.filter(pa.array(log.inserted))
    for other in files:
        if other.keys is not None:
            inserted = inserted.filter(pc.invert(pc.is_in(inserted, value_set=_one(other.keys))))
    deleted = log.winners.keys.filter(pa.array(log.deleted))
    return KeyChanges(group.partition_path, made.name.file_id, inserted, deleted)
