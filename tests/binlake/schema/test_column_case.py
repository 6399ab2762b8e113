"""Readers and MySQL ignore the case of column names: a column whose name changes in case alone stays one column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower, Row
from tests.binlake.schema.test_schema_backlog import FORMS, followed, with_rows
from tests.binlake.schema.test_schema_changes import COLUMNS

Change = Callable[[DdlSource], None]


def rename(source: DdlSource) -> None:
    source.rename("t", "name", "NAME")


def change(source: DdlSource) -> None:
    held = source.tables["t"]
    held.rows = {key: {("NAME" if n == "name" else n): v for n, v in row.items()} for key, row in held.rows.items()}
    columns = {"id": "int", "NAME": "varchar(40)", "qty": "int"}
    source.execute("ALTER TABLE t CHANGE name NAME VARCHAR(40)", "t", columns)


def drop_and_add(source: DdlSource) -> None:
    source.drop("t", "name")
    source.add("t", "NAME", "varchar(20)", "n", "DEFAULT 'n'")


def lowered(rows: dict[int, Row]) -> dict[int, Row]:
    return {key: {name.lower(): value for name, value in row.items()} for key, row in rows.items()}


def check(follower: Follower, columns: tuple[str, ...] = ("id", "name", "qty")) -> None:
    """The lake has the first spelling, and the source's values."""
    stored = follower.stored("t")
    assert all(tuple(row) == columns for row in stored.values())
    assert lowered(stored) == lowered(follower.source.tables["t"].rows)


@FORMS
@pytest.mark.parametrize("statement", [rename, change, drop_and_add])
def test_a_name_that_changes_in_case_stays_one_column(tmp_path: Path, framed: bool, statement: Change) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.put("t", 3, name="before")
        statement(source)
        source.put("t", 1, NAME="after")
        yield
        source.put("t", 2, NAME="last")

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        check(follower)
        assert follower.quarantined() == []


@FORMS
def test_a_key_that_changes_in_case_stays_the_key(tmp_path: Path, framed: bool) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        source.create("t", COLUMNS, key=("name",))
        for key in range(8):
            source.put("t", key, name=f"n{key}", qty=key)
        yield
        source.put("t", 3, qty=33)
        source.tables["t"].key = ("NAME",)
        source.rename("t", "name", "NAME")
        source.put("t", 1, qty=11)
        source.delete("t", 2)
        yield
        source.put("t", 4, qty=44)

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        check(follower)
        assert follower.quarantined() == []


def test_a_stream_without_ddl_notices_the_names_of_the_rows(tmp_path: Path) -> None:
    """Events that carry their schema, and no topic with statements; the partition is of the column, too."""
    source = DdlSource(framed=True)
    source.create("t", COLUMNS)
    partitioned = {"partition": {"column": "name", "transform": "identity"}}
    plain, parted = Follower(source, tmp_path / "plain"), Follower(source, tmp_path / "parted", partitioned)
    for key in range(8):
        source.put("t", key, name=f"n{key}", qty=key)
    for follower in (plain, parted):
        follower.run(ddl=0)
    source.rename("t", "name", "NAME")
    source.put("t", 1, NAME="after")
    source.put("t", 9, NAME="new", qty=1)
    held = source.tables["t"]
    for follower in (plain, parted):
        for _ in range(2):
            follower.run(ddl=0)
            check(follower)
            follower.restart()
            source.put("t", 1, NAME="again")
        follower.run(ddl=0)
        check(follower)
    assert len(held.rows) == 9
