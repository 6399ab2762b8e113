"""Routes, columns and masks through whole batches, judged by hudi-rs and by the bytes that lie in the lake."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import recover
from binlake.tables.audit import OFFSET_KEYS, audit
from binlake.tables.lake import Lake
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import HOUR, replay, write
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services
from tests.judges import hudi_rs

SHARDS = {"match": r"shop\.orders_(\d\d)", "to": "shop.orders", "shard": {"column": "shard", "value": "{1}"}}
ORDERS = SourceTable("shop", "orders")


class World:
    """A stream without Spark and Kafka over topics ``s.shop.<table>``."""

    def __init__(self, path: Path, names: list[str], **sections: Any) -> None:  # noqa: ANN401
        path.mkdir(exist_ok=True)
        self.path, self.conf, self.names = path, path / "conf.yaml", names
        self.log, self.position, self.batches = TopicLog(), 0, 0
        self.engine = LocalEngine(self.log)
        self.document = {
            "name": "shop",
            "lake": {"uri": str(path / "lake"), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [f"s.shop.{t}" for t in names]},
            "source": {"schemas": {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in names}},
            "tables": {"defaults": {"buckets": 2}},
        }
        self.start(**sections)

    def start(self, **sections: Any) -> None:  # noqa: ANN401
        """A new process, with other settings."""
        for name, section in sections.items():
            self.document[name] = {**self.document.get(name, {}), **section}  # type: ignore[dict-item]
        self.conf.write_text(json.dumps(self.document))
        self.settings = Settings.load(self.conf)
        root = open_storage(str(self.path / "lake"), {"fsync": "false"})
        state = root.sub(".binlake/shop")
        lake = Lake(root)
        ledger = Ledger.load(state, "shop") or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        self.runner = BatchRunner(self.settings, lake, state, ledger, SchemaRegistry(self.settings), services())

    def put(self, table: str, op: str, key: int, before: str = "", at: int = 0, **values: Any) -> None:  # noqa: ANN401
        """One event; ``before``: the owner in the before image of an update; ``at``: its place in the binlog."""
        self.position += 10
        row = {"id": key, "owner": "o", "balance": "AfQ=", "region": "eu", **values}
        old = {**row, "owner": before} if op == "u" else None
        self.log.add(f"s.shop.{table}", event(table, op, at or self.position, row, old), {"id": key})

    def truncate(self, table: str) -> None:
        self.position += 10
        made = event(table, "t", self.position, {}) | {"before": None, "after": None}
        self.log.add(f"s.shop.{table}", made, None)

    def batch(self) -> ProgressEvent:
        self.batches += 1
        return self.runner.run(self.batches, self.log.end(), 0, self.engine)

    def feed(self) -> None:
        assert [t.error for t in self.batch().tables if t.error] == []

    def rows(self, *columns: str, path: str = "shop/orders") -> set[tuple[Any, ...]]:
        """The table through hudi-rs, when fsck and audit find nothing wrong with it."""
        storage = open_storage(str(self.path / "lake" / path))
        findings = [*fsck(storage, grace_ms=0).findings, *audit(storage).findings]
        assert [f.what for f in findings if f.severity == "error"] == []
        found = hudi_rs.snapshot(str(self.path / "lake" / path)).select(list(columns)).to_pylist()
        assert len(found) == len({tuple(r.values()) for r in found})
        return {tuple(r.values()) for r in found}

    def quarantined(self) -> list[tuple[str, str]]:
        """(table, reason) of what waits."""
        listed = CliRunner().invoke(app, ["quarantine", "list", str(self.conf), "--json"])
        assert listed.exit_code == 0, listed.output
        return [(r["table"], r["reason"]) for r in map(json.loads, listed.stdout.splitlines())]


def test_shards_become_one_table(tmp_path: Path) -> None:
    here = World(tmp_path, ["orders_00", "orders_01"], tables={"routes": [SHARDS]})
    for table in ("orders_00", "orders_01"):
        for key in (1, 2):
            here.put(table, "c", key, owner=f"{table}-{key}")
    here.feed()
    everything = {("00", 1), ("00", 2), ("01", 1), ("01", 2)}
    assert here.rows("shard", "id") == everything
    here.put("orders_01", "d", 1, owner="orders_01-1")
    here.put("orders_00", "u", 1, owner="new")
    here.feed()
    assert here.rows("shard", "id", "owner") == {
        ("00", 1, "new"),
        ("00", 2, "orders_00-2"),
        ("01", 2, "orders_01-2"),
    }
    here.start()  # nothing is delivered twice, and nothing is missing, whatever the ledger says
    assert [t.events_read for t in here.batch().tables] == []
    (tmp_path / "lake/.binlake/shop/ledger.json").unlink()
    here.start()
    here.put("orders_00", "c", 3)
    here.feed()
    assert {(s, k) for s, k in here.rows("shard", "id")} == everything - {("01", 1)} | {("00", 3)}


@pytest.mark.parametrize("apart", [True, False], ids=["batch of its own", "in one batch"])
def test_a_truncate_of_a_shard_takes_its_rows_only(tmp_path: Path, apart: bool) -> None:
    here = World(tmp_path, ["orders_00", "orders_01"], tables={"routes": [SHARDS]})
    for table in ("orders_00", "orders_01"):
        for key in range(5):
            here.put(table, "c", key)
    if apart:
        here.feed()
    late = here.position - 5
    here.truncate("orders_01")
    here.put("orders_01", "c", 9)
    here.feed()
    expected = {("00", k) for k in range(5)} | {("01", 9)}
    assert here.rows("shard", "id") == expected
    here.start()
    here.put("orders_01", "c", 4, at=late)  # older than the TRUNCATE: it stays gone
    here.put("orders_00", "c", 7, at=late)  # of another shard: it is no news to that one
    here.feed()
    assert here.rows("shard", "id") == expected | {("00", 7)}


def test_a_truncate_of_a_partitioned_table_in_a_batch_of_its_own(tmp_path: Path) -> None:
    here = World(
        tmp_path, ["orders"], tables={"overrides": [{"match": "shop.orders", "partition": {"column": "region"}}]}
    )
    here.put("orders", "c", 1)
    here.feed()
    here.truncate("orders")
    here.feed()
    assert here.rows("id") == set()


def test_a_truncate_that_comes_again_is_no_news(tmp_path: Path) -> None:
    """After a lost ledger the stream starts at the newest commit's start; what was applied is not counted again."""
    here = World(tmp_path, ["orders"])
    here.put("orders", "c", 1)
    here.feed()
    here.truncate("orders")
    here.feed()
    (tmp_path / "lake/.binlake/shop/ledger.json").unlink()
    here.put("orders", "c", 2)
    here.start()
    assert [(t.applied, t.already_applied) for t in here.batch().tables] == [(1, 1)]
    assert here.rows("id") == {(2,)}
    findings = fsck(open_storage(str(tmp_path / "lake/shop/orders"), {}), OFFSET_KEYS, grace_ms=0).findings
    assert [one for one in findings if one.severity is Severity.ERROR] == []


