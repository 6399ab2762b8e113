"""The rows of the file slices that a clustering reads, and the ranges by which an order numbers their values: from
samples of all slices, of each unit by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from hudilake.commit.compaction_plan import CompactionOperation
from hudilake.format.files.append import rows_never_merge
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.stored_rows import aligned
from hudilake.services.clustering.config import LayOutContext
from hudilake.services.clustering.plan import ClusteringUnit
from hudilake.services.compaction.task import merged_rows, read_log
from hudilake.services.planned import MapTasks
from hudilake.storage.base import Storage, StorageNotFoundError
from hudilake.write.merge import SortedLog

if TYPE_CHECKING:
    from hudilake.format.layout.sketch import Sketch


def rows_of(storage: Storage, context: LayOutContext, source: CompactionOperation) -> Iterator[pa.Table]:
    """The live rows of a slice in any order, in the columns of ``context.stored``. Errors as ``lay_out``."""
    merging = context.merging
    if not source.log_files:
        yield from _base_rows(storage, source, context.stored)
    elif rows_never_merge(merging.kind, source.log_files):
        yield from _base_rows(storage, source, context.stored)
        for rows in read_log(storage, merging, source).events.tables:
            yield rows.select(context.stored.names)
    else:
        log = SortedLog(read_log(storage, merging, source).events)
        for rows in merged_rows(storage, merging, source, log):
            yield rows.select(context.stored.names)


def columns_of(
    storage: Storage, context: LayOutContext, source: CompactionOperation, columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Some columns of the rows in a slice's files, not merged: of a changed row each version. Errors as ``lay_out``."""
    schema = pa.schema([context.stored.field(name) for name in columns])
    yield from _base_rows(storage, source, schema)
    if source.log_files:
        for rows in read_log(storage, context.merging, source).events.tables:
            yield rows.select(columns)


def _base_rows(storage: Storage, source: CompactionOperation, schema: pa.Schema) -> Iterator[pa.Table]:
    if source.base_file is None:
        return
    path = source.path(source.base_file)
    info = storage.stat(path)
    if info is None:
        raise StorageNotFoundError("a base file of the plan does not exist", do_next="run binlake fsck", path=path)
    with open_base_file(storage, path, schema.names, info.size) as base:
        for rows in base.row_groups():
            yield aligned(rows, schema)


@dataclass(frozen=True, slots=True)
class _SampleTask:
    """A task's part: a slice of a unit.

    Args:
        unit, number: of the unit in the clustering, and of the slice in the unit.
        source: the slice.
        size: the most rows of the sample.
    """

    unit: int
    number: int
    source: CompactionOperation
    size: int


def with_bounds(
    storage: Storage, context: LayOutContext, units: Sequence[ClusteringUnit], map_tasks: MapTasks
) -> list[ClusteringUnit]:
    """The units with the bounds of their values' ranges, if the order numbers values by sampled ranges.

    Slices whose samples are too small for their rows are sampled again.

    Args:
        storage: the table's root.
        context: of the clustering.
        units: to lay out.
        map_tasks: where the work runs.

    Errors as ``lay_out``.
    """
    order = context.order
    if order is None or not order.sampled:
        return list(units)
    from hudilake.format.layout.bounds import bounds_of  # needs compiled loops, seconds to import
    from hudilake.format.layout.sketch import heavy, sample_size

    sketches = _sketches(storage, context, _every(units, sample_size), map_tasks)
    again = [
        _SampleTask(number, place, unit.sources[place], size)
        for number, unit in enumerate(units)
        for place, size in heavy([sketches[number, n] for n in range(len(unit.sources))]).items()
    ]
    sketches |= _sketches(storage, context, again, map_tasks)
    return [
        replace(unit, bounds=bounds_of(order, [sketches[number, n] for n in range(len(unit.sources))]))
        for number, unit in enumerate(units)
    ]


def _every(units: Sequence[ClusteringUnit], size: Callable[[int], int]) -> Iterator[_SampleTask]:
    for number, unit in enumerate(units):
        for place, source in enumerate(unit.sources):
            yield _SampleTask(number, place, source, size(len(unit.sources)))


def _sketches(
    storage: Storage, context: LayOutContext, parts: Iterable[_SampleTask], map_tasks: MapTasks
) -> dict[tuple[int, int], Sketch]:
    wanted = list(parts)
    made = map_tasks(partial(_sketch, storage, context), wanted) if wanted else []
    return {(part.unit, part.number): one for part, one in zip(wanted, made, strict=True)}


def _sketch(storage: Storage, context: LayOutContext, part: _SampleTask) -> Sketch:
    """Sample a slice. Rows that its log files change count twice: a bound moves by little, and no row is lost by it."""
    assert context.order is not None
    from hudilake.format.layout.sketch import sketch

    rows = columns_of(storage, context, part.source, context.order.columns)
    return sketch(context.order, rows, part.number, part.size)
