"""Columns that take other types and that are added while nobody compacts: hudi-rs reads the table after every batch."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.hypothesis_profile import scaled
from tests.judges.hudi_spark import HudiSpark

#: Types that a column takes one after the other, each with all values of the one before.
WIDER = {"int": "bigint", "float": "double", "decimal(6,2)": "decimal(12,2)", "decimal(12,2)": "decimal(20,2)"}
FIRST = ("int", "float", "decimal(6,2)")
OFF: dict[str, Any] = {"compaction": {"mode": "off"}}
PROCESS: dict[str, Any] = {"compaction": {"mode": "process"}}


def test_a_wider_type_and_a_new_column_while_the_log_files_are_not_compacted(tmp_path: Path) -> None:
    source = DdlSource()
    source.create("t", {"id": "int", "n": "int"})
    follower = Follower(source, tmp_path, {**OFF, "buckets": 1})
    source.put("t", 1, n=1)
    follower.run()
    source.put("t", 2, n=2)
    follower.run()
    source.modify("t", "n", "bigint")
    source.add("t", "c", "int", None)
    source.put("t", 2, n=1 << 40, c=3)
    follower.run()
    follower.check("t")


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", range(scaled(30, least=4)))
def test_random_widenings_and_new_columns_while_nobody_compacts(tmp_path: Path, seed: int) -> None:
    random, source = Random(seed), DdlSource(framed=bool(seed % 4 == 3))
    first = ("int",) if source.framed else FIRST
    columns = {"id": "int", **{f"c{number}": random.choice(first) for number in range(2)}}
    source.create("t", columns)
    sections = {**random.choice((OFF, PROCESS)), "buckets": random.choice((1, 2))}
    index = random.choice(({}, {}, {"index": {"type": "simple"}}))
    _followed(source, Follower(source, tmp_path, OFF | index if index else sections), random, first)


def _followed(source: DdlSource, follower: Follower, random: Random, first: tuple[str, ...]) -> None:
    for _ in range(12):
        _act(source, random, first)
        if random.random() < 0.6:
            follower.run()
            follower.check("t")
    follower.run()
    follower.check("t")


@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_reads_such_a_table_too(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    random, source = Random(2), DdlSource()
    source.create("t", {"id": "int", "c0": "int", "c1": "float"})
    _followed(source, Follower(source, tmp_path, {**OFF, "buckets": 2}), random, FIRST)
    held = source.tables["t"]
    assert {"bigint", "double"} & set(held.columns.values())
    rows = hudi_spark.snapshot(str(tmp_path / "shop/t"))
    assert {row["id"]: {name: row[name] for name in held.columns} for row in rows} == held.rows


def _act(source: DdlSource, random: Random, first: tuple[str, ...]) -> None:
    held = source.tables["t"]
    wider = [name for name, kind in held.columns.items() if kind in WIDER and name != "id"]
    act = random.choice(("put", "put", "put", "delete", "widen", "widen", "add"))
    if act == "delete" and held.rows:
        source.delete("t", random.choice(sorted(held.rows)))
    elif act == "widen" and wider:
        name = random.choice(wider)
        _change(source, name, WIDER[held.columns[name]], known=True)
    elif act == "add" and len(held.columns) < 6:
        _change(source, f"c{len(held.columns)}", random.choice(first), known=False)
    for _ in range(random.randint(1, 3)):
        key = random.randrange(8)
        source.put("t", key, **{n: _value(kind, random) for n, kind in held.columns.items() if n != "id"})


def _change(source: DdlSource, name: str, kind: str, *, known: bool) -> None:
    """A statement; where values come with their types, the types alone."""
    held = source.tables["t"]
    if source.framed:
        for row in held.rows.values():
            row.setdefault(name, None)
        held.columns = held.columns | {name: kind}
    elif known:
        source.modify("t", name, kind)
    else:
        source.add("t", name, kind, None)


def _value(kind: str, random: Random) -> Any:  # noqa: ANN401 - any JSON
    if kind in ("int", "bigint"):
        return random.randrange(1 << (31 if kind == "int" else 50))
    return random.randrange(100) / 4 if kind in ("float", "double") else None
