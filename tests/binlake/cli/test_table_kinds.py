"""The commands that look at tables, on every kind of table; what is proposed for buckets of hash rings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import Check, CheckOutcome
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event

APPEND: dict[str, Any] = {"kind": "append"}
KINDS = [
    ({"type": "copy_on_write"}, "copy_on_write; index bucket of 2 buckets", "2 buckets, as in the lake"),
    ({"index": {"type": "bloom"}}, "merge_on_read; index bloom;", "index bloom, as in the lake"),
    (
        {"index": {"type": "record_index"}, "type": "copy_on_write"},
        "copy_on_write; index record_index;",
        "index record_index, as in the lake",
    ),
    (
        {"index": {"type": "consistent_bucket"}},
        "merge_on_read; index consistent_bucket of 2 buckets",
        "2 buckets, as in the lake",
    ),
    (APPEND, "merge_on_read; append: rows have no key", "rows are only added"),
    ({**APPEND, "type": "copy_on_write"}, "copy_on_write; append", "rows are only added"),
]
EVERY_KIND = pytest.mark.parametrize(("rules", "shown", "checked"), KINDS, ids=[shown for _, shown, _ in KINDS])


def fed(path: Path, rules: dict[str, Any]) -> FedLake:
    """Three rows in ``shop.a``."""
    lake = FedLake(path, rules)
    for key in range(3):
        row = {"id": key, "owner": f"o{key}", "balance": "AfQ=", "region": "eu"}
        lake.log.add("s.shop.a", event("a", "c", 100 + key, row), {"id": key})
    lake.batches = 1
    assert [t.error for t in lake.runner.run(0, lake.log.end(), 0, lake.engine).tables if t.error] == []
    return lake


def told(lake: FedLake, *words: str) -> str:
    """What a command of one table prints."""
    done = CliRunner().invoke(app, [*words, "--conf", str(lake.conf)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def checked_table(lake: FedLake) -> Check:
    return next(one for one in run_checks(lake.settings, kafka_timeout_s=0.1) if one.name == "table shop.a")


@pytest.mark.first(3)
@EVERY_KIND
def test_commands_on_a_table(tmp_path: Path, rules: dict[str, Any], shown: str, checked: str) -> None:
    lake = fed(tmp_path, rules)
    assert shown in told(lake, "inspect", "shop.a")
    found = checked_table(lake)
    assert (found.verdict, found.detail) == (CheckOutcome.OK, checked)
    assert "to read: file slices 1, " in told(lake, "explain", "shop.a", "select * from t where id = 1")
    counted = "counted in the metadata table: " in told(lake, "explain", "shop.a", "select count(*) from t")
    assert counted == ("consistent" not in shown)  # there the rows are in log files, whose keys may meet
    rows = told(lake, "query", "shop.a", "select id, owner from t where id = 1", "--format", "json")
    assert [json.loads(line) for line in rows.splitlines()] == [{"id": 1, "owner": "o1"}]
    (table,) = lake.json("status", "--no-kafka")[1:]
    assert (table["table"], table["rows"], table["advice"], table["resizes"]) == ("shop.a", 3, None, [])
    assert table["commit"] is not None


@pytest.mark.parametrize(
    ("first", "then", "detail"),
    [
        ({}, {"type": "copy_on_write"}, "type merge_on_read in the lake, copy_on_write in the settings"),
        ({"index": {"type": "bloom"}}, {}, "index bloom in the lake, bucket in the settings"),
        ({}, APPEND, "index bucket in the lake, none in the settings"),
    ],
)
def test_another_kind_is_reported(tmp_path: Path, first: dict[str, Any], then: dict[str, Any], detail: str) -> None:
    lake = fed(tmp_path, first)
    lake.configure(then)
    found = checked_table(lake)
    assert (found.verdict, found.detail.startswith(detail)) == (CheckOutcome.FAILED, True), found.detail


def test_buckets_of_hash_rings_far_from_the_planned_size_are_named(tmp_path: Path) -> None:
    rules: dict[str, Any] = {"index": {"type": "consistent_bucket"}, "files": {"target_bytes": 100, "small_bytes": 1}}
    lake = fed(tmp_path, rules)
    found = checked_table(lake)
    assert found.verdict is CheckOutcome.WARNING
    assert found.detail.endswith("binlake rebucket CONF shop.a --auto")
    proposal = "buckets far from 100 B: 2 to split: binlake rebucket"
    assert proposal in found.detail
    assert proposal in lake.run("status", "--no-kafka").stdout
    (table,) = lake.json("status", "--no-kafka")[1:]
    assert [one["buckets"] for one in table["resizes"]] == [[0], [1]]
    assert lake.run("rebucket", "shop.a", "--auto").exit_code == 0
    lake.configure({"index": {"type": "consistent_bucket"}})
    # Each partition keeps its first two buckets.
    assert "buckets far from 125.8 MB: 3 to merge" in checked_table(lake).detail
