"""Settings that name what is not there: a table of which every record is refused waits, and names that match nothing
are told."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.tables.between_batches import complain_of_tables
from binlake.tables.lake import Lake
from hudilake.errors import TableStoppedError
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services
from tests.judges import hudi_rs

A = SourceTable("shop", "a")


def set_tables(lake: FedLake, **tables: object) -> None:
    """Change the section ``tables`` of the settings file."""
    document = json.loads(lake.conf.read_text())
    document["tables"] |= tables
    lake.conf.write_text(json.dumps(document))
    lake.settings = Settings.load(lake.conf)


@pytest.mark.parametrize("known", [False, True], ids=["a new table", "a table that has rows"])
def test_a_table_whose_every_record_is_refused_waits_and_is_told(tmp_path: Path, known: bool) -> None:
    lake = FedLake(tmp_path)
    if known:
        lake.feed(2)
    set_tables(lake, overrides=[{"match": "shop.a", "key": ["nope"]}])
    lake.start()
    told = {t.table: t.error for t in lake.batch().tables}
    assert told["shop.b"] is None
    assert "'nope' is named by the key" in (told["shop.a"] or "")
    with pytest.raises(TableStoppedError, match=r"shop\.a.*nope"):
        complain_of_tables(lake.runner.ledger)
    assert not (lake.path / "_quarantine").exists()
    said = lake.run("status", "--no-kafka")
    assert "stopped: shop.a" in said.output
    assert "nope" in said.output
    lake.batch()
    lake.check(name="b")
    set_tables(lake, overrides=[])
    lake.go_on()
    for name in "ab":
        lake.check(name=name)
    assert lake.runner.ledger.behind == {}


def with_schema(row: dict[str, object], pos: int) -> dict[str, object]:
    """An event of ``shop.a`` that brings its own schema."""
    balance = {"name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}}
    kinds: dict[str, dict[str, object]] = {"id": {"type": "int64"}, "balance": {"type": "bytes", **balance}}
    fields = [{"field": name, "optional": True, **kinds.get(name, {"type": "string"})} for name in row]
    images = [{"field": image, "type": "struct", "optional": True, "fields": fields} for image in ("before", "after")]
    return {"schema": {"type": "struct", "fields": images}, "payload": event("a", "c", pos, row)}


GOOD: dict[str, object] = {"id": 1, "owner": "ann", "balance": "AfQ=", "region": "eu"}
#: Rows that no lake table of these rules takes, by their columns alone.
REFUSED: dict[str, dict[str, object]] = {
    "the key is missing": {name: value for name, value in GOOD.items() if name != "id"},
    "a name that Hudi keeps for itself": GOOD | {"_hoodie_more": "x"},
    "two names that readers take for one": GOOD | {"OWNER": "x"},
}


@pytest.mark.parametrize("row", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("restarted", [False, True], ids=["the same process", "a new process"])
def test_a_refused_record_does_not_stop_a_table_that_has_taken_others(
    tmp_path: Path, row: dict[str, object], restarted: bool
) -> None:
    """However the records are cut into batches, the refused one alone goes to quarantine."""
    lake = FedLake(tmp_path)
    document = json.loads(lake.conf.read_text())
    document["source"].pop("schemas")
    lake.conf.write_text(json.dumps(document))
    set_tables(lake, overrides=[{"match": "shop.a", "key": ["id"]}])
    lake.start()

    def further(one: dict[str, object]) -> None:
        lake.log.add("s.shop.a", with_schema(one, 100 * lake.batches), {"id": 1})
        told = lake.runner.run(lake.batches, lake.log.end(), 0, lake.engine)
        lake.batches += 1
        assert [t.error for t in told.tables if t.error] == []

    further(GOOD)
    if restarted:
        lake.start()
    further(row)
    further(GOOD | {"owner": "eve"})
    assert lake.runner.ledger.stopped == {}
    assert lake.json("quarantine list")[0]["waiting"] == 1
    assert [r["owner"] for r in hudi_rs.snapshot(f"{lake.path}/shop/a").to_pylist()] == ["eve"]


def test_a_refused_table_that_is_left_out_waits_no_longer(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    set_tables(lake, overrides=[{"match": "shop.a", "key": ["nope"]}])
    lake.start()
    lake.batch()
    assert list(lake.runner.ledger.stopped) == [A]
    set_tables(lake, exclude=["shop.a"])
    lake.go_on()
    assert lake.runner.ledger.behind == {}
    assert lake.runner.ledger.stopped == {}


#: Settings in which every name is right, and the path to each name.
RIGHT: dict[str, object] = {
    "include": ["shop.*"],
    "exclude": ["shop.c"],
    "routes": [{"match": "shop\\.a", "to": "crm.a"}],
    "stitched": [
        {
            "table": "crm.wide",
            "key": ["id"],
            "sources": [
                {"name": "first", "match": "shop.d", "columns": {"who": "owner"}, "key": ["id"]},
                {"name": "second", "match": "shop.e", "columns": {"place": "region"}},
            ],
        }
    ],
    "defaults": {
        "buckets": 1,
        "metadata": {"columns": ["id"]},
        "compaction": {"order_by": {"columns": ["region"]}},
    },
    "overrides": [
        {
            "match": "crm.a",
            "key": ["id"],
            "partition": {"column": "region"},
            "columns": {
                "include": ["id", "owner", "region", "label"],
                "exclude": ["balance"],
                "mask": {"owner": {"how": "redact"}},
                "computed": {"label": "owner || region"},
            },
        },
        {"match": "shop.b", "merge": {"engine": "aggregate", "columns": {"balance": "sum"}}},
        {"match": "shop.f", "index": {"type": "simple"}, "clustering": {"order_by": {"columns": ["balance"]}}},
    ],
}
#: Names that are no free choice of the settings: what a new column, group or table is called.
OWN = {("to",), ("table",), ("name",), ("computed", "label"), ("columns", "who"), ("columns", "place"), ("engine",)}


def names_in(tree: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """The paths to the names of tables and columns; of a mapping by column, to its key."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            if path[-1:] in (("mask",),) or path[-2:] == ("merge", "columns"):
                yield (*path, key)
            elif (key,) not in OWN and key not in ("how", "buckets", "type"):
                yield from names_in(value, (*path, key))
    elif isinstance(tree, list):
        for at, value in enumerate(tree):
            yield from names_in(value, (*path, at))
    elif isinstance(tree, str):
        yield path


