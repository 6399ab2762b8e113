"""Tables that Hudi Spark 1.2.0 wrote: their properties name no index, the settings do."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.definition.config import load_config
from hudilake.index.open import open_index
from hudilake.policies import IndexType
from hudilake.storage.base import Storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import storage_at
from tests.paths import GOLDEN

KINDS: dict[str, IndexType] = {"mor_bloom": "bloom", "cow_simple": "simple", "mor_global_bloom": "global_bloom"}


def unpacked(path: Path, kind: str) -> tuple[Storage, list[dict[str, Any]]]:
    """The table and the rows that Hudi Spark reads in it."""
    with tarfile.open(GOLDEN / "kinds" / f"{kind}.tar.gz") as archive:
        archive.extractall(path, filter="data")
    rows = json.loads((GOLDEN / "kinds" / f"{kind}_expected.json").read_text())["rows"]
    return storage_at(path / kind), rows


def opened(storage: Storage, index: IndexType) -> HudiTable:
    """The table as settings with that index open it."""
    config, _ = load_config(storage)
    return HudiTable.open(storage, replace(config, kind=replace(config.kind, index=index), extra={}))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("other", [None, "in_memory"])
def test_the_index_of_the_settings_finds_every_row(tmp_path: Path, kind: str, other: IndexType | None) -> None:
    storage, rows = unpacked(tmp_path, kind)
    table = opened(storage, other or KINDS[kind])
    table.config.check_writable()
    paths = pa.array([row["_hoodie_partition_path"] for row in rows], pa.string())
    keys = pa.array([row["_hoodie_record_key"] for row in rows], pa.string())
    answer = open_index(table).locate(keys, paths)
    assert answer.partition_paths.equals(paths)
    ids = {(s.partition_path, s.file_id) for s in table.file_slices()}
    assert set(zip(paths.to_pylist(), answer.file_ids.to_pylist(), strict=True)) <= ids
    absent = open_index(table).locate(pa.array(["no such key"]), paths[:1])
    assert absent.file_ids.to_pylist() == [None]


def test_a_global_index_finds_rows_whose_events_name_another_partition(tmp_path: Path) -> None:
    storage, rows = unpacked(tmp_path, "mor_global_bloom")
    keys = pa.array([row["_hoodie_record_key"] for row in rows], pa.string())
    elsewhere = pa.array(["region=nowhere"] * len(rows), pa.string())
    answer = open_index(opened(storage, "global_bloom")).locate(keys, elsewhere)
    assert answer.partition_paths.to_pylist() == [row["_hoodie_partition_path"] for row in rows]


def test_an_index_that_is_stated_is_not_overruled(tmp_path: Path) -> None:
    """And buckets are not taken for another writer's table: file groups would depend on them."""
    storage, _ = unpacked(tmp_path, "mor_bloom")
    with pytest.raises(ConfigError, match="kind is"):
        opened(storage, "bucket")
    table = opened(storage, "bloom")
    table.state.adopt(table.config)
    assert load_config(storage)[0].kind.index == "bloom"
    with pytest.raises(ConfigError, match="kind is"):
        opened(storage, "simple")


def test_a_table_of_buckets_is_refused(tmp_path: Path) -> None:
    """Rows of new keys may be in its log files, which no lookup sees."""
    with tarfile.open(GOLDEN / "kinds" / "mor_bloom.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    storage = storage_at(GOLDEN / "tbl_hudi120")
    with pytest.raises(UnsupportedError, match="buckets"):
        open_index(opened(storage, "bloom"))
