"""A table's part of a batch where the index is looked up: find the file groups of rows, and write them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import asdict, replace

import pyarrow as pa

from binlake.rows.tagging.deletes import keep_deletes
from binlake.rows.tagging.events import joined
from binlake.rows.tagging.tag import Tagged, Tagger
from binlake.rows.tagging.writing import TaggedWriter
from binlake.rows.tasks.plan import Written
from binlake.rows.upsert.merge import Place, records
from binlake.tables.lake_table import LakeTable
from hudilake.clock import monotonic_s
from hudilake.format.files.file_group_write import WriteContext

_log = logging.getLogger(__name__)


def write_looked_up(
    table: LakeTable, groups: Mapping[Place, pa.Table], context: WriteContext, pool: Executor
) -> tuple[list[Written], float]:
    """Write the rows of a commit. Its ``LakeTable.commit`` tells the index of them.

    Args:
        table: open, on the state that the commit is based on.
        groups: rows as parcels hold them, by partition path (the bucket does not matter).
        context: of the commit.
        pool: file groups are read and written side by side.

    Returns what was written, and the time of the stage ``tag`` in milliseconds. Raises CorruptDataError,
    UnsupportedError, StorageError.
    """
    by_path = {path: rows for (path, _), rows in groups.items() if len(rows)}
    if not by_path:
        return [], 0.0
    started = monotonic_s()
    tagger = Tagger(table.table, table.key_index, table.rules.files, pool, table.deleted_keys)
    tagged = tagger.tag(joined(by_path), context.instant)
    tag_ms = (monotonic_s() - started) * 1000
    _log_lookup(table, tagged, tag_ms)
    logs = replace(context, base_from_rows=None)
    writer = TaggedWriter(table.storage, table.group_writer(logs), table.base_writer(context))
    results = writer.write(tagged, pool)
    keep_deletes(table.table, context.instant, tagged.events, tagged.placed)
    superseded = sum(map(records, by_path.values())) - tagged.applied
    path = table.rules.path
    return [Written(path, None, superseded), *(Written(path, result, 0) for result in results)], tag_ms


def _log_lookup(table: LakeTable, tagged: Tagged, tag_ms: float) -> None:
    cost = {name: value for name, value in asdict(tagged.cost).items() if name != "seconds"}
    moves, new = len(tagged.placed.moves), len(tagged.placed.inserts)
    fields = {"event": "tagged", "table": table.rules.path, "tag_ms": round(tag_ms, 1), "moves": moves, **cost}
    text = "%s: %d keys looked up in %d of %d files, %d new rows"
    _log.info(text, table.rules.path, cost["keys"], cost["files_read"], cost["files"], new, extra=fields)
