"""Rows from before a DDL statement: the statement stands in a row's history, and a revert keeps what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.proof.history.changes import ChangeReader
from binlake.proof.history.commits import CommitKind, CommitLog
from binlake.proof.history.events import KafkaLook
from binlake.proof.history.history import LineKind, RowHistory
from binlake.proof.history.keys import row_key
from binlake.proof.history.lake_images import changes_in_lake
from binlake.proof.history.revert import Order, plan_table, revert_table
from binlake.proof.history.selection import Selection
from binlake.proof.history.transaction import OpenTable, changes_in_kafka
from binlake.proof.history.undo import Conflict, Obstacle
from binlake.proof.history.verdicts import Fate
from binlake.proof.history.why import row_histories
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.catalog import catalog_table
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.proof.history.bank import LogRecords
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.judges import hudi_rs


class Past:
    """What ``why`` and ``revert`` open: the table ``shop.t`` of a follower, its commits, and the topics."""

    def __init__(self, stream: Follower) -> None:
        config, root = stream.settings(), open_storage(str(stream.place), {"fsync": "false"})
        place = catalog_table(config, root, "shop.t")
        registry = SchemaRegistry(config)
        registry.learn(stream.source.ddl)
        lake = Lake(root)
        table = lake.get(place.rules)
        assert isinstance(table, LakeTable)
        self.table, self.source = table, place.source
        self.reader = ChangeReader(config, registry, lake, {place.source: table}, [place.source])
        self.opened = HudiTable.open(place.storage)
        self.log = CommitLog.of(self.opened, "shop")
        self.records = LogRecords(stream.source.log)

    def history(self, key: str) -> RowHistory:
        """Of the row with this key."""
        look = KafkaLook(self.records, self.reader, self.source, 1000)
        (found,) = row_histories(self.opened, row_key(key, self.opened), self.log, kafka=look)
        return found


def between(first: int, last: int) -> Selection:
    """The events at these positions of the source's only binlog file."""
    return Selection(first=(3 << 32) + first, last=(3 << 32) + last)


@pytest.mark.parametrize("known", ["live", "late"])
def test_a_row_whose_partition_was_dropped(tmp_path: Path, known: str) -> None:
    """The row is a deleted one, whenever its events came; a revert of these does not bring it back."""
    source = DdlSource()
    parts = " PARTITION BY RANGE (qty) (PARTITION a VALUES LESS THAN (10), PARTITION b VALUES LESS THAN MAXVALUE)"
    source.create("t", {"id": "int", "qty": "int"}, options=parts)
    stream = Follower(source, tmp_path)
    source.put("t", 1, qty=20)
    source.put("t", 2, qty=20)
    stream.run()
    first = source.pos + 1
    source.put("t", 1, qty=5)
    source.put("t", 2, qty=21)
    last = source.pos
    if known == "live":
        stream.run()
    source.execute("ALTER TABLE t TRUNCATE PARTITION a", "t", source.tables["t"].columns)
    del source.tables["t"].rows[1]
    stream.run()
    stream.check("t")

    past = Past(stream)
    history = past.history("1")
    assert history.fate is Fate.DELETED
    assert any("TRUNCATE PARTITION a" in line.statement for line in history.lines)
    [of_event] = [line for line in history.lines if line.record is not None and line.record.offset == 1]
    assert of_event.kind is LineKind.VERSION
    assert past.history("2").fate is Fate.LIVE

    tables = {past.source: OpenTable(past.table, past.log)}
    changes = changes_in_kafka(past.records, past.reader, tables, "shop", between(first, last), 1000)
    order = Order("both", "kafka", (), by_column=False)
    plan = plan_table(past.table, past.log, changes.rows, order)
    assert [(row.row.key, row.conflicts) for row in plan.conflicts] == [("1", (Conflict(Obstacle.REMOVED_LATER),))]
    revert_table(past.table, changes.rows, order, "shop", plan)
    assert {r["id"]: r["qty"] for r in hudi_rs.snapshot(tmp_path / "shop/t").to_pylist()} == {2: 20}


def test_a_statement_in_the_middle(tmp_path: Path) -> None:
    source = DdlSource()
    source.create("t", {"id": "int", "name": "varchar(20)", "note": "varchar(20)"})
    stream = Follower(source, tmp_path)
    source.put("t", 1, name="one", note="n")
    source.put("t", 2, name="two", note="n")
    stream.run()
    first = source.pos + 1
    source.put("t", 1, name="wrong")
    source.delete("t", 2)
    last = source.pos
    stream.run()
    source.add("t", "size", "int", 7, "NOT NULL DEFAULT 7")
    source.rename("t", "note", "remark")
    stream.run()

    past = Past(stream)
    table, log, reader = past.table, past.log, past.reader
    history = past.history("1")
    statements = [line for line in history.lines if line.kind is LineKind.DDL]
    assert [line.statement.split()[3] for line in statements if "ALTER" in line.statement] == ["ADD", "RENAME"]
    assert [line.commit.kind for line in statements if line.commit is not None][-1] is CommitKind.DDL
    assert any("it restated this row" in line.why for line in statements)
    newest = next(line for line in history.lines if line.fate is not None and line.fate.value == "live")
    assert newest.values is not None
    assert (newest.values["name"], newest.values["size"], newest.values["remark"]) == ("wrong", 7, "n")
    assert "same ordering value, later commit" in newest.why
    assert "restated by DDL" in newest.why

    selection = between(first, last)
    tables = {past.source: OpenTable(table, log)}
    with pytest.raises(BadInputError, match="a DDL statement has restated rows since"):
        changes_in_lake(tables, selection)
    changes = changes_in_kafka(past.records, reader, tables, "shop", selection, 1000)
    order = Order(str(selection), "kafka", (), by_column=False)
    plan = plan_table(table, log, changes.rows, order)
    assert plan.conflicts == []
    revert_table(table, changes.rows, order, "shop", plan)
    rows = {r["id"]: (r["name"], r["size"], r["remark"]) for r in hudi_rs.snapshot(tmp_path / "shop/t").to_pylist()}
    assert rows == {1: ("one", 7, "n"), 2: ("two", 7, "n")}
    stream.restart()
    source.put("t", 1, name="later")
    stream.run()
    names = {r["id"]: r["name"] for r in hudi_rs.snapshot(tmp_path / "shop/t").to_pylist()}
    assert names == {1: "later", 2: "two"}
