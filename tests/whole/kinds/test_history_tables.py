"""Every command on a history table beside the table of the rows: the right answer, or a refusal with its reason. The
table of ``docs/history.md`` has the same answers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.proof.history.keys import row_key, version_keys
from binlake.settings import Settings
from binlake.tables.feeds import Feeds
from hudilake.errors import UnsupportedError
from hudilake.services.erasure.record import ErasureRecord, Ledger
from hudilake.services.erasure.traces import Quarry, scan
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.cli.console.watched_lake import Watched, words_of
from tests.binlake.proof.history.bank import START_MS, Bank, Change, account, gtid
from tests.judges import hudi_rs
from tests.paths import ROOT

H = "shop.a_h"
Version = tuple[int, Any, int, int | None]


def bank_of(path: Path, kind: str = "scd2") -> Bank:
    """Six accounts, a transfer between two of them, and the end of a third."""
    bank = Bank(path, ("a",))
    document = json.loads(bank.conf.read_text())
    document["tables"]["history"] = [{"table": "shop.a", "to": H, "kind": kind}]
    bank.conf.write_text(json.dumps(document))
    bank.settings = Settings.load(bank.conf)
    bank.transact(1, [Change("a", None, account(key, 100, f"owner-{key}")) for key in range(6)])
    bank.run_stream()
    bank.transfer(2, 1, 2, 10)
    bank.run_stream()
    bank.transact(3, [Change("a", bank.rows["a"][3], None)])
    bank.run_stream()
    return bank


def table_of(bank: Bank) -> Path:
    return bank.path / "shop" / "a_h"


def expected(bank: Bank) -> list[Version]:
    """id, balance, start and end as numbers of transactions."""
    found: list[Version] = []
    alive: dict[int, tuple[int, Any]] = {}
    for number, changes in sorted(bank.transactions.items()):
        for change in changes:
            if change.before is not None:
                since, balance = alive.pop(change.key)
                found.append((change.key, balance, since, number))
            if change.after is not None:
                alive[change.key] = number, change.after["balance"]
    found += [(key, balance, since, None) for key, (since, balance) in alive.items()]
    return sorted(found, key=lambda one: (one[0], one[2]))


def number_of(time: datetime | None) -> int | None:
    """The number of the transaction that has a time."""
    return None if time is None else (round(time.timestamp() * 1000) - START_MS) // 1000


def stored(bank: Bank) -> list[Version]:
    """The same of the history table, through hudi-rs."""
    rows = hudi_rs.snapshot(table_of(bank)).to_pylist()
    versions = [(r["id"], r["balance"], number_of(r["valid_from"]) or 0, number_of(r["valid_to"])) for r in rows]
    return sorted(versions, key=lambda one: (one[0], one[2]))


def said(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(one) for one in arguments])


def done(bank: Bank, command: str, *arguments: str) -> str:
    result = bank.run(command, *arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def compact(bank: Bank) -> None:
    assert "2 file groups compacted" in done(bank, "compact", H, "--now")


def cluster(bank: Bank) -> None:
    assert "rows may not leave their bucket" in done(bank, "cluster", H, "--now")


def clean(bank: Bank) -> None:
    done(bank, "compact", H, "--now")
    assert f"{H}: " in done(bank, "clean", H)


def archive(bank: Bank) -> None:
    assert f"{H}: " in done(bank, "archive", H)


def audit(bank: Bank) -> None:
    output = done(bank, "audit", H)
    assert "3 commits; all accounted for" in output
    assert "read 9 = applied 9 + superseded 0" in output


def check(bank: Bank) -> None:
    assert "0 error, 0 warning" in said("fsck", table_of(bank)).output


def repair(bank: Bank) -> None:
    assert said("repair", table_of(bank), "--yes").exit_code == 0


def layout(bank: Bank) -> None:
    result = said("layout", table_of(bank))
    assert result.exit_code == 0, (result.output, result.exception)


def inspect(bank: Bank) -> None:
    assert "2 file slices" in said("inspect", table_of(bank)).output


def savepoint(bank: Bank) -> None:
    done(bank, "savepoint create", H)
    assert f"1 savepoints of {H}" in done(bank, "savepoint list", H)


def restore(bank: Bank) -> None:
    """The stream delivers again what went: here as after the loss of its ledger, from where the tables stand."""
    commits = sorted(file.name[:17] for file in (table_of(bank) / ".hoodie/timeline").glob("*_*.deltacommit"))
    done(bank, "restore", H, commits[0], "--yes")
    assert {version[2] for version in stored(bank)} == {1}
    shutil.rmtree(bank.path / ".binlake/shop")
    bank.run_stream()
    assert stored(bank) == expected(bank)
    bank.transact(4, [Change("a", bank.rows["a"][4], account(4, 5))])
    bank.run_stream()


def rebucket(bank: Bank) -> None:
    """All versions of a row stay in one bucket."""
    done(bank, "rebucket", H, "--buckets", "3")
    rows = hudi_rs.snapshot(table_of(bank)).select(["id", "_hoodie_file_name"]).to_pylist()
    assert len({(row["id"], row["_hoodie_file_name"][:8]) for row in rows}) == len({row["id"] for row in rows})


def query(bank: Bank) -> None:
    sql = f"select count(*) as n from {H} where is_current"
    result = said("query", "--conf", bank.conf, sql, "--format", "json")
    assert json.loads(result.stdout.splitlines()[0]) == {"n": len(bank.rows["a"])}


def changes(bank: Bank) -> None:
    """A version that ends is an update of its row."""
    result = said("changes", H, "--conf", bank.conf, "--since", "earliest", "--json", "--columns", "id,end_at")
    ops = [json.loads(line)["op"] for line in result.stdout.splitlines()]
    assert sorted(ops) == ["i"] * 8 + ["u"] * 3, result.output


def lineage(bank: Bank) -> None:
    assert "  from shop.a\n" in done(bank, "lineage", H)
    assert f"shop.a feeds {H}: the versions of its rows" in done(bank, "lineage", "shop.a", "--source")


def erase(bank: Bank) -> None:
    """By either table: all versions go, and nothing of them is left in any byte."""
    output = done(bank, "erase", "shop.a", "1", "--yes")
    assert output.count("nothing is left") == 2
    done(bank, "erase", H, "3", "--yes")  # a row that was deleted
    for number in bank.transactions:
        bank.transactions[number] = tuple(c for c in bank.transactions[number] if c.key not in (1, 3))
    bank.rows["a"].pop(1)
    quarry = Quarry(frozenset(["1", "id:1", "3", "id:3"]), frozenset([b"owner-1", b"owner-3"]))
    assert scan(open_storage(str(table_of(bank))), quarry).is_clean


def revert(bank: Bank) -> None:
    """The rows go back, their history stays as the source's log says it."""
    assert "shop.a: commit" in done(bank, "revert", "--transaction", gtid(2), "--yes")
    assert bank.lake_rows()[1]["balance"] == 100
    bank.transact(4, [Change("a", bank.rows["a"][key], account(key, 7)) for key in (1, 2)])
    bank.run_stream()


