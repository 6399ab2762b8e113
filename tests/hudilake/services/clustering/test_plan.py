"""Which file groups a clustering takes, what it leaves alone, and plans that no longer hold."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.errors import UnsupportedError
from hudilake.format.definition.kind import TableKind
from hudilake.format.layout.order import Order, recorded_order
from hudilake.format.timeline.clustering_plan import ClusteringPlan, read_clustering_plan
from hudilake.format.timeline.instant import CLUSTERING
from hudilake.policies import FileSizePolicy, OrderPolicy
from hudilake.services.clustering.config import ClusteringConfig
from hudilake.services.clustering.job import context_of, lay_out
from hudilake.services.clustering.plan import ClusteringUnit, holds, order_of, plan, plan_of, units_of
from hudilake.services.clustering.sources import with_bounds
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.golden_kinds import expected_rows, extracted
from tests.hudilake.lake import deletes, new_table, upserts
from tests.hudilake.services.clustering.made import Made, clustering, in_tasks

#: Any file is too small for one of these.
LARGE = FileSizePolicy(target_bytes=1 << 20, small_bytes=1 << 20)


def planned(made: Made, config: ClusteringConfig, busy: Collection[tuple[str, str]] = ()) -> list[tuple[str, int]]:
    """Partition and number of file groups of each unit."""
    return [(unit.partition_path, len(unit.sources)) for unit in plan(made.table, config, busy)]


def grown(at: Path, *, groups: int = 3) -> Made:
    """Two partitions with some file groups each."""
    made = Made.at(at, "simple", "copy_on_write")
    for group in range(groups):
        rows = [*upserts(range(group, 30, groups), 1), *upserts(range(100 + group, 130, groups), 1, day="d2")]
        made.commit(rows, f"{group}")
    return made


def test_partitions_that_were_written_since_are_taken(tmp_path: Path) -> None:
    made, config = grown(tmp_path / "t"), clustering("name", select="changed", sizes=LARGE)
    assert planned(made, config) == [("day=d1", 3), ("day=d2", 3)]
    made.cluster(config)
    assert planned(made, config) == []
    made.commit(upserts([200], 2, day="d2"), "x")
    assert planned(made, config) == [("day=d2", 2)]
    other = clustering("qty", select="changed", sizes=LARGE)  # nothing lies in that order
    assert planned(made, other) == [("day=d1", 1), ("day=d2", 2)]
    made.cluster(config)
    assert planned(made, clustering("name", select="all", sizes=LARGE)) == []


def test_small_files_and_partitions_by_name(tmp_path: Path) -> None:
    made = grown(tmp_path / "t")
    sizes = sorted(piece.base_size for piece in made.table.file_slices())
    some = FileSizePolicy(target_bytes=1 << 20, small_bytes=sizes[3] + 1)
    taken = plan(made.table, clustering("name", select="small", sizes=some))
    assert sum(len(unit.sources) for unit in taken) == sum(size <= sizes[3] for size in sizes)
    assert planned(made, clustering("name", partitions=("day=d2", "x*"), sizes=LARGE)) == [("day=d2", 3)]
    assert planned(made, clustering("name", partitions=("*",), sizes=LARGE)) == [("day=d1", 3), ("day=d2", 3)]


def test_sizes_alone(tmp_path: Path) -> None:
    """Without an order only the number of files counts."""
    made = grown(tmp_path / "t")
    assert planned(made, clustering(sizes=LARGE)) == [("day=d1", 3), ("day=d2", 3)]
    made.cluster(clustering(sizes=LARGE))
    made.check()
    assert planned(made, clustering(sizes=LARGE)) == []
    assert planned(made, clustering(select="small", sizes=LARGE)) == []
    made.commit(upserts([300], 2), "x")
    assert planned(made, clustering(select="small", sizes=LARGE)) == [("day=d1", 2)]


def test_units_and_bytes_are_bounded(tmp_path: Path) -> None:
    made = grown(tmp_path / "t", groups=6)
    one = max(piece.base_size for piece in made.table.file_slices())
    assert [n for _, n in planned(made, clustering("name", group_bytes=2 * one, sizes=LARGE))] == [2] * 6
    bounded = clustering("name", group_bytes=2 * one, max_io_bytes=4 * one, sizes=LARGE)
    assert [n for _, n in planned(made, bounded)] == [2, 2]
    for _ in range(3):  # what is not laid out comes first, so that all have their turn
        made.cluster(bounded)
    assert planned(made, replace(bounded, policy=bounded.policy.model_copy(update={"select": "changed"}))) == []
    made.check()


def test_what_others_have_planned_is_left_out(tmp_path: Path) -> None:
    made, config = grown(tmp_path / "t"), clustering("name", sizes=LARGE)
    busy = {(piece.partition_path, piece.file_id) for piece in made.table.file_slices()[:2]}
    assert planned(made, config, busy=busy) == [("day=d1", 1), ("day=d2", 3)]


def test_a_unit_holds_until_one_of_its_file_groups_changes(tmp_path: Path) -> None:
    made = Made.at(tmp_path / "t", "simple")
    made.commit([*upserts(range(10), 1), *upserts(range(100, 110), 1, day="d2")])
    config = clustering("name", sizes=LARGE)
    units = units_of(plan_of(plan(made.table, config), config))

    def held() -> list[str]:
        slices = {(piece.partition_path, piece.file_id): piece for piece in made.table.file_slices()}
        return [unit.partition_path for unit in units if holds(unit, slices)]

    assert held() == ["day=d1", "day=d2"]
    made.commit(deletes([105], 2, day="d2"))
    assert held() == ["day=d1"]
    made.cluster(clustering("name", partitions=("day=d1",), sizes=LARGE))
    assert held() == []


def test_the_plan_names_the_order(tmp_path: Path) -> None:
    made, config = grown(tmp_path / "t"), clustering("name", "qty", curve="hilbert", seed=7, sizes=LARGE)
    units = plan(made.table, config)
    read = ClusteringPlan.from_bytes(plan_of(units, config).to_bytes(made.table.storage.uri), "x")
    assert order_of(read) == config.order == Order(OrderPolicy(columns=("name", "qty"), curve="hilbert"), 7)
    assert [unit.groups for unit in units_of(read)] == [unit.groups for unit in units]
    assert [unit.sources for unit in units_of(read)] == [unit.sources for unit in units]
    made.cluster(config)
    last = made.table.timeline.last_completed()
    assert last is not None
    assert recorded_order(made.table.timeline.commit_metadata(last).extra) == config.order


def test_rows_of_buckets_stay(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="may not leave their bucket"):
        plan(new_table(tmp_path), clustering("name"))


def test_hudis_pending_plan_is_executed(tmp_path: Path) -> None:
    """By the columns that it names; the table does not say its index, so the settings must."""
    storage = open_storage(extracted("cow_zorder_pending", tmp_path).as_uri())
    table = HudiTable.open(storage)
    config = clustering()
    with pytest.raises(UnsupportedError, match="does not say its index"):
        plan(table, config)
    table.state.config = replace(table.config, kind=TableKind("copy_on_write", "bloom"))
    (pending,) = [instant for instant in table.timeline.pending() if instant.action == CLUSTERING]
    read = read_clustering_plan(storage, pending)
    context = context_of(table, pending.requested_time, config, order_of(read))
    units: list[ClusteringUnit] = with_bounds(storage, context, units_of(read), in_tasks)
    assert all(unit.bounds is not None for unit in units)
    done = [lay_out(storage, context, unit) for unit in units]
    assert sum(result.num_upserts for one in done for result in one.results) == len(expected_rows("cow_zorder_pending"))
