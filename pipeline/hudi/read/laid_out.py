"""Which clusterings and compactions laid out the files of a plan, and how many of their files the order skips."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.hudi.files.view import FileSlice
from pipeline.hudi.layout.order import Order
from pipeline.hudi.layout.recorded import recorded_order
from pipeline.hudi.read.filters.evaluate import Flags
from pipeline.hudi.timeline.instant import COMMIT, REPLACE_COMMIT
from pipeline.hudi.timeline.timeline import Timeline

#: ``operationType`` of a clustering's replacecommit.
CLUSTER = "CLUSTER"


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Base files that one commit laid out.

    Args:
        instant: of the commit.
        clustering: whether it is a clustering, else a compaction or another rewrite of base files.
        order: of the rows; None where the commit does not say it, as those of other writers.
        files: base files of the plan's table that it wrote and that are in use.
        skipped: those of them that the ranges of the order's columns skip.
    """

    instant: str
    clustering: bool
    order: Order | None
    files: int
    skipped: int

    def __str__(self) -> str:
        by = "clustering" if self.clustering else "compaction"
        if self.order is None:
            return f"{by} {self.instant} (order not recorded): files {self.files:,}"
        policy = self.order.policy
        how = "" if policy.curve == "linear" else f" ({policy.values})"
        order = f"{policy.curve}{how} by {', '.join(policy.columns)}"
        return f"{by} {self.instant}, {order}: files {self.files:,}, skipped by these columns {self.skipped:,}"


def laid_out(
    timeline: Timeline, slices: Sequence[FileSlice], skipped_by: Callable[[Sequence[str], Flags], Flags]
) -> Iterator[LaidOut]:
    """The commits that laid base files out, the oldest first. Commits that left the timeline are not among them.

    Args:
        timeline: of the table; the bodies of commits that wrote base files are read.
        slices: the n listed slices of a plan.
        skipped_by: gives the slices that the ranges of some columns skip, of the marked ones; bool array of n.

    Raises CorruptDataError, StorageError.
    """
    by_instant: dict[str, list[int]] = {}
    for number, piece in enumerate(slices):
        if piece.base_file is not None:
            by_instant.setdefault(piece.base_file.name.instant, []).append(number)
    for instant, numbers in sorted(by_instant.items()):
        commit = timeline.find(instant)
        if commit is None or not commit.completed or commit.action not in (COMMIT, REPLACE_COMMIT):
            continue
        metadata = timeline.commit_metadata(commit)
        order, clustering = recorded_order(metadata.extra), metadata.operation == CLUSTER
        if order is None and not clustering:
            continue
        mine = np.zeros(len(slices), dtype=np.bool_)
        mine[numbers] = True
        skipped = 0 if order is None else int(skipped_by(order.columns, mine).sum())
        yield LaidOut(instant, clustering, order, len(numbers), skipped)
