"""Tables whose rows never came take the name of one that is captured: what the lake lacks then is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower, Table
from tests.binlake.schema.shadow_tools import Captured
from tests.binlake.schema.test_schema_changes import COLUMNS
from tests.binlake.schema.test_shadow_tables import begun, open_points, path_of


def filled(source: Captured, table: str) -> None:
    """A table whose rows the source has."""
    source.create(table, COLUMNS, snapshot=False)
    for key in range(3):
        source.put(table, key, name="staged")


def judge(follower: Follower, table: str = "t", *, seen: bool) -> None:
    """The lake has the source's rows, or says that they are not determined."""
    held, stored = follower.source.tables[table], follower.stored(path_of(follower, table))
    points = open_points(follower, table)
    if seen:
        assert (stored, points) == (held.rows, [])
    else:
        assert stored != held.rows
        assert len(points) == 1
        assert points[0].startswith("rows: the rows of shop.staging are not in the lake")
        assert "binlake table resync" in points[0]


class LeavesOut(Follower):
    """A follower whose settings leave a table out."""

    def document(self) -> str:
        """The settings file."""
        told = json.loads(super().document())
        told["tables"]["exclude"] = ["shop.staging"]
        return json.dumps(told)


@pytest.mark.first(7)
@pytest.mark.parametrize("live", [True, False], ids=["live", "backlog"])
@pytest.mark.parametrize("by", ["rename", "drop", "two"])
@pytest.mark.parametrize("seen", [True, False], ids=["seen", "unseen"])
def test_a_table_that_is_not_captured_takes_the_name_of_one_that_is(
    tmp_path: Path, seen: bool, by: str, live: bool
) -> None:
    source, follower = begun(tmp_path)
    source.captures = lambda table: seen or table != "staging"
    filled(source, "staging")
    if live:
        follower.run()
    if by == "rename":
        source.rename_tables(("t", "t_old"), ("staging", "t"))
    elif by == "drop":
        source.drop_table("t")
        source.rename_tables(("staging", "t"))
    else:
        source.rename_tables(("t", "t_old"))
        source.rename_tables(("staging", "t"))
    if live:
        follower.run()
    source.put("t", 9, name="later")
    follower.run()
    judge(follower, seen=seen)
    follower.restart()
    source.put("t", 8, name="later")
    follower.run()
    judge(follower, seen=seen)
    if by != "drop":
        source.put("t_old", 5, name="away")
        follower.run()
        judge(follower, "t_old", seen=True)


@pytest.mark.parametrize("dropped", [False, True])
def test_a_table_that_the_settings_leave_out_takes_the_name_of_one_that_they_take(
    tmp_path: Path, dropped: bool
) -> None:
    source = begun(tmp_path)[0]
    follower = LeavesOut(source, tmp_path)
    filled(source, "staging")
    follower.run()
    if dropped:
        source.drop_table("t")
        source.rename_tables(("staging", "t"))
    else:
        source.rename_tables(("t", "t_old"), ("staging", "t"))
        source.put("t_old", 9, name="away")
    source.put("t", 9, name="later")
    follower.run()
    judge(follower, seen=False)
    assert follower.stored(path_of(follower, "t")) == {9: {"id": 9, "name": "later", "qty": None}}
    follower.restart()
    source.put("t", 8, name="later")
    follower.run()
    judge(follower, seen=False)
    if not dropped:
        judge(follower, "t_old", seen=True)


@pytest.mark.parametrize("statement", ["rename", "modify", "key"])
def test_a_renamed_table_whose_first_definition_is_not_in_the_log(tmp_path: Path, statement: str) -> None:
    """The log begins with the renaming: its definition comes under the new name, and the lake table has the old one."""
    source = DdlSource()
    source.tables["t"] = Table({"id": "bigint", "a": "int", "b": "int"}, key=("id",))
    source.rename_tables(("t", "u"))
    source.put("u", 1, a=1, b=2)
    if statement == "rename":
        source.rename("u", "a", "c")
    elif statement == "modify":
        source.tables["u"].rows[1]["a"] = "1"
        source.modify("u", "a", "varchar(20)")
    else:
        source.rekey("u", "ALTER TABLE u DROP PRIMARY KEY, ADD PRIMARY KEY (b)", ("b",))
    source.put("u", 2, b=5)
    follower = Follower(source, tmp_path)
    follower.run()
    follower.check("u", "t")
    assert follower.quarantined() == []
