"""Statements about a table whose name another table had: what was defined under the name before is not the table's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.schema.apply.schema_states import SchemaStates
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.stream.definitions.schemas import SchemaRegistry
from tests.binlake.schema.ddl_source import DdlSource, Follower, Table

TIMES = {"id": "int", "n": "datetime", "k": "int"}
NUMBERS = {"id": "int", "n": "int", "k": "int"}
#: 2025-10-09 08:53:20, as events have it.
MOMENT = 1_760_000_000_000
SHOWN = "2025-10-09 08:53:20"
#: Gives the tables other names; returns those that the table of times and the table of numbers have then.
Way = Callable[[DdlSource], tuple[str, str]]


def parts(below: int) -> str:
    return f" PARTITION BY RANGE (n) (PARTITION p0 VALUES LESS THAN ({below}), PARTITION p1 VALUES LESS THAN MAXVALUE)"


def in_one(source: DdlSource) -> tuple[str, str]:
    source.rename_tables(("t", "away"), ("u", "t"), ("away", "u"))
    return "u", "t"


def in_three(source: DdlSource) -> tuple[str, str]:
    for pair in (("t", "away"), ("u", "t"), ("away", "u")):
        source.rename_tables(pair)
    return "u", "t"


def back_and_forth(source: DdlSource) -> tuple[str, str]:
    """Each name is the other table's for a while."""
    in_one(source)
    source.put("t", 8, n=8, k=108)
    in_one(source)
    return "t", "u"


def left_and_taken(source: DdlSource) -> tuple[str, str]:
    """One table leaves its name, and the other takes it."""
    source.rename_tables(("t", "old"))
    source.rename_tables(("u", "t"))
    return "old", "t"


WAYS = [in_one, in_three, back_and_forth, left_and_taken]


def swapped(
    place: Path, way: Way, *, early: bool, unspoken: bool = False, key: tuple[str, ...] = ("id",)
) -> tuple[DdlSource, Follower, str, str]:
    """Two tables with rows that have got other names. ``early``: their rows are stored before."""
    source = DdlSource(unspoken=unspoken)
    follower = Follower(source, place)
    source.create("t", TIMES, key=key)
    source.create("u", NUMBERS, key=key)
    source.put("t", 1, n=MOMENT, k=101)
    source.put("u", 4, n=4, k=104)
    if early:
        follower.run()
    return source, follower, *way(source)


def retype(source: DdlSource, table: str, values: dict[int, str]) -> None:
    """The column ``n`` becomes a text."""
    for row, value in values.items():
        source.tables[table].rows[row]["n"] = value
    source.modify(table, "n", "varchar(40)")


@pytest.mark.first(11)
@pytest.mark.parametrize("unspoken", [False, True])
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("key", [("id",), ("n",)], ids=["value", "key"])
@pytest.mark.parametrize("way", WAYS)
def test_a_new_type_converts_from_the_tables_own(
    tmp_path: Path, way: Way, key: tuple[str, ...], *, early: bool, unspoken: bool
) -> None:
    source, follower, times, numbers = swapped(tmp_path, way, early=early, unspoken=unspoken, key=key)
    retype(source, numbers, {row: str(row) for row in source.tables[numbers].rows})
    retype(source, times, {1: SHOWN})
    source.put(numbers, 5, n="five", k=105)
    source.put(times, 2, n="two", k=102)
    follower.run()
    follower.run()
    follower.check(times, "t")
    follower.check(numbers, "u")
    assert follower.quarantined() == []


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_new_name_with_a_type_converts_from_the_tables_own(tmp_path: Path, way: Way, *, early: bool) -> None:
    source, follower, times, numbers = swapped(tmp_path, way, early=early)
    columns = {"id": "int", "m": "varchar(40)", "k": "int"}
    for table in (numbers, times):
        for row in source.tables[table].rows.values():
            number = row.pop("n")
            row["m"] = SHOWN if table == times else str(number)
        source.execute(f"ALTER TABLE {table} CHANGE n m varchar(40)", table, columns)
    follower.run()
    follower.check(times, "t")
    follower.check(numbers, "u")


@pytest.mark.parametrize("early", [False, True])
def test_a_table_made_under_the_name_leaves_the_types_of_the_renamed_one(tmp_path: Path, *, early: bool) -> None:
    source = DdlSource()
    follower = Follower(source, tmp_path)
    source.create("t", TIMES)
    source.put("t", 1, n=MOMENT, k=101)
    if early:
        follower.run()
    source.rename_tables(("t", "old"))
    source.create("t", NUMBERS, snapshot=False)
    source.put("t", 4, n=4, k=104)
    retype(source, "old", {1: SHOWN})
    retype(source, "t", {4: "4"})
    follower.run()
    follower.check("old", "t")
    follower.check("t", "t@@2")


@pytest.mark.parametrize("early", [False, True])
def test_a_table_made_under_the_name_leaves_the_partitions_of_the_renamed_one(tmp_path: Path, *, early: bool) -> None:
    source = DdlSource()
    follower = Follower(source, tmp_path)
    source.create("t", NUMBERS, options=parts(5))
    for row in (1, 4, 7):
        source.put("t", row, n=row, k=row)
    if early:
        follower.run()
    source.rename_tables(("t", "old"))
    source.create("t", NUMBERS, snapshot=False, options=parts(2))
    for row in (1, 4, 7):
        source.put("t", row, n=row, k=row)
    source.tables["old"].rows = {7: source.tables["old"].rows[7]}
    source.execute("ALTER TABLE old TRUNCATE PARTITION p0", "old", NUMBERS)
    del source.tables["t"].rows[1]
    source.execute("ALTER TABLE t TRUNCATE PARTITION p0", "t", NUMBERS)
    follower.run()
    follower.check("old", "t")
    follower.check("t", "t@@2")


