"""What seeds draw is what Hudi's writer takes, and a table that differs is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import hudilake
from tests.judges.hudi_spark import HudiSpark
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.spark.drawing import TYPES, DrawnTable, draw
from tests.programs.proofs.spark.part import Comparison, judge
from tests.programs.proofs.spark.writing import SparkWriter

SEEDS = range(300)


def test_a_seed_draws_the_same_again_and_seeds_draw_everything() -> None:
    assert repr(draw(7)) == repr(draw(7)) != repr(draw(8))
    drawn = [draw(seed) for seed in SEEDS]
    assert {kind for table in drawn for kind in table.steps[-1].columns.values()} == set(TYPES)
    assert {table.options["hoodie.index.type"] for table in drawn} == {
        "BLOOM",
        "BUCKET",
        "GLOBAL_BLOOM",
        "GLOBAL_SIMPLE",
        "RECORD_INDEX",
        "SIMPLE",
    }
    assert {table.options["hoodie.write.table.version"] for table in drawn} == {"6", "8", "9"}
    kinds = {step.kind for table in drawn for step in table.steps}
    assert kinds >= {"upsert", "delete", "delete_partition", "insert_overwrite", "compact", "cluster", "rollback"}


def _plain() -> DrawnTable:
    """A drawn table with plain writes alone, all of which Hudi's writer takes."""
    wanted = {
        "hoodie.write.table.version": "9",
        "hoodie.index.type": "BUCKET",
        "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
    }
    for drawn in map(draw, SEEDS):
        plain = all(step.kind in {"upsert", "insert", "delete"} for step in drawn.steps)
        if plain and wanted.items() <= drawn.options.items() and "hoodie.index.bucket.engine" not in drawn.options:
            return drawn
    raise AssertionError("no seed draws a table with buckets")


@pytest.mark.spark
@pytest.mark.judge
@pytest.mark.full
def test_a_drawn_table_is_equal_and_a_stale_one_is_found(tmp_path: Path, spark: SparkSession) -> None:
    drawn = _plain()
    verdict = judge(spark, drawn, tmp_path / "equal")
    assert verdict.outcome is Outcome.EQUAL, verdict.detail

    place = tmp_path / "stale"
    SparkWriter(spark, drawn, place).write()
    stale = Comparison(HudiSpark(spark), place, hudilake.open_table(str(place)))
    assert stale.first_difference() is None
    rows = draw(drawn.seed).steps[0].rows
    newer = replace(drawn.steps[0], kind="upsert", rows=tuple({**row, "ts": 5_000} for row in rows))
    SparkWriter(spark, replace(drawn, steps=(newer,)), place).write()
    assert (stale.first_difference() or "").startswith("now: ")
