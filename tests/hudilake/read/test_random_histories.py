"""Pruned read = unpruned read, for random histories of every type and random predicates; and the controls: each rule of
skipping broken on purpose is found out by the same histories."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st

from hudilake.format.definition.schema import RECORD_KEY_FIELD
from hudilake.format.files.column_stats import ColumnRange
from hudilake.format.files.view import FileSlice
from hudilake.read import Compare, Filter, TableReader, lookups, pruning
from hudilake.read.filters.bounds import ColumnBounds, column_bounds, may_match
from hudilake.read.filters.evaluate import Flags
from hudilake.read.filters.expressions import And, Op, Or
from hudilake.read.record_keys import KeyBuckets
from hudilake.read.slice_files import SliceFiles
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.hudilake.read import oracle
from tests.hudilake.read.lakes import ids, passing
from tests.hypothesis_profile import scaled

SCHEMA = arrow_schema(oracle.COLUMNS)
NAMES = list(oracle.COLUMNS)
KEYS = st.integers(0, 7)

#: What one key does in one commit: its ordering value, and its cells, or None for a delete.
Change = tuple[int, dict[str, Any] | None]
#: A commit, or None for a compaction.
Step = dict[int, Change] | None


def commits(least: int = 1) -> st.SearchStrategy[dict[int, Change]]:
    """Upserts and deletes of at least so many keys."""
    cells = st.fixed_dictionaries({name: st.one_of(st.none(), oracle.VALUES[name]) for name in NAMES})
    change = st.tuples(st.integers(1, 4), st.one_of(cells, cells, st.none()))
    return st.dictionaries(KEYS, change, min_size=least, max_size=max(least, 6))


def histories() -> st.SearchStrategy[list[Step]]:
    """Upserts and deletes, late ones among them, and compactions."""
    commit = commits()
    return st.lists(st.one_of(commit, commit, st.none()), min_size=1, max_size=5)


def build(path: Path, history: Sequence[Step]) -> IndexedTable:
    """The table that a history leaves."""
    table = IndexedTable(path, SCHEMA, buckets=2)
    for step in history:
        if step is None:
            table.compact()
            continue
        rows = {key: {"id": key, ORDER: order, **(cells or {})} for key, (order, cells) in step.items()}
        alive = [rows[key] for key, (_, cells) in step.items() if cells is not None]
        table.write(alive, [rows[key] for key, (_, cells) in step.items() if cells is None])
    return table


class Table:
    """A table and what it holds by reading everything."""

    def __init__(self, path: Path, history: Sequence[Step]) -> None:
        self.storage = build(path, history).storage
        unpruned = TableReader.open(self.storage, use_index=False)
        columns = [RECORD_KEY_FIELD, *SCHEMA.names]
        self.rows = [r for batch in unpruned.batches(unpruned.plan(columns=columns)) for r in batch.to_pylist()]

    def pruned(self, part: Filter) -> list[int]:
        """The keys that a pruned read gives."""
        reader = TableReader.open(self.storage)
        plan = reader.plan(condition=part, columns=["id"])
        assert not plan.warnings
        return ids(reader, plan)


@settings(
    max_examples=scaled(50), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(history=histories(), parts=st.lists(oracle.keyed_filters(NAMES, KEYS), min_size=4, max_size=10))
def test_a_pruned_read_is_an_unpruned_one(
    tmp_path_factory: pytest.TempPathFactory, history: list[Step], parts: list[Filter]
) -> None:
    table = Table(tmp_path_factory.mktemp("history") / "t", history)
    for part in parts:
        assert table.pruned(part) == passing(table.rows, part), part


# -- controls


def bounds_are_exclusive(patch: pytest.MonkeyPatch) -> None:
    """``<=`` and ``>=`` taken for ``<`` and ``>``."""

    def strict(part: Filter, columns: Mapping[str, ColumnBounds], count: int) -> Flags:
        if isinstance(part, And | Or):
            joined = np.logical_and if isinstance(part, And) else np.logical_or
            return np.asarray(joined.reduce([strict(inner, columns, count) for inner in part.parts]), dtype=np.bool_)
        if isinstance(part, Compare) and part.op in (Op.LE, Op.GE):
            part = replace(part, op=Op.LT if part.op is Op.LE else Op.GT)
        return may_match(part, columns, count)

    patch.setattr(pruning, "may_match", strict)


def files_are_skipped_one_by_one(patch: pytest.MonkeyPatch) -> None:
    """A log file whose statistics exclude the condition is left out of its slice: what it hides comes back."""
    seen: dict[int, tuple[SliceFiles, Flags]] = {}  # holds what it names, or its number would be given again
    with_any = SliceFiles.with_any

    def noting(self: SliceFiles, files: Flags) -> Flags:
        seen[id(self)] = self, files
        return with_any(self, files)

    def chosen(self: SliceFiles, slices: Flags) -> tuple[FileSlice, ...]:
        _, known = seen.get(id(self), (self, np.ones(len(self.files), dtype=np.bool_)))
        wanted = {file for file, flag in zip(self.files, known.tolist(), strict=True) if flag}
        kept = [self.slices[i] for i in np.flatnonzero(slices)]
        return tuple(
            replace(s, log_files=tuple(log for log in s.log_files if (s.partition_path, str(log.name)) in wanted))
            for s in kept
        )

    patch.setattr(SliceFiles, "with_any", noting)
    patch.setattr(SliceFiles, "chosen", chosen)


def nulls_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Null counts taken for zero."""

    def without(
        kind: pa.DataType, ranges: Sequence[ColumnRange | None], in_log: Sequence[bool] | None = None
    ) -> ColumnBounds:
        found = column_bounds(kind, ranges, in_log)
        return replace(found, has_nulls=np.zeros_like(found.has_nulls))

    patch.setattr(lookups, "column_bounds", without)


