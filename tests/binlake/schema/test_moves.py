"""Tables that are moved between databases by names without one: whose rows are whose, at every position."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.schemas.schema_change import executed
from binlake.position.ledger import Ledger
from binlake.schema.rules.ddl_effects import DdlEvent
from binlake.schema.rules.ddl_log import DdlLog
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.tables.catalog import CatalogTable, catalog_tables, open_reader
from binlake.tables.feeds import Feeds
from hudilake.read import TableReader
from hudilake.storage import open_storage
from tests.binlake.schema.ddl_source import Follower
from tests.binlake.schema.moves import Moves, Rows, followed, name, step


def started(place: Path, *tables: str) -> tuple[Moves, Follower]:
    """Tables with a row each, in the lake."""
    source = Moves()
    for number, table in enumerate(tables):
        source.create(name(table), snapshot=True)
        source.put(name(table), number, number)
    follower = followed(source, place)
    follower.run()
    return source, follower


def rows(follower: Follower, table: SourceTable, column: str = "v") -> Rows:
    """What the lake holds under a name of today."""
    reader = open_reader(follower.settings(), str(table))
    found = [row for batch in reader.batches(reader.plan()) for row in batch.to_pylist()]
    return {row["id"]: {"id": row["id"], column: row[column]} for row in found}


def check(source: Moves, follower: Follower) -> None:
    """Every table of the source is in the lake under its name of today."""
    found = {table: rows(follower, table, held.column) for table, held in source.tables.items() if held.rows}
    assert found == {table: held.rows for table, held in source.tables.items() if held.rows}
    assert follower.quarantined() == []


@pytest.mark.parametrize("live", [True, False], ids=["live", "backlog"])
@pytest.mark.parametrize("alter", [True, False], ids=["ALTER", "RENAME"])
def test_a_table_is_moved_by_a_name_without_a_database(tmp_path: Path, alter: bool, live: bool) -> None:
    source, follower = started(tmp_path, "db1.t", "db2.o")
    source.rename("db1", (name("db1.t"), name("db2.u")), written=False, alter=alter)
    source.put(name("db2.u"), 9, 9)
    if live:
        follower.run()
        check(source, follower)
    source.rename("db2", (name("db2.u"), name("db1.t")), written=False, alter=alter)  # and back
    source.put(name("db1.t"), 8, 8)
    follower.run()
    check(source, follower)
    assert not (tmp_path / "db2" / "u").exists()


def test_the_table_that_was_dropped_is_not_meant(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db1.orders", "db2.orders")
    source.drop(name("db2.orders"))
    source.rename("db1", (name("db1.orders"), name("db2.orders_2025")), written=False)
    source.put(name("db2.orders_2025"), 9, 9)
    follower.run()
    check(source, follower)


def test_a_table_that_is_made_later_is_not_meant(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db1.t")
    source.rename("db1", (name("db1.t"), name("db3.t")), written=False)
    source.create(name("db1.t"))
    source.create(name("db2.t"))
    source.put(name("db3.t"), 7, 7)
    source.put(name("db1.t"), 7, 8)
    source.put(name("db2.t"), 7, 9)
    follower.run()
    check(source, follower)


def test_the_other_parts_of_a_statement_tell_the_database(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db1.t", "db2.t")
    pairs = [("db1.t", "db3.x"), ("db2.t", "db1.t"), ("db3.x", "db2.t")]
    source.rename("db1", *((name(a), name(b)) for a, b in pairs), written=False)
    source.put(name("db1.t"), 7, 7)
    source.put(name("db2.t"), 7, 8)
    follower.run()
    check(source, follower)


def test_the_definition_tells_which_of_two_tables_it_was(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db2.t")
    source.create(name("db1.t"), "other")
    source.put(name("db1.t"), 1, 1)
    source.rename("db1", (name("db1.t"), name("db2.old")), written=False)
    source.put(name("db2.old"), 2, 2)
    source.put(name("db2.t"), 2, 2)
    follower.run()
    check(source, follower)


def test_a_table_from_where_nothing_is_known_is_a_new_one(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db1.t")
    source.tables[name("db2.u")] = source.tables.pop(name("db1.t"))
    source.pos += 10
    source.record([("RENAME TABLE hidden TO db2.u", name("db2.u"), "ALTER")])
    source.tables[name("db1.t")] = source.tables.pop(name("db2.u"))
    source.create(name("db2.hidden"))
    source.put(name("db2.hidden"), 3, 3)
    source.put(name("db1.t"), 4, 4)
    follower.run()
    check(source, follower)
    assert (tmp_path / "db2" / "hidden").exists()


def test_what_may_be_either_of_two_tables_stops_both_and_nothing_else(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "db1.t", "db2.t", "db3.w")
    before = {table: dict(held.rows) for table, held in source.tables.items()}
    source.rename("db1", (name("db1.t"), name("db2.old")), written=False)
    for table in ("db2.old", "db2.t", "db3.w"):
        source.put(name(table), 9, 9)
    follower.run(fails=True)
    stopped = ledger(follower).stopped
    assert set(stopped) == {name("db1.t"), name("db2.t"), name("db2.old")}
    assert "db1.t or db2.t" in stopped[name("db1.t")].what
    assert "'RENAME TABLE t TO db2.old' at mariadb-bin.000003:" in stopped[name("db2.old")].what
    assert rows(follower, name("db1.t")) == before[name("db1.t")]
    assert rows(follower, name("db2.t")) == before[name("db2.t")]
    assert rows(follower, name("db3.w")) == source.tables[name("db3.w")].rows
    [mine] = Feeds.load(follower.settings()).of(name("db1.t"))
    assert mine.now is None
    assert "not determined which table of the source it is" in mine.missing
    place = stopped[name("db2.old")].what.split(" at ")[1].split(" ")[0]
    follower.more = follower.more | {"source": {"statement_databases": {place: "db1"}}}
    follower.restart()
    source.put(name("db2.t"), 8, 8)
    follower.run()
    follower.catch_up()
    check(source, follower)
    assert not ledger(follower).stopped


def ledger(follower: Follower) -> Ledger:
    found = Ledger.load(open_storage(str(follower.place)).sub(".binlake/shop"), "shop")
    assert found is not None
    return found


def test_the_former_name_or_the_sessions_database_may_be_told() -> None:
    """The connector's own history of schemas names the former table; other writers name the session's database."""
    record = {
        "source": {"server": "s"},
        "position": {"file": "mariadb-bin.000003", "pos": 100, "ts_sec": 1},
        "databaseName": "db2",
        "ddl": "RENAME TABLE t TO db2.old",
        "tableChanges": [{"type": "ALTER", "id": '"db2"."old"', "previousId": '"db1"."t"', "table": {"columns": []}}],
    }
    done = executed(json.dumps(record).encode())
    assert done is not None
    assert done.previous == name("db1.t")
    known, rules, order = [name("db1.t"), name("db2.t")], SchemaChangeSettings(), 1 << 32 | 100
    for database, previous in (("db2", done.previous), ("db1", None)):
        log = DdlLog()
        log.add(DdlEvent(order, 1, "1:100", done.text, database, previous=previous))
        history = log.history(lambda _: rules, known)
        assert (history.identity(name("db2.old"), order).identity, history.unsure) == (name("db1.t"), {})
    log = DdlLog()
    log.add(DdlEvent(order, 1, "1:100", done.text, "db2"))
    assert log.history(lambda _: rules, known).unsure.keys() == {*known, name("db2.old")}


@pytest.mark.first(1)
@pytest.mark.parametrize("live", [True, False], ids=["live", "backlog"])
@pytest.mark.parametrize("seed", range(3))
def test_random_moves_over_three_databases(tmp_path: Path, seed: int, live: bool) -> None:
    """Live, statements and rows come in portions; of a backlog all statements are known before the first row."""
    moved(tmp_path, seed, live=live, steps=20)


def moved(place: Path, seed: int, *, live: bool, steps: int) -> bool:
    """Play random statements, and compare the lake and what it says of names with the model. Returns whether the log
    left a statement open."""
    chance, source = random.Random(seed), Moves()
    for table in ("db1.t", "db1.u", "db2.t", "db2.w", "db3.u"):
        source.create(name(table), chance.choice("vxy"), snapshot=True)
        source.put(name(table), 0, source.pos)
    follower = followed(source, place)
    if live:
        follower.run()
    for _ in range(steps):
        step(chance, source)
        if live and chance.random() < 0.3:
            follower.run(fails=True)
            compare(source, follower)
            if chance.random() < 0.2:
                follower.restart()
    follower.run(fails=True)
    compare(source, follower)
    follower.restart()
    follower.run(fails=True)
    compare(source, follower)
    return bool(source.open)


def compare(source: Moves, follower: Follower) -> None:
    """Tables that have not stopped are whole, under their names of today and no other; none stops without a statement
    that the log leaves open, and none holds what is another's."""
    settings, told = follower.settings(), "\n".join(source.statements)
    feeds, stands = Feeds.load(settings), ledger(follower)
    assert source.open or not stands.stopped, told
    for table, held in source.tables.items():
        fed = feeds.lake_table(table)
        if fed is None or fed in stands.stopped:
            assert source.open, (table, told)
        elif held.rows:
            assert rows(follower, table, held.column) == held.rows, (table, told)
            assert [one.now for one in feeds.of(fed)] == [table], (table, told)
    if not source.open:
        named = {one.now for lake in stands.tables for one in feeds.of(lake)} - {None}
        assert named <= source.tables.keys(), told
    for found in catalog_tables(settings, open_storage(str(follower.place))):
        assert isinstance(found, CatalogTable)
        stored = TableReader.open(found.storage).read().read_all()
        values = {one for column in "vxy" if column in stored.column_names for one in stored.column(column).to_pylist()}
        assert any(values - {None} <= held.values for held in source.ever), (found.rules.path, told)
    assert follower.quarantined() == [], told
