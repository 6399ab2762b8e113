"""A table that Hudi 1.2.0 wrote, with its metadata table: what its statistics and filters let us skip."""

from __future__ import annotations

from typing import Any

import pytest

from hudilake.read import Compare, Filter, In, IsNull, Not, StartsWith, TableReader
from hudilake.read.filters.expressions import Op, normalised
from tests.hudilake.read.oracle import truth
from tests.paths import GOLDEN

Slice = tuple[str, str]


@pytest.fixture(scope="module")
def golden() -> TableReader:
    return TableReader.open(str(GOLDEN / "tbl_hudi120"))


@pytest.fixture(scope="module")
def rows(golden: TableReader) -> list[tuple[Slice, dict[str, Any]]]:
    """Every row with the slice that holds it."""
    plan = golden.plan()
    return [
        ((item.partition_path, item.file_id), row)
        for item in plan.slices
        for batch in plan.scan.read(item)
        for row in batch.to_pylist()
    ]


def skipped_wrongly(golden: TableReader, rows: list[tuple[Slice, dict[str, Any]]], part: Filter) -> set[Slice]:
    plan = golden.plan(condition=part)
    assert not plan.warnings
    left = {(item.partition_path, item.file_id) for item in plan.slices}
    return {place for place, row in rows if truth(part, row) is True} - left


def test_no_slice_with_a_row_that_passes_is_skipped(
    golden: TableReader, rows: list[tuple[Slice, dict[str, Any]]]
) -> None:
    names = [name for name in golden.schema.names if not name.startswith("_hoodie_commit")]
    asked = 0
    for name in names:
        values = list(dict.fromkeys(row[name] for _, row in rows if row[name] is not None))[:9]
        parts: list[Filter] = [Compare(name, op, value) for value in values for op in (Op.EQ, Op.LT, Op.GE)]
        parts += [In(name, tuple(values[:3])), IsNull(name), Not(IsNull(name)), Not(In(name, tuple(values[:1])))]
        parts += [StartsWith(name, value[:2]) for value in values if isinstance(value, str | bytes)]
        for part in map(normalised, parts):
            assert not skipped_wrongly(golden, rows, part), str(part)
            asked += 1
    assert asked > 300


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("region = 'eu'", [("table", None), ("partition", 4)]),
        ("region = 'eu' AND dt = '2024-01-01'", [("table", None), ("partition", 2)]),
        ("price > 50", [("table", 8), ("column stats", 1)]),
        ("id IN (1, 2, 3)", [("table", 8), ("column stats", 4), ("key range", 4), ("bloom filters", 3)]),
        ("id > 1000", [("table", 8), ("column stats", 0)]),
        ("name IS NULL", [("table", 8), ("column stats", 5)]),
    ],
)
def test_what_each_step_leaves(golden: TableReader, condition: str, left: list[tuple[str, int | None]]) -> None:
    """Keys are spelled ``id:3`` here; and no bucket pruning, for the properties do not say the bucket count."""
    plan = golden.plan(condition=condition)
    assert [(step.name, step.slices) for step in plan.steps] == left
