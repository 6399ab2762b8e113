"""``binlake replay`` and ``binlake dump`` as people call them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.cli.commands.loads.replay import window_of
from binlake.settings import Settings, SettingsError
from binlake.source.dump_layout import Window
from hudilake.errors import BadInputError, ConfigError, LakeError
from tests.binlake.load.replay.dumped import HOUR, lines_of, write
from tests.binlake.load.replay.test_replay import check, dumped
from tests.binlake.stream.test_exactly_once import row, rows_of
from tests.binlake.stream.topic_log import COLUMNS, event

NOON = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()) // 3600


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    schemas = {f"shop.{t}": {"columns": COLUMNS, "key": ["id"]} for t in ("accounts", "orders")}
    document: dict[str, Any] = {
        "name": "shop",
        "lake": {"uri": str(tmp_path / "lake"), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["s.shop.accounts"]},
        "source": {"schemas": schemas},
        "dump": {"path": "{database}.{table}/dt={date}/hour={hour}/*"},
    }
    (tmp_path / "shop.yaml").write_text(json.dumps(document))
    return tmp_path / "shop.yaml"


def run(conf: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["replay", str(conf), "--in-process", *arguments])


def test_a_replay_and_its_verdict(conf: Path, tmp_path: Path) -> None:
    dumped(tmp_path / "dumps")
    told = run(conf, "--from", str(tmp_path / "dumps"), "--hour", "2025-10-09T08")
    assert told.exit_code == 0
    assert "2 files of 2025-10-09T08 to 2025-10-09T08: 0 replayed before, 2 taken" in told.stdout
    line = "shop.orders: read 20 = applied 20 + superseded 0 + filtered 0 + quarantined 0; 1 commit"
    assert line in told.stdout
    rest = run(conf, "--from", str(tmp_path / "dumps"), "--since", "2025-10-09")
    assert "4 files of 2025-10-09T08 to 2025-10-09T09: 2 replayed before, 2 taken" in rest.stdout
    assert "of no table: 0 that change no row, 1 quarantined" in rest.stdout
    check(tmp_path / "lake")
    again = run(conf, "--from", str(tmp_path / "dumps"), "--day", "2025-10-09")
    assert "4 replayed before, 0 taken" in again.stdout
    assert "nothing to do" in again.stdout


@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (["--hour", "2025-10-09T10"], 0, "no such files, though older and newer ones"),
        (["--hour", "2025-10-09T12"], 75, "and none of later ones"),
        (["--since", "2025-10-10"], 75, "and none of later ones"),
        (["--day", "2015-10-09"], 2, "begins after these hours"),
    ],
)
def test_hours_without_a_file(conf: Path, tmp_path: Path, asked: list[str], code: int, words: str) -> None:
    """Only between other hours is it known that nothing happened in one; it was taken for that everywhere."""
    dumped(tmp_path / "dumps")
    write(tmp_path / "dumps", "orders", HOUR + 3, "a.jsonl", lines_of([event("orders", "c", 9000, row(77))]))
    told = run(conf, "--from", str(tmp_path / "dumps"), *asked)
    error = told.exception if isinstance(told.exception, LakeError) else None
    assert (error.exit_code if error is not None else told.exit_code) == code
    assert words in (str(error) if error is not None else told.stdout)


def test_files_of_another_form_are_not_passed_over(conf: Path, tmp_path: Path) -> None:
    dumped(tmp_path / "dumps")
    document = json.loads(conf.read_text())
    conf.write_text(json.dumps(document | {"dump": {"path": "{topic}/dt={date}/hour={hour}/*.parquet"}}))
    told = run(conf, "--from", str(tmp_path / "dumps"), "--hour", "2025-10-09T08")
    assert isinstance(told.exception, ConfigError)
    assert "of the form {topic}/dt={date}/hour={hour}/*.parquet" in str(told.exception)


def test_json_for_programs(conf: Path, tmp_path: Path) -> None:
    dumped(tmp_path / "dumps")
    told = run(conf, "--from", str(tmp_path / "dumps"), "--json")
    *progress, verdict = [json.loads(line) for line in told.stdout.splitlines()]
    assert [p["batch_id"] for p in progress] == [0]
    assert (verdict["found"], verdict["covered"], len(verdict["taken"])) == (4, 0, 4)
    assert verdict["tables"]["shop.accounts"]["commits"] == 1


def test_a_file_written_again(conf: Path, tmp_path: Path) -> None:
    dumps = tmp_path / "dumps"
    write(dumps, "orders", HOUR, "a.jsonl", lines_of([event("orders", "c", 1, row(1))]))
    run(conf, "--from", str(dumps))
    path = write(dumps, "orders", HOUR, "a.jsonl", lines_of([event("orders", "c", 2, row(22))]))
    refused = run(conf, "--from", str(dumps))
    assert isinstance(refused.exception, BadInputError)
    assert "--rewritten" in str(refused.exception)
    left = run(conf, "--from", str(dumps), "--rewritten", "skip")
    assert f"1 file was written again since: {path}" in left.stdout
    assert "1 taken" in run(conf, "--from", str(dumps), "--rewritten", "take").stdout
    assert isinstance(run(conf, "--from", str(dumps), "--rewritten", "no").exception, ConfigError)


def test_hours_from_before_a_failover(conf: Path, tmp_path: Path) -> None:
    """The binlog's numbers began anew: an old event keeps its own epoch, and does not beat a newer one."""
    raised = json.loads(conf.read_text())
    raised["source"]["epoch"] = 1
    conf.write_text(json.dumps(raised))
    dumps = tmp_path / "dumps"
    write(dumps, "orders", HOUR + 1, "a.jsonl", lines_of([event("orders", "u", 4, row(1, "new"))]))
    write(dumps, "orders", HOUR, "a.jsonl", lines_of([event("orders", "u", 900, row(1, "old"))]))
    run(conf, "--from", str(dumps), "--since", "2025-10-09T09")
    assert run(conf, "--from", str(dumps), "--until", "2025-10-09T09", "--epoch", "0").exit_code == 0
    assert [r[1] for r in rows_of(tmp_path / "lake", "orders")] == ["new"]
    assert isinstance(run(conf, "--from", str(dumps), "--epoch", "2").exception, ConfigError)