def misspelt(path: tuple[object, ...]) -> tuple[dict[str, Any], str]:
    """The settings with one name misspelt, and the wrong name."""
    tree: Any = copy.deepcopy(RIGHT)
    node = tree
    for part in path[:-1]:
        node = node[part]
    last: Any = path[-1]
    if path[-2] == "mask" or path[-3:-1] == ("merge", "columns"):
        node["wrong_name"] = node.pop(last)
        return tree, "wrong_name"
    node[last] = node[last].replace("owner", "wrong_name") if "||" in node[last] else "wrong_name"
    return tree, "wrong_name"


class Feed:
    """A stream of tables ``a`` to ``f`` of ``shop`` with these rules, and its first batch."""

    def __init__(self, place: Path, tables: dict[str, Any]) -> None:
        names = "abcdef"
        document = {
            "name": "shop",
            "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in names]},
            "source": {"schemas": {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in names}},
            "quarantine": {"seal": "kept apart"},
            "tables": tables,
        }
        self.conf = place / "conf.yaml"
        self.conf.write_text(json.dumps(document))
        settings = Settings.load(self.conf)
        root, log = open_storage(str(place / "lake"), {"fsync": "false"}), TopicLog()
        for at, table in enumerate(names):
            row = {"id": 1, "owner": "ann", "balance": "AfQ=", "region": "eu"}
            log.add(f"s.shop.{table}", event(table, "c", 100 + at, row), {"id": 1})
        self.runner = BatchRunner(
            settings, Lake(root), root.sub(".binlake/shop"), Ledger("shop"), SchemaRegistry(settings), services()
        )
        self.told = self.runner.run(0, log.end(), 0, LocalEngine(log))

    def said(self) -> str:
        """What the first batch says."""
        return "\n".join([*self.told.notices, *(t.error or "" for t in self.told.tables)])

    def status(self) -> str:
        return CliRunner().invoke(app, ["status", str(self.conf), "--no-kafka"]).output


def test_right_names_are_not_complained_of(tmp_path: Path) -> None:
    feed = Feed(tmp_path, copy.deepcopy(RIGHT))
    assert [t.error for t in feed.told.tables if t.error] == []
    assert feed.told.notices == ()
    assert "matches nothing" not in feed.status()


@pytest.mark.first(4)
@pytest.mark.parametrize("path", list(names_in(RIGHT)), ids=lambda path: ".".join(map(str, path)))
def test_each_misspelt_name_is_told(tmp_path: Path, path: tuple[object, ...]) -> None:
    tables, wrong = misspelt(path)
    feed = Feed(tmp_path, tables)
    assert wrong in feed.said() or wrong in feed.status()
