"""Plans of clusterings: those of Hudi are read, and written as Hudi writes them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.layout.order import Order
from hudilake.format.timeline.avro_container import encode_container
from hudilake.format.timeline.clustering_plan import (
    CONSISTENT_BUCKETS,
    SORT_AND_SIZE,
    ClusteringPlan,
    PlannedGroup,
    PlannedSlice,
)
from hudilake.format.timeline.timeline import Timeline
from hudilake.policies import OrderPolicy
from hudilake.services.clustering.plan import order_of, units_of
from hudilake.storage import open_storage
from tests.hudilake.golden_kinds import extracted


def golden(kind: str, at: Path) -> bytes:
    """The requested clustering of a golden table."""
    (requested,) = (extracted(kind, at) / ".hoodie/timeline").glob("*.clustering.requested")
    return requested.read_bytes()


def decoded(data: bytes) -> Any:  # noqa: ANN401 - an Avro record
    return next(iter(fastavro.reader(io.BytesIO(data))))


@pytest.mark.parametrize("kind", ["cow_zorder_pending", "mor_zorder"])
def test_hudis_plan_is_read_and_written_again(tmp_path: Path, kind: str) -> None:
    data = golden(kind, tmp_path)
    plan = ClusteringPlan.from_bytes(data, "x")
    assert decoded(plan.to_bytes(f"file:/warehouse/xxxxx/{kind}")) == decoded(data)
    assert plan.strategy == SORT_AND_SIZE
    assert order_of(plan) == Order(OrderPolicy(columns=("id", "k")))
    assert len(plan.planned) == sum(len(group.slices) for group in plan.groups) == 6
    table = open_storage((tmp_path / kind).as_uri())
    names = {info.path for path in ("region=ap", "region=eu", "region=us") for info in table.list(path)}
    units = units_of(plan)
    assert {path for unit in units for source in unit.sources for path in source.paths} <= names
    assert any(source.log_files for unit in units for source in unit.sources) == (kind == "mor_zorder")


def test_the_completed_clustering_replaced_what_was_planned(tmp_path: Path) -> None:
    plan = ClusteringPlan.from_bytes(golden("mor_zorder", tmp_path), "x")
    replaced = Timeline.load(open_storage((tmp_path / "mor_zorder").as_uri())).replaced()
    assert plan.planned == set(replaced)


def test_plans_that_are_not_executed(tmp_path: Path) -> None:
    group = PlannedGroup((PlannedSlice("p", "f", "f_0-0-0_20260101000000000.parquet"),), 1)
    with pytest.raises(UnsupportedError, match="SparkConsistentBucketClusteringExecutionStrategy"):
        units_of(ClusteringPlan((group,), CONSISTENT_BUCKETS))
    with pytest.raises(UnsupportedError, match="new commit time"):
        units_of(ClusteringPlan((group,), keeps_times=False))
    with pytest.raises(UnsupportedError, match="not data files"):
        units_of(ClusteringPlan((PlannedGroup((PlannedSlice("p", "f", "readme.txt"),), 1),)))
    empty = dict.fromkeys(("operationType", "clusteringPlan", "extraMetadata", "version"))
    with pytest.raises(CorruptDataError, match="no plan"):
        ClusteringPlan.from_bytes(encode_container("HoodieRequestedReplaceMetadata", empty), "x")