def console(bank: Bank) -> None:
    seen = Watched.of(bank.conf)
    assert "owner-4" in seen.page("/query", sql=f"select * from {H} where id = 4", run="1")
    assert "is a version already" in words_of(seen.page("/query", table=H, key="4"))


#: Of the table of the docs: command -> what is done, and what must be true after it.
ANSWERED: dict[str, Callable[[Bank], None]] = {
    "compact": compact,
    "cluster": cluster,
    "clean": clean,
    "archive": archive,
    "audit": audit,
    "fsck": check,
    "repair": repair,
    "layout": layout,
    "inspect": inspect,
    "savepoint": savepoint,
    "restore": restore,
    "rebucket": rebucket,
    "query": query,
    "changes": changes,
    "lineage": lineage,
    "erase": erase,
    "revert": revert,
    "console": console,
}
#: Command on the history table -> its arguments, and a part of the refusal.
REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "why": ((H, "1"), "is a version already"),
    "lineage --key": ((H, "--key", "1"), "is a version already"),
    "verify": ((H,), "the source has no versions to compare with"),
    "table resync": ((H,), "the source has no versions to fetch"),
    "revert --table": (("--transaction", gtid(2), "--yes", "--table", H), "a revert is not in it"),
    "backfill": ((H, "--columns", "region", "--from", "IN"), "a backfill would change what was"),
}


@pytest.mark.first(1)
@pytest.mark.parametrize("command", ANSWERED)
def test_it_is_done_and_the_stream_goes_on(tmp_path: Path, command: str) -> None:
    bank = bank_of(tmp_path)
    ANSWERED[command](bank)
    assert stored(bank) == expected(bank)
    bank.transact(9, [Change("a", bank.rows["a"][5], None), Change("a", None, account(9, 1))])
    bank.run_stream()
    assert stored(bank) == expected(bank)
    assert bank.lake_rows() == bank.rows["a"]
    found = fsck(open_storage(str(table_of(bank))), grace_ms=0).findings
    assert [one.what for one in found if one.severity is Severity.ERROR] == []


@pytest.mark.first(2)
@pytest.mark.parametrize("command", REFUSED)
def test_it_is_refused_with_the_reason(tmp_path: Path, command: str) -> None:
    bank = bank_of(tmp_path)
    arguments, why = REFUSED[command]
    pq.write_table(pa.table({"id": [1], "region": ["x"]}), tmp_path / "in.parquet")
    name, _, option = command.partition(" --")
    result = bank.run(name, *(str(tmp_path / "in.parquet") if one == "IN" else one for one in arguments))
    assert isinstance(result.exception, UnsupportedError), (option, result.output)
    assert why in result.exception.what
    assert stored(bank) == expected(bank)


