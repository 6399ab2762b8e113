"""Completion: what may stand at a place of an SQL text, by the lake and by what DuckDB knows."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
import sqlglot
from starlette.testclient import TestClient

from binlake.cli.console.completion import MOST, TABLES, KnownTables, completion, identifier
from binlake.cli.console.completion_route import Completer
from binlake.cli.console.page import Site
from binlake.cli.console.site import application
from binlake.cli.console.watch import StreamWatch
from binlake.settings import Settings
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from tests.binlake.cli.console.watched_lake import HOST, Watched
from tests.binlake.cli.fed_lake import FedLake

SCHEMAS = {
    "shop.orders": pa.schema([("_hoodie_commit_time", pa.string()), ("id", pa.int64()), ("order", pa.string())]),
    "shop.customers": pa.schema([("id", pa.int64()), ("name", pa.string()), ("Größe", pa.float64())]),
    'we ird.ta"ble': pa.schema([("x y", pa.int32())]),
}
KNOWN = KnownTables(sorted(SCHEMAS), SCHEMAS.get)


@pytest.mark.parametrize(
    ("text", "word", "first"),
    [
        ("sel|", "sel", ["select"]),
        ("SEL|", "SEL", ["SELECT"]),
        ("select * from |", "", ["shop.customers", "shop.orders", '"we ird"."ta""ble"']),
        ("select * from SHOP.|", "", ["customers", "orders"]),
        ("select * from shop.or|", "or", ["orders"]),
        ("select * from ord|", "ord", ["shop.orders"]),
        ("select * from shop.orders, cus|", "cus", ["shop.customers"]),
        ("select | from shop.orders", "", ["id", '"order"', "_hoodie_commit_time", "orders"]),
        ("select * from shop.orders o where o.|", "", ["id", '"order"', "_hoodie_commit_time"]),
        ("select * from shop.orders where id in (1, i|", "i", ["id", "ignore"]),
        ("select c.n| from shop.orders o join shop.customers as c on true", "n", ["name"]),
        ("select gr| from shop.customers", "gr", ['"Größe"', "group"]),
        ('select * from "we i|', '"we i', ['"we ird"."ta""ble"']),
        ('select * from "we ird".|', "", ['"ta""ble"']),
        ('select * from "we ird"."ta""ble" where x|', "x", ['"x y"']),
        ("with w as (select 1) select * from |", "", ["w", "shop.customers"]),
        ("select * from (select * from shop.customers) where na|", "na", ["name"]),
        ("select date_tr|", "date_tr", ["date_trunc("]),
        ("select row_number() ov|", "ov", ["over"]),
        ("select /* from */ 'a''' , cou|", "cou", ["count("]),
    ],
)
def test_what_may_stand_there(text: str, word: str, first: list[str]) -> None:
    before, _, after = text.partition("|")
    done = completion(before, after, KNOWN)
    assert done.word == word
    assert [one.text for one in done.proposals][: len(first)] == first


@pytest.mark.parametrize(
    "text", ["select 'sel", "-- sel", "select 'a''", "/* sel", "select 12", 'select "id"', "count(*)", "select 'a'"]
)
def test_nothing_stands_within_strings_comments_and_after_closed_words(text: str) -> None:
    assert completion(text, "", KNOWN).proposals == ()


def test_columns_have_their_types_and_those_of_several_tables_say_so() -> None:
    done = completion("select i", " from shop.orders, shop.customers", KNOWN)
    columns = [(one.text, one.detail) for one in done.proposals if one.kind == "column"]
    assert columns[:2] == [
        ("id", "int64 of shop.orders (in several tables)"),
        ("id", "int64 of shop.customers (in several tables)"),
    ]


def test_each_keyword_and_strange_name_is_a_name_as_it_is_written() -> None:
    with duckdb.connect() as engine:
        words = [name for (name,) in engine.execute("select keyword_name from duckdb_keywords()").fetchall()]
        assert len(words) > 400
        for name in [*words, "a b", 'a"b', "1a", "é", "", "Select", "a.b", "a'b", "--", "\n"]:
            written = identifier(name)
            assert sqlglot.parse_one(f"select {written} from t", read="duckdb").expressions[0].name == name
            if name:
                quoted = '"' + name.replace('"', '""') + '"'
                rows = engine.execute(f"select {written} from (select 1 as {quoted}) t where t.{written} = 1")
                assert rows.fetchall() == [(1,)]
        assert identifier("total") == "total"


def test_a_lake_of_a_thousand_tables_is_read_for_those_that_a_query_names() -> None:
    asked: list[str] = []

    def schema_of(name: str) -> pa.Schema:
        asked.append(name)
        return pa.schema([(f"c{n}", pa.int64()) for n in range(500)])

    known = KnownTables([f"db.t{n:04}" for n in range(1000)], schema_of)
    done = completion("select * from db.t00", "", known)
    assert ([one.text for one in done.proposals][:2], asked) == (["t0000", "t0001"], [])
    assert len(done.proposals) == MOST
    tables = ", ".join(f"db.t{n:04}" for n in range(20))
    assert len(completion("select c1", f" from {tables}", known).proposals) == MOST
    assert len(asked) == TABLES


def test_the_answers_are_of_the_lake_that_was_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    lakes = [FedLake(tmp_path / name) for name in ("one", "two")]
    lakes[0].feed(1)
    lakes[1].feed(1, ("b",))
    lakes[1].conf.write_text(lakes[1].conf.read_text().replace('"name": "shop"', '"name": "stock"'))
    watches = {}
    for lake in lakes:
        watch = StreamWatch(Settings.load(lake.conf), str(lake.conf), ask_kafka=False)
        watch.look_whole()
        watches[watch.settings.name] = watch
    client = TestClient(application(Site(watches), [HOST]), base_url=f"http://{HOST}")

    def texts(**asked: str) -> list[str]:
        return [one["text"] for one in client.get("/complete", params=asked).json()["proposals"]]

    assert texts(stream="shop", before="select * from shop.") == ["a", "b"]
    assert texts(stream="stock", before="select * from shop.") == ["b"]
    assert texts(stream="shop", table="shop.a", before="own")[0] == "owner"
    assert client.get("/complete", params={"stream": "none"}).status_code == 404
    # a table is read once, and again when it has changed
    seen, opened = Watched.of(lakes[0].conf), list[str]()
    completer, real = Completer(Site({"shop": seen.watch})), HudiTable.open

    def counted_open(storage: Storage) -> HudiTable:
        opened.append(storage.uri)
        return real(storage)

    monkeypatch.setattr(HudiTable, "open", counted_open)
    for _ in range(3):
        assert completer.of({"stream": "shop", "before": "select own", "after": " from shop.a"}).proposals
    assert len(opened) == 1
    lakes[0].feed(1)
    opened.clear()
    seen.look()
    opened.clear()
    assert completer.of({"stream": "shop", "before": "select own", "after": " from shop.a"}).proposals
    assert len(opened) == 1