def a_file_without_statistics_is_skipped(patch: pytest.MonkeyPatch) -> None:
    """As if a file that is not in the index held nothing."""

    def without(
        kind: pa.DataType, ranges: Iterable[ColumnRange | None], in_log: Sequence[bool] | None = None
    ) -> ColumnBounds:
        known = list(ranges)
        found = column_bounds(kind, known, in_log)
        indexed = np.array([item is not None for item in known], dtype=np.bool_)
        return replace(found, has_values=found.has_values & indexed, has_nulls=found.has_nulls & indexed)

    patch.setattr(lookups, "column_bounds", without)


def a_bucket_too_far(patch: pytest.MonkeyPatch) -> None:
    """Keys looked for in the bucket after theirs."""
    of = KeyBuckets.of

    def wrong(self: KeyBuckets, partition_path: str) -> frozenset[int]:
        count = self.bucketing.count(partition_path)
        return frozenset((bucket + 1) % count for bucket in of(self, partition_path))

    patch.setattr(KeyBuckets, "of", wrong)


#: A broken rule, and the seed of histories among whose first ones is one that shows it.
MUTATIONS = [
    (bounds_are_exclusive, 1),
    (files_are_skipped_one_by_one, 0),
    (nulls_are_forgotten, 4),
    (a_file_without_statistics_is_skipped, 0),
    (a_bucket_too_far, 0),
]


@pytest.mark.first(1)
@pytest.mark.parametrize(("mutate", "seed"), MUTATIONS, ids=[mutate.__name__ for mutate, _ in MUTATIONS])
def test_the_controls_a_broken_rule_is_found_out(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    mutate: Callable[[pytest.MonkeyPatch], None],
    seed: int,
) -> None:
    mutate(monkeypatch)

    def differs(drawn: tuple[list[Step], list[Filter]]) -> bool:
        table = Table(tmp_path_factory.mktemp("mutant") / "t", drawn[0])
        return any(table.pruned(part) != passing(table.rows, part) for part in drawn[1])

    drawn = st.tuples(histories(), st.lists(oracle.keyed_filters(NAMES, KEYS), min_size=10, max_size=10))
    found = find(
        drawn,
        differs,
        random=Random(seed),
        settings=settings(max_examples=5_000, database=None, phases=[Phase.generate]),
    )
    assert found
