"""``binlake tables``, and what is said of a name that no table has."""

from __future__ import annotations

from pathlib import Path

import pytest

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
