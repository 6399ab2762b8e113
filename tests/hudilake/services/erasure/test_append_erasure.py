"""Rows of append tables leave every byte by the values that name them; both judges read the others."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

import hudilake
from hudilake import Table
from hudilake.errors import ConfigError, LakeError
from hudilake.services.erasure.traces import Quarry, traces
from hudilake.storage.base import every_file
from hudilake.table.table import HudiTable
from tests.hudilake.api.tables import APPENDED, SCHEMA, Row, row
from tests.hudilake.failing_storage import Killed
from tests.hudilake.lake import data_files, storage_at
from tests.hudilake.metadata.below import Counting, Dying
from tests.hudilake.services.erasure.test_crash_points import sampled
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark

NAME = "a person of two rows a commit"
#: Everything that may tell of the rows, by the model: their keys are not known to it.
QUARRY = Quarry(frozenset(), frozenset([NAME.encode()]))


def grown(place: Path, **kind: Any) -> tuple[Table, list[Row]]:  # noqa: ANN401 - arguments of create_table
    """A table with rows of the person in one of its three partitions, in base files and log files."""
    table, rows = hudilake.create_table(str(place), SCHEMA, partition_by="day", **kind), list[Row]()
    for version in range(4):
        some = [row(n, version, name=NAME if n in (3, 6) else f"person {n}") for n in range(9)]
        table.append(some)
        rows += some
        if version == 2 and not kind:
            table.compact()
    return table, rows


def telling(table: Table) -> set[str]:
    """The files that have the name, decompressed."""
    storage = table.internal.storage
    return {info.path for info in every_file(storage) if traces(storage.read(info.path), QUARRY)}


def held(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda one: (one["updated_at"], one["id"]))


def by_rs(place: Path) -> list[Row]:
    return held(hudi_rs.snapshot(place).select(list(SCHEMA.names)).to_pylist())


@pytest.mark.parametrize("kind", APPENDED)
def test_all_rows_with_a_value_leave(tmp_path: Path, kind: str) -> None:
    table, rows = grown(tmp_path / "t", **APPENDED[kind])
    before = telling(table)
    assert before  # the control: what is there is seen
    others = {path for path in data_files(tmp_path / "t") if "day=d0" not in path and not path.startswith("d0/")}
    assert others
    plan = table.plan_erasure([{"name": NAME}])
    assert {one.path for one in plan.holders.values()} >= before
    done = table.erase([{"name": NAME}])
    assert done.is_done
    assert all(one.gone_ms is not None for one in done.record.files)
    assert not telling(table)
    assert others <= set(data_files(tmp_path / "t"))  # other file groups are not written
    left = held([one for one in rows if one["name"] != NAME])
    assert held(table.scan().to_arrow().to_pylist()) == by_rs(tmp_path / "t") == left
    more = [row(3, 9, name="later"), row(4, 9, name="later")]
    table.append(more)
    assert held(table.scan().to_arrow().to_pylist()) == by_rs(tmp_path / "t") == held(left + more)
    if kind == "merge on read":
        table.compact()
        table.cluster()
        assert by_rs(tmp_path / "t") == held(left + more)


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", APPENDED)
def test_spark_reads_the_others(tmp_path: Path, kind: str, hudi_spark: HudiSpark) -> None:
    table, rows = grown(tmp_path / "t", **APPENDED[kind])
    assert table.erase([{"name": NAME}]).is_done
    left = held([one for one in rows if one["name"] != NAME])
    shown = hudi_spark.snapshot(str(tmp_path / "t"))
    assert held([{name: one[name] for name in SCHEMA.names} for one in shown]) == left


def test_several_values_name_the_rows_that_have_all_of_them(tmp_path: Path) -> None:
    table, rows = grown(tmp_path / "t")
    table.append([{**row(3, 20), "name": None}])
    rows += [{**row(3, 20), "name": None}]
    assert table.erase([{"name": NAME, "id": 3}]).is_done
    assert table.erase([{"name": None}]).is_done
    left = [one for one in rows if one["name"] is not None and (one["name"], one["id"]) != (NAME, 3)]
    assert held(table.scan().to_arrow().to_pylist()) == held(left)


def test_values_of_no_row_write_nothing(tmp_path: Path) -> None:
    table, _ = grown(tmp_path / "t")
    before = sorted(data_files(tmp_path / "t"))
    done = table.erase([{"name": "nobody"}])
    assert done.is_done
    assert done.record.files == []
    assert sorted(data_files(tmp_path / "t")) == before


@pytest.mark.parametrize("rows", [[{}], [{"nothing": 1}]])
def test_rows_that_name_nothing_are_refused(tmp_path: Path, rows: list[Row]) -> None:
    table, _ = grown(tmp_path / "t")
    with pytest.raises(ConfigError):
        table.erase(rows)


@pytest.mark.parametrize("kind", APPENDED)
def test_death_at_any_call(tmp_path: Path, kind: str) -> None:
    """After it no row may have the value any more: the same call goes on with the keys that were found."""
    _, rows = grown(tmp_path / "made", **APPENDED[kind])
    whole = held(rows)
    without = [one for one in whole if one["name"] != NAME]
    shutil.copytree(tmp_path / "made", tmp_path / "count")
    counting = Counting(storage_at(tmp_path / "count"))
    Table(HudiTable.open(counting)).erase([{"name": NAME}])
    chosen = sampled(counting.calls)
    assert len(chosen) >= 5
    for turn, at in enumerate(chosen):
        place = tmp_path / f"{at}"
        shutil.copytree(tmp_path / "made", place)
        with pytest.raises(Killed):
            Table(HudiTable.open(Dying(storage_at(place), at=at, before=turn % 2 == 0))).erase([{"name": NAME}])
        with contextlib.suppress(LakeError):
            assert held(hudilake.open_table(str(place)).scan().to_arrow().to_pylist()) in (whole, without)
        again = hudilake.open_table(str(place))
        assert again.erase([{"name": NAME}]).is_done, counting.calls[at]
        assert not telling(again)
        assert by_rs(place) == without
        shutil.rmtree(place)