def test_one_table_under_another_name_and_one_left_out(tmp_path: Path) -> None:
    routes = [
        {"match": r"shop\.legacy_(?P<name>.+)", "to": "crm.{name}"},
        {"match": r"shop\.tmp_.*", "to": None},
    ]
    here = World(tmp_path, ["legacy_orders", "tmp_x", "plain"], tables={"routes": routes})
    for table in here.names:
        here.put(table, "c", 1)
    event = here.batch()
    assert {t.table: (t.applied, t.filtered) for t in event.tables} == {
        "crm.orders": (1, 0),
        "shop.plain": (1, 0),
        "shop.tmp_x": (0, 1),
    }
    assert here.rows("id", path="crm/orders") == {(1,)}
    here.truncate("legacy_orders")
    here.feed()
    assert here.rows("id", path="crm/orders") == set()
    assert not (tmp_path / "lake/shop/tmp_x").exists()


def test_sources_that_nothing_tells_apart_are_not_merged(tmp_path: Path) -> None:
    routes = [{**SHARDS, "shard": None}]
    here = World(tmp_path, ["orders_00", "orders_01"], tables={"routes": routes})
    here.put("orders_00", "c", 1, owner="first")
    here.feed()
    here.put("orders_01", "c", 1, owner="second")
    told = here.batch().tables[0].error or ""
    assert "shop.orders_00 and shop.orders_01 go to one lake table" in told
    assert here.rows("id", "owner") == {(1, "first")}
    while here.runner.ledger.behind:
        here.runner.catch_up(ORDERS, here.engine)
    assert here.quarantined() == [("shop.orders", "table_refused")]
    here.start(tables={"routes": [SHARDS]})  # corrected: but the table has another key by now
    assert here.rows("id", "owner") == {(1, "first")}


