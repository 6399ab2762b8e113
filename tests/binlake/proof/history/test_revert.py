"""``binlake revert``: what is refused, what a crash leaves, other layouts and formats, and what stays accounted for."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from binlake.position.record_reader import RecordReader
from binlake.proof.history import revert
from binlake.proof.history.planned import BeforeImages, Means, RevertPlan, carry_out, plan_revert
from binlake.proof.history.selection import ChangeSelection
from binlake.source.offsets import Offsets
from binlake.tables.audit import audit
from binlake.tables.catalog import CatalogTable, catalog_table
from binlake.tables.lake import locking
from hudilake.errors import BadInputError, LakeError
from hudilake.services.fsck import fsck
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.proof.history.bank import Bank, Change, LogRecords, Row, account, gtid
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark

CHANGING = ("create", "write", "delete", "delete_tree")


@pytest.fixture
def bank(tmp_path: Path) -> Bank:
    """Two tables of five accounts; transaction 2 changes both, inserts into one and deletes from the other."""
    made = Bank(tmp_path)
    made.transact(1, [Change(t, None, account(k, 100)) for t in "ab" for k in range(5)])
    made.run_stream()
    changes = [
        Change("a", account(1, 100), account(1, 90)),
        Change("b", account(1, 100), account(1, 110)),
        Change("a", None, account(7, 7)),
        Change("b", account(4, 100), None),
    ]
    made.transact(2, changes)
    made.run_stream()
    return made


FIRST = {k: account(k, 100) for k in range(5)}


def refused(bank: Bank, *arguments: str) -> LakeError:
    before = bank.commits("a"), bank.commits("b")
    done = bank.run("revert", *arguments, "--yes")
    assert isinstance(done.exception, LakeError), (done.output, done.exception)
    assert (bank.commits("a"), bank.commits("b")) == before
    return done.exception


def sound_files(bank: Bank, table: str) -> None:
    """fsck finds nothing wrong."""
    storage = open_storage(f"{bank.path}/shop/{table}")
    assert [f.what for f in fsck(storage, grace_ms=0).findings if f.severity == "error"] == []


def sound(bank: Bank, table: str) -> None:
    """fsck and audit find nothing wrong; audit counts the revert with no record of its own."""
    sound_files(bank, table)
    done = audit(open_storage(f"{bank.path}/shop/{table}"))
    assert [f.what for f in done.findings] == []
    assert done.sums()["shop.revert"].read == 0


# -- what is done -----------------------------------------------------------------------------------------------------


def test_updates_inserts_and_deletes_of_several_tables(bank: Bank) -> None:
    shown = bank.run("revert", "--transaction", gtid(2), "--dry-run")
    assert bank.commits("a") == 2, shown.output
    assert "90.00 │ 100.00" in shown.output
    assert bank.run("revert", "--transaction", gtid(2), answer="n").exit_code == 1
    assert bank.commits("a") == 2
    lines = bank.json("revert", "--transaction", gtid(2), "--yes")
    assert bank.lake_rows("a") == FIRST
    assert bank.lake_rows("b") == FIRST
    what = {(line["table"], line["key"]): line["what"] for line in lines if "key" in line}
    expected = {("shop.a", "1"): "set back", ("shop.a", "7"): "delete"}
    assert what == expected | {("shop.b", "1"): "set back", ("shop.b", "4"): "insert"}
    for table in "ab":
        sound(bank, table)


def test_the_commit_and_status_say_what_was_reverted(bank: Bank) -> None:
    bank.transact(3, [Change("a", account(2, 100), account(2, 5))])
    bank.run_stream()
    bank.json("revert", "--transaction", gtid(2), "--yes")
    bank.json("revert", "--transaction", gtid(3), "--yes")
    reverts = RecordReader.newest_of(HudiTable.open(open_storage(f"{bank.path}/shop/a"))).reverts
    assert [(r.what, r.transactions, r.rows, r.left, r.source) for r in reverts] == [
        (f"transaction {gtid(2)}", (gtid(2),), 2, 0, "kafka"),
        (f"transaction {gtid(3)}", (gtid(3),), 1, 0, "kafka"),
    ]
    (stream, a, b) = bank.json("status", "--no-kafka")
    assert [len(table["reverts"]) for table in (a, b)] == [2, 1]
    assert f"reverted: {reverts[1]}" in bank.run("status", "--no-kafka").output
    assert stream["stream"] == "shop"


def test_changes_of_one_position_are_undone_one_by_one(tmp_path: Path) -> None:
    """MariaDB since 11.4 gives a transaction one position: two updates of a row differ in content alone."""
    bank = Bank(tmp_path, ("a",), event_bytes=0)
    bank.transact(1, [Change("a", None, account(1, 100))])
    bank.run_stream()
    steps = [account(1, balance) for balance in (100, 90, 80, 70)]
    bank.transact(2, [Change("a", before, after) for before, after in itertools.pairwise(steps)])
    bank.run_stream()
    superseded = [line for line in bank.json("why", "shop.a", "1", "--kafka") if line["kind"] == "superseded"]
    assert [line["values"]["balance"] for line in superseded] == ["90.00", "80.00"]
    assert "the later offset decides" in superseded[0]["why"]
    bank.json("revert", "--transaction", gtid(2), "--yes")
    assert bank.lake_rows("a") == {1: account(1, 100)}


def test_a_range_is_undone_in_reverse_order(bank: Bank) -> None:
    for number in (3, 4, 5):
        bank.transfer(number, 1, 2, number)
    bank.run_stream()
    ends = ["--from-position", f"mysql-bin.000003:{bank.position(3)}", "--to-position"]
    bank.json("revert", *ends, f"mysql-bin.000003:{bank.position(6)}", "--table", "shop.a", "--yes")
    assert bank.lake_rows("a") == {**FIRST, 1: account(1, 90), 7: account(7, 7)}
    assert bank.lake_rows("b")[1] == account(1, 110)


@pytest.mark.parametrize("balance", [90, 91])
def test_a_row_that_a_snapshot_has_read_again(bank: Bank, balance: int) -> None:
    """It belongs to no transaction, wherever it stands; and it never wins against a change of the row."""
    event = bank.event(3, 0, Change("a", None, account(1, balance)))
    event |= {"op": "r", "source": event["source"] | {"snapshot": "incremental", "gtid": None}, "transaction": None}
    bank.log.add("s.shop.a", event, {"id": 1})
    bank.run_stream()
    for selection in (["--transaction", gtid(2)], ["--from-position", "3:20000", "--to-position", "3:40000"]):
        bank.json("revert", *selection, "--yes")
        assert bank.lake_rows("a") == FIRST
        bank.deliver(2)
        bank.run_stream()
        assert bank.lake_rows("a") == FIRST


def test_a_transaction_before_one_that_was_reverted(bank: Bank) -> None:
    """What was reverted is no later change: alone and together the row is as before both."""
    bank.transfer(3, 1, 2, 3)
    bank.run_stream()
    bank.json("revert", "--transaction", gtid(3), "--yes")
    assert bank.lake_rows("a")[1] == account(1, 90)
    bank.json("revert", "--transaction", gtid(2), "--yes")
    assert bank.lake_rows("a") == FIRST
    for _ in range(2):  # nothing is left to do
        bank.json("revert", "--transaction", gtid(2), "--transaction", gtid(3), "--yes")
        assert bank.lake_rows("a") == FIRST
    commits = bank.commits("a")
    bank.deliver(3)
    bank.deliver(2)
    bank.run_stream()
    assert bank.lake_rows("a") == FIRST
    assert commits == 5


def test_a_range_of_times(bank: Bank) -> None:
    bank.transfer(3, 1, 2, 3)
    bank.run_stream()
    at = "2025-10-09T08:53:23"  # transaction 3
    bank.json("revert", "--since", at, "--until", "2025-10-09T08:53:24", "--yes")
    assert bank.lake_rows("a") == {**FIRST, 1: account(1, 90), 7: account(7, 7)}
    assert "the range holds only a part" not in bank.run("revert", "--since", at, "--dry-run").output


def test_a_transaction_that_reaches_beyond_the_time(bank: Bank) -> None:
    """Its changes have the times of their statements, and come in two commits."""
    bank.transact(3, [Change("a", account(2, 100), account(2, 1))])
    bank.run_stream()
    event = bank.event(3, 1, Change("a", account(3, 100), account(3, 199)))
    event["source"]["ts_ms"] += 60_000
    bank.log.add("s.shop.a", event, {"id": 3})
    bank.run_stream()
    error = refused(bank, "--since", "2025-10-09T08:53:23", "--until", "2025-10-09T08:53:30")
    assert "only a part of transactions 0-1-3" in error.what


def test_events_that_wait_to_be_delivered_again(bank: Bank) -> None:
    bank.deliver(2)
    bank.json("revert", "--transaction", gtid(2), "--yes")
    bank.run_stream()
    assert bank.lake_rows("a") == FIRST


def test_a_changed_key_and_a_changed_partition(tmp_path: Path) -> None:
    bank = Bank(tmp_path, ("a",), partition={"column": "region"})
    bank.transact(1, [Change("a", None, account(k, 100)) for k in range(3)])
    bank.run_stream()
    moved = account(1, 100, region="us")
    bank.transact(2, [Change("a", account(0, 100), None), Change("a", None, account(9, 100))])
    bank.transact(3, [Change("a", account(1, 100), moved)])
    bank.run_stream()
    bank.json("revert", "--transaction", gtid(2), "--transaction", gtid(3), "--yes")
    assert bank.lake_rows("a") == {k: account(k, 100) for k in range(3)}
    (now,) = (line for line in bank.json("why", "shop.a", "1", "--partition", "region=us") if line["kind"] == "now")
    assert now["fate"] == "deleted"


def test_rows_with_conflicts_are_left_only_on_demand(bank: Bank) -> None:
    bank.transact(3, [Change("a", account(1, 90), account(1, 90, owner="new"))])
    bank.run_stream()
    error = refused(bank, "--transaction", gtid(2))
    assert error.exit_code == BadInputError.exit_code
    assert error.what.startswith("1 row was changed later")
    bank.json("revert", "--transaction", gtid(2), "--by-column", "--yes")
    assert bank.lake_rows("a") == {**FIRST, 1: account(1, 100, owner="new")}


def test_a_truncated_row_does_not_come_back(bank: Bank) -> None:
    envelope = bank.event(3, 0, Change("b", account(1, 110), None))
    bank.log.add("s.shop.b", {**envelope, "op": "t", "before": None}, None)
    bank.run_stream()
    assert bank.lake_rows("b") == {}
    deleted = [line for line in bank.json("why", "shop.b", "1") if line["kind"] == "version"][-1]
    assert "a TRUNCATE removed the row" in deleted["why"]
    bank.json("revert", "--transaction", gtid(2), "--leave-conflicts", "--yes")
    assert bank.lake_rows("b") == {}
    assert bank.lake_rows("a") == FIRST


def test_a_compaction_keeps_what_was_reverted(tmp_path: Path) -> None:
    compaction = {"mode": "process", "after_commits": 1, "log_ratio": None}
    bank = Bank(tmp_path, ("a",), compaction=compaction)
    bank.transact(1, [Change("a", None, account(k, 100)) for k in range(5)])
    bank.transact(2, [Change("a", account(1, 100), account(1, 1)), Change("a", account(2, 100), None)])
    bank.run_stream()
    bank.json("revert", "--transaction", gtid(2), "--yes")
    assert bank.run("compact").exit_code == 0
    bank.deliver(2)
    bank.run_stream()
    assert bank.lake_rows() == FIRST
    assert not [line for line in bank.json("revert", "--transaction", gtid(2), "--yes") if line.get("cells")]


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_missing_before_image(bank: Bank) -> None:
    records: list[dict[str, object]] = [{"before": None}, {"before": {"id": 2, "balance": "JxA="}}]
    for record, what in zip(records, ("1 change has", "2 changes have"), strict=True):
        event = {**bank.event(3, 0, Change("a", account(2, 100), account(2, 3))), **record}
        bank.log.add("s.shop.a", event, {"id": 2})
        bank.run_stream()
        error = refused(bank, "--transaction", gtid(3))
        assert f"{what} no whole before image" in error.what
        assert "shop.a 2 at s.shop.a/0:" in str(error)


def test_a_delete_that_names_only_its_key(bank: Bank) -> None:
    event = {**bank.event(3, 0, Change("a", account(2, 100), None)), "before": None}
    bank.log.add("s.shop.a", event, {"id": 2})
    bank.run_stream()
    assert 2 not in bank.lake_rows("a")
    assert "1 change has no whole before image" in refused(bank, "--transaction", gtid(3)).what


def test_offsets_that_kafka_has_deleted(bank: Bank) -> None:
    bank.low = Offsets({"s.shop.b": {0: 6}})
    error = refused(bank, "--transaction", gtid(2))
    assert "a part of the selection may be missing" in error.what
    bank.low = Offsets({"s.shop.b": {0: 7}, "s.shop.a": {0: 7}})
    assert "no change of a row is selected" in refused(bank, "--transaction", gtid(2)).what
    bank.low = Offsets({"s.shop.b": {0: 5}, "s.shop.a": {0: 5}})  # nothing shows that these lie before it
    assert "a part of the selection may be missing" in refused(bank, "--transaction", gtid(2)).what
    bank.low = Offsets({"s.shop.b": {0: 4}, "s.shop.a": {0: 4}})
    bank.json("revert", "--transaction", gtid(2), "--yes")
    assert bank.lake_rows("b") == FIRST


def test_a_transaction_that_is_not_applied_as_a_whole(bank: Bank) -> None:
    bank.transact(3, [Change("a", account(2, 100), account(2, 1)), Change("b", account(2, 100), account(2, 199))])
    end = bank.log.end()
    bank.run_stream(Offsets({**end, "s.shop.b": {0: end.at("s.shop.b", 0) - 1}}))
    assert "do not hold the whole selection yet" in refused(bank, "--transaction", gtid(3)).what
    bank.run_stream()
    bank.json("revert", "--transaction", gtid(3), "--yes")
    assert bank.lake_rows("b")[2] == account(2, 100)


def test_truncate_half_transactions_and_nothing(bank: Bank) -> None:
    envelope = bank.event(3, 0, Change("b", account(1, 110), None))
    bank.log.add("s.shop.b", {**envelope, "op": "t", "before": None}, None)
    bank.transfer(3, 2, 3, 1)
    bank.run_stream()
    assert "holds a TRUNCATE" in refused(bank, "--transaction", gtid(3)).what
    half = ["--from-position", "3:0", "--to-position", f"3:{bank.position(2, 0)}"]
    assert "only a part of transactions 0-1-2" in refused(bank, *half).what
    assert "no change of a row is selected" in refused(bank, "--transaction", "nobody").what
    assert "nothing is selected" in refused(bank).what
    event = bank.event(4, 0, Change("a", account(3, 101), account(3, 1)))
    event["source"]["ts_ms"] = 0
    bank.log.add("s.shop.a", event, {"id": 3})
    bank.run_stream()
    assert "1 change has no source time" in refused(bank, "--since", "2025-10-09").what
    assert "were not read" in refused(bank, "--transaction", gtid(2), "--kafka-records", "3").what


def test_a_table_without_a_key(tmp_path: Path) -> None:
    bank = Bank(tmp_path, ("a", "b"))
    document = json.loads(bank.conf.read_text())
    document["source"]["schemas"]["shop.b"]["key"] = []
    bank.conf.write_text(json.dumps(document))
    bank.settings = bank.settings.load(bank.conf)
    for number, (table, row) in enumerate((("a", account(1, 1)), ("b", account(1, 1))), 1):
        bank.log.add(
            f"s.shop.{table}", bank.event(number, 0, Change(table, None, row)), {"id": 1} if number == 1 else None
        )
    bank.run_stream()
    assert "shop.b: the rows have no key" in refused(bank, "--transaction", gtid(2)).what
    lines = bank.json("why", "shop.b", "owner=a,balance=1.00")
    assert [line["fate"] for line in lines if line["kind"] == "version"] == ["live"]
    shown = bank.run("why", "shop.b", lines[0]["key"], "--kafka").output
    assert "live" in shown
    assert "the table has no key, so events name no row" in shown
    assert "searched by their content" in bank.run("why", "shop.b", "owner=a").output
    assert "name a row by" not in bank.run("why", "shop.b", "owner=a").output
    assert "name a row by columns of it, id=VALUE,..., or by its own name" in bank.run("why", "shop.b", "1").output


# -- crashes ----------------------------------------------------------------------------------------------------------


def on_store(bank: Bank, store: Storage, path: Path) -> tuple[list[CatalogTable], RevertPlan]:
    """The plan of a revert whose writes go to a store."""
    settings = bank.settings.model_copy(update={"lake": bank.settings.lake.model_copy(update={"uri": str(path)})})
    places = [catalog_table(settings, store, f"shop.{table}") for table in "ab"]
    means = Means(BeforeImages.KAFKA, LogRecords(bank.log), 1000)
    return places, plan_revert(settings, places, ChangeSelection(frozenset({gtid(2)})), means)


def revert_on(bank: Bank, store: Storage, path: Path) -> None:
    _, plan = on_store(bank, store, path)
    settings = bank.settings.model_copy(update={"lake": bank.settings.lake.model_copy(update={"uri": str(path)})})
    list(carry_out(settings, plan, None, leave_conflicts=False))


@pytest.mark.full
def test_death_at_every_change_of_the_store(bank: Bank, tmp_path: Path) -> None:
    """The same command finishes what a dead one has begun; each table has one commit of the revert."""

    def copy(name: str) -> Path:
        shutil.copytree(bank.path, tmp_path / name)
        return tmp_path / name

    counting, path = Fate(), copy("count")
    revert_on(bank, DyingStore(open_storage(str(path), {"fsync": "false"}), counting), path)
    changes = [at for at, (method, _) in enumerate(counting.calls) if method in CHANGING]
    assert len(changes) > 10
    chosen = changes if is_nightly() else [*changes[::3], changes[-1]]
    for at, answer in [(changes[0], Answer.LOST), *((at, Answer.DONE) for at in chosen)]:
        path = copy(f"{at}-{answer}")
        store, fate = open_storage(str(path), {"fsync": "false"}), Fate(at, answer)
        with contextlib.suppress(Killed):
            revert_on(bank, DyingStore(store, fate), path)
        fate.settle()
        shutil.rmtree(path / ".binlake" / "shop" / "revert", ignore_errors=True)  # the process id of the dead is ours
        revert_on(bank, store, path)
        for table in "ab":
            found = HudiTable.open(store.sub(f"shop/{table}"))
            assert [r.rows for r in RecordReader.newest_of(found).reverts] == [2], fate.calls[-1]
            assert rows_at(path, table) == FIRST, fate.calls[-1]
        shutil.rmtree(path)


def rows_at(path: Path, table: str) -> dict[int, Row]:
    names = ("id", "owner", "balance", "region")
    return {r["id"]: {n: r[n] for n in names} for r in hudi_rs.snapshot(f"{path}/shop/{table}").to_pylist()}


# -- beside the stream ------------------------------------------------------------------------------------------------


def test_a_row_that_changes_after_the_plan_was_shown(bank: Bank) -> None:
    _, plan = on_store(bank, open_storage(str(bank.path), {"fsync": "false"}), bank.path)
    bank.transact(3, [Change("a", account(1, 90), account(1, 91))])
    bank.run_stream()
    with pytest.raises(BadInputError, match="1 row was changed since the plan was made"):
        list(carry_out(bank.settings, plan, None, leave_conflicts=False))
    assert bank.lake_rows("a")[1] == account(1, 91)


@pytest.mark.parametrize("key", [1, 3])
def test_a_commit_of_the_stream_in_between(bank: Bank, monkeypatch: pytest.MonkeyPatch, key: int) -> None:
    """The stream commits while the revert's files are written: the revert is planned again under the lock."""
    write, interrupted = revert._write, list[bool]()

    def slow(*arguments: Any) -> Any:  # noqa: ANN401 - passed on
        if not interrupted:
            interrupted.append(True)
            row = bank.rows["a"][key]
            bank.transact(3, [Change("a", row, account(key, 55))])
            bank.run_stream()
        return write(*arguments)

    monkeypatch.setattr(revert, "_write", slow)
    _, plan = on_store(bank, open_storage(str(bank.path), {"fsync": "false"}), bank.path)
    done = carry_out(bank.settings, plan, locking(bank.settings.locking, "binlake revert"), leave_conflicts=False)
    if key == 1:
        with pytest.raises(BadInputError, match="1 row was changed since the plan was made"):
            list(done)
        assert bank.lake_rows("a") == {**FIRST, 1: account(1, 55), 7: account(7, 7)}
    else:
        assert all(instant for _, instant in done)
        assert bank.lake_rows("a") == {**FIRST, 3: account(3, 55)}
    sound_files(bank, "a")