@pytest.mark.parametrize("way", WAYS)
def test_partitions_go_with_their_table(tmp_path: Path, way: Way) -> None:
    source = DdlSource()
    follower = Follower(source, tmp_path)
    source.create("t", NUMBERS, options=parts(5))
    source.create("u", NUMBERS, options=parts(2))
    for table in ("t", "u"):
        for row in (1, 4, 7):
            source.put(table, row, n=row, k=row)
    follower.run()
    low, other = way(source)
    for table, below in ((low, 5), (other, 2)):
        held = source.tables[table]
        held.rows = {row: values for row, values in held.rows.items() if row >= below}
        source.execute(f"ALTER TABLE {table} TRUNCATE PARTITION p0", table, NUMBERS)
    follower.run()
    follower.check(low, "t")
    follower.check(other, "u")


@pytest.mark.first(7)
@pytest.mark.parametrize("unspoken", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_a_key_is_changed_from_the_tables_own(tmp_path: Path, way: Way, *, unspoken: bool) -> None:
    source = DdlSource(unspoken=unspoken)
    follower = Follower(source, tmp_path)
    source.create("t", NUMBERS, key=("k",))
    source.create("u", NUMBERS)
    for table in ("t", "u"):
        source.put(table, 1, n=1, k=101)
        source.put(table, 2, n=2, k=102)
    follower.run()
    one, other = way(source)
    for table in (one, other):
        source.rekey(table, f"ALTER TABLE {table} DROP PRIMARY KEY, ADD PRIMARY KEY (n)", ("n",))
        source.put(table, 1, k=201)
        source.put(table, 3, n=3, k=103)
    follower.run()
    follower.run()
    follower.check(one, "t")
    follower.check(other, "u")


@pytest.mark.parametrize("way", WAYS)
def test_other_statements_after_a_swap(tmp_path: Path, way: Way) -> None:
    source, follower, times, numbers = swapped(tmp_path, way, early=True)
    source.tables[times].rows[1]["n"] = datetime.fromtimestamp(MOMENT / 1000, UTC)
    for table in (times, numbers):
        source.add(table, "d", "int", 9, "DEFAULT 9")
        source.rename(table, "k", "kk")
    follower.run()
    follower.check(times, "t")
    follower.check(numbers, "u")
    source.truncate(numbers)
    source.put(numbers, 6, n=6, kk=106, d=1)
    source.drop(times, "kk")
    follower.run()
    follower.check(times, "t")
    follower.check(numbers, "u")


def test_a_table_dropped_and_made_anew_has_types_of_its_own(tmp_path: Path) -> None:
    source = DdlSource()
    follower = Follower(source, tmp_path)
    source.create("t", TIMES)
    source.put("t", 1, n=MOMENT, k=101)
    source.drop_table("t")
    source.create("t", NUMBERS, snapshot=False)
    source.put("t", 4, n=4, k=104)
    retype(source, "t", {4: "4"})
    follower.run()
    follower.check("t")


def test_foreign_keys_and_generated_columns_go_with_their_table(tmp_path: Path) -> None:
    """The renamed table has them, and the one that is made under its former name has not."""
    source = DdlSource()
    columns = {"id": "int", "p": "int", "g": "int"}
    body = "id INT PRIMARY KEY, p INT, g INT AS (p + 1) STORED, FOREIGN KEY (p) REFERENCES q (id) ON DELETE CASCADE"
    source.tables["t"] = Table(columns)
    source.record(f"CREATE TABLE t ({body})", [("CREATE", "t")])
    source.rename_tables(("t", "old"))
    source.create("t", columns, snapshot=False)
    settings = Follower(source, tmp_path).settings()
    registry = SchemaRegistry(settings)
    registry.learn(source.ddl)
    rules = SchemaChangeSettings()
    history = registry.ddl.history(lambda _: rules, registry.sources(), versions_of=registry.versions)
    states = SchemaStates(settings, registry, lambda: history)
    later = 1 << 62
    old, new = SourceTable("shop", "t"), SourceTable("shop", "t@@2")
    of_old, of_new = (states.of_source(one, settings.table_rules(one)) for one in (old, new))
    assert (len(states.cascades(old)), len(states.cascades(new))) == (1, 0)
    assert (list(of_old.generated.before(later)), list(of_new.generated.before(later))) == (["g"], [])


def test_unique_indexes_go_with_their_table(tmp_path: Path) -> None:
    source, columns = DdlSource(), {"id": "int", "p": "int"}
    source.tables["t"] = Table(columns)
    source.record("CREATE TABLE t (id INT NOT NULL, p INT, UNIQUE u (id))", [("CREATE", "t")])
    source.rename_tables(("t", "old"))
    source.create("t", columns, snapshot=False)
    settings = Follower(source, tmp_path).settings()
    registry = SchemaRegistry(settings)
    registry.learn(source.ddl)
    rules = SchemaChangeSettings()
    history = registry.ddl.history(lambda _: rules, registry.sources(), versions_of=registry.versions)
    states = SchemaStates(settings, registry, lambda: history)
    found = []
    for one in (SourceTable("shop", "t"), SourceTable("shop", "t@@2")):
        indexes = states.of_source(one, settings.table_rules(one)).indexes.before(1 << 62)
        assert indexes is not None
        found.append((indexes.has_primary, list(indexes.unique)))
    assert found == [(False, ["u"]), (True, [])]