def test_a_table_that_is_behind_is_caught_up_with_all_its_shards(tmp_path: Path) -> None:
    here = World(tmp_path, ["orders_00", "orders_01", "other"], tables={"routes": [SHARDS]})
    here.put("orders_00", "c", 1)
    here.feed()
    timeline = tmp_path / "lake/shop/orders/.hoodie/timeline"
    moved = timeline.rename(timeline.with_name("away"))
    timeline.write_text("no directory")
    here.put("orders_00", "c", 2)
    here.put("orders_01", "c", 2)
    here.put("other", "c", 1)
    assert {t.table: t.error is not None for t in here.batch().tables} == {"shop.orders": True, "shop.other": False}
    timeline.unlink()
    moved.rename(timeline)
    here.put("orders_01", "c", 3)
    here.batch()
    while here.runner.ledger.behind:
        assert here.runner.catch_up(ORDERS, here.engine) is not None
    assert here.rows("shard", "id") == {("00", 1), ("00", 2), ("01", 2), ("01", 3)}


MASKED = {"mask": {"owner": {"how": "hash", "salt": "pepper-and-salt"}, "region": {"how": "redact"}}}


def _files_with(path: Path, text: bytes) -> list[str]:
    return [str(f) for f in path.rglob("*") if f.is_file() and text in f.read_bytes()]


def test_what_is_masked_lies_nowhere(tmp_path: Path) -> None:
    masked = {"defaults": {"buckets": 2, "compression": "none", "columns": MASKED}}
    here = World(tmp_path, ["orders"], tables=masked, quarantine={"seal": "kept-elsewhere"})
    for key in range(3):
        here.put("orders", "c", key, owner="hidden-name", region="hidden-place")
    here.put("orders", "c", 7, owner="hidden-name", balance="hidden-value")
    here.log.add("s.shop.orders", b'{"op": "c", "after": {"owner": "hidden-name"', None)
    here.feed()
    assert len({owner for _, owner in here.rows("id", "owner")}) == 1
    for secret in (b"hidden-name", b"hidden-place", b"hidden-value", b"pepper-and-salt", b"kept-elsewhere"):
        assert _files_with(tmp_path / "lake", secret) == []
    assert here.quarantined() == [("shop.orders", "bad_value"), ("-", "malformed_json")]
    shown = CliRunner().invoke(app, ["quarantine", "show", str(here.conf), "s.shop.orders/0:3"])
    assert "hidden-value" in shown.output  # with the secret nothing is lost
    here.start(quarantine={"seal": "another"})
    refused = CliRunner().invoke(app, ["quarantine", "list", str(here.conf)])
    assert "another secret" in str(refused.exception)


def test_the_search_finds_what_is_not_masked(tmp_path: Path) -> None:
    """The control of the test above."""
    here = World(tmp_path, ["orders"], tables={"defaults": {"buckets": 2, "compression": "none"}})
    here.put("orders", "c", 1, owner="hidden-name", region="hidden-place")
    here.put("orders", "c", 7, balance="hidden-value")
    here.feed()
    for secret in (b"hidden-name", b"hidden-place"):
        assert _files_with(tmp_path / "lake/shop", secret)
    assert _files_with(tmp_path / "lake/_quarantine", b"hidden-value") or here.quarantined()


def test_rows_move_with_a_computed_partition(tmp_path: Path) -> None:
    rules = {
        "buckets": 2,
        "columns": {"computed": {"initial": "left(owner, 1)"}, "exclude": ["owner"]},
        "partition": {"column": "initial"},
    }
    here = World(tmp_path, ["orders"], tables={"defaults": rules})
    for key, owner in enumerate(["ann", "bob", "cleo"]):
        here.put("orders", "c", key, owner=owner)
    here.feed()
    here.put("orders", "u", 0, before="ann", owner="dora")
    here.put("orders", "d", 1, owner="bob")
    here.feed()
    assert here.rows("id", "initial", "_hoodie_partition_path") == {
        (0, "d", "initial=d"),
        (2, "c", "initial=c"),
    }


