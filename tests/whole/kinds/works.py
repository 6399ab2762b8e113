"""Operations that the matrix tries on a table of accounts, and what must be true after each.

Each raises UnsupportedError where the kind of the table does not have it, and returns what is wrong after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from binlake.decode.changes import SourceTable
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill
from binlake.rows.upsert.target import ORDER_FIELD as _ORDER
from binlake.rows.upsert.truncates import Truncates
from binlake.settings import Settings
from binlake.source.offsets import NO_RANGES
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket, resize
from binlake.tables.services.table_services import TableServices
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.kind_support import TableOperation
from hudilake.format.timeline.instant import REPLACE_COMMIT
from hudilake.read.slice import read_table
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.compaction.scheduling import schedule
from hudilake.services.fsck import Severity, fsck
from hudilake.services.rebucket.units import BucketChange
from hudilake.storage import open_storage
from tests.binlake.proof.history.bank import Bank, Change, account, gtid
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.programs.crash_points.works import lay_out_anew, serially

_A: Final = SourceTable("shop", "a")
Operate = Callable[[Bank], list[str]]


def bank_of(path: Path, rules: Mapping[str, Any]) -> Bank:
    """Six accounts, and a transfer between two of them; of an append table, another account."""
    bank = Bank(path, ("a",), **rules)
    bank.transact(1, [Change("a", None, account(key, 100)) for key in range(6)])
    bank.run_stream()
    if opened(bank).hudi.config.kind.appends:
        bank.transact(2, [Change("a", None, account(6, 100))])
    else:
        bank.transfer(2, 1, 2, 10)
    bank.run_stream()
    return bank


def opened(bank: Bank) -> LakeTable:
    """The table, open for writing."""
    table = Lake(open_storage(str(bank.path), {"fsync": "false"})).get(bank.settings.table_rules(_A))
    assert table is not None
    return table


def wrong(bank: Bank) -> list[str]:
    """What hudi-rs and fsck find wrong, once more events were applied."""
    changes = 3 in bank.rows["a"] and not opened(bank).hudi.config.kind.appends
    gone = [Change("a", bank.rows["a"][3], None)] if changes else []
    bank.transact(9, [*gone, Change("a", None, account(9, 1))])
    bank.run_stream()
    shown, held = bank.lake_rows(), bank.rows["a"]
    found = [f.what for f in fsck(opened(bank).storage, grace_ms=0).findings if f.severity is Severity.ERROR]
    return found if shown == held else [*found, f"hudi-rs shows {shown} for {held}"]


def compaction(bank: Bank) -> list[str]:
    """Every log file is compacted."""
    table = opened(bank).hudi
    if table.config.kind.copies:
        schedule(table, CompactionConfig())
    run(table, CompactionConfig(after_commits=1 << 20, log_ratio=None), serially, now=True)
    return []


def more_buckets(bank: Bank) -> list[str]:
    """From two buckets to three."""
    rebucket(opened(bank), SimpleBuckets(3), "shop", CompactionConfig(), serially)
    return [] if opened(bank).hudi.config.bucket_count == 3 else ["the table has not three buckets"]


def split(bank: Bank) -> list[str]:
    """The first bucket is split."""
    resize(opened(bank), [BucketChange("", (0,))], "shop", CompactionConfig(), serially)
    return []


def clustering(bank: Bank) -> list[str]:
    """All rows are laid out anew, by another column than the key."""
    lay_out_anew(opened(bank))
    return [] if any(i.action == REPLACE_COMMIT for i in opened(bank).hudi.timeline.completed()) else ["no clustering"]


def backfill(bank: Bank) -> list[str]:
    """A column is filled from a file."""
    pq.write_table(pa.table({"id": [0, 1, 99], "score": [0.5, 1.5, 9.5]}), bank.path.parent / "in.parquet")
    request = BackfillRequest(("score",))
    Backfill(bank.settings, "shop.a", request).run(find_input(bank.settings, str(bank.path.parent / "in.parquet")))
    return []


def revert(bank: Bank) -> list[str]:
    """The transfer is undone; the source undoes it, too."""
    done = bank.run("revert", "--transaction", gtid(2), "--yes")
    if isinstance(done.exception, UnsupportedError):
        raise done.exception
    rows = bank.rows["a"]
    for key in (1, 2):
        rows[key] = account(key, 100)
    return [] if done.exit_code == 0 else [done.output]


def why(bank: Bank) -> list[str]:
    """A row tells its two versions."""
    told = bank.json("why", "shop.a", "1")
    return [] if len([line for line in told if line.get("instant")]) >= 1 else [f"why tells {told}"]


def resync(bank: Bank) -> list[str]:
    """All rows of before go, and stay away: what the end of a resync and a TRUNCATE do."""
    newest = max(int(row[_ORDER]) for part in read_table(opened(bank).storage, [_ORDER]) for row in part.to_pylist())
    table = opened(bank)
    report = TableInput(table.report(_A), NO_RANGES, truncates=Truncates(whole=newest))
    with ThreadPoolExecutor(1) as pool:
        write_and_commit(table, report, "shop", bank.batches, pool, TableServices(serially))
    bank.rows["a"].clear()
    return [] if bank.lake_rows() == {} else ["rows of before are left"]


def quarantine_replay(bank: Bank) -> list[str]:
    """A record of a later change of a row, and one of a new row, wait for a column."""
    for at, key in enumerate((1, 7)):
        row = account(key, 55)
        event = bank.event(5, at, Change("a", bank.rows["a"].get(key), row))
        event["after"]["colour"] = "red"
        bank.log.add("s.shop.a", event, {"id": key})
        bank.rows["a"][key] = row
    bank.run_stream()
    document = json.loads(bank.conf.read_text())
    document["source"]["schemas"]["shop.a"]["columns"]["colour"] = "varchar(10)"
    bank.conf.write_text(json.dumps(document))
    bank.settings = Settings.load(bank.conf)
    done = bank.run("quarantine replay")
    return [] if done.exit_code == 0 else [done.output]


def followed(path: Path, rules: Mapping[str, Any], key: tuple[str, ...] = ("id",)) -> tuple[DdlSource, Follower]:
    """Ten rows of a table that has two partitions at the source."""
    source = DdlSource()
    options = " PARTITION BY RANGE (n) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN MAXVALUE)"
    source.create("t", {"id": "int", "n": "int"}, options=options, key=key)
    for number in range(10):
        source.put("t", number, n=number)
    follower = Follower(source, path, dict(rules))
    follower.run()
    return source, follower


def partition_statement(source: DdlSource, follower: Follower) -> list[str]:
    """The rows of a partition go; some of them come again with the next batch."""
    held = source.tables["t"]
    held.rows = {key: row for key, row in held.rows.items() if row["n"] >= 5}
    source.execute("ALTER TABLE t TRUNCATE PARTITION a", "t", held.columns)
    follower.run()
    source.put("t", 2, n=2)
    source.put("t", 7, n=70)
    return _followed_wrong(source, follower)


def rewritten_column(source: DdlSource, follower: Follower) -> list[str]:
    """A column's values get another type, so every file group is written anew, while a partition's rows go."""
    held = source.tables["t"]
    held.rows = {key: row for key, row in held.rows.items() if row["n"] >= 5}
    source.execute("ALTER TABLE t TRUNCATE PARTITION a", "t", held.columns)
    source.execute("ALTER TABLE t MODIFY n VARCHAR(9)", "t", {**held.columns, "n": "varchar(9)"})
    held.rows = {key: {**row, "n": str(row["n"])} for key, row in held.rows.items()}
    follower.run()
    source.put("t", 2, n="two")
    source.put("t", 7, n="seven")
    return _followed_wrong(source, follower)


def _followed_wrong(source: DdlSource, follower: Follower) -> list[str]:
    follower.run()
    follower.restart()
    source.put("t", 8, n=source.tables["t"].rows[8]["n"])
    source.delete("t", 9)
    follower.run()
    follower.check("t")
    storage = open_storage(str(follower.place / "shop" / "t"))
    return [f.what for f in fsck(storage, grace_ms=0).findings if f.severity is Severity.ERROR]


def another_key(source: DdlSource, follower: Follower) -> list[str]:
    """The table gets a key of two columns."""
    source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, n)", ("id", "n"))
    source.put("t", 12, n=12)
    follower.run()
    if told := [detail for reason, detail in follower.quarantined() if reason == "ddl_refused"]:
        raise UnsupportedError(told[0], do_next="")
    return _followed_wrong(source, follower)


#: What may be refused, by the name that the refusal has.
ASKED: Final[Mapping[TableOperation, Operate]] = {
    TableOperation.COMPACTION: compaction,
    TableOperation.CLUSTERING: clustering,
    TableOperation.REBUCKET: more_buckets,
    TableOperation.SPLIT: split,
    TableOperation.BACKFILL: backfill,
    TableOperation.REVERT: revert,
}
WITH_EVENTS: Final[Mapping[str, Operate]] = {"why": why, "resync": resync, "quarantine replay": quarantine_replay}
OF_STATEMENTS: Final = {"partition statement": partition_statement, "rewritten column": rewritten_column}
