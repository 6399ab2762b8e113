"""Rows from before a DDL statement: the statement stands in a row's history, and a revert keeps what it did."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import BadInputError
from pipeline.hudi.table.table import HudiTable
from pipeline.lake.catalog import catalog_table
from pipeline.lake.lake import Lake
from pipeline.lake.lake_table import LakeTable
from pipeline.row_history.changes import ChangeReader
from pipeline.row_history.commits import CommitKind, CommitLog
from pipeline.row_history.events import KafkaLook
from pipeline.row_history.history import LineKind
from pipeline.row_history.keys import row_key
from pipeline.row_history.lake_images import changes_in_lake
from pipeline.row_history.revert import Order, plan_table, revert_table
from pipeline.row_history.selection import Selection
from pipeline.row_history.transaction import OpenTable, changes_in_kafka
from pipeline.row_history.why import row_histories
from pipeline.storage import open_storage
from pipeline.stream.schemas import SchemaRegistry
from tests.judges import hudi_rs
from tests.row_history.bank import LogRecords
from tests.schema_changes.ddl_source import DdlSource, Follower


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

    config, root = stream.settings(), open_storage(str(tmp_path), {"fsync": "false"})
    place = catalog_table(config, root, "shop.t")
    registry = SchemaRegistry(config)
    registry.learn(source.ddl)
    lake = Lake(root)
    table = lake.get(place.rules)
    assert isinstance(table, LakeTable)
    reader = ChangeReader(config, registry, lake, {place.source: table}, [place.source])

    opened = HudiTable.open(place.storage)
    look = KafkaLook(LogRecords(source.log), reader, place.source, 1000)
    log = CommitLog.of(opened, "shop")
    (history,) = row_histories(opened, row_key("1", opened), log, kafka=look)
    statements = [line for line in history.lines if line.kind is LineKind.DDL]
    assert [line.statement.split()[3] for line in statements if "ALTER" in line.statement] == ["ADD", "RENAME"]
    assert [line.commit.kind for line in statements if line.commit is not None][-1] is CommitKind.DDL
    assert any("it restated this row" in line.why for line in statements)
    newest = next(line for line in history.lines if line.fate is not None and line.fate.value == "live")
    assert newest.values is not None
    assert (newest.values["name"], newest.values["size"], newest.values["remark"]) == ("wrong", 7, "n")
    assert "same ordering value, later commit" in newest.why
    assert "restated by DDL" in newest.why

    order_of = (3 << 32).__add__
    selection = Selection(first=order_of(first), last=order_of(last))
    tables = {place.source: OpenTable(table, log)}
    with pytest.raises(BadInputError, match="a DDL statement has restated rows since"):
        changes_in_lake(tables, selection)
    changes = changes_in_kafka(LogRecords(source.log), reader, tables, "shop", selection, 1000)
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