def test_rows_that_cannot_be_computed_come_back_when_they_can(tmp_path: Path) -> None:
    here = World(
        tmp_path, ["orders"], tables={"defaults": {"buckets": 2, "columns": {"computed": {"n": "owner::int"}}}}
    )
    for key, owner in enumerate(["1", "two", "3"]):
        here.put("orders", "c", key, owner=owner)
    here.feed()
    assert here.rows("id", "n") == {(0, 1), (2, 3)}
    assert here.quarantined() == [("shop.orders", "bad_computed")]
    here.start(tables={"defaults": {"buckets": 2, "columns": {"computed": {"n": "try_cast(owner as int)"}}}})
    assert CliRunner().invoke(app, ["quarantine", "replay", str(here.conf)]).exit_code == 0
    assert here.rows("id", "n") == {(0, 1), (1, None), (2, 3)}
    assert here.quarantined() == []


def test_shards_are_replayed_from_the_quarantine(tmp_path: Path) -> None:
    here = World(tmp_path, ["orders_00", "orders_01"], tables={"routes": [SHARDS], "include": ["shop.orders_*"]})
    here.put("orders_00", "c", 1)
    here.put("orders_00", "c", 2)
    here.put("orders_01", "c", 1, extra=7)
    here.feed()
    here.truncate("orders_00")
    here.feed()
    assert here.quarantined() == [("shop.orders", "unknown_column")]
    wider = {"columns": {**COLUMNS, "extra": "int"}, "key": ["id"]}
    here.start(source={"schemas": {"shop.orders_00": wider, "shop.orders_01": wider}})
    replayed = CliRunner().invoke(app, ["quarantine", "replay", str(here.conf)])
    assert here.quarantined() == [], replayed.output
    assert here.rows("shard", "id", "extra") == {("01", 1, 7)}


def test_a_dump_of_shards_gives_the_same_table(tmp_path: Path) -> None:
    routes = {"routes": [SHARDS], "include": ["shop.orders_*"]}
    here = World(tmp_path / "streamed", ["orders_00", "orders_01"], tables=routes)
    for table in here.names:
        for key in range(4):
            here.put(table, "c", key, owner=f"{table}-{key}")
    here.truncate("orders_01")
    here.put("orders_01", "c", 7)
    here.put("orders_00", "d", 2)
    here.feed()
    dump = {"uri": str(tmp_path / "dumps"), "path": "{database}.{table}/dt={date}/hour={hour}/*"}
    there = World(tmp_path / "replayed", here.names, tables=routes, dump=dump)
    for (topic, _), held in here.log.records.items():
        values = [value for _, value in held]
        for hour, events in ((HOUR, values[3:]), (HOUR + 1, values[:3])):  # the newer ones in the earlier hour
            lines = b"".join(value + b"\n" for value in events if value is not None)
            write(tmp_path / "dumps", topic.rsplit(".", 1)[1], hour, "a.jsonl", lines)
    assert len(replay(there.settings).taken) == 4
    assert there.rows("shard", "id", "owner") == here.rows("shard", "id", "owner")
    assert replay(there.settings).taken == []


def test_a_replayed_commit_without_rows_keeps_the_name_at_the_source(tmp_path: Path) -> None:
    """The second hour leaves no row; the table still knows whose rows it holds when the third one comes."""
    routes = [{"match": r"shop\.legacy_(?P<name>.+)", "to": "crm.{name}"}]
    dump = {"uri": str(tmp_path / "dumps"), "path": "{database}.{table}/dt={date}/hour={hour}/*"}
    here = World(tmp_path, ["legacy_orders"], tables={"routes": routes}, dump=dump)
    row = {"owner": "o", "balance": "AfQ=", "region": "eu"}
    gone = event("legacy_orders", "t", 150, {}) | {"before": None, "after": None}
    hours = [
        [event("legacy_orders", "c", 100, {"id": 1, **row}), gone],
        [event("legacy_orders", "c", 120, {"id": 2, **row})],
        [event("legacy_orders", "c", 200, {"id": 3, **row})],
    ]
    for hour, events in enumerate(hours, HOUR):
        lines = b"".join(json.dumps(one).encode() + b"\n" for one in events)
        write(tmp_path / "dumps", "legacy_orders", hour, "a.jsonl", lines)
        assert len(replay(here.settings, Window(hour, hour + 1)).taken) == 1
    assert here.rows("id", path="crm/orders") == {(3,)}
    assert replay(here.settings).taken == []
