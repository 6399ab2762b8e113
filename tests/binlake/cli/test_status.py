"""``binlake status``: the stream's position and each table, as they are on storage."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from binlake.cli.commands.stream import status as status_command
from binlake.decode.changes import SourceTable
from binlake.position.lease import StreamLease
from binlake.position.ledger import Ledger
from binlake.stream.monitoring.status import TableStatus, no_ledger_words
from hudilake.clock import now_ms
from hudilake.locking.heartbeat import Heartbeats
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event
from tests.judges import hudi_rs

EVENT_MS = 1_760_000_000_000


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    made = FedLake(tmp_path, {"compaction": {"mode": "off"}})
    made.feed(3)
    return made


def stood(lake: FedLake, *options: str) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    stream, *tables = lake.json("status", "--no-kafka", *options)
    return stream, {table["table"]: table for table in tables}


def newest_base_bytes(lake: FedLake) -> int:
    """By file group, of the base files of ``shop.a``: ``<file id>_<token>_<instant>.parquet``."""
    newest: dict[str, tuple[str, int]] = {}
    for file in (lake.path / "shop/a").glob("*.parquet"):
        group, _, instant = file.stem.split("_")
        newest[group] = max(newest.get(group, ("", 0)), (instant, file.stat().st_size))
    return sum(size for _, size in newest.values())


def test_stream_and_tables(lake: FedLake) -> None:
    stream, tables = stood(lake)
    assert (stream["run"], stream["batches"], stream["lag"], stream["behind"]) == (None, 3, None, [])
    assert stream["positions"] == {t: {str(p): o for p, o in ps.items()} for t, ps in lake.log.end().items()}
    mine = tables["shop.a"]
    assert (mine["commit"], mine["commit_rows"], mine["pending"], mine["behind"]) == (lake.commits()[-1], 4, [], False)
    assert mine["log_bytes"] == sum(p.stat().st_size for p in (lake.path / "shop/a").glob(".*.log.*"))
    assert mine["base_bytes"] == newest_base_bytes(lake)
    assert 0 <= mine["age_ms"] < 600_000
    visible = now_ms() - mine["age_ms"]
    assert abs(mine["freshness_ms"] - (visible - EVENT_MS)) < 60_000
    assert (mine["lock"], mine["writers"]) == (None, [])
    text = lake.run("status", "--no-kafka", "--partitions").stdout
    assert "stream shop: not running" in text
    assert "lag unknown: not asked" in text
    assert f"s.shop.a/0: {lake.log.end()['s.shop.a'][0]}" in text
    assert lake.commits()[-1] in text


def test_quarantined_records_of_a_table_that_the_lake_does_not_have(lake: FedLake) -> None:
    lake.log.add(
        "s.shop.a", event("c", "u", 990, {"id": 1, "owner": "x", "balance": "AfQ=", "region": "eu"}), {"id": 1}
    )
    lake.feed()
    stream, tables = stood(lake)
    assert (stream["quarantined"], set(tables)) == ({"shop.c": 1}, {"shop.a", "shop.b"})
    says = f"quarantined: 1 of shop.c, which the lake does not have; binlake quarantine list {lake.conf} says why"
    assert says in lake.run("status", "--no-kafka").stdout
    assert "shop.c" not in lake.run("status", "shop.a", "--no-kafka").stdout


def test_base_files_and_a_pending_compaction(tmp_path: Path) -> None:
    made = FedLake(tmp_path)
    made.feed(3)
    made.run("compact", "shop.a")
    made.feed(3)
    made.run("compact", "shop.b", "--schedule-only")
    _, tables = stood(made)
    assert tables["shop.a"]["base_bytes"] == newest_base_bytes(made) > 0
    assert tables["shop.a"]["log_bytes"] > 0
    assert (len(tables["shop.a"]["pending"]), len(tables["shop.b"]["pending"])) == (0, 1)


def test_a_table_that_is_behind(lake: FedLake) -> None:
    state = open_storage(f"{lake.path}/.binlake/shop")
    ledger = Ledger.load(state, "shop")
    assert ledger is not None
    ledger.note_behind(SourceTable("shop", "b"), {"s.shop.b": {0: 1}})
    ledger.save(state)
    stream, tables = stood(lake)
    assert stream["behind"] == ["shop.b"]
    assert {name: t["behind"] for name, t in tables.items()} == {"shop.a": False, "shop.b": True}
    assert "behind: shop.b" in lake.run("status", "--no-kafka").stdout


def test_a_stream_that_runs_and_one_that_died(lake: FedLake) -> None:
    lease = StreamLease(open_storage(f"{lake.path}/.binlake/shop"), "shop")
    lease.take()
    run = stood(lake)[0]["run"]
    assert (run["pid"], run["alive"]) == (os.getpid(), True)
    assert f"running (process {os.getpid()} on " in lake.run("status", "--no-kafka").stdout
    file = lake.path / ".binlake/shop/run"
    said = file.read_bytes()
    lease.give_back()  # a run that lives would say so again, in the middle of the test
    file.write_bytes(said)
    old = time.time() - 120  # noqa: TID251 - the file's own clock
    os.utime(file, (old, old))
    assert "a run died" in lake.run("status", "--no-kafka").stdout
    assert not stood(lake)[0]["run"]["alive"]


@pytest.fixture
def held(lake: FedLake) -> Iterator[FedLake]:
    table = lake.runner._lake.opened("shop/a")
    assert table is not None
    with table.hudi.exclusively():
        yield lake


def test_who_holds_the_lock_and_who_is_at_work(held: FedLake) -> None:
    beats = Heartbeats(open_storage(f"{held.path}/shop/a"), "stream other", 600.0)
    beats.start("20991231000000000")
    mine = stood(held)[1]["shop.a"]
    assert (mine["lock"]["pid"], mine["lock"]["alive"]) == (os.getpid(), True)
    (writer,) = mine["writers"]
    assert (writer["owner"], writer["instant"], writer["alive"]) == ("stream other", "20991231000000000", True)
    assert stood(held)[1]["shop.b"]["lock"] is None
    beats.stop("20991231000000000")


def test_the_lock_of_an_object_store(lake: FedLake) -> None:
    file = lake.path / "shop/a/.hoodie/.locks/table_lock.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    said = {"expired": False, "validUntil": now_ms() + 60_000, "owner": "somebody"}
    file.write_text(json.dumps(said))
    assert stood(lake)[1]["shop.a"]["lock"]["owner"] == "somebody"
    file.write_text(json.dumps({**said, "expired": True}))
    assert stood(lake)[1]["shop.a"]["lock"] is None


def test_kafka_that_does_not_answer_hides_nothing(lake: FedLake) -> None:
    stream, *tables = lake.json("status", "--kafka-timeout-s", "0.1")
    assert stream["lag"] is None
    assert "Kafka does not tell offsets" in stream["kafka"]
    assert len(tables) == 2


def test_a_table_that_cannot_be_read_does_not_hide_the_others(lake: FedLake) -> None:
    (lake.path / "shop/a/.hoodie/hoodie.properties").write_text("broken")
    done = lake.run("status", "--no-kafka")
    assert done.exit_code != 0
    assert "shop.b" in done.stdout


def test_without_a_ledger(lake: FedLake, tmp_path: Path) -> None:
    (tmp_path / "new").mkdir()
    assert "it has finished no batch yet\n" in FedLake(tmp_path / "new").run("status", "--no-kafka").stdout
    for ledger in (lake.path / ".binlake/shop").glob("ledger*"):
        ledger.unlink()
    said = lake.run("status", "--no-kafka").stdout
    assert "it has no ledger, though its tables have batches: the next run takes its position from the tables" in said
    loaded = no_ledger_words([TableStatus("shop.a", state="ok")])
    assert loaded == "it has finished no batch yet: its tables are loaded, and the first run goes on from there"


def test_what_the_declared_format_does_not_carry_is_said_once_a_table(lake: FedLake) -> None:
    assert "TRUNCATE" not in lake.run("status", "--no-kafka").stdout
    document = json.loads(lake.conf.read_text())
    document["source"] = {**document.get("source", {}), "format": "maxwell"}
    lake.conf.write_text(json.dumps(document))
    text = " ".join(lake.run("status", "--no-kafka").stdout.split())
    for table in ("shop.a", "shop.b"):
        assert text.count(f"{table}: TRUNCATE, and without output_ddl any DDL, does not come") == 1


def test_rows_are_those_of_the_table_and_not_of_the_last_commit(lake: FedLake) -> None:
    mine = stood(lake)[1]["shop.a"]
    assert (mine["rows"], mine["commit_rows"]) == (hudi_rs.snapshot(lake.path / "shop/a").num_rows, 4)
    assert mine["rows"] != mine["commit_rows"]


def test_large_tables_with_log_files_are_counted_on_demand(lake: FedLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("binlake.cli.commands.stream.status.COUNT_BYTES", 0)
    assert stood(lake)[1]["shop.a"]["rows"] is None
    assert "not counted" in lake.run("status", "--no-kafka").stdout
    assert stood(lake, "--count")[1]["shop.a"]["rows"] == 3


def test_a_long_name_is_whole_in_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "a_department_with_a_long_name.and_its_table_of_orders"
    target = Console(file=io.StringIO(), width=80, color_system=None)
    monkeypatch.setattr(status_command, "terminal", lambda: target)
    status_command._print_tables([TableStatus(name, rows=1), TableStatus("a.b", rows=2, state="stopped")], "c.yaml")
    assert isinstance(target.file, io.StringIO)
    lines = target.file.getvalue()
    assert (name in lines, "..." in lines, "…" in lines) == (True, False, False)
