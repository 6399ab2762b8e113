"""fsck compares the record index with the rows; each check has a table that must fail it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.format.files.file_group_write import KeyChanges
from hudilake.policies import IndexType
from hudilake.services.fsck import Finding, Repair, Severity, fsck
from hudilake.services.repair import plan_repair, repair
from tests.hudilake.metadata.record_index.keyed_table import Group, KeyedTable, file_id, said

NONE = pa.array([], pa.string())
EU, US = ("region=eu", file_id(1)), ("region=us", file_id(2))


def _table(path: Path, index: IndexType = "record_index") -> KeyedTable:
    table = KeyedTable(path, index)
    table.insert("eu", 1, range(20))
    table.insert("us", 2, range(20, 40))
    table.commit({EU: ([], [3])})
    return table


def _tell(table: KeyedTable, inserted: dict[Group, list[str]], deleted: list[str]) -> None:
    """Change the record index, and no row."""
    opened = table.reopen()
    index = opened.metadata_table
    assert index is not None
    assert index.record_index is not None
    changes = [KeyChanges(*group, pa.array(keys, pa.string()), NONE) for group, keys in inserted.items()]
    changes.append(KeyChanges(*EU, NONE, pa.array(deleted, pa.string())))
    with opened.exclusively():
        instant = opened.clock.next()
        index._write(instant, {}, index.record_index.logs(instant, changes))


def _errors(table: KeyedTable) -> list[Finding]:
    return [found for found in fsck(table.storage).findings if found.severity is Severity.ERROR]


@pytest.mark.parametrize("index", ["record_index", "partitioned_record_index"])
def test_a_sound_table(tmp_path: Path, index: IndexType) -> None:
    assert fsck(_table(tmp_path / "t", index).storage).findings == ()


@pytest.mark.first(4)
@pytest.mark.parametrize("index", ["record_index", "partitioned_record_index"])
@pytest.mark.parametrize(
    ("inserted", "deleted", "message"),
    [
        ({}, ["7"], "lacks 1 of the file group's 19 keys, for example '7'"),
        ({("region=eu", file_id(9)): ["5"]}, [], "lacks 0 of the file group's 19 keys and has 1 of them in another"),
        ({EU: ["3"]}, [], "has 1 key without a row"),
        ({US: ["unknown"]}, [], "has 1 key without a row"),
    ],
)
def test_what_is_wrong_is_found_and_repaired(
    tmp_path: Path, index: IndexType, inserted: dict[Group, list[str]], deleted: list[str], message: str
) -> None:
    table = _table(tmp_path / "t", index)
    _tell(table, inserted, deleted)
    found = _errors(table)
    assert any(message in one.what for one in found), found
    assert {one.repair for one in found} == {Repair.REBUILD_INDEX}
    assert list(repair(table.storage, plan_repair(fsck(table.storage).findings)))
    assert _errors(table) == []
    assert said(table.reopen()) == table.truth
    groups = {path.name.split("_")[0] for path in (tmp_path / "t/.hoodie/metadata/record_index").glob("*.hfile")}
    assert len(groups) <= (3 if index == "record_index" else 6)
