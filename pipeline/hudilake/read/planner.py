"""Plans the file slices that must be read for a question."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.read.counting import CountedRows, CountRequest, all_rows_pass, common_values, row_counts
from hudilake.read.filters.bounds import may_match
from hudilake.read.filters.expressions import columns_of, unknown_parts
from hudilake.read.index import INDEX_FAILURES, TableIndex
from hudilake.read.laid_out import CommitLayout, laid_out
from hudilake.read.listing import Listing, slices_for
from hudilake.read.lookups import LoadedStats
from hudilake.read.partition_values import partition_bounds
from hudilake.read.plan import CONDITION, PlanStep, ScanPlan, ScanWarning
from hudilake.read.pruning import IndexReads, SlicePruner
from hudilake.read.query import Snapshot
from hudilake.read.question import ResolvedQuery
from hudilake.read.slice_files import SliceFiles
from hudilake.read.source import Selection
from hudilake.table.table import HudiTable

_LISTINGS_KEPT = 8


def plan_of(table: HudiTable, question: ResolvedQuery, selection: Selection, batch_rows: int) -> ScanPlan:
    """The plan to read the selected file slices."""
    parts = unknown_parts(question.condition) if question.expression is None else ()
    left = tuple(ScanWarning(CONDITION, f"not understood, left to the caller: {text}") for text in parts)
    return ScanPlan(
        table=table.config.name,
        query=question.query,
        condition=question.condition,
        columns=question.columns,
        slices=selection.slices,
        steps=selection.steps,
        warnings=selection.warnings + left,
        scan=question.scan(table, batch_rows),
        counted=selection.counted,
        laid_out=selection.laid_out,
    )


@dataclass(frozen=True)
class _ListedSlices:
    """The slices of some partitions, and their statistics read so far."""

    slices: SliceFiles
    stats: LoadedStats


@dataclass
class Planner:
    """Makes plans over one state of a table; keeps file slices and statistics for the next plan.

    Args:
        table: open.
        index: its metadata table, or None to list storage.
        reads: the settings of index reads.
    """

    table: HudiTable
    index: TableIndex | None
    reads: IndexReads
    _known: OrderedDict[object, _ListedSlices] = field(default_factory=OrderedDict)

    def plan(
        self, question: ResolvedQuery, count_all: bool, batch_rows: int, counting: CountRequest | None = None
    ) -> ScanPlan:
        """The plan; from storage alone if the metadata table's listing cannot be read. Errors as ``TableReader``."""
        return plan_of(self.table, question, self.select(question, count_all, counting), batch_rows)

    def select(self, question: ResolvedQuery, count_all: bool, counting: CountRequest | None = None) -> Selection:
        """The file slices of the plan. Errors as ``plan``."""
        listing = Listing.of(self.table.storage, self.index, self.table.timeline)
        try:
            pruning = self._pruned(listing, question, count_all)
        except INDEX_FAILURES as error:
            if listing.index is None:
                raise
            pruning = self._pruned(Listing(self.table.storage, None, str(error)), question, count_all)
        counted = self._counted(pruning, question, counting) if counting is not None else {}
        pruning.kept[list(counted)] = False
        layouts = self._layouts(pruning) if count_all else ()
        return Selection(
            slices=pruning.slices.chosen(pruning.kept),
            steps=tuple(pruning.steps),
            warnings=tuple(pruning.warnings),
            counted=tuple(counted.values()),
            laid_out=layouts,
        )

    def _layouts(self, pruning: SlicePruner) -> tuple[CommitLayout, ...]:
        table = self.table
        try:
            return tuple(laid_out(table.storage, table.timeline, pruning.slices.slices, pruning.skipped_by))
        except INDEX_FAILURES as error:
            pruning.warn("layout", f"not known: {error}")
            return ()

    def _counted(self, pruning: SlicePruner, question: ResolvedQuery, counting: CountRequest) -> dict[int, CountedRows]:
        """The slices whose rows need not be read, by their numbers; none where the index cannot say it."""
        index, files = pruning.index, pruning.slices
        if index is None or not index.has(MetadataPartition.COLUMN_STATS) or question.window() is not None:
            return {}
        condition = question.condition if counting.condition is None else counting.condition
        if unknown_parts(condition) or question.expression is not None:
            return {}
        paths = [piece.partition_path for piece in files.slices]
        own = partition_bounds(paths, self.table.config, question.schema)
        try:
            reader = index.lookups(MetadataPartition.COLUMN_STATS)
            selected, columns = files.files_of(pruning.kept), columns_of(condition)
            if pruning.stats.missing(columns, selected) > self.reads.in_process:
                return {}
            bounds = pruning.stats.bounds(reader, columns, selected)
            passing = pruning.kept & ~files.with_any(~all_rows_pass(condition, bounds, len(files.files)))
            counts = row_counts(reader, files, self.table.config, passing)
        except INDEX_FAILURES as error:
            pruning.warn("row counts", f"not used, the index cannot be read: {error}")
            return {}
        counted_rows: dict[int, CountedRows] = {}
        for number, rows in counts.items():
            values = common_values(counting.columns, own, number)
            if values is not None:
                counted_rows[number] = CountedRows(paths[number], files.slices[number].file_id, rows, values)
        return counted_rows

    def _pruned(self, listing: Listing, question: ResolvedQuery, count_all: bool) -> SlicePruner:
        paths = listing.partitions()
        bounds = partition_bounds(paths, self.table.config, question.schema)
        keep = may_match(question.condition, bounds, len(paths))
        remaining = [path for path, flag in zip(paths, keep.tolist(), strict=True) if flag]
        listed = self._listed(listing, question, paths if count_all else remaining)
        pruning = SlicePruner(
            config=self.table.config,
            schema=question.schema,
            condition=question.condition,
            slices=listed.slices,
            stats=listed.stats,
            index=listing.index,
            reads=self.reads,
            decided=frozenset(bounds),
            kept=np.ones(len(listed.slices.slices), dtype=np.bool_),
        )
        if listing.trouble is not None:
            pruning.warn("listing", f"by listing storage, the metadata table cannot be used: {listing.trouble}")
        self._note_partitions(pruning, listing, len(paths), remaining, count_all)
        pruning.by_window(question.window())
        lookup = pruning.by_keys()
        if question.query == Snapshot():
            pruning.by_record_index(lookup)
        pruning.by_index(lookup)
        return pruning

    def _note_partitions(
        self, pruning: SlicePruner, listing: Listing, total: int, remaining: Sequence[str], count_all: bool
    ) -> None:
        """The first step: all slices; the second, if partitions are skipped: the remaining ones."""
        files = pruning.slices
        everything = count_all or len(remaining) == total
        counts = (len(files.slices), len(files.files)) if everything else (None, None)
        pruning.steps.append(PlanStep("table", f"from {listing.source}", total, *counts))
        if len(remaining) < total or self._names_partition(pruning):
            chosen = set(remaining)
            inside = np.array([s.partition_path in chosen for s in files.slices], dtype=np.bool_)
            pruning.narrow("partition", str(pruning.condition), inside, partitions=len(remaining))

    def _names_partition(self, pruning: SlicePruner) -> bool:
        return bool(set(columns_of(pruning.condition)) & set(self.table.config.partition_fields))

    def _listed(self, listing: Listing, question: ResolvedQuery, paths: Sequence[str]) -> _ListedSlices:
        """The slices of those partitions, from an earlier plan of the same partitions if there is one."""
        key = (question.query, question.schema, listing.index is None, tuple(paths))
        listed = self._known.get(key)
        if listed is None:
            table = self.table
            slices = slices_for(question.query, listing.files(paths), table.timeline, question.until, table.storage)
            files = SliceFiles(slices)
            listed = self._known[key] = _ListedSlices(files, LoadedStats(files, question.schema))
            if len(self._known) > _LISTINGS_KEPT:
                self._known.popitem(last=False)
        self._known.move_to_end(key)
        return listed
