"""``binlake changes``: tables and JSON lines, and a position that is kept in a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import hudilake
from binlake.cli.app import app
from hudilake.errors import ConfigError
from tests.hudilake.api.tables import keyed, row


@pytest.fixture
def table(tmp_path: Path) -> hudilake.Table:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1), row(2, 1)])
    table.upsert([row(1, 2, "b")])
    table.delete([row(2, 1)])
    return table


def binlake(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def test_a_table_shows_what_changed(table: hudilake.Table) -> None:
    place = table.uri.removeprefix("file://")
    shown = binlake("changes", place, "--since", "earliest").stdout
    assert "name=a -> b" in shown
    assert shown.rstrip().endswith("4 changes")
    assert "the first 2 changes" in binlake("changes", place, "--since", "earliest", "--rows", "2").stdout
    later = binlake("changes", place, "--since", table.history()[1].completed, "--columns", "id")
    assert "delete" in later.stdout
    assert "1 change" in later.stdout


def test_a_position_file_gives_each_change_once(table: hudilake.Table, tmp_path: Path) -> None:
    place, kept = table.uri.removeprefix("file://"), tmp_path / "position.json"

    def lines(*more: str) -> list[dict[str, object]]:
        done = binlake("changes", place, "--position", kept, "--format", "json", *more)
        return [json.loads(line) for line in done.stdout.splitlines()]

    with pytest.raises(ConfigError, match="does not exist yet"):
        lines()
    first = lines("--since", "earliest")
    assert [one["op"] for one in first] == ["i", "i", "u", "d"]
    assert first[2]["before"] == {"id": 1, "name": "a", "day": "d1"}
    assert lines() == []
    table.upsert([row(7, 1)])
    assert [one["after"] for one in lines()] == [{"id": 7, "name": "a", "day": "d1"}]
    with pytest.raises(ConfigError, match="another begin"):
        lines("--since", "earliest")


def test_a_begin_is_asked_for(table: hudilake.Table) -> None:
    place = table.uri.removeprefix("file://")
    with pytest.raises(ConfigError, match="no begin"):
        binlake("changes", place)
    with pytest.raises(ConfigError, match="cannot follow"):
        binlake("changes", place, "--since", "earliest", "--follow")
    last, *_, first = (commit.completed for commit in table.history())
    with pytest.raises(ConfigError, match="the window is empty"):
        binlake("changes", place, "--since", last, "--until", first)
    with pytest.raises(ConfigError, match="is to come"):
        binlake("changes", place, "--since", "2100-01-01")
