"""What a plan would read of its base files, by their footers and page indexes; no data are read."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hudilake.format.files.lance_file import is_lance
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.format.files.view import BaseFile
from hudilake.read.filters.expressions import columns_of
from hudilake.read.inside.base_rows import chosen_rows, tally_of, whole_file
from hudilake.read.inside.contested import NOT_HELD_BACK
from hudilake.read.inside.tally import ReadTally
from hudilake.read.plan import ScanPlan, SliceScan

#: The most files whose footers are read.
MOST_FILES = 64
_PARALLEL = 8


@dataclass(frozen=True)
class PlannedReads:
    """``tally``: what would be read of the first files. ``files``: all base files of the plan. ``with_logs``: those of
    the first files whose slices have log files: rows of the log may need more of them (``contested``)."""

    tally: ReadTally
    files: int
    with_logs: int


def planned_reads(plan: ScanPlan, most_files: int = MOST_FILES) -> PlannedReads | None:
    """What the plan would read inside of its base files; None if its condition leaves nothing out.

    Raises CorruptDataError, UnsupportedError, StorageError.
    """
    base_files = [(one.base_file, bool(one.log_files)) for one in plan.slices if one.base_file is not None]
    if not columns_of(plan.condition) or not base_files:
        return None
    some = base_files[:most_files]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        tallies = list(pool.map(lambda one: _planned(plan.scan, one[0]), some))
    return PlannedReads(_sum(tallies), len(base_files), sum(has_logs for _, has_logs in some))


def _planned(scan: SliceScan, base: BaseFile) -> ReadTally:
    if is_lance(base.path):
        return whole_file(base)
    file = ChunkedFile(scan.reader.storage, base.path, base.size)
    schema = scan.reader.working_schema()
    return tally_of(file, schema.names, chosen_rows(file, schema, scan.condition, NOT_HELD_BACK))


def _sum(tallies: Sequence[ReadTally]) -> ReadTally:
    total = ReadTally()
    for one in tallies:
        total.add(one)
    return total
