"""Rows leave the newest file slices: a commit deletes those that live, a compaction of their file groups alone writes
base files without them, and without their deletes.

Both are what Hudi's own writers do; other file groups are not touched. Of a copy-on-write table the commit does it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from hudilake.commit.compaction_plan import pending_compactions
from hudilake.errors import CommitUnknownError, LostOwnershipError, TransientError
from hudilake.format.definition.change_logs import change_log_of
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.file_group_write import FileGroupWrite, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.read.slice import SliceReader
from hudilake.services.compaction import (
    CompactionConfig,
    execute,
    finish_pending,
    prepare,
    publish_or_unschedule,
    schedule,
)
from hudilake.services.compaction.pending import PATIENCE_S
from hudilake.services.planned import one_by_one
from hudilake.table.table import HudiTable
from hudilake.write.group_writer import BaseWriter, GroupWriter, LogWriter

_log = logging.getLogger(__name__)

#: Tells a table's index which keys a commit takes away: its instant, and its files.
KeepKeys: TypeAlias = Callable[[str, Sequence[WriteResult]], None]
_ATTEMPTS = 5


@dataclass(frozen=True)
class Rewrite:
    """How rows are taken out of a table.

    Args:
        table: open, as a writer.
        compaction: how base files are written, and how long deletes are kept.
        keep_keys: of a table whose index must know its keys; None for others.
        no_texts: columns whose texts tell nothing of a row.
    """

    table: HudiTable
    compaction: CompactionConfig
    keep_keys: KeepKeys | None = None
    no_texts: frozenset[str] = frozenset()

    def take_out(self, groups: Collection[tuple[str, str]], keys: frozenset[str]) -> None:
        """Make newest file slices of some file groups that hold none of the keys.

        Args:
            groups: partition path and file id.
            keys: record keys.

        Raises TransientError while another process compacts one of the file groups, and as ``HudiTable.commit`` and
        ``compaction.complete``. Done again after a crash it does what is left.
        """
        if not groups:
            return
        compacts = self.table.config.kind.has(TableOperation.COMPACTION)
        if compacts:
            finish_pending(self.table, self._without(keys), one_by_one)
        self._delete(groups, keys)
        if compacts:
            self._compact(groups, keys)

    def _delete(self, groups: Collection[tuple[str, str]], keys: frozenset[str]) -> None:
        """Commit the deletes of the rows that live. They need no order: the compaction leaves them out."""
        table = self.table
        table.refresh(begins=True)
        slices = [piece for piece in table.file_slices() if (piece.partition_path, piece.file_id) in groups]
        blooms = table.config.kind.keeps(MetadataPartition.BLOOM_FILTERS)
        # The change log of the newest base file may have a row that lives no more: it gets a base file anew.
        logs_changes = change_log_of(table.config.extra) is not None
        living = {piece: alive for piece in slices if len(alive := self._living(piece, keys)) or logs_changes}
        if not living:
            return
        instant = table.begin()
        try:
            context = table.write_context(instant)
            writer: GroupWriter = LogWriter(context)
            if not table.config.kind.has(TableOperation.COMPACTION):
                bases = {piece.file_id: piece.base_file for piece in living if piece.base_file is not None}
                form = self.compaction.form
                form = form if blooms else replace(form, bloom_kind=None)
                writer = BaseWriter(context, bases, form=form, tells=False)
            results: list[WriteResult] = []
            for piece, alive in living.items():
                orders = pa.nulls(len(alive), pa.int64())
                deletes = pa.table({RECORD_KEY_FIELD: alive, table.config.ordering_field: orders})
                group = FileGroupWrite(piece.partition_path, piece.file_id, None, deletes)
                results += writer.write(table.storage, group)
            if self.keep_keys is not None:
                self.keep_keys(instant, results)
            table.commit(instant, results, whole=False)
        except (CommitUnknownError, LostOwnershipError):
            raise
        except BaseException:
            table.abort(instant)
            raise

    def _living(self, piece: FileSlice, keys: frozenset[str]) -> pa.Array:
        """Those of the keys that have a row in a file slice, in order."""
        table = self.table
        schema = pa.schema([pa.field(RECORD_KEY_FIELD, pa.string())])
        reader = SliceReader(table.storage, schema, table.config.ordering_field, table.timeline, kind=table.config.kind)
        known = reader.read(piece).column(RECORD_KEY_FIELD)
        mine = known.filter(pc.is_in(known, value_set=pa.array(sorted(keys), pa.string())))
        return mine.take(pc.sort_indices(mine)).combine_chunks()

    def _without(self, keys: frozenset[str]) -> CompactionConfig:
        return self.compaction.model_copy(update={"erased_keys": keys})

    def _compact(self, groups: Collection[tuple[str, str]], keys: frozenset[str]) -> None:
        table, config = self.table, self._without(keys)
        for _ in range(_ATTEMPTS):
            requested = schedule(table, config, among=groups)
            if requested is None and not (pending_compactions(table.timeline) or table.state.planned()):
                return  # a compaction that an earlier attempt had planned has done it
            if requested is None:
                break
            job = prepare(table, requested, config)
            try:
                made = execute(job, one_by_one)
            except BaseException:
                table.ownership.end(requested.requested_time)
                raise
            if publish_or_unschedule(table, job, made, PATIENCE_S) is not None:
                _log.info(
                    "%s: %d file groups written without erased rows",
                    table.storage.uri,
                    len(made),
                    extra={"event": "erased_rows_left_out", "table": table.storage.uri},
                )
                return
        raise TransientError(
            "the file groups cannot be compacted while another process compacts or clusters them",
            do_next="run it again when that is done: it goes on",
            table=table.config.name,
        )
