"""Statements of the source, snapshots and kinds of keys, and what history tables make of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import EPOCH_S, DdlSource, Follower

COLUMNS = {"id": "int", "n": "int", "s": "varchar(20)"}
FILE = 3 << 32
#: The two ways to a history table of ``shop.t``: beside the table of its rows, or in its place.
WAYS: dict[str, dict[str, Any]] = {
    "th": {"history": [{"table": "shop.t", "to": "shop.th"}]},
    "t": {"overrides": [{"match": "shop.t", "merge": {"engine": "scd2"}}]},
}
#: id, start_at, end_at.
Span = tuple[int, int, int | None]

pytestmark = pytest.mark.parametrize("table", WAYS)


def started(place: Path, table: str, key: tuple[str, ...] = ("id",), **tables: Any) -> tuple[DdlSource, Follower]:  # noqa: ANN401
    """Two rows, with events at 120 and 130, in the history table."""
    source = DdlSource()
    source.create("t", COLUMNS, key=key)
    source.put("t", 1, n=1, s="a")
    source.put("t", 2, n=2, s="b")
    follower = Follower(source, place, more={"tables": {"defaults": {"buckets": 2}, **WAYS[table], **tables}})
    follower.run()
    return source, follower


def versions(follower: Follower, table: str) -> list[dict[str, Any]]:
    """All versions by id and place, which agree in what they say of places and times."""
    rows = sorted(follower.all_rows(table), key=lambda row: (row["id"], row["start_at"]))
    for row in rows:
        assert row["is_current"] == (row["end_at"] is None)
        assert row["valid_from"] == _time(row["start_at"])
        assert row["valid_to"] == (None if row["end_at"] is None else _time(row["end_at"]))
    return rows


def _time(place: int) -> datetime:
    return datetime.fromtimestamp(EPOCH_S + place - FILE, UTC)


def spans(follower: Follower, table: str) -> list[Span]:
    rows = versions(follower, table)
    return [(r["id"], r["start_at"] - FILE, r["end_at"] and r["end_at"] - FILE) for r in rows]


def cells(follower: Follower, table: str, column: str) -> list[Any]:
    return [row[column] for row in versions(follower, table)]


def test_a_renamed_table(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.rename_tables(("t", "u"))
    source.put("u", 1, n=11)
    source.delete("u", 2)
    source.truncate("u")
    follower.run()
    assert spans(follower, table) == [(1, 120, 150), (1, 150, 170), (2, 130, 160)]


def test_a_dropped_column_stays(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.drop("t", "s")
    source.put("t", 1, n=11)
    follower.run()
    assert spans(follower, table) == [(1, 120, 150), (1, 150, None), (2, 130, None)]
    assert cells(follower, table, "s") == ["a", None, "b"]


def test_a_renamed_column_is_another_one(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.rename("t", "n", "m")
    source.put("t", 1, m=11)
    follower.run()
    assert spans(follower, table) == [(1, 120, 150), (1, 150, None), (2, 130, None)]
    assert (cells(follower, table, "n"), cells(follower, table, "m")) == ([1, None, 2], [None, 11, None])


def test_a_column_with_a_default_is_null_before(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.add("t", "d", "int", 7, "DEFAULT 7")
    source.put("t", 1, n=11)
    follower.run()
    assert cells(follower, table, "d") == [None, 7, None]


def test_a_wider_type(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.modify("t", "n", "bigint")
    source.put("t", 1, n=1 << 40)
    follower.run()
    assert cells(follower, table, "n") == [1, 1 << 40, 2]


@pytest.mark.parametrize(("column", "kind", "value"), [("n", "varchar(10)", "x"), ("s", "int", 5)])
def test_a_type_that_does_not_hold_the_old_values_stops_the_table(
    tmp_path: Path, table: str, column: str, kind: str, value: object
) -> None:
    source, follower = started(tmp_path, table)
    source.modify("t", column, kind)
    source.put("t", 1, **{column: value})
    event = follower.run(fails=True)
    assert f"column {column!r} was" in str([one.error for one in event.tables])
    assert [reason for reason, _ in follower.quarantined()] == ["table_refused"]
    assert spans(follower, table) == [(1, 120, None), (2, 130, None)]


def test_a_changed_key_stops_the_table(tmp_path: Path, table: str) -> None:
    source, follower = started(tmp_path, table)
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (n)", ("n",))
    source.put("t", 1, s="z")
    event = follower.run(fails=True)
    assert "('n', 'start_at') where ('id', 'start_at') was expected" in str([one.error for one in event.tables])
    assert spans(follower, table) == [(1, 120, None), (2, 130, None)]


@pytest.mark.parametrize("late", [False, True])
def test_the_versions_of_a_dropped_table_end(tmp_path: Path, table: str, late: bool) -> None:
    """Also those of rows that the data topic has not given by then, and of a table that is made again. The statement
    comes without data."""
    source, follower = started(tmp_path, table)
    source.put("t", 3, n=3)
    if not late:
        follower.run()
    source.drop_table("t")
    follower.idle()
    assert spans(follower, table)[:2] == [(1, 120, 150), (2, 130, 150)]
    source.create("t", COLUMNS, snapshot=False)
    source.put("t", 1, n=9, s="new")
    for _ in range(2):
        follower.restart()
        follower.run()
        assert spans(follower, table) == [(1, 120, 150), (1, 170, None), (2, 130, 150), (3, 140, 150)]


def test_snapshots_take_their_place_among_the_events(tmp_path: Path, table: str) -> None:
    """A version that a snapshot adds begins where it was read: after a TRUNCATE, between two events."""
    source, follower = started(tmp_path, table)
    source.truncate("t")
    source.put("t", 3, n=3)
    source.snapshot("t")
    source.put("t", 3, n=4)
    follower.run()
    assert spans(follower, table) == [(1, 120, 140), (2, 130, 140), (3, 150, 160), (3, 160, 170), (3, 170, None)]


def test_keys_of_two_columns(tmp_path: Path, table: str) -> None:
    """A value of the key looks like the end of a version's key."""
    source, follower = started(tmp_path, table, ("id", "s"))
    source.put("t", 1, n=4)
    source.put("t", 1, s="x,start_at:5")
    source.put("t", 1, n=5)
    source.delete("t", 2)
    follower.run()
    assert spans(follower, table) == [(1, 120, 140), (1, 140, 150), (1, 150, 160), (1, 160, None), (2, 130, 170)]


