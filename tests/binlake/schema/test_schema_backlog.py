"""A first start on a backlog that holds all statements ends in the same tables as a stream that follows live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower, Table
from tests.binlake.schema.test_schema_changes import COLUMNS

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
    source.snapshot(table, "true")


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
    source.snapshot("t", "true")  # a new connector
    follower.restart()
    follower.run(ddl=0)
    with_rows(source, "other", 1)
    follower.run()
    follower.check("t")


def check_all(source: DdlSource, followers: list[Follower], paths: dict[str, str] | None = None) -> None:
    """Every table of the source is in the lake, ``paths``: of those whose path is not their name."""
    for follower in followers:
        for table in source.tables:
            follower.check(table, (paths or {}).get(table))
        assert follower.quarantined() == []


@pytest.mark.first(4)
@FORMS
@pytest.mark.parametrize("way", ["drop", "replace", "like", "database"])
def test_a_table_made_again_with_another_key(tmp_path: Path, framed: bool, way: str) -> None:
    columns = {"code": "varchar(20)", "id": "int", "tag": "varchar(9)"}

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        source.create("model", columns, key=("code",))
        source.put("model", 1, code="m", tag="x")
        yield
        source.put("t", 3, name="gone")
        if way == "replace":
            del source.tables["t"]
            source.tables["t"] = Table(dict(columns), key=("code",))
            text = "CREATE OR REPLACE TABLE t (code VARCHAR(20), id INT, tag VARCHAR(9), PRIMARY KEY (code))"
            source.record(text, [("CREATE", "t")])
        else:
            if way == "database":
                source.drop_database()
                source.create("model", columns, key=("code",), snapshot=False)
                source.put("model", 2, code="n", tag="y")
            else:
                source.drop_table("t")
            if way == "like":
                source.like("t", "model")
            else:
                source.create("t", columns, key=("code",), snapshot=False)
        yield
        source.put("t", 3, code="a", tag="new")
        source.put("t", 5, code="b", tag="new")

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers)


@FORMS
@pytest.mark.parametrize("taken_in", [True, False], ids=["taken in", "missed"])
def test_a_replaced_table_whose_statement_the_connector_misses(tmp_path: Path, framed: bool, taken_in: bool) -> None:
    """It names columns as before. No column of the new table is null in silence."""

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        del source.tables["t"]
        columns = {"id": "int", "code": "varchar(20)"}
        replaced = Table(dict(columns) if taken_in else {"id": "int", "name": "varchar(50)", "qty": "int"}, key=("id",))
        source.tables["t"] = replaced
        text = "CREATE OR REPLACE TABLE t (id INT, code VARCHAR(20) NOT NULL, PRIMARY KEY (id))"
        source.record(text, [("CREATE", "t")] if taken_in else [])
        yield
        source.put("t", 3, **({"code": "a"} if taken_in else {"name": "a", "qty": None}))

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        if taken_in:
            follower.check("t")
            assert follower.quarantined() == []
        else:
            [(reason, detail)] = follower.quarantined()
            assert reason == "other_columns"
            assert "the row lacks column code and has columns name, qty, which the table has not" in detail


@FORMS
def test_another_table_under_a_name_whose_table_goes_on(tmp_path: Path, framed: bool) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.rename_tables(("t", "u"))
        source.put("u", 1, name="renamed")
        yield
        source.create("t", {"id": "int", "other": "int"}, snapshot=False)
        source.put("t", 1, other=1)
        yield
        source.rename_tables(("t", "v"))
        source.create("t", COLUMNS, snapshot=False)
        source.put("t", 9, name="third")
        source.put("v", 2, other=2)
        yield
        source.drop_table("u")
        source.create("u", COLUMNS, snapshot=False)
        source.put("u", 4, name="again")

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers, {"v": "t@@2", "t": "t@@3"})


@FORMS
def test_chains_and_swaps_and_back(tmp_path: Path, framed: bool) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        for table in "abc":
            with_rows(source, table, 4)
        yield
        source.rename_tables(("b", "d"), ("a", "b"))  # a TO b while b goes on as d
        source.put("b", 1, name="of a")
        source.put("d", 1, name="of b")
        yield
        source.rename_tables(("b", "x"), ("d", "y"), ("c", "b"), ("x", "d"), ("y", "c"))  # three in a ring
        for table in "bcd":
            source.put(table, 2, name=f"then {table}")
        yield
        source.rename_tables(("b", "z"))
        source.rename_tables(("z", "b"))
        source.put("b", 3, name="back")

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers, {"d": "a", "c": "b", "b": "c"})


def test_a_table_that_goes_to_another_database(tmp_path: Path) -> None:
    """The rows come from another topic; the lake table stays where it is."""
    source = DdlSource()
    with_rows(source, "t")
    source.record("RENAME TABLE shop.t TO other.t", [])
    row = {"id": 1, "name": "moved", "qty": 1}
    place = {"ts_ms": 0, "snapshot": "false", "db": "other", "table": "t", "server_id": 1, "file": source.file}
    value = {"op": "u", "before": None, "after": row, "source": place | {"pos": source.pos + 50, "row": 0}}
    source.log.add("s.other.t", value, {"id": 1})
    follower = Follower(
        source, tmp_path, more={"source": {"schemas": {"other.t": {"columns": COLUMNS, "key": ["id"]}}}}
    )
    follower.run()
    source.tables["t"].rows[1] = row
    follower.check("t")


REKEYS: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
    "another": ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (qty)", ("qty",), COLUMNS),
    "longer": ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (qty, id)", ("qty", "id"), COLUMNS),
    "keyless": ("ALTER TABLE t DROP PRIMARY KEY", (), COLUMNS),
}


@pytest.mark.first(3)
@FORMS
@pytest.mark.parametrize("kind", REKEYS)
def test_another_primary_key(tmp_path: Path, framed: bool, kind: str) -> None:
    statement, key, columns = REKEYS[kind]

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.put("t", 3, qty=300)
        source.put("t", 4, qty=3)
        source.delete("t", 5)
        source.put("t", 6, qty=7)  # for a while two rows have 7
        source.put("t", 6, qty=60)
        source.rekey("t", statement, key, columns)
        yield
        source.put("t", 4, name="after")
        source.put("t", 9, qty=5)
        source.delete("t", 0)
        yield
        source.put("t", 2, name="at last", **({} if kind == "keyless" else {"qty": 6}))

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers)


@FORMS
def test_rows_without_a_key_are_found_after_a_column_is_dropped(tmp_path: Path, framed: bool) -> None:
    """Rows from before the statement come in one batch with it, and are deleted and updated without the column."""

    def script(source: DdlSource) -> Iterator[None]:
        source.create("t", COLUMNS, key=())
        source.put("t", 0, name="stored", qty=0)
        yield
        for key in range(1, 6):
            source.put("t", key, name="same", qty=key)
        source.delete("t", 1)
        source.drop("t", "qty")
        source.delete("t", 2)
        source.put("t", 3, name="changed")
        yield
        source.delete("t", 0)
        source.delete("t", 4)
        source.put("t", 6, name="new")
        yield
        source.add("t", "qty", "int", None)
        source.put("t", 5, qty=50)
        source.delete("t", 3)

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers)


@FORMS
def test_a_row_without_a_key_that_is_delivered_again_after_a_statement(tmp_path: Path, framed: bool) -> None:
    """It comes as it was before the statement, and is stored as it is after it."""

    def script(source: DdlSource) -> Iterator[None]:
        source.create("t", COLUMNS, key=())
        for key in range(4):
            source.put("t", key, name="same", qty=key)
        old = list(source.log.records["s.shop.t", 0])
        yield
        source.drop("t", "qty")
        source.add("t", "tier", "int", 3, "DEFAULT 3")
        yield
        source.log.records["s.shop.t", 0] += old
        source.delete("t", 2)

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers)


@FORMS
def test_deletes_without_a_key_that_come_before_their_statement(tmp_path: Path, framed: bool) -> None:
    """The topic of DDL is behind: the rows get the content that the deletes name when the statement arrives."""
    source = DdlSource(framed=framed)
    follower = Follower(source, tmp_path)
    source.create("t", COLUMNS, key=())
    for key in range(6):
        source.put("t", key, name="same", qty=key)
    follower.run()
    known = len(source.ddl)
    source.drop("t", "qty")
    source.delete("t", 1)
    source.put("t", 2, name="changed")
    follower.run(ddl=known)
    follower.idle()
    follower.check("t")
    known = len(source.ddl)
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    if framed:  # without a schema in the message its new column is unknown, and it goes to quarantine
        source.delete("t", 3)
    follower.run(ddl=known)
    follower.run()
    follower.check("t")
    if framed:
        source.put("t", 3, name="same", tier=3)  # no delete is owed any more that would take it
    follower.run()
    follower.check("t")


@FORMS
def test_a_table_without_a_key_gets_one_and_loses_it_again(tmp_path: Path, framed: bool) -> None:
    def script(source: DdlSource) -> Iterator[None]:
        source.create("t", COLUMNS, key=())
        for key in range(6):
            source.put("t", key, name="same", qty=1)
        yield
        source.put("t", 3, qty=3)
        source.delete("t", 4)
        source.rekey("t", "ALTER TABLE t ADD PRIMARY KEY (id)", ("id",))
        yield
        source.put("t", 3, name="keyed")
        source.put("t", 7, name="keyed")
        yield
        source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY", ())
        source.put("t", 7, name="free")
        source.delete("t", 3)
        yield
        source.put("t", 8, name="free")

    source, followers = followed(tmp_path, script, framed=framed)
    check_all(source, followers)


@pytest.mark.first(3)
@FORMS
@pytest.mark.parametrize(
    ("statement", "key", "columns"),
    [
        (
            "ALTER TABLE t CHANGE id no BIGINT, RENAME TO u",
            ("no",),
            {"no": "bigint", "name": "varchar(20)", "qty": "int"},
        ),
        (
            "ALTER TABLE t ADD COLUMN tenant INT NOT NULL DEFAULT 7, DROP PRIMARY KEY, ADD PRIMARY KEY (tenant, id)",
            ("tenant", "id"),
            COLUMNS | {"tenant": "int"},
        ),
        (
            "ALTER TABLE t DROP COLUMN id, DROP PRIMARY KEY, ADD PRIMARY KEY (name)",
            ("name",),
            {"name": "varchar(20)", "qty": "int"},
        ),
    ],
    ids=["renamed", "added", "dropped"],
)
def test_a_key_column_changes(
    tmp_path: Path, framed: bool, statement: str, key: tuple[str, ...], columns: dict[str, str]
) -> None:
    """The rows are compared by ``name``, as not every key has the column ``id`` afterwards."""

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t", 5)
        yield
        source.put("t", 3, qty=33)
        source.delete("t", 0)
        held = source.tables["t"]
        for row in held.rows.values():
            row |= {"no": row["id"], "tenant": 7}
            for name in set(row) - set(columns):
                del row[name]
        source.tables["t"] = Table(columns, held.rows, key)
        if "RENAME" in statement:
            source.tables["u"] = source.tables.pop("t")
        (table,) = source.tables
        source.record(statement, [("ALTER", table)])
        yield
        row = {**held.rows[2], "qty": 22}
        before, held.rows[2] = dict(held.rows[2]), row
        source.event(table, "u", row, before, 2)

    source, followers = followed(tmp_path, script, framed=framed)
    (held,) = source.tables.values()
    for follower in followers:
        rows = [{n: row.get(n) for n in columns} for row in follower.all_rows("t")]
        assert sorted(rows, key=str) == sorted(({n: row[n] for n in columns} for row in held.rows.values()), key=str)
        assert follower.quarantined() == []


@pytest.mark.parametrize("key", [("qty",), ("qty", "id"), ()], ids=["another", "longer", "none"])
def test_rows_from_before_another_key_that_come_late(tmp_path: Path, key: tuple[str, ...]) -> None:
    """One partition lags: its rows come after the table was written anew."""
    source = DdlSource(framed=True)
    with_rows(source, "t")
    follower = Follower(source, tmp_path)
    follower.run()
    for number in (2, 4):
        source.put("t", number, qty=100 + number)
    source.delete("t", 6)
    source.put("t", 10, name="late", qty=10)
    late = source.log.records.pop(("s.shop.t", 0))
    source.log.records["s.shop.t", 0] = late[:4]
    added = f", ADD PRIMARY KEY ({', '.join(key)})" if key else ""
    source.rekey("t", f"ALTER TABLE t DROP PRIMARY KEY{added}", key)
    follower.run()
    follower.idle()
    source.log.records["s.shop.t", 0] += late[4:]
    follower.run()
    if key:
        follower.check("t")
        assert follower.quarantined() == []
    else:
        found = {reason for reason, _ in follower.quarantined()}
        assert found == {"late_row"}


@FORMS
def test_a_column_that_no_row_of_a_first_start_has(tmp_path: Path, framed: bool) -> None:
    """It is in the lake, also while it is null in all rows; a column that was dropped again is not."""

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.add("t", "short", "int", None)
        source.add("t", "tier", "int", None)
        source.add("t", "moment", "datetime", None)
        source.rename("t", "moment", "since")
        source.drop("t", "short")

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("t")
        [columns] = {tuple(row) for row in follower.stored("t").values()}
        assert {"tier", "since"} <= set(columns)
    assert not {"short", "moment"} & set(columns)


@pytest.mark.first(5)
@FORMS
@pytest.mark.parametrize("kind", ["int", "bigint", "varchar(20)"])
@pytest.mark.parametrize("clauses", ["DROP COLUMN name, RENAME COLUMN b TO name", "RENAME COLUMN b TO name, DROP name"])
def test_a_column_takes_the_name_of_a_dropped_one(tmp_path: Path, framed: bool, kind: str, clauses: str) -> None:
    """Its type may be another one than that of the dropped column."""

    def script(source: DdlSource) -> Iterator[None]:
        old = "int" if kind == "bigint" else "varchar(20)"
        source.create("t", {"id": "int", "name": old, "b": kind})
        for key in range(4):
            big = 2**40 + key if kind == "bigint" else key
            source.put("t", key, name=key if old == "int" else f"x{key}", b=f"b{key}" if kind[0] == "v" else big)
        yield
        for row in source.tables["t"].rows.values():
            row["name"] = row.pop("b")
        source.execute(f"ALTER TABLE t {clauses}", "t", {"id": "int", "name": kind})
        yield
        source.put("t", 1, name="new" if kind[0] == "v" else 7)

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("t")
        assert follower.quarantined() == []


@FORMS
def test_a_column_moves_away_for_another_one(tmp_path: Path, framed: bool) -> None:
    """The rows of a first start lack the column that takes the name in the end, and hold another one of that name."""

    def script(source: DdlSource) -> Iterator[None]:
        with_rows(source, "t")
        yield
        source.add("t", "day", "varchar(20)", None)
        source.rename("t", "day", "away")
        source.rename("t", "qty", "day")
        source.rename("t", "away", "qty")
        yield
        for key in range(20, 24):
            source.put("t", key, day=key, qty=f"text {key}")
        yield
        source.put("t", 1, day=7)

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("t")
        assert follower.quarantined() == []
