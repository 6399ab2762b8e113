"""What each step of a plan left to read, as numbers and bars: a row for a step, a column for each thing counted.

The facts are those of ``binlake explain``, and of a query that ran what it counted (``--counts``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from binlake.cli.text import number, size
from hudilake.errors import LakeError
from hudilake.read import ScanPlan
from hudilake.read.inside.planned import PlannedReads, planned_reads
from hudilake.read.inside.tally import ReadTally
from hudilake.wording import counted

MEASURES = ("partitions", "slices", "files", "row groups")


@dataclass(frozen=True, slots=True)
class PlanCell:
    """A count, and its share of what there is; None where it is not known."""

    count: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A step: a cell for each of ``MEASURES``."""

    name: str
    why: str
    cells: Sequence[PlanCell]


@dataclass(frozen=True)
class PlanPicture:
    """The steps of the plan of a table.

    ``left``: what is left, in a sentence. ``notes``: what could not be used, and other remarks.
    """

    table: str
    rows: Sequence[PlanRow]
    left: str
    notes: Sequence[str]


def plan_picture(plan: ScanPlan, tally: ReadTally | None = None) -> PlanPicture:
    """The picture of a plan; the footers of some of its base files are read.

    ``tally``: what a query has read by this plan, if it is known and the query reads no other table.
    """
    notes = list(map(str, plan.warnings))
    try:
        inside = planned_reads(plan)
    except LakeError as error:
        inside = None
        notes.append(f"row groups are not known: {error.what}")
    if inside is not None and inside.tally.files < inside.files:
        notes.append(
            f"row groups are those of the first {number(inside.tally.files)} of {counted(inside.files, 'file')}"
        )
    if inside is not None and inside.with_logs:
        notes.append(f"log files of {number(inside.with_logs)} of them may need more of their row groups")
    if plan.counted:
        rows = sum(one.rows for one in plan.counted)
        notes.append(
            f"counted in the metadata table: {counted(len(plan.counted), 'file slice')}, {counted(rows, 'row')}"
        )
    rest = f"{counted(len(plan.slices), 'file slice')}, {counted(plan.files, 'file')}, {size(plan.size)}"
    return PlanPicture(plan.table, list(_rows(plan, inside, tally)), f"left to read: {rest}", notes)


def _rows(plan: ScanPlan, inside: PlannedReads | None, tally: ReadTally | None) -> Iterator[PlanRow]:
    wholes: list[int | None] = [None] * len(MEASURES)
    for step in plan.steps:
        counts = (step.partitions, step.slices, step.files, None)
        wholes = [whole if whole is not None else count for whole, count in zip(wholes, counts, strict=True)]
        yield PlanRow(step.name, step.why, [_cell(*pair) for pair in zip(counts, wholes, strict=True)])
    if inside is not None:
        yield _inner("inside of files", inside.tally)
    if tally is not None and tally.files:
        yield _inner("was read", tally)


def _inner(name: str, tally: ReadTally) -> PlanRow:
    pages = f", pages {number(tally.pages)} of {number(tally.of_pages)}" if tally.of_pages else ""
    why = f"{number(tally.row_groups)} of {number(tally.of_row_groups)} row groups{pages}, "
    why += f"{size(tally.bytes)} of {size(tally.of_bytes)} of the columns asked for"
    return PlanRow(name, why, [PlanCell(), PlanCell(), PlanCell(), _cell(tally.row_groups, tally.of_row_groups)])


def _cell(count: int | None, whole: int | None) -> PlanCell:
    return PlanCell() if count is None or whole is None else PlanCell(count, count / whole if whole else 0.0)
