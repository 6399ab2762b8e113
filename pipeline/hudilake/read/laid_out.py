"""Which clusterings and compactions laid out the files of a plan, and how many of their files the order skips."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from hudilake.format.files.view import FileSlice
from hudilake.format.layout.order import Order, recorded_order
from hudilake.format.timeline.clustering_plan import SORT_COLUMNS, read_clustering_plan
from hudilake.format.timeline.instant import COMMIT, REPLACE_COMMIT, Instant
from hudilake.format.timeline.timeline import Timeline
from hudilake.read.filters.evaluate import Flags
from hudilake.storage.base import Storage, StorageNotFoundError

#: ``operationType`` of a clustering's replacecommit.
CLUSTER = "CLUSTER"


@dataclass(frozen=True, slots=True)
class LaidOut:
    """Base files that one commit laid out.

    Args:
        instant: of the commit.
        clustering: whether it is a clustering, else a compaction or another rewrite of base files.
        order: of the rows; None where the commit does not say it, as those of other writers.
        columns: of the order; those that the plan of a clustering names, if the commit does not.
        files: base files of the plan's table that it wrote and that are in use.
        skipped: those of them that the ranges of the order's columns skip.
    """

    instant: str
    clustering: bool
    order: Order | None
    columns: tuple[str, ...]
    files: int
    skipped: int

    def __str__(self) -> str:
        by = "clustering" if self.clustering else "compaction"
        if not self.columns:
            return f"{by} {self.instant} (order not recorded): files {self.files:,}"
        counts = f"files {self.files:,}, skipped by these columns {self.skipped:,}"
        return f"{by} {self.instant}, {self._how()} by {', '.join(self.columns)}: {counts}"

    def _how(self) -> str:
        if self.order is None:
            return "curve not recorded,"
        policy = self.order.policy
        return policy.curve if policy.curve == "linear" else f"{policy.curve} ({policy.values})"


def laid_out(
    storage: Storage,
    timeline: Timeline,
    slices: Sequence[FileSlice],
    skipped_by: Callable[[Sequence[str], Flags], Flags],
) -> Iterator[LaidOut]:
    """The commits that laid base files out, the oldest first. Commits that left the timeline are not among them.

    Args:
        storage: the table's root.
        timeline: of the table; the bodies of commits that wrote base files are read, and the plans of clusterings of
            other writers.
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
        columns = order.columns if order is not None else _planned_columns(storage, commit)
        mine = np.zeros(len(slices), dtype=np.bool_)
        mine[numbers] = True
        skipped = int(skipped_by(columns, mine).sum()) if columns else 0
        yield LaidOut(instant, clustering, order, columns, len(numbers), skipped)


def _planned_columns(storage: Storage, clustering: Instant) -> tuple[str, ...]:
    """The columns that the plan of another writer's clustering names: it does not name the curve. None without a plan,
    as that of an insert overwrite, or if its file is gone."""
    try:
        names = read_clustering_plan(storage, clustering).params.get(SORT_COLUMNS, "")
    except StorageNotFoundError:
        return ()
    return tuple(name.strip() for name in names.split(",") if name.strip())
