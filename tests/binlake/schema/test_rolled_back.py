"""A transaction that the source rolled back and the connector gave as committed: the statement ROLLBACK says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.position.record_reader import RecordReader
from binlake.schema.rules.undetermined import WHOLE_ROWS, undetermined_columns
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.schema.ddl_source import DdlSource, Follower


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("statement", ["ROLLBACK", "ROLLBACK TO `sp`", "SAVEPOINT `sp`"])
def test_the_tables_of_its_database_are_named(tmp_path: Path, statement: str, live: bool) -> None:
    source = DdlSource()
    source.create("t", {"id": "int", "a": "int"})
    source.put("t", 1, a=1)
    follower = Follower(source, tmp_path / "lake")
    if live:
        follower.run()
    source.put("t", 2, a=2)
    source.record(statement, [])
    source.put("t", 3, a=3)
    follower.run()
    assert sorted(follower.stored("t")) == [1, 2, 3]
    recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(tmp_path / "lake" / "shop" / "t"))))
    named = [(one.column, one.statement) for one in undetermined_columns(recorded.ddl or ())]
    assert named == ([(WHOLE_ROWS, statement)] if statement.startswith("ROLLBACK") else [])
