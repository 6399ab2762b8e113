"""Each command takes ``--json``, and prints what its schema in docs/schemas says, which is that of the values' types.

``tests/json_lines.py`` holds each command that any test runs with ``--json`` to its schema; here are those that need no
service.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.typer_extras import LazyCommand
from binlake.proof.verify.result import Cell, DifferenceKind, RowDifference, TableResult
from docs.json_lines import LINES
from docs.json_schemas import SCHEMAS, path, text
from tests.binlake.cli.fed_lake import FedLake
from tests.json_lines import command_of, validated, validator

#: Command -> its words behind the settings file; {commit}: a commit of shop.a.
RUNS: list[tuple[str, tuple[str, ...]]] = [
    ("status", ("--no-kafka",)),
    ("tables", ()),
    ("top", ("--no-kafka",)),
    ("audit", ("--commits",)),
    ("cuts", ()),
    ("why", ("shop.a", "2")),
    ("lineage", ("shop.a", "--key", "2")),
    ("lineage", ("shop.a", "--source")),
    ("table pause", ("shop.a",)),
    ("table resume", ("shop.a",)),
    ("quarantine list", ()),
    ("quarantine list", ("--records",)),
    ("quarantine show", ()),
    ("quarantine replay", ("--dry-run",)),
    ("quarantine replay", ()),
    ("compact", ("--now",)),
    ("cluster", ("--now",)),
    ("clean", ()),
    ("archive", ()),
    ("savepoint create", ("shop.a", "--comment", "before")),
    ("savepoint list", ("shop.a",)),
    ("rebucket", ("shop.b", "--buckets", "4", "--dry-run")),
    ("rebucket", ("shop.b", "--buckets", "4")),
    ("restore", ("shop.a", "before", "--dry-run")),
    ("restore", ("shop.a", "before", "--yes")),
    ("savepoint delete", ("shop.a", "{savepoint}")),
]
#: The same with the settings file behind --conf.
OF_TABLES: list[tuple[str, tuple[str, ...]]] = [
    ("inspect", ("shop.a",)),
    ("fsck", ("shop.a",)),
    ("repair", ("shop.a", "--yes")),
    ("query", ("select * from shop.a",)),
    ("explain", ("select * from shop.a where id = 1",)),
    ("changes", ("shop.a", "--since", "earliest")),
    ("layout", ("shop.a",)),
]


def leaves(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, list[str]]]:  # noqa: ANN401 - click's
    """The commands without subcommands, each with its options."""
    command = command.real() if isinstance(command, LazyCommand) else command
    below = getattr(command, "commands", {})
    if not below:
        yield " ".join(words), [option for param in command.params for option in param.opts]
    for name, one in below.items():
        yield from leaves(one, (*words, name))


def every_command() -> dict[str, list[str]]:
    return dict(leaves(typer.main.get_command(app)))


def test_each_command_takes_json_and_has_a_schema() -> None:
    commands = every_command()
    assert len(commands) > 40
    assert {name for name, options in commands.items() if "--json" not in options} == set()
    assert set(LINES) == set(commands)


def test_the_schemas_are_those_of_the_types() -> None:
    assert set(SCHEMAS.iterdir()) == set(map(path, LINES))
    for command in LINES:
        assert path(command).read_text() == text(command), "run make docs"
        jsonschema.Draft202012Validator.check_schema(json.loads(text(command)))


@pytest.mark.full
def test_commands_print_what_the_schemas_say(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(3)
    lake.log.add("s.shop.a", b"{no JSON", None)
    lake.feed(1)
    printed: dict[str, list[Any]] = {}
    saved = ""
    for command, words in RUNS:
        words = tuple(word.format(savepoint=saved) for word in words)
        done = lake.run(command, *words, "--json")
        assert done.exit_code == 0, (command, done.output)
        printed.setdefault(command, []).extend(validated(command, done.stdout))
        saved = printed["savepoint create"][0]["instant"] if command == "savepoint create" else saved
    for command, words in OF_TABLES:
        done = CliRunner().invoke(app, [command, *words, "--conf", str(lake.conf), "--json"])
        assert done.exit_code == 0, (command, done.output)
        printed.setdefault(command, []).extend(validated(command, done.stdout))
    empty = {command for command, lines in printed.items() if not lines}
    assert empty == {"cuts", "fsck"}  # nothing to tell of this lake
    for command, lines in printed.items():
        if not lines or LINES[command][0].rows:
            continue
        for wrong in ({**lines[0], "more": 1}, {**lines[0], next(iter(lines[0])): {"no": "such type"}}):  # the control
            with pytest.raises(jsonschema.ValidationError):
                validator(command).validate(wrong)


def test_a_command_that_would_ask_asks_nothing(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(2)
    conf = str(lake.conf)
    for words in (
        ["restore", conf, "shop.a", lake.commits()[0]],
        ["repair", f"{lake.path}/shop/a"],
        ["revert", conf, "--transaction", "0-1-1"],
        ["erase", conf, "shop.a", "1"],
    ):
        done = CliRunner().invoke(app, [*words, "--json"])
        assert done.exit_code != 0
        assert done.stdout == ""
        assert "--json asks nothing" in str(done.exception)


def test_what_verify_writes_has_its_schema() -> None:
    row = RowDifference(DifferenceKind.DIFFERS, {"id": "1"}, (Cell("v", "1", "2"),), "f:4")
    result = TableResult("shop.a", differences=[row])
    line = json.dumps({**result.to_json(), "different": result.different})
    assert len(validated("verify", line)) == 1


def test_the_lines_of_all_tests_are_held() -> None:
    """The control of the fixture: a line that the schema does not know fails the test that printed it."""
    assert command_of(["metastore", "push", "glue", "x"]) == "metastore push glue"
    assert command_of(["none"]) is None
    printing = typer.Typer()

    @printing.command("tables")
    def tables(as_json: bool = typer.Option(False, "--json")) -> None:
        typer.echo('{"table": 1}')

    @printing.command("other")
    def other() -> None: ...

    with pytest.raises(jsonschema.ValidationError):
        CliRunner().invoke(printing, ["tables", "--json"])
    assert CliRunner().invoke(printing, ["tables"]).exit_code == 0