def test_a_null_in_a_key_of_the_settings_is_quarantined(tmp_path: Path, table: str) -> None:
    override = {"match": "shop.t*", "key": ["id", "s"]} | ({} if table == "th" else {"merge": {"engine": "scd2"}})
    source, follower = started(tmp_path, table, overrides=[override])
    source.put("t", 1, s=None)
    source.put("t", 1, s="c")
    follower.run()
    assert {reason for reason, _ in follower.quarantined()} == {"null_key"}
    assert spans(follower, table)[-1] == (2, 130, None)


def test_source_tables_that_a_shard_column_distinguishes(tmp_path: Path, table: str) -> None:
    """A TRUNCATE of one of them would end the versions of all. A history table of one has its versions alone."""
    source = DdlSource()
    shard = {"column": "sh", "value": "{n}"}
    routes = [{"match": "shop[.]t_(?P<n>[a-z])", "to": "shop.t", "shard": shard}]
    way = WAYS["t"] if table == "t" else {"history": [{"table": "shop.t_a", "to": "shop.th"}]}
    follower = Follower(source, tmp_path, more={"tables": {"routes": routes, **way}})
    for name in ("t_a", "t_b"):
        source.create(name, COLUMNS)
        source.put(name, 1, n=1)
    source.truncate("t_b")
    event = follower.run(fails=True)
    if table == "th":
        assert spans(follower, table) == [(1, 120, None)]
    else:
        assert "a TRUNCATE would end the versions of all" in str([one.error for one in event.tables])
