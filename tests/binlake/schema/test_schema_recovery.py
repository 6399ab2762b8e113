"""Events that come again, and statements that come by other ways."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import pytest

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection
from hudilake.read import TableReader
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.schema.test_schema_changes import COLUMNS, begun, recorded, started
from tests.binlake.stream.dying_store import CHANGING, Answer, Fate, Killed


def test_events_that_come_again_bring_no_hole_back(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.rename("t", "name", "label")
    follower.run()
    for (topic, partition), records in list(source.log.records.items()):
        source.log.records[topic, partition] = [*records, *records]
    follower.run()
    follower.check("t")


def test_a_snapshot_after_a_statement_is_believed_and_one_before_it_is_restated(tmp_path: Path) -> None:
    source = DdlSource()
    source.create("t", COLUMNS)
    source.tables["t"].rows = {key: {"id": key, "name": "s", "qty": key} for key in range(4)}
    source.snapshot("t")
    follower = Follower(source, tmp_path)
    follower.run()
    source.add("t", "tier", "int", 3, "NULL DEFAULT 3")
    source.tables["t"].rows[1]["tier"] = None  # changed where the stream did not see it
    source.tables["t"].rows[2]["tier"] = 9
    follower.run(share=0.0)
    source.snapshot("t")
    follower.run()
    follower.check("t")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_statement_known_after_rows_that_follow_it_were_stored(tmp_path: Path, restarts: bool) -> None:
    """Events carry their schema, so nothing waits; the rows from before are made good when the statement comes."""
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    for key in range(6):
        source.put("t", key, name="n", qty=key)
    follower = Follower(source, tmp_path)
    follower.run(ddl=0)
    source.add("t", "tier", "varchar(9)", "basic", "NOT NULL DEFAULT 'basic'")
    source.rename("t", "name", "label")
    source.put("t", 1, tier="gold")
    source.put("t", 7, label="seven", tier="gold")
    follower.run(ddl=0)
    assert [row["tier"] for row in follower.stored("t").values()].count(None) == 5
    if restarts:
        follower.restart()
    source.put("t", 2, qty=20)
    follower.run()
    follower.check("t")


def test_statements_among_the_data_are_remembered_by_the_table(tmp_path: Path) -> None:
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    source.put("t", 1, name="one", qty=1)
    source.put("t", 2, name="two", qty=2)
    follower = Follower(source, tmp_path)
    follower.run(ddl=0)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.put("t", 1, tier=4)
    source.rename_tables(("t", "u"))
    source.put("u", 3, name="three")
    for record in source.ddl:
        source.log.add("s", record, None)
    follower.run(ddl=0)
    follower.check("u", "t")
    follower.restart()
    source.put("u", 1, name="again")
    event = follower.run(ddl=0)
    follower.check("u", "t")
    assert event.ddl == ()
    assert len(recorded(tmp_path)) == 2


def test_names_that_were_swapped_among_the_data_stay_swapped(tmp_path: Path) -> None:
    source = DdlSource(framed=True)
    for table in ("t", "u"):
        source.create(table, COLUMNS)
        source.put(table, 1, name=table)
    follower = Follower(source, tmp_path)
    follower.run(ddl=0)
    source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
    source.rename_tables(("u", "v"))
    for record in source.ddl:
        source.log.add("s", record, None)
    follower.run(ddl=0)
    follower.restart()
    source.put("t", 2, name="of u")
    source.put("v", 3, name="of t")
    assert follower.run(ddl=0).ddl == ()
    follower.check("t", "u")
    follower.check("v", "t")


def test_statements_of_an_epoch_before_are_not_carried_out_again(tmp_path: Path) -> None:
    """The binlog began anew, and the operator raised the epoch: the DDL topic is read again under it."""
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    source.put("t", 1, name="one", qty=1)
    source.put("t", 2, name="two", qty=2)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.put("t", 1, tier=4)
    source.create("v", COLUMNS)
    source.put("v", 1, name="v")
    source.rename_tables(("v", "u"))
    follower = Follower(source, tmp_path)
    follower.run()
    source.file, source.pos = "mysql-bin.000001", 4
    follower.more = {"source": {"epoch": 1}}
    follower.restart()
    source.put("t", 2, name="again")
    source.put("u", 2, name="again")
    assert follower.run().ddl == ()
    follower.check("t")
    follower.check("u", "v")


def test_a_table_without_a_key_finds_its_rows_again(tmp_path: Path) -> None:
    """Rows are known by their content, which statements change."""
    source = DdlSource(keyed=False)
    source.create("t", COLUMNS)
    for key in range(6):
        source.put("t", key, name="n", qty=key)
    follower = Follower(source, tmp_path)
    follower.run()
    source.add("t", "tier", "int", 3, "NOT NULL DEFAULT 3")
    source.rename("t", "name", "label")
    source.drop("t", "qty")
    follower.run(share=0.0)
    source.delete("t", 1)
    source.put("t", 2, label="changed")
    follower.run()
    assert follower.rows("t") == sorted(source.tables["t"].rows.values(), key=str)


def test_tasks_that_write_files_write_restated_rows(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    follower.more = {"batch": {"shuffle_above_bytes": 0}}
    follower.restart()
    source.put("t", 1, name="late")
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.put("t", 2, name="after", tier=4)
    follower.run()
    follower.check("t")
    source.put("t", 3, tier=5)
    follower.run()
    follower.check("t")


def test_refused_rows_come_back_from_quarantine(tmp_path: Path) -> None:
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    source.put("t", 1, name="one", qty=1)
    follower = Follower(source, tmp_path, {"schema_changes": {"add": "refuse"}})
    follower.run()
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    source.put("t", 1, tier=4)
    source.put("t", 2, name="two", tier=5)
    follower.run()
    assert len(follower.quarantined()) == 2
    follower.sections["schema_changes"] = {}
    follower.restart()
    source.put("t", 2, tier=6)
    follower.run()
    done = replay(follower.settings(), QuarantineSelection())
    assert (done.applied, done.failed, done.errors) == (2, 0, {})
    follower.check("t")


def test_merged_shards_are_restated_each_by_its_own_statement(tmp_path: Path) -> None:
    source = DdlSource()
    routes = [{"match": r"shop\.t_(?P<no>\d+)", "to": "shop.t", "shard": {"column": "shard", "value": "{no}"}}]
    follower = Follower(source, tmp_path)
    follower.routes = routes
    for shard in ("t_1", "t_2"):
        source.create(shard, COLUMNS)
        for key in range(3):
            source.put(shard, key, name=shard, qty=key)
    follower.run()
    source.add("t_1", "tier", "int", 3, "DEFAULT 3")
    source.put("t_2", 1, name="x")
    follower.run()
    shown = {(r["shard"], r["id"]): r["tier"] for r in follower.all_rows("t")}
    assert shown == {("1", n): 3 for n in range(3)} | {("2", n): None for n in range(3)}


def test_refused_rows_of_a_renamed_table_come_back_to_its_lake_table(tmp_path: Path) -> None:
    """A replay is a process of its own: it knows the new name only from the commits."""
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    source.put("t", 1, name="one", qty=1)
    follower = Follower(source, tmp_path, {"schema_changes": {"add": "refuse"}})
    source.rename_tables(("t", "u"))
    follower.run()
    source.add("u", "tier", "int", 3, "DEFAULT 3")
    source.put("u", 2, name="two", tier=5)
    follower.run()
    follower.sections["schema_changes"] = {}
    follower.restart()
    follower.run()
    done = replay(follower.settings(), QuarantineSelection())
    assert (done.applied, list(done.commits)) == (1, ["shop.t"])
    follower.check("u", "t")
    assert not (tmp_path / "shop" / "u").exists()


@pytest.mark.full
def test_death_at_every_change_of_the_store_while_a_table_gets_another_key(tmp_path: Path) -> None:
    """Its properties and its newest commit never contradict each other for whoever reads it in between."""
    source, _ = begun(tmp_path / "base", 4, {})
    held = {key: dict(row) for key, row in source.tables["t"].rows.items()}
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (name)", ("name",))
    source.put("t", 1, qty=11)
    counting = Fate()
    _dies(source, tmp_path, "count", counting)
    changes = [at for at, (method, _) in enumerate(counting.calls) if method in CHANGING]
    assert len(changes) > 12
    seen = set()
    for at in changes:
        fate = Fate(at, Answer.DONE)
        follower = _dies(source, tmp_path, str(at), fate)
        fate.settle()
        stored = {key: {n: row[n] for n in COLUMNS} for key, row in follower.stored("t").items()}
        assert stored in (held, source.tables["t"].rows), fate.calls[-1]
        storage = open_storage(str(follower.place / "shop" / "t"))
        seen.add(HudiTable.open(storage).config.record_key_fields)
        for condition in ("id = 2", "name = 'n2'", "_hoodie_record_key in ('2', 'n2')"):
            assert _ids(storage.uri, condition) == [2], (condition, fate.calls[-1])
        follower.fate = None
        follower.restart()
        follower.run()
        follower.check("t")
        assert HudiTable.open(storage).config.record_key_fields == ("name",)
        assert _ids(storage.uri, "name = 'n1' and qty = 11") == [1]
        assert [f for f in fsck(storage, grace_ms=0).findings if f.severity is Severity.ERROR] == []
        shutil.rmtree(follower.place)
    assert seen == {("id",), ("_hoodie_record_key",), ("name",)}


def _ids(uri: str, condition: str) -> list[int]:
    reader = TableReader.open(uri)
    return [row["id"] for batch in reader.batches(reader.plan(condition=condition)) for row in batch.to_pylist()]


def _dies(source: DdlSource, tmp_path: Path, name: str, fate: Fate) -> Follower:
    shutil.copytree(tmp_path / "base", tmp_path / name)
    follower = Follower(source, tmp_path / name, fate=fate)
    with contextlib.suppress(Killed):
        follower.run()
    return follower
