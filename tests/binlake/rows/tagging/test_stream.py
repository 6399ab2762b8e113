"""Tables whose index is looked up through whole batches: moves between partitions, as Hudi Spark makes them.

The events are those of ``mor_global_bloom`` of Hudi Spark 1.2.0: a row moves twice, a late event names another
partition than its row's, and so does a delete. Without Spark and Kafka; hudi-rs reads, fsck and audit look on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlake.rows.tagging.deletes import keep_deletes
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.audit import OFFSET_KEYS, audit
from binlake.tables.kinds import looked_up
from hudilake.format.files.view import FileSlice
from hudilake.format.timeline.instant import Instant
from hudilake.locking.choose import LockConfig
from hudilake.locking.ownership import Locking
from hudilake.policies import IndexType, TableType
from hudilake.services.compaction import CompactionConfig, run, schedule
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.judges import hudi_rs
from tests.logged import events

TOPIC = "s.shop.accounts"
GLOBAL: tuple[IndexType, ...] = ("global_simple", "record_index")
TYPES: tuple[TableType, ...] = ("merge_on_read", "copy_on_write")


def config(path: Path, index: IndexType, table_type: TableType, **rules: Any) -> Settings:  # noqa: ANN401 - YAML values
    """A stream of one table, partitioned by region."""
    defaults = {
        "index": {"type": index},
        "type": table_type,
        "partition": {"column": "region"},
        "compaction": {"mode": "off"},
        **rules,
    }
    return settings(str(path), ["accounts"], tables={"defaults": defaults})


def put(log: TopicLog, pos: int, key: int, region: str, op: str = "u", *, stays: bool = False) -> None:
    """An event; without a before image, unless the row ``stays`` in its partition."""
    row = {"id": key, "owner": f"at {pos}", "balance": "AfQ=", "region": region}
    log.add(TOPIC, event("accounts", op, pos, row, row | {"owner": "before"} if stays else None), {"id": key})


def feed(path: Path, given: Settings, log: TopicLog, batch: int) -> ProgressEvent:
    """What came since the last batch, by a process of its own."""
    made = runner(given, open_storage(str(path), {"fsync": "false"}))
    try:
        return made.run(batch, log.end(), 0, LocalEngine(log))
    finally:
        made.close()


def first_rows() -> TopicLog:
    """Twelve rows in three partitions."""
    log = TopicLog()
    for key in range(12):
        put(log, 100 + key, key, ["eu", "us", "ap"][key % 3], "c")
    return log


def rows(path: Path) -> dict[int, tuple[str, str, str]]:
    """Each row through hudi-rs, when fsck and audit find nothing wrong."""
    table = path / "shop" / "accounts"
    storage = open_storage(str(table))
    found = [*fsck(storage, OFFSET_KEYS, grace_ms=0).findings, *audit(storage).findings]
    assert [(f.what, f.where) for f in found if f.severity is Severity.ERROR] == []
    read = hudi_rs.snapshot(table).to_pylist()
    told = {r["id"]: (r["owner"], r["region"], r["_hoodie_partition_path"]) for r in read}
    assert len(told) == len(read)
    return told


def slices(path: Path) -> dict[str, list[FileSlice]]:
    """The file slices by partition."""
    made: dict[str, list[FileSlice]] = {}
    for piece in HudiTable.open(open_storage(str(path / "shop" / "accounts"))).file_slices():
        made.setdefault(piece.partition_path, []).append(piece)
    return made


def expected() -> dict[int, tuple[str, str, str]]:
    """After the first rows."""
    regions = ["eu", "us", "ap"]
    return {k: (f"at {100 + k}", regions[k % 3], f"region={regions[k % 3]}") for k in range(12)}


@pytest.mark.first(3)
@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("index", GLOBAL)
def test_rows_move_between_partitions(
    tmp_path: Path, index: IndexType, table_type: TableType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "binlake")
    given, log, wanted = config(tmp_path, index, table_type), first_rows(), expected()
    feed(tmp_path, given, log, 0)
    assert {path: len(pieces) for path, pieces in slices(tmp_path).items()} == dict.fromkeys(
        ("region=ap", "region=eu", "region=us"), 1
    )
    put(log, 200, 0, "us")
    put(log, 201, 3, "eu")
    put(log, 202, 12, "eu", "c")
    told = feed(tmp_path, given, log, 1)
    wanted |= {0: ("at 200", "us", "region=us"), 3: ("at 201", "eu", "region=eu"), 12: ("at 202", "eu", "region=eu")}
    assert rows(tmp_path) == wanted
    assert told.stage_ms["tag"] > 0
    asked = {"keys": 3, "moves": 1, "files": 3 if index == "global_simple" else 4}  # 4 file groups of the record index
    assert {k: events(caplog)["tagged"][k] for k in ("keys", "moves", "files")} == asked
    put(log, 50, 1, "ap")  # late
    put(log, 300, 0, "ap")
    told = feed(tmp_path, given, log, 2)
    assert [(t.applied, t.superseded) for t in told.tables] == [(1, 1)]
    assert rows(tmp_path) == wanted | {0: ("at 300", "ap", "region=ap")}
    put(log, 400, 4, "eu", "d")  # its row is in us
    put(log, 401, 7, "eu")  # leaves the same file group
    put(log, 90, 4, "us")  # older than the delete
    feed(tmp_path, given, log, 3)
    put(log, 91, 4, "us")  # and after it was forgotten
    told = feed(tmp_path, given, log, 4)
    assert [(t.applied, t.superseded) for t in told.tables] == [(0, 1)]
    del wanted[4]
    wanted[7] = ("at 401", "eu", "region=eu")
    assert rows(tmp_path) == wanted | {0: ("at 300", "ap", "region=ap")}
    put(log, 500, 4, "ap", "c")
    put(log, 501, 0, "eu")
    feed(tmp_path, given, log, 5)
    assert rows(tmp_path) == wanted | {4: ("at 500", "ap", "region=ap"), 0: ("at 501", "eu", "region=eu")}


def test_new_rows_go_into_base_files(tmp_path: Path) -> None:
    given, log = config(tmp_path, "simple", "merge_on_read"), first_rows()
    feed(tmp_path, given, log, 0)
    (first,) = slices(tmp_path)["region=eu"]
    put(log, 200, 0, "eu", stays=True)
    feed(tmp_path, given, log, 1)
    (changed,) = slices(tmp_path)["region=eu"]
    assert (changed.base_file, len(changed.log_files)) == (first.base_file, 1)  # an update alone: a log file
    put(log, 300, 3, "eu", stays=True)
    put(log, 301, 12, "eu", "c")
    put(log, 302, 13, "us", "c")
    feed(tmp_path, given, log, 2)
    by_logs = sorted(slices(tmp_path)["region=eu"], key=lambda piece: len(piece.log_files))
    assert [len(piece.log_files) for piece in by_logs] == [0, 2]  # a file group with log files takes no new rows
    (us,) = slices(tmp_path)["region=us"]
    assert us.base_file is not None
    assert us.base_file.name.instant == max(p.base_file.name.instant for p in by_logs if p.base_file is not None)
    assert rows(tmp_path)[13] == ("at 302", "us", "region=us")


@pytest.mark.parametrize("table_type", TYPES)
def test_a_lost_ledger_repeats_nothing(tmp_path: Path, table_type: TableType) -> None:
    given, log = config(tmp_path, "global_simple", table_type), first_rows()
    feed(tmp_path, given, log, 0)
    put(log, 200, 0, "us")
    feed(tmp_path, given, log, 1)
    store = open_storage(str(tmp_path))
    for info in store.list(".binlake/shop"):
        store.delete(info.path)
    before = slices(tmp_path)
    feed(tmp_path, given, log, 2)
    assert slices(tmp_path) == before
    assert len(rows(tmp_path)) == 12


@pytest.mark.parametrize("index", ["simple", "global_simple", "bloom"])
def test_a_deleted_row_that_comes_back_while_its_file_group_is_compacted(tmp_path: Path, index: IndexType) -> None:
    """The old base file still has its key, and the new one will not: the row must not go to a log file between them."""
    given, log = config(tmp_path, index, "merge_on_read"), first_rows()
    feed(tmp_path, given, log, 0)
    put(log, 200, 0, "eu", "d")
    put(log, 201, 3, "eu", stays=True)
    feed(tmp_path, given, log, 1)
    storage = open_storage(str(tmp_path / "shop" / "accounts"), {"fsync": "false"})
    assert schedule(HudiTable.open(storage), CompactionConfig(after_commits=1)) is not None
    put(log, 300, 0, "eu", "c")
    put(log, 301, 3, "eu", stays=True)
    feed(tmp_path, given, log, 2)
    assert len(slices(tmp_path)["region=eu"]) == 2
    run(HudiTable.open(storage), CompactionConfig(after_commits=1), lambda f, some: [f(one) for one in some], now=True)
    put(log, 400, 0, "eu", stays=True)
    put(log, 401, 3, "eu", stays=True)
    feed(tmp_path, given, log, 3)
    eu = "eu", "region=eu"
    assert rows(tmp_path) == expected() | {0: ("at 400", *eu), 3: ("at 401", *eu)}


@pytest.mark.parametrize("index", ["simple", "bloom"])
def test_a_compaction_that_is_scheduled_between_lookup_and_commit(
    tmp_path: Path, index: IndexType, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The batch is written again: otherwise the row that comes back would be in a log file alone, and twice later."""
    caplog.set_level("INFO", "binlake")
    given, log = config(tmp_path, index, "merge_on_read"), first_rows()
    feed(tmp_path, given, log, 0)
    put(log, 200, 0, "eu", "d")
    feed(tmp_path, given, log, 1)
    policy, storage = CompactionConfig(after_commits=1), open_storage(str(tmp_path / "shop" / "accounts"))
    locking = Locking(LockConfig(), "compactor")
    plans: list[Instant | None] = []

    def keep_then_schedule(*args: Any) -> None:  # noqa: ANN401 - the arguments of the wrapped function
        keep_deletes(*args)
        if not plans:
            plans.append(schedule(HudiTable.open(storage, locking=locking), policy))

    monkeypatch.setattr(looked_up, "keep_deletes", keep_then_schedule)
    put(log, 300, 0, "eu", "c")
    root = open_storage(str(tmp_path), {"fsync": "false"})
    made = runner(given, root, Locking(LockConfig(), "stream"))
    made.run(2, log.end(), 0, LocalEngine(log))
    made.close()
    assert plans != [None]
    assert "overtaken" in events(caplog)
    run(HudiTable.open(storage, locking=locking), policy, lambda f, some: [f(one) for one in some], now=True)
    put(log, 400, 0, "eu", stays=True)
    feed(tmp_path, given, log, 3)
    assert rows(tmp_path) == expected() | {0: ("at 400", "eu", "region=eu")}


def test_base_files_that_were_filled_up_are_cleaned(tmp_path: Path) -> None:
    given, log = config(tmp_path, "simple", "merge_on_read", retention={"commits": 2}), first_rows()
    feed(tmp_path, given, log, 0)
    storage = open_storage(str(tmp_path), {"fsync": "false"})
    made = runner(given, storage)
    for number in range(1, 26):
        put(log, 200 + number, 100 + number, "eu", "c")
        made.run(number, log.end(), 0, LocalEngine(log))
    made.close()
    files = [info.path for info in storage.list("shop/accounts/region=eu") if info.path.endswith(".parquet")]
    assert len(files) < 25
    assert len(rows(tmp_path)) == 12 + 25
