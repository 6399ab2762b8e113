"""``binlake load`` as a command: killed with -9, refused before anything is written, and what it prints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.commands.stream.check_load import unfinished
from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import parse_type
from binlake.load.first.run import FirstLoad, LoadOptions
from binlake.load.first.table_plan import LoadPlan
from binlake.proof.history.commits import CommitKind, CommitLog
from binlake.source.database.source_table import DescribedTable, SourceColumn
from binlake.tables.lake import Lake
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import ConfigError, LakeError, UnsupportedError
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.load.first.changing import ChangingTables
from tests.binlake.stream.topic_log import settings

pytestmark = pytest.mark.database


@pytest.fixture
def tables(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> Iterator[ChangingTables]:
    made = ChangingTables(server, tmp_path, database, {"defaults": {"buckets": 2}}, 7)
    made.sent.more = {}  # with locks: a dead process leaves them
    made.fill(60)
    made.sent.settings()
    yield made
    made.close()


def run(tables: ChangingTables, *options: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, JSON lines and standard error of the command."""
    done = CliRunner().invoke(app, ["load", str(tables.sent.conf), "--no-connector-check", "--json", *options])
    error = done.exception if isinstance(done.exception, LakeError) else None
    code = error.exit_code if error is not None else done.exit_code
    return code, [json.loads(line) for line in done.stdout.splitlines()], f"{done.stderr}{error or ''}"


@pytest.mark.full
def test_a_load_that_is_killed_goes_on(tables: ChangingTables) -> None:
    timeline = tables.place / "lake" / tables.database / "items" / ".hoodie" / "timeline"
    options = ["--no-connector-check", "--chunk-rows", "5", "--commit-rows", "10", "--rows-per-second", "20", "--json"]
    names = [f"{tables.database}.items"]
    command = [sys.executable, "-m", "binlake.cli", "load", str(tables.sent.conf), *names, *options]
    killed = 0
    for wanted in (3, 5):  # the first commit has no rows, each other one ten
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list(timeline.glob("*.deltacommit"))) < wanted:
            tables.change(1)
            time.sleep(0.02)
        process.kill()
        killed += process.wait() == -signal.SIGKILL
    code, lines, errors = run(tables)
    assert code == 0, errors
    assert killed
    assert {line["state"] for line in lines} <= {"loaded", "there"}
    [before] = [line["before"] for line in lines if line["before"]]
    assert before >= 20
    tables.change(20)
    tables.sent.apply()
    tables.check()
    log = CommitLog.of(HudiTable.open(open_storage(str(timeline.parents[1]))), tables.sent.settings().name)
    kinds = {commit.kind for commit in log.commits.values()}
    assert kinds == {CommitKind.LOAD, CommitKind.STREAM}, "binlake why and lineage name the load"


def test_half_a_table_is_no_table(tables: ChangingTables) -> None:
    """The stream and all other writers stay away from it."""
    asked = iter([False, False, True])

    class Stop:
        def is_set(self) -> bool:
            return next(asked, True)

    config = tables.sent.settings()
    limits = config.source.database.load.model_copy(update={"chunk_rows": 5, "commit_rows": 10})
    load = FirstLoad(config, LoadOptions(connector_check=False, limits=limits), stop=Stop())  # type: ignore[arg-type]
    [stopped] = load.run([f"{tables.database}.items"])
    assert stopped.state == "stopped"
    rules = config.table_rules(SourceTable(tables.database, "items"))
    root = open_storage(config.lake.uri)
    with pytest.raises(ConfigError, match="interrupted after"):
        Lake(root).get(rules)
    [error] = [one.error for one in unfinished(config, root)]
    assert error is not None
    assert "run binlake load again" in error.do_next
    for command in ("status", "tables"):
        said = CliRunner().invoke(app, [command, str(tables.sent.conf)]).stdout
        assert f"{tables.database}.items: its first load is not at its end, after " in said, said
    tables.load()
    assert list(unfinished(config, root)) == []
    assert Lake(root).get(rules) is not None


def test_a_type_that_is_not_known_is_refused() -> None:
    columns = (SourceColumn("id", "int", parse_type("int"), False), SourceColumn("v", "vector(3)", None, True))
    described = DescribedTable(SourceTable("shop", "t"), columns, ("id",), 1, "InnoDB")
    config = settings("/nowhere", ["t"])
    with pytest.raises(UnsupportedError, match="has the type vector"):
        LoadPlan.of(config, described)
    kept = settings("/nowhere", ["t"], tables={"defaults": {"columns": {"exclude": ["v"]}}})
    assert [column.name for column, _ in LoadPlan.of(kept, described).columns] == ["id"]


REFUSED: dict[str, tuple[Callable[[ChangingTables], list[str]], str]] = {
    "no snapshots": (lambda t: _made(t, "isam", "id INT PRIMARY KEY", "ENGINE=MyISAM"), "has no consistent snapshot"),
    "versions": (
        lambda t: _made(t, "versions", "id INT PRIMARY KEY", "WITH SYSTEM VERSIONING"),
        "the server keeps former versions of its rows",
    ),
    "no table": (lambda t: [f"{t.database}.none"], "the source has no such table"),
    "left out": (lambda t: ["other.t"], "the settings leave this table out"),
}


def _made(tables: ChangingTables, name: str, columns: str, more: str = "") -> list[str]:
    tables.server.execute(f"CREATE TABLE {tables.database}.{name} ({columns}) {more}")
    return [f"{tables.database}.{name}"]


@pytest.mark.full
@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_loaded_is_refused(tables: ChangingTables, case: str) -> None:
    make, words = REFUSED[case]
    code, _, error = run(tables, *make(tables))
    assert code != 0
    assert words in error
    assert not list((tables.place / "lake").rglob("hoodie.properties"))


@pytest.mark.full
def test_a_table_of_the_stream_is_not_loaded_over(tables: ChangingTables) -> None:
    tables.sent.apply()
    code, lines, error = run(tables, f"{tables.database}.items")
    assert (code, lines[0]["state"]) == (2, "failed")
    assert "its rows came from the stream" in error
    code, lines, _ = run(tables, "--replace")
    assert (code, {line["state"] for line in lines}) == (0, {"loaded"})
    tables.change(20)
    tables.sent.apply()
    tables.check()


def test_somebody_must_read_the_binlog(tables: ChangingTables) -> None:
    with pytest.raises(ConfigError, match="nobody reads the server's binlog"):
        list(FirstLoad(tables.sent.settings()).run())


@pytest.mark.full
def test_values_that_no_type_holds_are_named(tables: ChangingTables) -> None:
    _made(tables, "days", "id INT PRIMARY KEY, day DATE")
    tables.server.execute(
        f"SET sql_mode = 'ALLOW_INVALID_DATES'; INSERT INTO {tables.database}.days VALUES (1, '2024-02-31')"
    )
    code, lines, error = run(tables)
    states = {line["table"].partition(".")[2]: line["state"] for line in lines}
    assert code == 65
    assert "2024-02-31" in error
    assert states.pop("days") == "failed"
    assert set(states.values()) == {"loaded"}  # the others go on


def test_a_table_with_versions_is_not_passed_over(tables: ChangingTables) -> None:
    _made(tables, "versions", "id INT PRIMARY KEY", "WITH SYSTEM VERSIONING")
    code, lines, error = run(tables)
    states = {line["table"].partition(".")[2]: line["state"] for line in lines}
    assert code == 69
    assert "former versions of its rows" in error
    assert states.pop("versions") == "failed"
    assert set(states.values()) == {"loaded"}
