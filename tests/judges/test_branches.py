"""Why a table has no branches: hudi-rs takes the one timeline that the properties of the table name, and the files of a
table from its own directory. If it takes another timeline these tests fail: then branches can be made."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

import hudilake
from tests.judges import hudi_rs

_SCHEMA = pa.schema({"id": pa.int64(), "name": pa.string(), "at": pa.int64()})
_OPTION = "hoodie.timeline.path"
_FORMER, _NEWEST = [(1, "a"), (2, "b")], [(1, "changed"), (2, "b")]


def forked(place: Path) -> Path:
    """A table whose timeline was copied to ``.hoodie/branch`` before its newest commit."""
    table = hudilake.create_table(str(place), _SCHEMA, key="id", order_by="at")
    table.upsert([{"id": 1, "name": "a", "at": 1}, {"id": 2, "name": "b", "at": 1}])
    shutil.copytree(place / ".hoodie/timeline", place / ".hoodie/branch")
    table.upsert([{"id": 1, "name": "changed", "at": 2}])
    return place


def renamed(place: Path) -> None:
    """The properties name the branch: the control, after which it is read."""
    properties = place / ".hoodie/hoodie.properties"
    text = properties.read_text()
    assert f"{_OPTION}=timeline" in text
    properties.write_text(text.replace(f"{_OPTION}=timeline", f"{_OPTION}=branch"))


def pairs(rows: Iterable[dict[str, Any]]) -> list[tuple[int, str]]:
    return sorted((row["id"], row["name"]) for row in rows)


def by_hudi_rs(place: Path, **options: str) -> list[tuple[int, str]]:
    table = HudiTableBuilder.from_base_uri(str(place)).with_options(options).build()
    return pairs(row for batch in table.read() for row in pa.table(batch).to_pylist())


def test_hudi_rs_reads_one_timeline(tmp_path: Path) -> None:
    place = forked(tmp_path / "t")
    assert pairs(hudi_rs.snapshot(place).to_pylist()) == _NEWEST
    assert by_hudi_rs(place, **{_OPTION: "branch"}) == _NEWEST
    renamed(place)
    assert by_hudi_rs(place, **{"hoodie.metadata.enable": "false"}) == _FORMER


def test_a_table_beside_has_no_files_of_another(tmp_path: Path) -> None:
    """Commits and metadata table name a file by its partition and name: a second directory has to have copies."""
    place, beside = forked(tmp_path / "t"), tmp_path / "beside"
    shutil.copytree(place / ".hoodie", beside / ".hoodie")
    with pytest.raises(Exception, match="NotFound"):
        hudi_rs.snapshot(beside)
    for file in place.iterdir():
        if file.is_file():
            shutil.copy(file, beside)
    assert pairs(hudi_rs.snapshot(beside).to_pylist()) == _NEWEST
