"""Hudi's CDC query over random histories of tables whose change logs binlake has written, beside ``Table.changes``."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudilake
from hudilake.policies import ChangeLog
from tests.hudilake.query.changes.test_hudi_cdc import by_hudi
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark

pytestmark = [pytest.mark.spark, pytest.mark.judge]
_START = datetime(2024, 2, 29, 12, tzinfo=UTC)
_SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "part": pa.string(),
        "name": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "price": pa.decimal128(10, 2),
        "ratio": pa.float64(),
        "marks": pa.list_(pa.struct({"of": pa.string(), "at": pa.int32()})),
        "notes": pa.map_(pa.string(), pa.string()),
    }
)
_MODES: tuple[ChangeLog, ...] = ("op_key_only", "data_before", "data_before_after")


def row(dice: random.Random, key: int, at: int) -> dict[str, Any]:
    """A row of any values, some of them null."""
    return {
        "id": key,
        "part": dice.choice("xy"),
        "name": dice.choice(["a", "ünï", "", None]),
        "at": _START + timedelta(seconds=at),
        "day": dice.choice([date(1969, 7, 20), date(2024, 2, 29), None]),
        "price": dice.choice([Decimal("-12345678.90"), Decimal("0.01"), None]),
        "ratio": dice.choice([0.5, -1e300, None]),
        "marks": dice.choice([[{"of": "p", "at": at}], [], None]),
        "notes": dice.choice([[("k", "v"), ("l", None)], [], None]),
    }


def written(place: Path, mode: ChangeLog, seed: int) -> hudilake.Table:
    """Inserts, updates, deletes and inserts again of some keys in two partitions, late rows and a column that comes.
    The same seed gives the same rows."""
    dice = random.Random(seed)
    table = hudilake.create_table(
        str(place),
        _SCHEMA,
        key="id",
        order_by="at",
        partition_by="part",
        type="copy_on_write",
        buckets=2,
        change_log=mode,
    )
    for at in range(1, 9):
        keys = dice.sample(range(10), 5)
        rows = [row(dice, key, dice.choice([at, at, at, 0])) for key in keys]
        if at == 6:
            table.evolve(table.schema.append(pa.field("more", pa.string())))
        if at % 3 == 0:
            table.delete([{"id": one["id"], "part": one["part"]} for one in rows])
        else:
            table.upsert([{**one, "more": f"m{at}"} if at > 6 else one for one in rows])
    return table


def values(changes: list[tuple[str, Any, Any]]) -> list[tuple[str, Any, Any]]:
    """Without the changes that change no asked column."""
    return [change for change in changes if change[1] != change[2]]


def _plain(image: dict[str, Any] | None) -> tuple[Any, ...]:
    return () if image is None else tuple(image.values())


def images(spark: HudiSpark, place: Path) -> list[str]:
    """The changes with all columns, as Hudi's query prints them."""
    asked = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": "000",
    }
    found = []
    for change in spark.frame(str(place), asked).select("op", "before", "after").collect():
        sides = [None if side is None else _without_nulls(json.loads(side)) for side in (change.before, change.after)]
        found.append(json.dumps([change.op, *sides], sort_keys=True))
    return sorted(found)


def _without_nulls(image: Any) -> Any:  # noqa: ANN401 - any JSON
    """Without meta fields, which no change log has, and nulls, which Hudi prints in some modes only. Of a decimal in a
    base file it prints ``{"zero":false}``, of one in a change log the bytes."""
    if isinstance(image, list):
        return [_without_nulls(part) for part in image]
    if not isinstance(image, dict):
        return image
    kept = {name: part for name, part in image.items() if part is not None and name[0] != "_" and name != "price"}
    return {name: _without_nulls(part) for name, part in kept.items()}


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_hudis_query_has_the_changes_of_the_feed(tmp_path: Path, hudi_spark: HudiSpark, seed: int) -> None:
    whole = []
    for mode in _MODES:
        place = tmp_path / mode
        table = written(place, mode, seed)
        rows = [one for batch in table.changes("", columns=["id", "name"]) for one in batch.to_pylist()]
        ours = sorted(((one["op"], _plain(one["before"]), _plain(one["after"])) for one in rows), key=str)
        assert {change[0] for change in ours} == {"i", "u", "d"}
        assert values(by_hudi(hudi_spark, place)) == ours, mode
        assert table.fsck().findings == ()
        seen = hudi_rs.snapshot(place)
        assert sorted(seen.column("id").to_pylist()) == sorted(table.scan().to_arrow().column("id").to_pylist())
        whole.append(images(hudi_spark, place))
    assert whole[0] == whole[1] == whole[2]  # the first mode has all rows from base files, the last none
