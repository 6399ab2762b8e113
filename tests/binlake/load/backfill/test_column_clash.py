"""A column that a backfill has added, and one of that name at the source: neither hides the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill
from binlake.settings import Settings
from hudilake.errors import ConfigError
from tests.binlake.load.backfill.lake_with_rows import backfilled, fed, scores, written
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.stream.topic_log import LocalEngine

CLASH = "the source has a column 'score' now, and a backfill has added one"
COLUMNS = {"id": "int", "name": "varchar(40)"}


def followed(path: Path, *, framed: bool = False) -> tuple[DdlSource, Follower]:
    """A table of three rows, whose column ``score`` a backfill has added."""
    source = DdlSource(framed=framed)
    source.create("t", COLUMNS)
    for key in range(3):
        source.put("t", key, name=f"n{key}")
    stream = Follower(source, path / "lake")
    stream.run()
    given = written(
        path / "in.parquet",
        pa.table({"id": pa.array([0, 1, 2], pa.int32()), "score": pa.array([5, 15, 25], pa.int32())}),
    )
    settings = stream.settings()
    Backfill(settings, "shop.t", BackfillRequest(("score",))).run(find_input(settings, given))
    stream.restart()
    return source, stream


def adds(source: DdlSource) -> None:
    source.add("t", "score", "int", 7, "DEFAULT 7")


def renames(source: DdlSource) -> None:
    source.rename("t", "name", "score")


def respells(source: DdlSource) -> None:
    source.add("t", "Score", "int", None)


def columns_stored(stream: Follower) -> dict[int, dict[str, Any]]:
    return stream.stored("t")


def refusals(stream: Follower) -> list[str]:
    """What the stream says of its next batch, which must fail."""
    with pytest.raises(AssertionError):
        stream.run()
    said = stream.told[-1]
    return [table.error for table in said.tables if table.error] + [ddl.error for ddl in said.ddl if ddl.error]


def tried_again(source: DdlSource, stream: Follower) -> None:
    """What a new process does with a table that was stopped."""
    runner, table = stream._runner, SourceTable("shop", "t")
    assert runner is not None
    while table in runner.ledger.behind:
        assert runner.catch_up(table, LocalEngine(source.log)) is not None


@pytest.mark.parametrize("change", [adds, renames, respells], ids=["adds", "renames", "another case"])
@pytest.mark.parametrize("framed", [False, True], ids=["plain", "framed"])
def test_the_source_gets_a_column_that_a_backfill_has_added(
    tmp_path: Path, change: Callable[[DdlSource], None], framed: bool
) -> None:
    """The table stops and keeps what it has; nothing of the source's is counted as applied."""
    source, stream = followed(tmp_path, framed=framed)
    before = columns_stored(stream)
    change(source)
    name = next(name for name in source.tables["t"].columns if name.lower() == "score")
    source.put("t", 1, **{name: 99 if "int" in source.tables["t"].columns[name] else "new"})
    assert CLASH in refusals(stream)[0]
    assert columns_stored(stream) == before
    assert stream.quarantined() == []
    assert [row.applied for event in stream.told[1:] for row in event.tables] == [0]


def test_the_source_gets_such_a_column_and_no_row(tmp_path: Path) -> None:
    """The statement alone does not overwrite the backfilled values by its default. The first row stops the table."""
    source, stream = followed(tmp_path)
    before = columns_stored(stream)
    adds(source)
    stream.run()
    source.put("t", 1, name="seen")
    assert CLASH in refusals(stream)[0]
    assert columns_stored(stream) == before


@pytest.mark.parametrize("kept", [False, True], ids=["left out", "kept under another name"])
def test_what_the_error_advises(tmp_path: Path, kept: bool) -> None:
    source, stream = followed(tmp_path)
    adds(source)
    source.put("t", 1, score=99)
    assert "(columns.exclude: [score]), or also keep its values" in refusals(stream)[0]
    stream.restart()
    stream.sections["columns"] = {"exclude": ["score"]}
    if kept:
        stream.sections["columns"]["computed"] = {"source_score": "score"}
    source.put("t", 2, name="later", score=5)
    stream.run()
    tried_again(source, stream)
    found = columns_stored(stream)
    assert {key: row["score"] for key, row in found.items()} == {0: 5, 1: 15, 2: 25}
    assert found[2]["name"] == "later"
    if kept:
        assert (found[1]["source_score"], found[2]["source_score"]) == (99, 5)


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"computed": {"Score": "id + 1"}}, "which the settings compute"),
        ({"mask": {"score": {"how": "hash", "salt": "x" * 16}}}, "which the settings mask"),
    ],
)
def test_a_backfill_of_a_column_that_the_settings_make(tmp_path: Path, columns: dict[str, Any], text: str) -> None:
    lake = fed(tmp_path)
    document = json.loads(lake.conf.read_text())
    document["tables"]["defaults"]["columns"] = columns
    document["quarantine"] = {"seal": "a secret of some length for the seal"}
    lake.settings = Settings.parse(json.dumps(document))
    with pytest.raises(ConfigError, match=text):
        backfilled(lake, written(tmp_path / "in.parquet", scores()))


def test_a_backfill_of_a_column_that_the_source_has(tmp_path: Path) -> None:
    """The settings leave it out, so the lake does not have it."""
    lake = fed(tmp_path, {"columns": {"exclude": ["region"]}})
    rows = scores().append_column("region", pa.array(["eu"] * 8))
    with pytest.raises(ConfigError, match="a backfill adds a column 'region', which the source has"):
        backfilled(lake, written(tmp_path / "in.parquet", rows), ("region",))
