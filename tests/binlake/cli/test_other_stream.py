"""Settings under another name over the lake and the topics of a stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import CheckOutcome
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.tables.lake import Lake
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event, services


def other(lake: FedLake, name: str) -> Settings:
    document = json.loads(lake.conf.read_text())
    return Settings.parse(json.dumps({**document, "name": name}))


def batch(lake: FedLake, settings: Settings, start: int = 0) -> ProgressEvent:
    """A batch of another stream over the same lake, from an offset of each topic on."""
    root = open_storage(str(lake.path), {"fsync": "false"})
    state, ledger = root.sub(f".binlake/{settings.name}"), Ledger(settings.name)
    ledger.begin_at({topic: {0: start} for topic in settings.kafka.topics})
    runner = BatchRunner(settings, Lake(root), state, ledger, SchemaRegistry(settings), services())
    try:
        return runner.run(0, lake.log.end(), 0, lake.engine)
    finally:
        runner.close()


def judged(settings: Settings) -> dict[str, tuple[CheckOutcome, str]]:
    checks = run_checks(settings, kafka_timeout_s=0.1)
    return {one.name: (one.verdict, one.detail) for one in checks if one.name.startswith("writers of")}


def fed(path: Path, *, append: bool) -> FedLake:
    """A lake with two inserted rows in each table."""
    lake = FedLake(path, {"kind": "append", "buckets": 1} if append else {})
    add(lake, 2)
    assert [t.error for t in lake.runner.run(0, lake.log.end(), 0, lake.engine).tables] == [None, None]
    return lake


def add(lake: FedLake, count: int) -> None:
    for table in ("a", "b"):
        first = len(lake.log.records.get((f"s.shop.{table}", 0), ()))
        for key in range(first, first + count):
            row = {"id": key, "owner": "o", "balance": "AfQ=", "region": "eu"}
            lake.log.add(f"s.shop.{table}", event(table, "c", 100 + key, row), {"id": key})


@pytest.mark.parametrize("append", [False, True])
def test_check_names_the_stream_that_writes_the_tables(tmp_path: Path, append: bool) -> None:
    lake = fed(tmp_path, append=append)
    assert judged(lake.settings) == {}
    verdict, detail = judged(other(lake, "again"))["writers of shop.a"]
    assert verdict is (CheckOutcome.FAILED if append else CheckOutcome.WARNING)
    assert detail.startswith("stream shop writes it from the same topics")


def test_rows_are_not_added_twice(tmp_path: Path) -> None:
    lake = fed(tmp_path, append=True)
    commits = lake.commits()
    refused = batch(lake, other(lake, "again"))
    what = "stream shop has added these records to the table already"
    assert [str(t.error).startswith(what) for t in refused.tables] == [True, True]
    assert lake.commits() == commits
    add(lake, 1)
    taken = batch(lake, other(lake, "later"), start=2)  # kafka.start: latest
    assert [(t.error, t.applied) for t in taken.tables] == [(None, 1), (None, 1)]