# -- before images from the lake --------------------------------------------------------------------------------------


def positions(bank: Bank, first: int, last: int) -> list[str]:
    ends = f"mysql-bin.000003:{bank.position(first)}", f"mysql-bin.000003:{bank.position(last + 1) - 1}"
    return ["--from-position", ends[0], "--to-position", ends[1], "--before-images", "lake"]


def test_the_lakes_own_versions_as_before_images(bank: Bank) -> None:
    bank.log.records.clear()  # Kafka has nothing any more
    bank.json("revert", *positions(bank, 2, 2), "--yes")
    assert bank.lake_rows("a") == FIRST
    assert bank.lake_rows("b") == FIRST
    for table in "ab":
        sound(bank, table)
    again = bank.json("revert", *positions(bank, 2, 2), "--yes")
    assert not [line for line in again if line.get("cells")]


def test_versions_that_the_lake_does_not_have(bank: Bank) -> None:
    bank.transfer(3, 2, 3, 1)
    bank.transfer(4, 2, 3, 1)
    bank.run_stream()
    error = refused(bank, *positions(bank, 4, 4))
    assert "several changes of a row came together" in error.what
    assert "no stored version is selected" in refused(bank, *positions(bank, 8, 9)).what
    ids = ["--transaction", gtid(2), "--before-images", "lake"]
    assert "no transactions and no times" in refused(bank, *ids).what


# -- the other judge --------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_sees_what_was_reverted(bank: Bank, hudi_spark: HudiSpark) -> None:
    bank.json("revert", "--transaction", gtid(2), "--yes")
    bank.deliver(2)
    bank.run_stream()
    expected: list[dict[str, Any]] = [dict(row) for row in FIRST.values()]
    for table in "ab":
        assert_judges_agree(
            f"{bank.path}/shop/{table}", expected, spark=hudi_spark, columns=["id", "owner", "balance", "region"]
        )
    assert sum(row["balance"] for row in bank.lake_rows("a").values()) == Decimal(500)
