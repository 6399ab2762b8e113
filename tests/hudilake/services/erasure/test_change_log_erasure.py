"""Rows leave the change logs of Hudi's CDC query, too, in every mode; Hudi's queries go on."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hudilake import Table
from hudilake.errors import ConfigError
from hudilake.policies import ChangeLog
from hudilake.services.erasure.traces import Quarry, traces
from hudilake.storage.base import every_file
from tests.hudilake.api.tables import Row, assert_holds, keyed, row
from tests.judges.hudi_spark import HudiSpark

MODES: tuple[ChangeLog, ...] = ("op_key_only", "data_before", "data_before_after")
#: A row that lives, and one that was deleted.
LIVING, DELETED = 3_000_003, 3_000_006


def aged(place: Path, mode: ChangeLog) -> tuple[Table, dict[int, Row]]:
    """A table after some commits; the newest change log of its file groups tells of the deleted row."""
    table, live = keyed(place, type="copy_on_write", change_log=mode), dict[int, Row]()
    drawn = random.Random(1)
    for version in range(4):
        numbers = [3_000_000 + n for n in range(9) if drawn.random() < 0.7 or n in (3, 6)]
        rows = [row(n, 100 * version + 1, name=f"person {n} of {version}") for n in numbers]
        table.upsert(rows)
        live |= {one["id"]: one for one in rows}
    table.delete([live.pop(DELETED)])
    return table, live


def telling(table: Table, number: int) -> list[str]:
    """The files with the row's key or one of its texts, decompressed. Its key has so many digits that no other number
    is in it; Avro and Parquet have it in change logs and columns as a number, of which nothing is said."""
    texts = frozenset([str(number).encode(), f"person {number} of".encode()])
    storage = table.internal.storage
    return [info.path for info in every_file(storage) if traces(storage.read(info.path), Quarry(frozenset(), texts))]


@pytest.mark.first(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("number", [LIVING, DELETED])
def test_the_row_leaves_change_logs(tmp_path: Path, mode: ChangeLog, number: int) -> None:
    table, live = aged(tmp_path / "t", mode)
    seen = telling(table, number)
    assert any(path.endswith(".cdc") for path in seen)  # the control
    plan = table.plan_erasure([{"id": number}])
    assert {path for path in seen if path.endswith(".cdc")} <= plan.holders.keys()
    done = table.erase([{"id": number}])
    assert done.is_done, done.scan
    assert all(one.gone_ms is not None for one in done.record.files)
    assert telling(table, number) == []
    live.pop(number, None)
    assert_holds(table, live.values())
    assert table.erase([{"id": number}]).record.files == []


def test_savepoints_that_hold_a_change_log_are_named(tmp_path: Path) -> None:
    """The base file of the savepoint has the row no more; the change log beside it has its key."""
    table, _ = aged(tmp_path / "t", "op_key_only")
    table.savepoint(comment="after the delete")
    with pytest.raises(ConfigError, match="after the delete"):
        table.erase([{"id": DELETED}])
    assert table.erase([{"id": DELETED}], release_savepoints=True).is_done


@pytest.mark.spark
@pytest.mark.judge
@pytest.mark.parametrize("mode", MODES)
def test_hudis_queries_go_on(tmp_path: Path, mode: ChangeLog, hudi_spark: HudiSpark) -> None:
    """From the erasure on: Hudi needs the base files before a change, and those before the erasure are gone."""
    table, live = aged(tmp_path / "t", mode)
    assert table.erase([{"id": LIVING}]).is_done
    erased = table.history()[0].completed
    live.pop(LIVING)
    changed = [row(n, 10_000, name="later") for n in (3_000_000, 3_000_001)]
    table.upsert(changed)
    live |= {one["id"]: one for one in changed}
    assert_holds(table, live.values(), hudi_spark)
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": erased,
    }
    changes = hudi_spark.frame(str(tmp_path / "t"), asked).select("op", "after").collect()
    assert sorted(change.op for change in changes) == ["u", "u"]
    assert all("later" in change.after for change in changes)