def test_windows() -> None:
    assert window_of(None, None, None, None) == Window()
    assert window_of("2026-11-21T12", None, None, None) == Window(NOON, NOON + 1)
    assert window_of(None, "2026-11-21", None, None) == Window(NOON - 12, NOON + 12)
    assert window_of(None, None, "2026-11-21T12:00", "2026-11-22") == Window(NOON, NOON + 12)
    assert window_of(None, None, "2026-11-21T13+01:00", None) == Window(NOON)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("2026-11-21T12", "2026-11-21", None, None), "exclude each other"),
        (("2026-11-21T12", None, "2026-11-21", None), "exclude each other"),
        (("noon", None, None, None), "not a time"),
        (("2026-11-21T12:30", None, None, None), "whole hours"),
        ((None, "2026-11-21T12", None, None), "not a day"),
        ((None, None, "2026-11-22", "2026-11-21"), "the window is empty"),
        ((None, None, "2026-11-22", "2026-11-22"), "the window is empty"),
    ],
)
def test_windows_that_are_none(given: tuple[str | None, str | None, str | None, str | None], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        window_of(*given)


def test_where_dumps_go_must_be_said(conf: Path) -> None:
    told = CliRunner().invoke(app, ["dump", str(conf), "--once"])
    assert isinstance(told.exception, ConfigError)
    assert "dump.uri" in str(told.exception)


@pytest.mark.parametrize(
    ("dump", "words"),
    [
        ({"path": "{database}/{date}/{hour"}, "is no template"),
        ({"path": "{database}/{week}/*"}, "may not name week"),
        ({"path": "{database}.{table}/*"}, "must name the day"),
        ({"path": "/{date}/*"}, "must be a relative path"),
        ({"path": "{date}/../*"}, "must be a relative path"),
        ({"path": "{date}/{table}"}, "without placeholders"),
        ({"path": "x*/{date}/*"}, "only as its last part"),
        ({"path": "_ddl/{date}/*"}, "same directory"),
        ({"ddl_path": "../x"}, "without placeholders"),
        ({"roll_seconds": 0}, "must be > 0"),
    ],
)
def test_mistakes_of_the_settings(dump: dict[str, Any], words: str) -> None:
    document = {
        "name": "s",
        "lake": {"uri": "/l"},
        "kafka": {"bootstrap_servers": "h:1", "topics": ["a"]},
        "dump": dump,
    }
    with pytest.raises(SettingsError, match=words) as caught:
        Settings.parse(json.dumps(document))
    assert "dump" in str(caught.value.problems[0])


@pytest.mark.parametrize(
    ("lake", "dumps", "same"),
    [
        ("s3://a/b", "s3://c/d", True),
        ("s3://a/b", "hdfs://n:1/d", False),
        ("/a", "file:///b", True),
        ("/a:b/c", "/d", True),
    ],
)
def test_whose_options_a_dump_is_opened_with(lake: str, dumps: str, same: bool) -> None:
    document: dict[str, Any] = {"name": "s", "lake": {"uri": lake, "options": {"a": "1"}}}
    document["kafka"] = {"bootstrap_servers": "h:1", "topics": ["a"]}
    settings = Settings.parse(json.dumps(document))
    assert settings.dump.storage_options(dumps, settings.lake) == ({"a": "1"} if same else {})
    own = Settings.parse(json.dumps({**document, "dump": {"options": {"b": 2}}}))
    assert own.dump.storage_options(dumps, own.lake) == {"b": "2"}


def test_a_replay_keeps_the_quarantine_of_its_stream(conf: Path, tmp_path: Path) -> None:
    write(tmp_path / "dumps", "orders", HOUR, "a.jsonl", b"{broken\n")
    run(conf, "--from", str(tmp_path / "dumps"))
    listed = CliRunner().invoke(app, ["quarantine", "list", str(conf), "--json"])
    assert listed.exit_code == 0
    assert "malformed_json" in listed.stdout
    assert (tmp_path / "lake" / "_quarantine" / "shop").is_dir()
