"""A chain of schema changes before both judges, after each: base files and logs from before, logs from after."""

from __future__ import annotations

import contextlib
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.dying_store import Fate, Killed
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark
from tests.judges.rows import canonical

COLUMNS = {"id": "int", "name": "varchar(20)", "qty": "int", "price": "decimal(6,2)", "ratio": "float"}


def chain(source: DdlSource, follower: Follower, place: Path, look: Any) -> None:  # noqa: ANN401 - a callable
    """Every kind of change that is applied, each with rows before and after in one batch."""

    def step() -> None:
        follower.run()
        follower.check_texts("t")
        look(place / "shop" / "t")

    step()
    source.put("t", 1, price="2.25")
    source.add("t", "tier", "varchar(8)", "basic", "NOT NULL DEFAULT 'basic'")
    source.put("t", 2, tier="gold")
    step()
    source.modify("t", "qty", "bigint")
    source.add("t", "rank", "int", None, "NULL")
    source.put("t", 3, qty=2**40, rank=1)
    step()
    source.modify("t", "price", "decimal(9,2)")
    source.put("t", 4, price="1234567.25")
    step()
    source.modify("t", "price", "decimal(12,4)")
    source.put("t", 5, price="12345678.1234")
    step()
    source.rename("t", "name", "label")
    source.put("t", 6, label="new")
    step()
    source.modify("t", "ratio", "double")
    source.put("t", 7, ratio=0.1)
    source.drop("t", "rank")
    source.put("t", 0, label="after the drop")
    step()
    source.put("t", 3, qty=3)  # a number that is no int would be cut
    source.modify("t", "qty", "int")
    source.add("t", "rank", "int", 7, "NOT NULL DEFAULT 7")
    source.put("t", 8, qty=5, price="0.5000", rank=8)
    step()


def begun(tmp_path: Path, compaction: dict[str, Any]) -> tuple[DdlSource, Follower]:
    source = DdlSource()
    source.create("t", COLUMNS)
    for key in range(10):
        source.put("t", key, name=f"n{key}", qty=key, price="1.50", ratio=0.5)
    more = {"source": {"debezium": {"decimal_handling_mode": "string"}}}
    follower = Follower(source, tmp_path, {"compaction": compaction})
    follower.more = more
    return source, follower


LOGS_ALONE = {"mode": "inline", "after_commits": 1000, "log_ratio": None}
COMPACTED = {"mode": "inline", "after_commits": 2, "log_ratio": None}


@pytest.mark.first(1)
@pytest.mark.parametrize("compaction", [LOGS_ALONE, COMPACTED], ids=["logs", "compacted"])
def test_hudi_rs_reads_every_state(tmp_path: Path, compaction: dict[str, Any]) -> None:
    source, follower = begun(tmp_path, compaction)
    seen: list[int] = []
    chain(source, follower, tmp_path, lambda path: seen.append(hudi_rs.snapshot(path).num_rows))
    assert seen == [10] * 8
    assert sorted(follower.stored("t")[5].items())[3] == ("price", Decimal("12345678.1234"))


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_both_judges_read_every_state(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    source, follower = begun(tmp_path, COMPACTED)

    def look(path: Path) -> None:
        rows = hudi_rs.snapshot(path)
        columns = [c for c in rows.column_names if not c.startswith("_hoodie_")]
        assert canonical(hudi_spark.snapshot(path.as_uri()), columns) == canonical(rows, columns)

    chain(source, follower, tmp_path, look)


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_both_judges_read_every_state_of_a_table_that_gets_another_key(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    """Before it, when the properties say no key, when the commit is done and they still do, and after it. The old keys
    and the new ones have equal texts, in other rows."""
    source, follower = begun(tmp_path / "base", COMPACTED)
    follower.run()
    source.delete("t", 9)
    for key in range(9):
        source.put("t", key, qty=8 - key)
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (qty)", ("qty",))
    source.put("t", 1, name="after")
    counting = Fate()
    died(source, tmp_path, "count", counting)
    calls = [(at, path) for at, (_, path) in enumerate(counting.calls)]
    properties = [
        at for at, path in calls if path.endswith("t/.hoodie/hoodie.properties") and counting.calls[at][0] == "write"
    ]
    assert len(properties) == 2, "without a key, and with the new one"
    for name, at in {
        "before": properties[0] - 1,
        "no_key": properties[0],
        "done": properties[1] - 1,
        "after": -1,
    }.items():
        follower = died(source, tmp_path, name, Fate(at))
        path = follower.place / "shop" / "t"
        rows = hudi_rs.snapshot(path)
        columns = [c for c in rows.column_names if not c.startswith("_hoodie_")]
        assert canonical(hudi_spark.snapshot(path.as_uri()), columns) == canonical(rows, columns), name
        assert rows.num_rows == 9
        for row in rows.to_pylist()[:3]:
            for column in ("id", "qty"):
                found = hudi_spark.frame(path.as_uri()).where(f"{column} = {row[column]}").collect()
                assert [r["id"] for r in found] == [row["id"]], (name, column)


def died(source: DdlSource, tmp_path: Path, name: str, fate: Fate) -> Follower:
    shutil.copytree(tmp_path / "base", tmp_path / name)
    follower = Follower(source, tmp_path / name, {"compaction": COMPACTED}, fate=fate)
    follower.more = {"source": {"debezium": {"decimal_handling_mode": "string"}}}
    with contextlib.suppress(Killed):
        follower.run()
    fate.settle()
    return follower
