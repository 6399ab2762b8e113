"""Indexes that are kept know the keys after commits that no event made: statements, TRUNCATE, a restore.

Every row is asked for afterwards: a key that was deleted comes back, a row that lives is changed where it is.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from binlake.rows.merging.deleted_keys import DeletedKeys
from binlake.rows.merging.tombstones import TombstoneFiles
from binlake.rows.tagging.deletes import DELETED
from hudilake.format.files.names import TOMBSTONES_PATH
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import IndexType, TableType
from hudilake.read.slice import read_table
from hudilake.services.fsck import Severity, fsck
from hudilake.services.restore import restore
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.hudilake.failing_storage import CountingStorage
from tests.hypothesis_profile import is_nightly

KEPT: tuple[IndexType, ...] = ("record_index", "partitioned_record_index", "in_memory", "external")
TYPES: tuple[TableType, ...] = ("merge_on_read", "copy_on_write")
PARTITIONS = " PARTITION BY RANGE (n) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN MAXVALUE)"


def followed(path: Path, index: IndexType, table_type: TableType) -> tuple[DdlSource, Follower]:
    """A table ``t`` of ten rows, five of them in the source's partition ``a``."""
    source = DdlSource()
    source.create("t", {"id": "int", "n": "int", "v": "int"}, options=PARTITIONS)
    for key in range(10):
        source.put("t", key, n=key, v=key)
    asked: dict[str, Any] = {"type": index}
    if index == "external":
        asked["external"] = {"store": "lmdb", "path": tempfile.mkdtemp(prefix="binlake-index-")}
    return source, Follower(source, path, {"type": table_type, "index": asked, "compaction": {"mode": "off"}})


def checked(source: DdlSource, follower: Follower) -> None:
    """The next batch, after which the lake holds the source's rows, each once, and fsck finds nothing wrong."""
    told = follower.run()
    assert [one.error for one in told.ddl if one.error] == []
    storage = open_storage(str(follower.place / "shop/t"))
    rows = [row for part in read_table(storage) for row in part.to_pylist()]
    names = list(source.tables["t"].columns)
    held = sorted(source.tables["t"].rows.values(), key=lambda row: row["id"])
    assert sorted([row[name] for name in names] for row in rows) == [[row[name] for name in names] for row in held]
    found = fsck(storage, grace_ms=0).findings
    assert [(f.what, f.where) for f in found if f.severity is Severity.ERROR] == []


def kinds() -> list[tuple[IndexType, TableType]]:
    """A usual run takes each index once; a nightly run takes all."""
    every = [(index, table_type) for index in KEPT for table_type in TYPES]
    return every if is_nightly() else [kind for at, kind in enumerate(every) if at % 4 in (0, 3)]


@pytest.mark.first(1)
@pytest.mark.parametrize(("index", "table_type"), kinds())
def test_statements_tell_the_index(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    source, follower = followed(tmp_path, index, table_type)
    checked(source, follower)
    held = source.tables["t"]
    held.rows = {key: row for key, row in held.rows.items() if row["n"] >= 5}
    source.execute("ALTER TABLE t TRUNCATE PARTITION a", "t", held.columns)
    checked(source, follower)
    source.put("t", 3, n=30, v=30)  # was deleted
    source.put("t", 7, n=70)  # lives
    checked(source, follower)
    source.put("t", 4, n=4, v=4)
    checked(source, follower)
    held.rows = {key: {**row, "v": str(row["v"])} for key, row in held.rows.items() if row["n"] >= 5}
    source.execute("ALTER TABLE t TRUNCATE PARTITION a", "t", held.columns)
    source.execute("ALTER TABLE t MODIFY v varchar(20)", "t", held.columns | {"v": "varchar(20)"})
    checked(source, follower)
    source.put("t", 3, v="x")
    source.put("t", 4, n=1, v="y")
    source.delete("t", 8)
    checked(source, follower)
    source.put("t", 8, v="z", n=8)
    follower.restart()
    checked(source, follower)
    source.truncate("t")
    source.put("t", 8, n=1, v="after")
    checked(source, follower)
    source.put("t", 9, n=2, v="again")
    checked(source, follower)


@pytest.mark.parametrize(("index", "table_type"), [("in_memory", "copy_on_write"), ("external", "merge_on_read")])
def test_a_restore_takes_keys_back(tmp_path: Path, index: IndexType, table_type: TableType) -> None:
    """Rows that the restore takes away are new when they come again; rows that it brings back are found."""
    source, follower = followed(tmp_path, index, table_type)
    checked(source, follower)
    storage = open_storage(str(tmp_path / "shop/t"))
    first = HudiTable.open(storage).timeline.last_completed()
    assert first is not None
    source.delete("t", 1)
    source.put("t", 12, n=12)
    checked(source, follower)
    restore(HudiTable.open(storage), first.requested_time, MetadataConfig())
    follower.restart()
    source.put("t", 1, n=21)
    source.put("t", 2, n=22)
    source.put("t", 12, n=32)
    checked(source, follower)
    source.delete("t", 12)
    source.put("t", 1, n=31)
    checked(source, follower)


def test_files_of_deletes_are_read_once(tmp_path: Path) -> None:
    source, follower = followed(tmp_path, "in_memory", "copy_on_write")
    checked(source, follower)
    for key in range(4):
        source.delete("t", key)
        checked(source, follower)
    storage = CountingStorage(open_storage(str(tmp_path / "shop/t")))
    known, timeline = TombstoneFiles(), HudiTable.open(storage).timeline
    assert len(DeletedKeys.of(storage, timeline, DELETED, known).keys) == 4
    assert _reads(storage) == 4
    assert len(DeletedKeys.of(storage, timeline, DELETED, known).keys) == 4
    assert _reads(storage) == 4
    source.delete("t", 4)
    checked(source, follower)
    timeline.refresh()
    assert len(DeletedKeys.of(storage, timeline, DELETED, known).keys) == 5
    assert _reads(storage) == 5


def _reads(storage: CountingStorage) -> int:
    return sum(method == "read" and path.startswith(TOMBSTONES_PATH) for method, path in storage.calls)
