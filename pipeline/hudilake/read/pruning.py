"""The steps that drop file slices from a question's plan.

Each step may only drop slices that certainly hold no row that passes. A step that fails drops nothing and adds a
warning: the result stays correct, more is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import pyarrow as pa

from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.key_change import keyed_since
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.view import first_instant
from hudilake.read.filters.bounds import ColumnBounds, may_match
from hudilake.read.filters.evaluate import Flags
from hudilake.read.filters.expressions import And, Filter, Ge, In, all_of, columns_of
from hudilake.read.index import INDEX_FAILURES, TableIndex
from hudilake.read.lookups import (
    ROWS_PER_TASK,
    BloomTask,
    IndexExecutor,
    LoadedStats,
    StatsTask,
    chunked,
    key_spans,
    run_here,
    run_tasks,
)
from hudilake.read.plan import PlanStep, ScanWarning
from hudilake.read.record_keys import KeyBuckets, KeyLookup, index_buckets, key_lookup
from hudilake.read.slice_files import SliceFiles
from hudilake.read.window import COMMIT_TIME_FIELD, CommitWindow

#: The largest number of index rows (files times columns) that this process reads by itself.
INDEX_ROWS_IN_PROCESS: Final = 100_000


@dataclass(frozen=True)
class IndexReads:
    """The settings of index reads.

    Args:
        in_process: up to so many index rows (files times columns) are read here and kept for the next plan.
        executor: runs larger reads; by default here too, in chunks and without a cache.
    """

    in_process: int = INDEX_ROWS_IN_PROCESS
    executor: IndexExecutor = run_here


@dataclass
class SlicePruner:
    """The slices of one question on their way through the steps.

    Args:
        config: the table's.
        schema: its columns at that time, meta fields included.
        condition: normalised.
        slices: the listed slices.
        stats: the statistics of these slices read so far.
        index: the metadata table, or None.
        reads: the settings of index reads.
        decided: columns whose value in every row is in the partition path.
        kept: slices not dropped yet.
        steps, warnings: the record of the steps so far.
    """

    config: TableConfig
    schema: pa.Schema
    condition: Filter
    slices: SliceFiles
    stats: LoadedStats
    index: TableIndex | None
    reads: IndexReads
    decided: frozenset[str]
    kept: Flags
    steps: list[PlanStep] = field(default_factory=list)
    warnings: list[ScanWarning] = field(default_factory=list)
    _bounds: dict[str, ColumnBounds] = field(default_factory=dict)

    def narrow(self, name: str, why: str, keep: Flags, partitions: int | None = None) -> None:
        """Record a step's outcome. ``keep``: bool array over the slices."""
        self.kept = self.kept & keep
        files = int(self.slices.files_of(self.kept).sum())
        self.steps.append(PlanStep(name, why, partitions, int(self.kept.sum()), files))

    def by_window(self, window: CommitWindow | None) -> None:
        """Drops slices that the commits of an incremental read did not write."""
        if window is None:
            return
        keep = window.may_hold_rows(self.slices.slices)
        self.narrow("commits", "files that the commits wrote or may be in", keep)
        if window.earliest:
            since = Ge(COMMIT_TIME_FIELD, window.earliest)
            self._attempt("commit times", MetadataPartition.COLUMN_STATS, lambda name: self._by_stats(name, since))

    def by_keys(self) -> KeyLookup | None:
        """Bucket pruning; returns the record keys that the condition binds."""
        is_key_theirs = all(first_instant(one) >= keyed_since(self.config) for one in self.slices.slices)
        lookup = key_lookup(self.condition, self.config, self.schema, by_fields=is_key_theirs)
        buckets = self._buckets(lookup) if is_key_theirs else None
        if buckets is None:
            return lookup
        keep = np.ones(len(self.slices.slices), dtype=np.bool_)
        held = total = 0
        bucketing = self.config.bucketing
        bucket_of = self.slices.buckets(bucketing)
        for path, mine in self.slices.by_partition().items():
            count, wanted = bucketing.count(path), buckets.of(path)
            numbers = bucket_of[mine]
            if numbers.max(initial=0) >= count:
                self.warn("bucket", f"a file group's bucket is not below the bucket count {count}")
                return lookup
            keep[mine] = np.isin(numbers, [-1, *wanted])
            held, total = max(held, len(wanted)), max(total, count)
        self.narrow(
            "bucket", f"{'record' if lookup else 'index'} keys: {len(buckets.keys)}, in {held} of {total} buckets", keep
        )
        return lookup

    def _buckets(self, lookup: KeyLookup | None) -> KeyBuckets | None:
        """The buckets that may hold rows: of the record keys, or of the part of the key that is hashed."""
        if lookup is None:
            return index_buckets(self.condition, self.config, self.schema)
        return lookup.buckets(self.config)

    def warn(self, step: str, what: str) -> None:
        """Record that a step failed."""
        self.warnings.append(ScanWarning(step, what))

    def by_record_index(self, lookup: KeyLookup | None) -> None:
        """Drops the slices that hold none of the keys, by the record index. It says where keys are now, so it is used
        for no other moment, and for no query that shows less than every commit."""
        if lookup is not None:
            self._attempt("record index", MetadataPartition.RECORD_INDEX, lambda name: self._by_places(name, lookup))

    def _by_places(self, name: str, lookup: KeyLookup) -> None:
        assert self.index is not None
        index = self.index.record_index()
        kept = [piece for piece, keep in zip(self.slices.slices, self.kept.tolist(), strict=True) if keep]
        paths = sorted({piece.partition_path for piece in kept}) if index.by_partition else [""]
        if len(paths) * len(lookup.keys) > self.reads.in_process:
            return
        keys = pa.concat_arrays([lookup.keys] * len(paths))
        named = pa.array(np.repeat(np.array(paths, dtype=object), len(lookup.keys)), pa.string())
        locations = index.locate(keys, named)
        places = set(zip(locations.partition_paths.to_pylist(), locations.file_ids.to_pylist(), strict=True))
        keep = np.array([(s.partition_path, s.file_id) in places for s in self.slices.slices], dtype=np.bool_)
        why = f"record keys: {len(lookup.keys)}, with a row: {len(keys) - locations.file_ids.null_count}"
        self.narrow(name, why, keep)

    def by_index(self, lookup: KeyLookup | None) -> None:
        """Column statistics, key ranges and bloom filters."""
        rest = self._undecided()
        if columns_of(rest):
            self._attempt("column stats", MetadataPartition.COLUMN_STATS, lambda name: self._by_stats(name, rest))
        if lookup is None:
            return
        among = In(RECORD_KEY_FIELD, tuple(lookup.keys.to_pylist()))
        self._attempt("key range", MetadataPartition.COLUMN_STATS, lambda name: self._by_stats(name, among))
        self._attempt("bloom filters", MetadataPartition.BLOOM_FILTERS, lambda name: self._by_bloom(name, lookup))

    def _undecided(self) -> Filter:
        """The condition without the parts that the partition paths decide."""
        parts = self.condition.parts if isinstance(self.condition, And) else (self.condition,)
        return all_of(*(part for part in parts if not set(columns_of(part)) <= self.decided or not columns_of(part)))

    def _attempt(self, name: str, partition: MetadataPartition, step: Callable[[str], None]) -> None:
        if self.index is None or not self.index.has(partition) or not self.kept.any():
            return
        try:
            step(name)
        except INDEX_FAILURES as error:
            self.warn(name, f"not used, the index cannot be read: {error}")

    def _by_stats(self, name: str, condition: Filter) -> None:
        assert self.index is not None
        selected = self.slices.files_of(self.kept)
        columns = columns_of(condition)
        if self.stats.missing(columns, selected) > self.reads.in_process:
            files = self._by_tasks(condition, selected)
            why = f"{condition}; read in tasks"
        else:
            bounds = self.stats.bounds(self.index.lookups(MetadataPartition.COLUMN_STATS), columns, selected)
            self._bounds.update(bounds)
            files = may_match(condition, bounds, len(self.slices.files)) & selected
            why = f"{condition}; indexed files: {self.stats.indexed(columns, selected)} of {int(selected.sum())}"
        self.narrow(name, why, self.slices.with_any(files))

    def skipped_by(self, columns: Sequence[str], among: Flags) -> Flags:
        """The slices that the ranges of some columns skip by themselves, bool array over the slices.

        Args:
            columns: without those that the condition does not name.
            among: the slices that are looked at, bool array over the slices.
        """
        rest = self._undecided()
        named = [column for column in columns if column in columns_of(rest)]
        if not named or self.index is None or not self.index.has(MetadataPartition.COLUMN_STATS):
            return np.zeros(len(among), dtype=np.bool_)
        try:
            reader = self.index.lookups(MetadataPartition.COLUMN_STATS)
            bounds = self.stats.bounds(reader, named, self.slices.files_of(among))
        except INDEX_FAILURES as error:
            self.warn("layout", f"not known, the index cannot be read: {error}")
            return np.zeros(len(among), dtype=np.bool_)
        return among & ~self.slices.with_any(may_match(rest, bounds, len(self.slices.files)))

    def _by_tasks(self, condition: Filter, selected: Flags) -> Flags:
        assert self.index is not None
        rows = np.flatnonzero(selected)
        size = ROWS_PER_TASK // max(len(columns_of(condition)), 1)
        groups = self.index.groups(MetadataPartition.COLUMN_STATS)
        schema = pa.schema([self.schema.field(name) for name in columns_of(condition)])
        tasks = [
            StatsTask(groups, tuple(self.slices.files[i] for i in rows[chunk].tolist()), condition, schema)
            for chunk in chunked(len(rows), size)
        ]
        out = np.zeros(len(selected), dtype=np.bool_)
        out[rows] = run_tasks(self.reads.executor, tasks)
        return out

    def _by_bloom(self, name: str, lookup: KeyLookup) -> None:
        """Keep slices with a log file whose key range admits a key, or with a base file whose filter does."""
        assert self.index is not None
        keys = lookup.keys
        first, last = key_spans(self._bounds, keys, len(self.slices.files))
        selected = self.slices.files_of(self.kept) & (np.array(first) < np.array(last))
        by_log = self.slices.with_any(selected & self.slices.in_log)
        asked = np.flatnonzero(selected & ~self.slices.in_log & ~self.slices.files_of(by_log))
        tasks = [
            BloomTask(
                (),
                tuple(self.slices.files[i] for i in piece.tolist()),
                keys,
                tuple(first[i] for i in piece.tolist()),
                tuple(last[i] for i in piece.tolist()),
            )
            for piece in (asked[part] for part in chunked(len(asked), ROWS_PER_TASK // 10))
        ]
        admitted_files = np.zeros(len(selected), dtype=np.bool_)
        admitted_files[asked] = self._run_bloom(tasks)
        why = f"record keys: {len(keys)}, base files asked: {len(asked)}"
        self.narrow(name, why, by_log | self.slices.with_any(admitted_files))

    def _run_bloom(self, tasks: list[BloomTask]) -> Flags:
        assert self.index is not None
        if sum(len(task.files) for task in tasks) <= self.reads.in_process:
            reader = self.index.reader(MetadataPartition.BLOOM_FILTERS)
            parts = [task.run(reader) for task in tasks]
            return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)
        groups = self.index.groups(MetadataPartition.BLOOM_FILTERS)
        sent = [BloomTask(groups, t.files, t.keys, t.first, t.last) for t in tasks]
        return run_tasks(self.reads.executor, sent)
