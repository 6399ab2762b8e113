"""Tables whose index is looked up: rows are where the index says, and rows of new keys fill small file groups."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from binlake.rows.merging.engines.heights import FactHeights
from binlake.rows.merging.tombstones import TombstoneFiles
from binlake.rows.tagging.deletes import keep_deletes, keep_removed
from binlake.rows.tagging.events import joined
from binlake.rows.tagging.tag import TaggedEvents, Tagger
from binlake.rows.tagging.writing import TaggedWriter
from binlake.rows.tasks.plan import WrittenFile
from binlake.rows.upsert.merge import Place, records
from binlake.tables.kinds.rows import TableRows, Wrote
from hudilake.clock import monotonic_s
from hudilake.commit.intent import WHOLE_TABLE, Intent
from hudilake.format.definition.placement import LOOKED_UP_BUCKET
from hudilake.format.files.file_group_write import WriteContext, WriteResult
from hudilake.format.files.view import FileSlice
from hudilake.index.base import KeyIndex
from hudilake.index.open import open_index

_log = logging.getLogger(__name__)


@dataclass
class LookedUpRows(TableRows):
    """The rows of a table whose index is looked up; the bucket of a place does not matter.

    ``_deleted``: the files of deletes that were read before.
    """

    _deleted: TombstoneFiles = field(default_factory=TombstoneFiles)

    @cached_property
    def key_index(self) -> KeyIndex:
        """The index that finds the rows, opened once."""
        return open_index(self.table, self.rules.index)

    def written_by_tasks(self, *, shuffled: bool) -> bool:
        """They cannot: the driver looks the rows up."""
        return False

    def place_of(self, piece: FileSlice) -> Place:
        """The partition path and ``LOOKED_UP_BUCKET``."""
        return piece.partition_path, LOOKED_UP_BUCKET

    @property
    def own_bucketing(self) -> None:
        """It has no buckets."""
        return

    def intent(self, places: Sequence[Place], columns: pa.Schema) -> Intent:
        """Any file group may have the keys."""
        return WHOLE_TABLE

    def write(
        self,
        groups: Mapping[Place, pa.Table],
        context: WriteContext,
        pool: Executor,
        heights: FactHeights,
    ) -> Wrote:
        """Find the file groups of the rows and write them. ``keep_keys`` tells the index of them."""
        by_path = {path: rows for (path, _), rows in groups.items() if len(rows)}
        if not by_path:
            return Wrote([], {"tag": 0.0})
        started = monotonic_s()
        tagger = Tagger(self.table, self.key_index, self.rules.files, pool, self._deleted)
        tagged = tagger.tag(joined(by_path), context.instant)
        tag_ms = (monotonic_s() - started) * 1000
        _log_lookup(self.rules.path, tagged, tag_ms)
        logs = replace(context, base_from_rows=None)
        writer = TaggedWriter(self.storage, self.group_writer(logs), self.base_writer(context))
        results = writer.write(tagged, pool)
        keep_deletes(self.table, context.instant, tagged.events, tagged.placed)
        superseded = sum(map(records, by_path.values())) - tagged.applied
        path = self.rules.path
        done = [WrittenFile(path, None, superseded), *(WrittenFile(path, result, 0) for result in results)]
        return Wrote(done, {"tag": tag_ms})

    def keep_keys(self, instant: str, results: Sequence[WriteResult]) -> None:
        """An index of its own must know; base files are their own index."""
        if self.table.config.kind.keeps_keys:
            self.key_index.keep(instant, [result.keys for result in results if result.keys is not None])

    def keep_removed(self, instant: str, removed: Sequence[tuple[str, pa.Table]]) -> None:
        """Deletes are kept for the whole table: the next row of a key may go to any file group."""
        keep_removed(self.table, instant, removed)


def _log_lookup(path: str, tagged: TaggedEvents, tag_ms: float) -> None:
    cost = {name: value for name, value in asdict(tagged.cost).items() if name != "seconds"}
    moves, new = len(tagged.placed.moves), len(tagged.placed.inserts)
    fields = {"event": "tagged", "table": path, "tag_ms": round(tag_ms, 1), "moves": moves, **cost}
    text = "%s: %d keys looked up in %d of %d files, %d new rows"
    _log.info(text, path, cost["keys"], cost["files_read"], cost["files"], new, extra=fields)
