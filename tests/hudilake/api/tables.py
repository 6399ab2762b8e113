"""Small tables of each kind that the façade writes, and a model of what they must hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import hudilake
from hudilake import Table
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same
from tests.judges.hudi_spark import HudiSpark

SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "day": pa.string(), "updated_at": pa.int64()})
Row = dict[str, Any]
#: The kinds of tables with a key, as arguments of ``create_table``.
KEYED: dict[str, dict[str, Any]] = {
    "merge on read": {},
    "copy on write": {"type": "copy_on_write"},
    "hash rings": {"index": "consistent_bucket"},
    "two keys": {"key": ["id", "name"]},
    "without partitions": {"partition_by": ()},
}
APPENDED: dict[str, dict[str, Any]] = {"merge on read": {}, "copy on write": {"type": "copy_on_write"}}


def keyed(place: Path, **changed: Any) -> Table:  # noqa: ANN401 - arguments of create_table
    """An empty table with a key."""
    given = {"key": "id", "order_by": "updated_at", "partition_by": "day", "buckets": 2, **changed}
    return hudilake.create_table(str(place), SCHEMA, **given)


def row(number: int, order: int, name: str = "a", day: str | None = None) -> Row:
    return {"id": number, "name": name, "day": day or f"d{number % 3}", "updated_at": order}


@dataclass
class Model:
    """What a table with a key must hold. ``forgets``: whether a deleted row leaves no order behind."""

    key: tuple[str, ...] = ("id", "day")
    forgets: bool = False
    rows: dict[tuple[Any, ...], tuple[int, Row | None]] = field(default_factory=dict)

    def upsert(self, rows: Iterable[Row]) -> None:
        for one in rows:
            place = tuple(one[name] for name in self.key)
            known = self.rows.get(place)
            if known is None or one["updated_at"] >= known[0]:
                self.rows[place] = one["updated_at"], one

    def delete(self, rows: Iterable[Row]) -> None:
        for one in rows:
            place = tuple(one[name] for name in self.key)
            known = self.rows.pop(place, None)
            if known is not None and not self.forgets:
                self.rows[place] = known[0], None

    def live(self) -> list[Row]:
        return [one for _, one in self.rows.values() if one is not None]


def assert_holds(table: Table, expected: Iterable[Row], spark: HudiSpark | None = None) -> None:
    """The façade, another façade over the same place, hudi-rs and, if given, Hudi Spark show exactly these rows."""
    wanted = list(expected)
    assert_same("the table", table.scan().to_arrow(), wanted)
    assert_same("the table opened again", hudilake.open_table(table.uri).scan().to_arrow(), wanted)
    assert table.count() == len(wanted)
    place = table.uri.removeprefix("file://")
    assert_same("hudi-rs", hudi_rs.snapshot(place), wanted)
    if spark is not None:
        assert_same("Hudi Spark", spark.snapshot(place), wanted)
    assert [finding for finding in table.fsck().findings if finding.severity != "info"] == []
