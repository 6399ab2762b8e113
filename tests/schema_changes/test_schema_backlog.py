"""A first start on a backlog that holds all statements ends in the same tables as a stream that follows live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.schema_changes.ddl_source import DdlSource, Follower
from tests.schema_changes.test_schema_changes import COLUMNS

#: Changes and statements; a stream that follows live runs at each yield.
Script = Callable[[DdlSource], Iterator[None]]
FORMS = pytest.mark.parametrize("framed", [False, True], ids=["plain", "framed"])


def followed(place: Path, script: Script, *, framed: bool = False, **sections: Any) -> tuple[DdlSource, list[Follower]]:  # noqa: ANN401 - any YAML
    """The source after the script, and two streams over it: one that ran all the time, one that began at the end."""
    source = DdlSource(framed=framed)
    live, late = Follower(source, place / "live", sections), Follower(source, place / "late", sections)
    for _ in script(source):
        live.run()
    live.run()
    late.run()
    live.restart()
    late.restart()
    return source, [live, late]


def with_rows(source: DdlSource, table: str, rows: int = 8) -> None:
    """A table with rows that only a snapshot has."""
    source.create(table, COLUMNS)
    held = source.tables[table]
    held.rows = {key: {"id": key, "name": f"{table}{key}", "qty": key} for key in range(rows)}
    source.snapshot(table)


@FORMS
def test_a_copy_that_takes_the_name_of_its_model(tmp_path: Path, framed: bool) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.put("t", 3, name="before")
        source.like("n", "t")
        source.add("n", "tier", "int", 3, "DEFAULT 3")
        yield
        source.copy("n", "t", tier=4)
        source.rename_tables(("t", "old"), ("n", "t"))
        yield
        source.put("t", 1, name="new")
        source.put("old", 100, name="old")

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("old", "t")
        follower.check("t", "n")
        assert follower.quarantined() == []


@FORMS
def test_a_snapshot_that_was_read_between_two_meanings_of_a_name(tmp_path: Path, framed: bool) -> None:
    """An ad hoc snapshot of each meaning; the clock of the connector says nothing."""

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        with_rows(source, "u", 3)
        source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
        source.tables["t"].rows[1]["name"] = "changed where the stream did not see it"
        source.snapshot("t")
        yield
        source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
        source.snapshot("u")
        source.put("t", 7, name="last")

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("t")
        follower.check("u")


@pytest.mark.parametrize("skew", [-500, 500])
def test_stored_snapshot_rows_are_placed_by_what_commits_record(tmp_path: Path, skew: int) -> None:
    """The statement becomes known after the rows are stored, and the connector's clock is minutes away."""
    source = DdlSource(framed=True, skew_s=skew)
    with_rows(source, "t", 4)
    follower = Follower(source, tmp_path)
    follower.run(ddl=0)
    source.add("t", "tier", "int", 3, "NULL DEFAULT 3")
    source.tables["t"].rows[1]["tier"] = None  # set to null where the stream did not see it
    source.snapshot("t")
    follower.restart()
    follower.run(ddl=0)
    with_rows(source, "other", 1)
    follower.run()
    follower.check("t")
