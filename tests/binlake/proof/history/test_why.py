"""``binlake why``: every version of a row and its verdict, from the lake, the commits, Kafka and the quarantine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from binlake.proof.history.commits import CommitLog
from binlake.proof.history.keys import row_key
from binlake.proof.history.why import row_histories
from binlake.source.offsets import Offsets
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.proof.history.bank import Bank, Change, account, gtid
from tests.binlake.stream.dying_store import DyingStore, Fate

Fields = Mapping[str, Any]
COMPACTED: dict[str, Any] = {
    "compaction": {"mode": "process", "after_commits": 1, "log_ratio": None},
    "retention": {"commits": 1},
}


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """Five accounts; then two transfers of account 1 in one batch, so that the first is superseded."""
    made = Bank(tmp_path)
    made.transact(1, [Change(t, None, account(k, 100)) for t in "ab" for k in range(5)])
    made.run_stream()
    made.transfer(2, 1, 2, 10)
    made.transfer(3, 1, 3, 5)
    made.run_stream()
    return made


def of_kind(lines: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["kind"] == kind]


def test_versions_say_where_they_come_from_and_why_they_won(bank: Bank) -> None:
    lines = bank.json("why", "shop.a", "1", "--kafka")
    first, newest = of_kind(lines, "version")
    assert [first["values"]["balance"], newest["values"]["balance"]] == ["100.00", "85.00"]
    assert first["fate"] == "replaced"
    assert first["why"] == f"replaced by commit {newest['instant']}: higher ordering value"
    assert newest["fate"] == "live"
    assert newest["source_position"] == f"000003:{bank.position(3, 0)}"
    assert (newest["gtid"], newest["transaction"]) == (gtid(3), gtid(3))
    assert newest["kafka"] == {"topic": "s.shop.a", "partition": 0, "offset": 7}
    assert newest["binlog"] == f"mysql-bin.000003:{bank.position(3, 0)}"
    assert newest["changed"] == ["balance"]
    assert newest["by"] == "stream"
    assert newest["offsets"] == {"s.shop.a": {"0": [5, 9]}}
    assert len(newest["files"]) == 1
    (superseded,) = of_kind(lines, "superseded")
    assert superseded["found_in"] == "Kafka"
    assert superseded["why"] == "superseded in its batch by s.shop.a/0:7: higher ordering value"
    assert (superseded["gtid"], superseded["values"]["balance"]) == (gtid(2), "90.00")
    assert of_kind(lines, "now") == [
        {
            "table": "shop.a",
            "key": "1",
            "partition": "",
            "kind": "now",
            "fate": "live",
            "file_group": of_kind(lines, "now")[0]["file_group"],
            "not_known": [],
        }
    ]


def test_without_kafka_the_commit_gives_the_range(bank: Bank) -> None:
    lines = bank.json("why", "shop.a", "1")
    newest = of_kind(lines, "version")[-1]
    assert "kafka" not in newest
    assert newest["offsets"] == {"s.shop.a": {"0": [5, 9]}}
    assert of_kind(lines, "superseded") == []
    shown = bank.run("why", "shop.a", "1")
    assert "one of s.shop.a/0: 5..8" in shown.output
    assert "--kafka looks them up" in shown.output


def test_what_kafka_has_deleted_is_named(bank: Bank) -> None:
    bank.low = Offsets({"s.shop.a": {0: 6}})
    lines = bank.json("why", "shop.a", "1", "--kafka")
    assert of_kind(lines, "superseded") == []
    (now,) = of_kind(lines, "now")
    assert now["not_known"] == ["Kafka no longer has 6 of the offsets of these commits: s.shop.a/0: 0..5"]
    left = bank.json("why", "shop.a", "1", "--kafka", "--kafka-records", "1")
    (now,) = of_kind(left, "now")
    assert now["not_known"][1] == "--kafka-records left out 2 of the offsets of these commits: s.shop.a/0: 6..7"


def test_a_delete_and_a_late_event(bank: Bank) -> None:
    bank.transact(4, [Change("a", bank.rows["a"][1], None)])
    bank.run_stream()
    bank.deliver(2)  # older than the delete, and delivered again after it
    bank.run_stream()
    lines = bank.json("why", "shop.a", "1", "--kafka")
    late, deleted = of_kind(lines, "version")[1], of_kind(lines, "version")[-1]
    assert (deleted["operation"], deleted["fate"], deleted["gtid"]) == ("delete", "deleted", gtid(4))
    assert late["fate"] == "late"
    assert late["why"] == f"it came late: the version of commit {deleted['instant']} has a higher ordering value"
    assert 1 not in bank.lake_rows()


def test_versions_in_base_files_and_in_files_that_were_cleaned(tmp_path: Path) -> None:
    bank = Bank(tmp_path, ("a",), **COMPACTED)
    bank.transact(1, [Change("a", None, account(k, 100)) for k in range(5)])
    for number in range(2, 6):
        bank.transfer(number, 1, 2, 1)
        bank.run_stream()
        assert bank.run("compact").exit_code == 0
    lines = bank.json("why", "shop.a", "1", "--kafka")
    newest = of_kind(lines, "version")[-1]
    assert (newest["fate"], newest["values"]["balance"], newest["gtid"]) == ("live", "96.00", gtid(5))
    assert len(newest["files"]) == 2, "the log file, and the base file that a compaction wrote"
    gone = of_kind(lines, "cleaned")
    assert gone
    assert all(line["files"] for line in gone)
    assert {s["gtid"] for s in of_kind(lines, "superseded")} >= {gtid(1), gtid(2)}
    assert "is not stored any more" in of_kind(lines, "now")[0]["not_known"][0]


def test_one_file_group_is_read(tmp_path: Path) -> None:
    """Data files of other buckets are not touched, however many there are."""
    bank = Bank(tmp_path, ("a",), buckets=16)
    bank.transact(1, [Change("a", None, account(k, 100)) for k in range(200)])
    bank.run_stream()
    fate = Fate()
    table = HudiTable.open(DyingStore(open_storage(f"{bank.path}/shop/a"), fate))
    key = row_key("77", table)
    (history,) = row_histories(table, key, CommitLog.of(table, "shop"))
    read = {path for method, path in fate.calls if method.startswith("read") and not path.startswith(".hoodie")}
    assert {path.lstrip(".")[:8] for path in read} == {history.file_group[:8]}
    assert len(read) == 2, "the base file that begins the group, and the log file"


def test_a_reverted_row_says_so(bank: Bank) -> None:
    bank.json("revert", "--transaction", gtid(3), "--yes")
    newest = of_kind(bank.json("why", "shop.a", "3", "--kafka"), "version")[-1]
    assert newest["by"] == "revert"
    assert newest["values"]["balance"] == "100.00"
    assert f"written by binlake revert (transaction {gtid(3)})" in newest["why"]
    assert newest["source_position"] == f"000003:{bank.position(3, 1) + 1}"


def test_quarantined_records_of_the_row(bank: Bank) -> None:
    event = bank.event(9, 0, Change("a", account(1, 85), account(1, 86)))
    event["after"]["colour"] = "red"
    bank.log.add("s.shop.a", event, {"id": 1})
    bank.log.add("s.shop.a", {**event, "after": {"id": 2, "colour": "red"}, "before": None}, {"id": 2})
    bank.run_stream()
    (held,) = of_kind(bank.json("why", "shop.a", "1"), "quarantined")
    assert held["reason"] == "unknown_column"
    assert held["kafka"]["offset"] == 9


def test_a_record_that_was_replayed_from_the_quarantine(bank: Bank) -> None:
    """Its event lies in the offsets of one commit, and another commit has applied it."""
    event = bank.event(9, 0, Change("a", account(1, 85), account(1, 86)))
    event["after"]["colour"] = "red"
    bank.log.add("s.shop.a", event, {"id": 1})
    bank.transfer(10, 2, 3, 1)
    bank.run_stream()
    document = json.loads(bank.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "varchar(10)"
    bank.conf.write_text(json.dumps(document))
    assert bank.run("quarantine replay").exit_code == 0
    newest = of_kind(bank.json("why", "shop.a", "1", "--kafka"), "version")[-1]
    assert (newest["by"], newest["gtid"], newest["kafka"]["offset"]) == ("quarantine replay", gtid(9), 9)
    assert newest["values"]["colour"] == "red"


def test_keys_that_are_none(bank: Bank) -> None:
    assert of_kind(bank.json("why", "shop.a", "id=1"), "now")[0]["key"] == "1"
    assert of_kind(bank.json("why", "shop.a", '{"id": 1}'), "now")[0]["key"] == "1"
    assert of_kind(bank.json("why", "shop.a", "99"), "now")[0]["fate"] is None
    told = {
        "x": "no value of column id",
        "owner=a": "no value of column id",
        "id=1,owner=a": "not the key",
        '{"nope": 1}': "no column nope",
        "{": "no JSON object",
    }
    for bad, why in told.items():
        done = bank.run("why", "shop.a", bad)
        assert why in str(done.exception), done.output


def test_a_key_of_several_columns(tmp_path: Path) -> None:
    bank = Bank(tmp_path, ("a",), key=("id", "region"))
    bank.transact(1, [Change("a", None, account(1, 5)), Change("a", None, account(2, 6, region="a,b"))])
    bank.run_stream()
    for text, balance in (("region=eu,id=1", "5.00"), ('{"id": 2, "region": "a,b"}', "6.00")):
        (found,) = of_kind(bank.json("why", "shop.a", text), "version")
        assert found["values"]["balance"] == balance
    assert "not the key" in str(bank.run("why", "shop.a", "id=1").exception)


def test_a_partitioned_table_is_searched_partition_by_partition(tmp_path: Path) -> None:
    bank = Bank(tmp_path, ("a",), partition={"column": "region"})
    bank.transact(1, [Change("a", None, account(1, 5)), Change("a", None, account(2, 6, region="us"))])
    bank.transact(2, [Change("a", account(1, 5), account(1, 5, region="us"))])
    bank.run_stream()
    found = {line["partition"]: line["fate"] for line in bank.json("why", "shop.a", "1") if line["kind"] == "now"}
    assert found == {"region=eu": "deleted", "region=us": "live"}
    lines = bank.json("why", "shop.a", "1", "--kafka")
    (deleted,) = (line for line in lines if line.get("operation") == "delete")
    assert (deleted["partition"], deleted["gtid"]) == ("region=eu", gtid(2))