def told_changes(bank: Bank) -> list[tuple[Any, ...]]:
    """id, number of the transaction, what the change did, balance."""
    told: list[tuple[Any, ...]] = []
    for number, changes in bank.transactions.items():
        for one in changes:
            kinds = ("insert", "delete") if None in (one.before, one.after) else ("update_postimage", "update_preimage")
            images = zip(kinds, (one.after, one.before), strict=True)
            told += [(one.key, number, kind, image["balance"]) for kind, image in images if image is not None]
    return sorted(told)


def stored_changes(bank: Bank) -> list[tuple[Any, ...]]:
    """The same of the table of changes, through hudi-rs."""
    rows = hudi_rs.snapshot(table_of(bank)).to_pylist()
    return sorted((row["id"], number_of(row["valid_from"]) or 0, row["change_type"], row["balance"]) for row in rows)


@pytest.mark.full
def test_a_table_of_changes_answers_too(tmp_path: Path) -> None:
    bank = bank_of(tmp_path, "changes")
    assert stored_changes(bank) == told_changes(bank)
    for act in (audit, check, layout, compact, clean, archive, rebucket):
        act(bank)
        assert stored_changes(bank) == told_changes(bank)
    for command, (arguments, why) in REFUSED.items():
        name, _, option = command.partition(" --")
        if "IN" not in arguments:
            refused = bank.run(name, *arguments)
            assert isinstance(refused.exception, UnsupportedError), (option, refused.output)
            assert why in refused.exception.what
    assert done(bank, "erase", "shop.a", "1", "--yes").count("nothing is left") == 2
    for number in bank.transactions:
        bank.transactions[number] = tuple(c for c in bank.transactions[number] if c.key != 1)
    assert stored_changes(bank) == told_changes(bank)
    assert scan(open_storage(str(table_of(bank))), Quarry(frozenset(["1", "id:1"]), frozenset([b"owner-1"]))).is_clean


@pytest.mark.full
def test_a_bitemporal_table_answers_too(tmp_path: Path) -> None:
    bank = bank_of(tmp_path, "bitemporal")

    def known() -> list[Version]:
        """The versions that the table knows now; those that it knew before are there too."""
        rows = hudi_rs.snapshot(table_of(bank)).to_pylist()
        now = [row for row in rows if row["known_to"] is None]
        assert len(rows) > len(now)
        versions = [(r["id"], r["balance"], number_of(r["valid_from"]) or 0, number_of(r["valid_to"])) for r in now]
        return sorted(versions, key=lambda one: (one[0], one[2]))

    for act in (audit, check, layout, compact, clean, archive, rebucket):
        act(bank)
        assert known() == expected(bank)
    assert done(bank, "erase", "shop.a", "1", "--yes").count("nothing is left") == 2
    for number in bank.transactions:
        bank.transactions[number] = tuple(c for c in bank.transactions[number] if c.key != 1)
    assert known() == expected(bank)
    assert scan(open_storage(str(table_of(bank))), Quarry(frozenset(["1", "id:1"]), frozenset([b"owner-1"]))).is_clean


def test_the_docs_have_the_same_commands() -> None:
    text = (ROOT / "docs/history.md").read_text().split("## Commands")[1].split("\n## ")[0]
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in text.splitlines() if line.startswith("| `")]
    told = {name.strip("`"): answer for names, answer in cells for name in names.split(", ")}
    assert told.keys() == {"tag", *ANSWERED, *REFUSED}  # tag, query --at: tests/binlake/cli/test_cuts.py
    assert {name for name, answer in told.items() if answer == "refused"} == {*REFUSED}


def test_one_function_knows_the_source_of_a_history_table(tmp_path: Path) -> None:
    bank = bank_of(tmp_path)
    feeds = Feeds.load(bank.settings)
    assert [one.now for one in feeds.of(SourceTable("shop", "a_h"))] == [SourceTable("shop", "a")]
    assert feeds.histories(SourceTable("shop", "a")) == [SourceTable("shop", "a_h")]
    assert feeds.histories(SourceTable("shop", "b")) == []


def test_a_savepoint_stops_an_erasure_before_a_table_changes(tmp_path: Path) -> None:
    bank = bank_of(tmp_path)
    done(bank, "savepoint create", H)
    refused = bank.run("erase", "shop.a", "1", "--yes")
    assert "savepoints hold the row" in str(refused.exception)
    assert bank.lake_rows() == bank.rows["a"]
    assert done(bank, "erase", "shop.a", "1", "--yes", "--release-savepoints").count("nothing is left") == 2


def test_an_erasure_that_has_died_goes_on_with_its_keys(tmp_path: Path) -> None:
    """Also with those of versions that it has taken out already."""
    bank = bank_of(tmp_path)
    storage = open_storage(str(table_of(bank)))
    gone = ["id:1,start_at:5", "id:11,start_at:5"]
    Ledger(storage, ErasureRecord("20260101000000000", gone)).save()
    table = HudiTable.open(storage)
    keys = version_keys(row_key("1", table), table)
    assert "id:1,start_at:5" in keys
    assert {key.partition(",")[0] for key in keys} == {"id:1"}
    assert len(keys) == 3
