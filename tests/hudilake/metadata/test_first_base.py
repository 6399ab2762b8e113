"""Every file group of an indexed table has a base file, for hudi-rs sees no other once it lists by the index."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudilake.format.files.base_file import encode_base_file
from hudilake.metadata import first_base
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.first_base import groups_without_base
from hudilake.metadata.initialise import initialise
from hudilake.metadata.records.delta import MetadataDelta
from tests.hudilake.lake import commit, deletes, new_table, rs, upserts
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.judges import hudi_rs

SCHEMA = arrow_schema({"day": pa.string()})


def _row(number: int) -> dict[str, Any]:
    return {"id": number, ORDER: 1, "day": f"d{number % 2}"}


def test_a_new_file_group_is_seen_by_hudi_rs(tmp_path: Path) -> None:
    table = IndexedTable(tmp_path / "t", SCHEMA, part="day")
    for number in range(6):
        table.write([_row(number)])
    assert sorted(hudi_rs.snapshot(table.path)["id"].to_pylist()) == list(range(6))
    bases = [(path, name[:38]) for path, name in table.listed() if name.endswith(".parquet")]
    logs = {(path, name[1:39]) for path, name in table.listed() if name.startswith(".")}
    assert len(bases) == len(logs)
    assert set(bases) == logs


def test_control_without_the_base_file_it_is_not(tmp_path: Path) -> None:
    """When this fails, hudi-rs has learnt to see file groups of log files alone, and first base files can go."""
    table = IndexedTable(tmp_path / "t", SCHEMA)
    instant, results, delta = table.begin_write([_row(1)])
    first, log = delta.added
    table.storage.delete(first.name)
    table.metadata.apply(instant, MetadataDelta((log,)))
    table.table.commit(instant, results)
    assert table.rows().keys() == {1}
    assert hudi_rs.snapshot(table.path).num_rows == 0


def test_a_late_beginning_gives_them_out(tmp_path: Path) -> None:
    """Older commits of log files alone keep their rows, at every instant, once the table is indexed."""
    table = new_table(tmp_path / "t")
    instants = [commit(table, upserts(range(n, n + 5), n + 1)) for n in range(3)]
    commit(table, deletes([2], 9) + upserts([50], 9, day="d2"))
    before = rs(tmp_path / "t")
    then = [hudi_rs.as_of(tmp_path / "t", instant).num_rows for instant in instants]
    with table.state.lock:
        initialise(table.storage, table.config, table.timeline, table.clock, table.schema, MetadataConfig())
    assert rs(tmp_path / "t") == before
    assert [hudi_rs.as_of(tmp_path / "t", instant).num_rows for instant in instants] == then
    assert not list((tmp_path / "t" / ".hoodie" / ".temp").glob("*/*"))


def test_which_groups_lack_one() -> None:
    files = [
        ("p", ".00000000-a-0_20260101000000002.log.1_0-0-0"),
        ("p", ".00000000-a-0_20260101000000001.log.1_0-0-0"),
        ("p", ".00000001-a-0_20260101000000001.log.1_0-0-0"),
        ("p", "00000001-a-0_0-0-0_20260101000000001.parquet"),
        ("q", ".hoodie_partition_metadata"),
    ]
    assert groups_without_base(files) == {("p", "00000000-a-0"): "20260101000000001"}


def test_a_commit_encodes_it_once_for_all_new_file_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = list[pa.Table]()

    def encode(rows: pa.Table, schema: str) -> bytes:
        encoded.append(rows)
        return encode_base_file(rows, schema)

    monkeypatch.setattr(first_base, "encode_base_file", encode)
    table = new_table(tmp_path / "t", MetadataConfig())
    commit(table, upserts(range(40), 1) + upserts(range(40, 80), 1, day="d2"))
    assert len(list((tmp_path / "t").rglob("*.parquet"))) > 2
    assert len(encoded) <= 1
    assert len(rs(tmp_path / "t")) == 80
