"""``binlake tables``, and what is said of a name that no table has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.settings import Settings
from binlake.tables.catalog import open_reader
from hudilake.errors import ConfigError
from tests.binlake.cli.fed_lake import FedLake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> FedLake:
    made = FedLake(tmp_path_factory.mktemp("lake"))
    made.feed(1)
    return made


def test_what_the_tables_are(lake: FedLake) -> None:
    first, second = lake.json("tables")
    assert [first["table"], second["table"]] == ["shop.a", "shop.b"]
    assert (first["path"], first["type"], first["index"], first["buckets"]) == ("shop/a", "merge_on_read", "bucket", 2)
    assert (first["key"], first["partition"], first["former"]) == (["id"], [], "")
    assert Path(first["uri"].removeprefix("file://")) == lake.path / "shop/a"
    text = lake.run("tables").stdout
    assert "shop.a" in text
    assert "bucket (2)" in text


def test_a_lake_without_tables_says_what_makes_them(tmp_path: Path) -> None:
    assert "has no table of stream shop yet; binlake run" in FedLake(tmp_path).run("tables").stdout


def test_an_unknown_name_gets_those_that_are_like_it(lake: FedLake) -> None:
    done = lake.run("tables", "shop.aa")
    assert done.exit_code == 2
    assert "did you mean shop.a" in done.stderr
    assert "did you mean shop.a or shop.b?" in lake.run("status", "--no-kafka", "nothing.alike").stderr


class LakeWithoutDatabases(FedLake):
    """Its paths have the table's name alone."""

    def configure(self, tables: dict[str, Any]) -> None:
        super().configure(tables)
        document = json.loads(self.conf.read_text())
        document["tables"]["path"] = "all/{table}"
        self.conf.write_text(json.dumps(document))
        self.settings = Settings.load(self.conf)


def test_a_table_of_another_database_is_not_read_under_its_path(tmp_path: Path) -> None:
    """``other.a`` has the path of ``shop.a``: its rows were those of ``shop.a``."""
    lake = LakeWithoutDatabases(tmp_path)
    lake.feed(1)
    conf = ["--conf", str(lake.conf)]
    for name in ("shop.a", "all/a"):
        assert ran("inspect", name, *conf).exit_code == 0
        assert open_reader(lake.settings, name).schema.names
    assert ran("query", *conf, "SELECT count(*) FROM shop.a").exit_code == 0
    for words in (
        ["query", "SELECT count(*) FROM other.a"],
        ["changes", "other.a", "--since", "earliest"],
        ["inspect", "other.a"],
    ):
        with pytest.raises(ConfigError, match=r"at its path is shop\.a"):
            ran(*words, *conf)
    with pytest.raises(ConfigError, match=r"at its path is shop\.a"):
        open_reader(lake.settings, "other.a")


def test_a_moment_of_a_name_that_two_tables_have_is_refused(tmp_path: Path) -> None:
    lake = FedLake(tmp_path)
    lake.feed(1)
    table = lake.path / "shop/a"
    sql = "SELECT count(*) FROM x.t JOIN y.t USING (id)"
    given = ["--table", f"x.t={table}", "--table", f"y.t={table}"]
    with pytest.raises(ConfigError, match=r"the query names x\.t and y\.t"):
        ran("query", sql, *given, "--as-of", "t=2999-01-01")
    assert ran("query", sql, *given, "--as-of", "x.t=2999-01-01").exit_code == 0


def ran(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False)
