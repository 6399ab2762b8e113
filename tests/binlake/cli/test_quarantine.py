"""``binlake quarantine``: records that could not be applied are listed, shown, and replayed once, in their order."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from binlake.cli.commands.loads.quarantine import readable
from binlake.decode.changes import SourceTable
from binlake.load.replay import quarantine as replay_quarantine
from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection, held_records
from binlake.position.ledger import Ledger
from binlake.rows.upsert import keyless as upsert
from binlake.settings import Settings
from binlake.tables.quarantine import QuarantineTable
from binlake.tables.seal import Seal
from hudilake.services.fsck import OffsetKeys, fsck
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event, services
from tests.judges import hudi_rs

NOTHING = {"compaction": {"mode": "off"}, "retention": {"commits": 50}}
KEYS = OffsetKeys("binlake.stream", "binlake.offsets", "binlake.counts")


def strange(lake: FedLake, key: int, pos: int, op: str = "u") -> None:
    """A record of ``shop.a`` with a column that the settings do not know yet."""
    row = {"id": key, "owner": "strange", "balance": "AfQ=", "region": "eu", "colour": "red"}
    lake.log.add("s.shop.a", event("a", op, pos, row), {"id": key})


def know_the_column(lake: FedLake) -> None:
    """The settings learn the column; a stream that runs goes on with its old ones."""
    document = json.loads(lake.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "varchar(10)"
    lake.conf.write_text(json.dumps(document))


def rows(lake: FedLake, table: str = "a") -> dict[int, str]:
    return {r["id"]: r["owner"] for r in hudi_rs.snapshot(f"{lake.path}/shop/{table}").to_pylist()}


def quarantine_commits(lake: FedLake) -> int:
    return len(list((lake.path / "_quarantine/shop/.hoodie/timeline").glob("*_*.deltacommit")))


def offsets_are_sound(lake: FedLake, table: str = "a") -> None:
    findings = fsck(lake.table(table).storage, KEYS, grace_ms=0).findings
    assert [f.what for f in findings if f.severity == "error" or "no commit covers" in f.what] == []


@pytest.fixture
def lake(tmp_path: Path) -> FedLake:
    """Three batches; then a record older than key 1's row, one older than the delete of key 0, one of a key that is not
    there, and a poison message; then a batch that deletes key 0 and one more."""
    made = FedLake(tmp_path, NOTHING)
    made.feed(3)
    strange(made, 1, 7)
    strange(made, 0, 8)
    strange(made, 7777, 9)
    made.log.add("s.shop.a", b"{broken", None)
    made.feed(2)
    return made


WITHOUT_7777 = dict.fromkeys((0, 2, 3, 4), "o4")


def test_list_counts_by_reason_and_names_records(lake: FedLake) -> None:
    groups = lake.json("quarantine list")
    assert [(g["reason"], g["table"], g["waiting"]) for g in groups] == [
        ("unknown_column", "shop.a", 3),
        ("malformed_json", "-", 1),
    ]
    each = lake.json("quarantine list", "--records")
    broken = next(r for r in each if r["reason"] == "malformed_json")
    assert "unknown_column" in lake.run("quarantine list").stdout
    assert f"s.shop.a/0:{broken['offset']}: malformed_json, -, " in lake.run("quarantine list", "--records").stdout


@pytest.mark.first(3)
@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--reason", "unknown_column"), 3),
        (("--reason", "unknown_column", "--reason", "malformed_json"), 4),
        (("--table", "shop.a"), 3),
        (("--table", "-"), 1),
        (("--since", "2020-01-01"), 4),
        (("--until", "2020-01-01T00:00"), 0),
        (("s.shop.a/0:11",), 1),
    ],
)
def test_records_are_chosen_by_reason_table_time_and_name(lake: FedLake, options: tuple[str, ...], count: int) -> None:
    assert len(lake.json("quarantine list", "--records", *options)) == count


def test_what_names_no_record_is_refused(lake: FedLake) -> None:
    assert "this is not the name of a quarantined record" in str(lake.run("quarantine show", "11").exception)
    assert "this is not a time" in str(lake.run("quarantine list", "--since", "noon").exception)
    for since in ("2026-11-22", "2026-11-21"):
        told = lake.run("quarantine list", "--since", since, "--until", "2026-11-21")
        assert "the window is empty" in str(told.exception)


def test_show_prints_a_record_whole(lake: FedLake) -> None:
    strange_one = lake.json("quarantine list", "--records", "--reason", "unknown_column")[0]
    name = f"s.shop.a/0:{strange_one['offset']}"
    text = lake.run("quarantine show", name).stdout
    assert f"{name}  unknown_column  shop.a" in text
    assert '"colour": "red"' in text
    assert "columns the schema does not know: colour" in text
    told = lake.json("quarantine show", name)[0]
    assert json.loads(told["value"])["after"]["owner"] == "strange"
    assert "{broken" in lake.run("quarantine show", "--reason", "malformed_json").stdout


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        (None, "null"),
        (b'{"a":"\\u001b[2J"}', '{\n  "a": "\\u001b[2J"\n}'),
        (b"\x1b[2Jx\ny", "\\x1b[2Jx\ny"),
        (b"\xff\x00a", "\\xff\\x00a"),
        (b"", ""),
        (b"[" * 100_000, "[" * 100_000),
    ],
)
def test_payloads_are_readable_and_move_no_cursor(payload: bytes | None, text: str) -> None:
    assert readable(payload) == text


def test_an_empty_quarantine(tmp_path: Path) -> None:
    made = FedLake(tmp_path, NOTHING)
    made.feed(1)
    assert "nothing in quarantine" in made.run("quarantine list").stdout
    assert made.json("quarantine replay")[0]["selected"] == 0


def test_what_fails_again_stays_and_nothing_is_written(lake: FedLake) -> None:
    commits, held = quarantine_commits(lake), lake.json("quarantine list", "--records")
    done = lake.json("quarantine replay")[0]
    assert (done["selected"], done["applied"], done["failed"]) == (4, 0, 4)
    assert lake.json("quarantine list", "--records") == held
    assert quarantine_commits(lake) == commits


def test_a_replayed_record_is_applied_in_its_order_and_once(lake: FedLake) -> None:
    """An event that is older than a row or a delete beats neither; one of a key that is not there makes a row."""
    know_the_column(lake)
    assert "3 " in lake.run("quarantine replay", "--reason", "unknown_column", "--dry-run").stdout
    before = lake.commits()
    done = lake.json("quarantine replay")[0]
    assert (done["applied"], done["failed"], done["errors"]) == (3, 1, {})
    assert rows(lake) == {**WITHOUT_7777, 7777: "strange"}
    assert lake.commits() == [*before, *done["commits"]["shop.a"]]
    marked = [r for r in lake.json("quarantine list", "--records", "--all") if r["replayed_to"]]
    assert {r["replayed_to"] for r in marked} == set(done["commits"]["shop.a"])
    commits = quarantine_commits(lake)
    again = lake.json("quarantine replay")[0]
    assert (again["selected"], again["applied"], again["failed"]) == (1, 0, 1)
    assert (lake.commits()[-1], quarantine_commits(lake)) == (done["commits"]["shop.a"][0], commits)
    offsets_are_sound(lake)


def test_control_a_newer_event_does_win(lake: FedLake) -> None:
    strange(lake, 1, 9_000)
    lake.feed(1)
    know_the_column(lake)
    assert lake.json("quarantine replay")[0]["applied"] == 4
    assert rows(lake)[1] == "strange"


def test_a_new_reason_is_kept(lake: FedLake) -> None:
    document = json.loads(lake.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "int"
    lake.conf.write_text(json.dumps(document))
    assert lake.json("quarantine replay")[0]["failed"] == 4
    assert {g["reason"] for g in lake.json("quarantine list")} == {"bad_value", "malformed_json"}
    commits = quarantine_commits(lake)
    lake.json("quarantine replay")
    assert quarantine_commits(lake) == commits


def test_the_stream_goes_on_beside_it(lake: FedLake) -> None:
    """The stream has the table open; its positions stay, and without its ledger it finds its place again."""
    know_the_column(lake)
    positions = lake.table().extra_metadata("binlake.positions")
    assert lake.json("quarantine replay")[0]["applied"] == 3
    assert lake.table().extra_metadata("binlake.positions") == positions
    lake.feed(2)
    expected = {key: "o6" for key in range(7) if key != 3} | {7777: "strange"}
    assert rows(lake) == expected
    (lake.path / ".binlake/shop/ledger.json").unlink()
    lake.start()
    assert lake.runner.ledger.positions["s.shop.a"][0] < lake.log.end()["s.shop.a"][0]
    lake.go_on()
    assert rows(lake) == expected
    offsets_are_sound(lake)


@pytest.mark.full
def test_a_replay_while_batches_are_committed(lake: FedLake) -> None:
    """Both go on at once; whoever is overtaken writes again on what the table holds then."""
    know_the_column(lake)
    stopped = threading.Event()
    failed: list[str] = []

    def feed() -> None:
        while not stopped.is_set():
            failed.extend(t.error for t in lake.batch(("a",)).tables if t.error)

    with ThreadPoolExecutor(1) as pool:
        feeding = pool.submit(feed)
        before = lake.batches
        for key in range(8000, 8005):
            assert lake.json("quarantine replay", "--reason", "unknown_column")[0]["errors"] == {}
            strange(lake, key, 9_000)
            while lake.log.end()["s.shop.a"][0] > lake.runner.ledger.positions["s.shop.a"][0]:
                time.sleep(0.01)
        stopped.set()
        feeding.result(timeout=60)
    assert lake.json("quarantine replay", "--reason", "unknown_column")[0]["errors"] == {}
    assert (failed, lake.batches > before) == ([], True)
    last = lake.batches - 1
    expected = {key: f"o{last}" for key in range(last + 1) if key != last - 3}
    assert rows(lake) == expected | dict.fromkeys([7777, *range(8000, 8005)], "strange")
    offsets_are_sound(lake)


def test_an_event_before_a_truncate_stays_out(lake: FedLake) -> None:
    truncate = event("a", "t", 5_000, {})
    lake.log.add("s.shop.a", {**truncate, "after": None}, None)
    lake.runner.run(99, lake.log.end(), 0, lake.engine)
    assert rows(lake) == {}
    know_the_column(lake)
    assert lake.json("quarantine replay")[0]["commits"] == {}
    assert (rows(lake), len(lake.json("quarantine list", "--records"))) == ({}, 1)


def test_a_table_whose_first_records_were_all_bad_is_made(tmp_path: Path) -> None:
    made = FedLake(tmp_path, NOTHING)
    made.log.add("s.shop.c", event("c", "c", 5, {"id": 1, "owner": "first"}), {"id": 1})
    made.feed(1)
    assert [g["reason"] for g in made.json("quarantine list")] == ["no_schema"]
    document = json.loads(made.conf.read_text())
    document["source"]["schemas"]["shop.c"] = {"columns": {"id": "bigint", "owner": "varchar(9)"}, "key": ["id"]}
    made.conf.write_text(json.dumps(document))
    assert made.json("quarantine replay")[0]["commits"].keys() == {"shop.c"}
    assert rows(made, "c") == {1: "first"}
    made.settings = Settings.load(made.conf)
    made.log.add("s.shop.c", event("c", "c", 6, {"id": 2, "owner": "second"}), {"id": 2})
    made.start()
    made.feed(1)
    assert rows(made, "c") == {1: "first", 2: "second"}


def test_records_that_the_stream_has_yet_to_deliver_are_left_to_it(lake: FedLake) -> None:
    know_the_column(lake)
    state = open_storage(f"{lake.path}/.binlake/shop")
    ledger = Ledger.load(state, "shop")
    assert ledger is not None
    first = min(r["offset"] for r in lake.json("quarantine list", "--records", "--table", "shop.a"))
    ledger.note_behind(SourceTable("shop", "a"), {"s.shop.a": {0: first + 1}})
    ledger.save(state)
    done = lake.json("quarantine replay", "--table", "shop.a")[0]
    assert (done["applied"], done["left_to_stream"]) == (1, 2)
    (lake.path / ".binlake/shop/ledger.json").unlink()
    refused = lake.run("quarantine replay")
    assert "the stream has no ledger" in str(refused.exception)


def test_a_delete_that_was_compacted_away_is_not_undone(tmp_path: Path) -> None:
    """Nobody knows any more whether the key was deleted after the record: it stays, unless that is asked for."""
    made = FedLake(tmp_path)
    made.feed(3)
    strange(made, 0, 8)
    strange(made, 1, 9)  # its row is there, so the order decides
    strange(made, 2, 10, "d")  # a delete brings nothing back
    made.feed(1)
    made.run("compact")
    know_the_column(made)
    expected = {1: "o3", 2: "o3", 3: "o3"}
    assert rows(made) == expected
    done = made.json("quarantine replay")[0]
    assert (done["applied"], done["too_old"]) == (2, 1)
    assert rows(made) == expected
    assert made.json("quarantine replay", "--even-too-old")[0]["applied"] == 1
    assert rows(made) == expected | {0: "strange"}


def test_a_restored_table_gets_its_replayed_records_again(lake: FedLake) -> None:
    know_the_column(lake)
    before = lake.commits()[-1]
    lake.json("quarantine replay")
    assert lake.run("restore", "shop.a", before, "--yes").exit_code == 0
    lake.go_on()
    assert rows(lake) == WITHOUT_7777
    assert len(lake.json("quarantine list", "--records", "--table", "shop.a")) == 0
    done = lake.json("quarantine replay", "--table", "shop.a")[0]
    assert (done["selected"], done["applied"]) == (3, 3)
    assert rows(lake) == {**WITHOUT_7777, 7777: "strange"}
    assert lake.json("quarantine replay", "--table", "shop.a")[0]["selected"] == 0


# -- exactly once --------------------------------------------------------------------------------


def keyless(path: Path) -> FedLake:
    """Five equal rows in a table without a key; the delete of one of them and another row are in quarantine."""
    path.mkdir(exist_ok=True)
    made = FedLake(path, NOTHING)
    document = json.loads(made.conf.read_text())
    document["source"]["schemas"]["shop.a"]["key"] = []
    document["locking"] = {"lock": "process"}
    made.conf.write_text(json.dumps(document))
    row = {"id": 1, "owner": "same", "balance": "AfQ=", "region": "eu"}
    for pos in range(5):
        made.log.add("s.shop.a", event("a", "c", 100 + pos, row), None)
    made.settings = Settings.load(made.conf)
    made.start()
    made.runner.run(0, made.log.end(), 0, made.engine)
    del document["source"]["schemas"]["shop.a"]
    made.settings = Settings.parse(json.dumps(document))
    made.start()
    made.log.add("s.shop.a", event("a", "d", 900, row), None)
    made.log.add("s.shop.a", event("a", "c", 901, {**row, "owner": "other"}), None)
    made.runner.run(1, made.log.end(), 0, made.engine)
    return made


def owners(path: Path) -> list[str]:
    return sorted(r["owner"] for r in hudi_rs.snapshot(f"{path}/lake/shop/a").to_pylist())


def test_control_without_the_names_in_the_commit_a_delete_is_applied_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upsert, "WINDOW", 1)
    lake = keyless(tmp_path)
    settings = Settings.load(lake.conf)
    records = held_records(
        open_storage(f"{lake.path}/_quarantine/shop"), QuarantineSelection(), Seal(None), payload=True
    )
    assert replay(settings, QuarantineSelection()).applied == 2
    again = QuarantineTable(settings, lake.runner._lake, services())
    with ThreadPoolExecutor(1) as pool:
        again.restate([held.row() for held in records], "shop.quarantine", pool)
        assert replay(settings, QuarantineSelection()).found == 2  # by their names
        again.restate([held.row() for held in records], "shop.quarantine", pool)
    monkeypatch.setattr(replay_quarantine, "replayed_records", lambda table: {})
    assert replay(settings, QuarantineSelection()).applied == 2
    assert owners(tmp_path) == ["other", *["same"] * 3]
