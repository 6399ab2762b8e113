"""Recorded WAL entries through the stream into the wide tables, which equal HBase's final scans."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.types.cell_text import bytes_of
from tests.binlake.hbase.cells_world import CellsWorld
from tests.binlake.hbase.recordings import described, topic, truth
from tests.judges import hudi_rs

#: Tables without a TTL: the others' cells have expired since they were recorded.
LASTING = ("shop:orders", "shop:counters")
_SETTINGS = {"keep_deleted": "keep_deleted_cells", "by_sequence": "new_version_behavior"}
#: A row of a wide table: (family, qualifier) -> value.
Wide = dict[tuple[bytes, bytes], bytes]


def entry(table: str) -> dict[str, Any]:
    """``tables.cells`` for a recorded table: each family is a map of bytes in the wide table."""
    families = {}
    for name, rule in described()[table].families.items():
        said = {_SETTINGS.get(field, field): value for field, value in asdict(rule).items() if field != "name"}
        ttl = said.pop("ttl_ms")
        families[name.decode()] = {**said, "ttl_seconds": None if ttl is None else ttl // 1000}
    columns = {"id": ":key", **{f"in_{family}": f"{family}:#b bytes" for family in families}}
    return {"source": table.replace(":", "."), "families": families, "wide": {"columns": columns}}


def world_of(path: Path, tables: tuple[str, ...] = LASTING) -> CellsWorld:
    """A stream with wide tables."""
    world = CellsWorld(path, ())
    world.start(tables={"cells": [entry(table) for table in tables]})
    return world


def wide_rows(world: CellsWorld, table: str) -> dict[bytes, Wide]:
    """The wide table as hudi-rs reads it."""
    found: dict[bytes, Wide] = {}
    for row in hudi_rs.snapshot(str(world.path / "lake" / table.replace(":", "/"))).to_pylist():
        maps = {family: row[f"in_{family}"] or [] for family in map(bytes.decode, described()[table].families)}
        cells = {(family.encode(), _bytes(name)): value for family, held in maps.items() for name, value in held}
        assert found.setdefault(_bytes(row["id"]), cells) is cells
    return found


def _bytes(text: str) -> bytes:
    (made,) = bytes_of(pa.array([text])).to_pylist()
    return bytes(made)


def wanted_rows(table: str) -> dict[bytes, Wide]:
    """The newest visible version of each column by the final scan."""
    newest: dict[tuple[bytes, bytes, bytes], tuple[int, bytes]] = {}
    for place, value in truth(table).items():
        newest[place[:3]] = max((place.timestamp_ms, value), newest.get(place[:3], (-1, b"")))
    found: dict[bytes, Wide] = {}
    for (row, family, qualifier), (_, value) in newest.items():
        found.setdefault(row, {})[family, qualifier] = value
    return found


@pytest.mark.first(1)
@pytest.mark.parametrize("table", LASTING)
def test_equals_the_final_scan(tmp_path: Path, table: str) -> None:
    """In batches of a few entries each: a row is derived again whenever a cell of it comes."""
    world = world_of(tmp_path)
    for records in topic(table, "wal").values():
        step = max(1, len(records) // 3)
        for start in range(0, len(records), step):
            world.deliver(records.select(range(start, min(start + step, len(records)))))
            world.feed()
    wanted = wanted_rows(table)
    assert wide_rows(world, table) == wanted
    assert len(wanted) > 1
