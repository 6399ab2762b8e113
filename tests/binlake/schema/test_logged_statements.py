"""Changes of rows that a session wrote as statements (``binlog_format`` was not ROW): no row of them comes."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.decode.ddl.row_statements import AS_STATEMENT, FILLED_BY_SELECT
from binlake.position.record_reader import RecordReader
from binlake.schema.rules.undetermined import WHOLE_ROWS, undetermined_columns
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower

_BY_NAME = "INSERT INTO shop.t VALUES (2, 2)"


def left_open(lake: Path, table: str) -> list[tuple[str, str, str]]:
    """(column, why, statement) of what statements leave open."""
    recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(lake / "shop" / table))))
    return [(one.column, one.why, one.statement) for one in undetermined_columns(recorded.ddl or ())]


def source_of(*tables: str) -> DdlSource:
    source = DdlSource()
    for table in tables:
        source.create(table, {"id": "int", "a": "int"})
        source.put(table, 1, a=1)
    return source


@pytest.mark.first(14)
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(
    ("statement", "tables"),
    [
        (_BY_NAME, "t"),
        ("replace into t set id = 2, a = 2", "t"),
        ("UPDATE t JOIN u USING (id) SET t.a = 2, u.a = 2", "tu"),
        ("DELETE x FROM u AS x, t WHERE x.id = t.id", "u"),
        ("SELECT `shop`.`f`()", "tu"),
        ("INSERT INTO tmp VALUES (2, 2)", ""),
        ("INSERT INTO elsewhere.t VALUES (2, 2)", ""),
        ("FLUSH TABLES", ""),
        ("SAVEPOINT `insert`", ""),
    ],
)
def test_the_tables_that_it_names(tmp_path: Path, statement: str, tables: str, live: bool) -> None:
    source = source_of("t", "u")
    follower = Follower(source, tmp_path / "lake")
    if live:
        follower.run()
    source.record(statement, [])
    for table in "tu":
        source.put(table, 3, a=3)
    follower.run()
    for table in "tu":
        assert sorted(follower.stored(table)) == [1, 3]
        named = [(WHOLE_ROWS, AS_STATEMENT.why, statement)] if table in tables else []
        assert left_open(tmp_path / "lake", table) == named


def test_a_table_keeps_the_newest_of_any_number_of_statements(tmp_path: Path) -> None:
    source = source_of("t")
    follower = Follower(source, tmp_path / "lake")
    follower.run()
    for batch in range(3):
        for number in range(20):
            source.record(f"INSERT INTO t VALUES ({100 * batch + number}, 0)", [])
        source.put("t", 1, a=batch)
        follower.run()
        statement = f"INSERT INTO t VALUES ({100 * batch + 19}, 0)"
        assert left_open(tmp_path / "lake", "t") == [(WHOLE_ROWS, AS_STATEMENT.why, statement)]
    source.add("t", "b", "int", None)
    source.record(_BY_NAME, [])
    source.put("t", 1, a=7)
    follower.run()
    assert left_open(tmp_path / "lake", "t") == [(WHOLE_ROWS, AS_STATEMENT.why, _BY_NAME)]
    assert len([one for event in follower.told for one in event.ddl]) == 5
    assert follower.stored("t")[1]["a"] == 7


def test_a_name_that_was_a_temporary_table_before(tmp_path: Path) -> None:
    source = source_of("t")
    source.record("CREATE TEMPORARY TABLE u (id INT)", [])
    source.record("INSERT INTO u VALUES (1)", [])
    source.record("DROP TEMPORARY TABLE u", [])
    source.create("u", {"id": "int", "a": "int"}, snapshot=False)
    source.put("u", 1, a=1)
    follower = Follower(source, tmp_path / "lake")
    follower.run()
    assert left_open(tmp_path / "lake", "u") == []
    source.record("INSERT INTO u VALUES (2, 2)", [])
    follower.run()
    assert [why for _, why, _ in left_open(tmp_path / "lake", "u")] == [AS_STATEMENT.why]


def test_a_table_that_is_filled_as_it_is_made(tmp_path: Path) -> None:
    source = source_of("t")
    follower = Follower(source, tmp_path / "lake")
    follower.run()
    source.create("u", {"id": "int", "a": "int"}, snapshot=False, options=" AS SELECT * FROM t")
    source.put("u", 3, a=3)
    follower.run()
    assert sorted(follower.stored("u")) == [3]
    assert [why for _, why, _ in left_open(tmp_path / "lake", "u")] == [FILLED_BY_SELECT.why]


def test_a_table_without_a_row_is_named_once(tmp_path: Path) -> None:
    source = source_of("t")
    follower = Follower(source, tmp_path / "lake")
    source.create("u", {"id": "int", "a": "int"}, snapshot=False)
    source.create("v", {"id": "int", "a": "int"}, snapshot=False)
    for number in range(3):
        source.record(f"INSERT INTO u VALUES ({number}, 2)", [])
        source.put("t", 1, a=number)
        follower.run()
    named = [one for event in follower.told for one in event.ddl]
    assert [(one.table, one.statement, len(one.undetermined)) for one in named] == [
        ("shop.u", "INSERT INTO u VALUES (0, 2)", 1)
    ]
    assert "no table for it yet" in named[0].verdicts[-1]
    assert not (tmp_path / "lake" / "shop" / "u").exists()
    source.put("u", 9, a=9)
    follower.run()
    assert [(why, text) for _, why, text in left_open(tmp_path / "lake", "u")] == [
        (AS_STATEMENT.why, "INSERT INTO u VALUES (2, 2)")
    ]
