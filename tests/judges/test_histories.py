"""Random histories of changes, and all four ways in which Hudi's own Spark bundle reads a table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.binlake.rows.upsert.history import KEYED, KEYLESS, ROUNDS, Plan, Round, World, plans, world
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves
from tests.judges.hudi_spark import HudiSpark
from tests.model import Row

# Shrinking costs a Spark query each step: a failure is printed as it was found. The same histories every run; random
# ones are fed to our reader and hudi-rs in tests/binlake/rows/upsert.
_SETTINGS = settings(
    derandomize=True,
    max_examples=scaled(10, least=3),
    phases=[Phase.explicit, Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)


def by_spark(here: World, rows: Sequence[Row]) -> list[Row]:
    """The rows as Hudi Spark shows them: it takes partition columns from the path, where null and "" are one."""
    if here.shape.partition is None or here.shape.transform != "identity":
        return list(rows)
    return [{**row, here.shape.partition: row[here.shape.partition] or None} for row in rows]


def judge(here: World, spark: HudiSpark) -> None:
    """Snapshot, read-optimized and time travel against the model."""
    uri, columns = here.ingest.uri, here.columns()
    assert_same("Hudi Spark", spark.snapshot(uri), by_spark(here, here.expected()), columns)
    assert_same("Hudi Spark, read-optimized", spark.read_optimized(uri), [], columns)  # nothing is compacted yet
    for number in {0, len(here.instants) // 2}:
        instant, picture = here.instants[number], here.pictures[number]
        assert_same(f"Hudi Spark as of commit {number}", spark.as_of(uri, instant), by_spark(here, picture), columns)
        assert_same(f"hudi-rs as of commit {number}", hudi_rs.as_of(uri, instant), picture, columns)
        assert_same(f"binlake as of commit {number}", read_ourselves(uri, instant), picture, columns)


def judge_increments(here: World, spark: HudiSpark) -> None:
    """What later commits brought, seen from the first commit and from the middle.

    Hudi Spark gives partition columns there as the path spells them, escapes and all: those are left out.
    """
    assert here.model is not None
    timeline, uri, columns = here.ingest.table.hudi.timeline, here.ingest.uri, here.columns()
    plain = [name for name in columns if name != here.shape.partition]
    for number in {1, max(1, len(here.instants) // 2)}:
        begin = timeline.completion_time(here.instants[number - 1])
        assert begin is not None
        brought = here.model.rows(since=number)
        assert_same(f"Hudi Spark since commit {number}", spark.incremental(uri, begin), brought, plain)
        assert_same(f"hudi-rs since commit {number}", hudi_rs.incremental(uri, begin), brought, columns)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
@_SETTINGS
@given(plans(KEYED), ROUNDS)
def test_tables_with_a_key(hudi_spark: HudiSpark, plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)
        if here.is_created():
            judge(here, hudi_spark)
            judge_increments(here, hudi_spark)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
@_SETTINGS
@given(plans(KEYLESS), ROUNDS)
def test_tables_without_a_key(hudi_spark: HudiSpark, plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)
        if here.is_created():
            judge(here, hudi_spark)
