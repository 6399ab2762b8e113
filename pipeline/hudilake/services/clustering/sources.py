"""The rows of the file slices that a clustering reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from hudilake.format.files.append import rows_never_merge
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.stored_rows import aligned
from hudilake.services.clustering.context import LayOutContext
from hudilake.services.compaction.plan import Operation
from hudilake.services.compaction.task import merged_rows, read_log
from hudilake.storage.base import Storage, StorageNotFoundError
from hudilake.write.merge import SortedLog


def rows_of(storage: Storage, context: LayOutContext, source: Operation) -> Iterator[pa.Table]:
    """The live rows of a slice in any order, in the columns of ``context.stored``. Errors as ``lay_out``."""
    merging = context.merging
    if not source.log_files:
        yield from _base_rows(storage, source, context.stored)
    elif merging.appends and rows_never_merge(source.log_files):
        yield from _base_rows(storage, source, context.stored)
        for rows in read_log(storage, merging, source).events.tables:
            yield rows.select(context.stored.names)
    else:
        log = SortedLog(read_log(storage, merging, source).events)
        for rows in merged_rows(storage, merging, source, log):
            yield rows.select(context.stored.names)


def columns_of(
    storage: Storage, context: LayOutContext, source: Operation, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Some columns of the rows in a slice's files, not merged: of a changed row each version. Errors as ``lay_out``."""
    schema = pa.schema([context.stored.field(name) for name in columns])
    yield from _base_rows(storage, source, schema)
    if source.log_files:
        for rows in read_log(storage, context.merging, source).events.tables:
            yield rows.select(columns)


def _base_rows(storage: Storage, source: Operation, schema: pa.Schema) -> Iterator[pa.Table]:
    if source.base_file is None:
        return
    path = source.path(source.base_file)
    info = storage.stat(path)
    if info is None:
        raise StorageNotFoundError("a base file of the plan does not exist", do_next="run binlake fsck", path=path)
    with open_base_file(storage, path, schema.names, info.size) as base:
        for rows in base.row_groups():
            yield aligned(rows, schema)
