"""A table without a key that the lake has with other values than the source: a delete that finds no row is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from tests.binlake.schema.ddl_source import DdlSource, Follower

ISO = {"source": {"debezium": {"time_precision_mode": "isostring"}}}


def there_and_back(connector: str, place: Path) -> tuple[DdlSource, Follower]:
    """DATETIME(3) becomes DOUBLE and DATETIME(3) again: a DOUBLE has no .765 of a second."""
    source = DdlSource(keyed=False, connector=connector)
    source.create("t", {"id": "int", "f": "datetime(3)"}, key=())
    source.put("t", 1, f="2024-02-29T12:34:56.765Z")
    source.put("t", 2, f="2024-02-29T12:34:56.500Z")
    follower = Follower(source, place)
    follower.more = ISO
    follower.run()
    held = source.tables["t"].rows
    held[1]["f"], held[2]["f"] = 20240229123456.766, 20240229123456.5
    source.modify("t", "f", "double")
    follower.run()
    held[1]["f"], held[2]["f"] = "2024-02-29T12:34:56.766Z", "2024-02-29T12:34:56.500Z"
    source.modify("t", "f", "datetime(3)")
    follower.run()
    return source, follower


def test_rows_that_are_rounded_as_the_server_rounds_are_deleted(tmp_path: Path) -> None:
    source, follower = there_and_back("mariadb", tmp_path / "lake")
    source.delete("t", 1)
    source.delete("t", 2)
    event = follower.run()
    assert follower.all_rows("t") == []
    assert [part.warning for part in event.tables] == [None]


def test_a_delete_that_finds_no_row_is_named_by_the_batch_the_status_and_a_metric(tmp_path: Path) -> None:
    """How MySQL reads a DOUBLE as a date is not known, so the rows hold null and the delete finds none of them."""
    source, follower = there_and_back("mysql", tmp_path / "lake")
    source.delete("t", 1)
    event = follower.run()
    (warning,) = [part.warning for part in event.tables]
    assert warning is not None
    assert warning.startswith("1 deletes or former halves of updates found no row of their content")
    assert "binlake verify" in warning
    source.put("t", 3, f="2024-02-29T12:34:56.766Z")  # a later row of the content that the delete had
    event = follower.run()
    assert [part.warning for part in event.tables] == [None]  # said once, when it happened
    assert sum(row["id"] == 3 for row in follower.all_rows("t")) == 1
    conf = tmp_path / "shop.yaml"
    conf.write_text(follower.document())
    done = CliRunner().invoke(app, ["status", str(conf), "--no-kafka"])
    assert "shop.t: 1 deletes or former halves of updates found no row" in " ".join(done.output.split())
    (table,) = [
        said
        for line in CliRunner().invoke(app, ["status", str(conf), "--no-kafka", "--json"]).output.splitlines()
        if "table" in (said := json.loads(line))
    ]
    assert table["unmatched"] == 1


@pytest.mark.parametrize("gone", ["TRUNCATE", "DROP"])
def test_a_statement_that_removes_all_rows_ends_the_finding(gone: str, tmp_path: Path) -> None:
    source, follower = there_and_back("mysql", tmp_path / "lake")
    source.delete("t", 1)
    follower.run()
    if gone == "TRUNCATE":
        source.truncate("t")
    else:
        source.record("DROP TABLE `t`", [("DROP", "t")])
        source.create("t", {"id": "int", "f": "datetime(3)"}, key=(), snapshot=False)
    source.tables["t"].rows.clear()
    source.put("t", 3, f="2024-02-29T12:34:56.766Z")
    follower.run()
    conf = tmp_path / "shop.yaml"
    conf.write_text(follower.document())
    done = CliRunner().invoke(app, ["status", str(conf), "--no-kafka"])
    assert "found no row" not in " ".join(done.output.split())
    assert [row["id"] for row in follower.all_rows("t")] == [3]


def test_a_table_that_is_made_anew_with_none_of_its_columns(tmp_path: Path) -> None:
    source = DdlSource(keyed=False)
    source.create("t", {"id": "int"}, key=())
    source.put("t", 1)
    follower = Follower(source, tmp_path / "lake")
    follower.run()
    source.record("DROP TABLE `t`", [("DROP", "t")])
    source.tables["t"].rows.clear()
    source.create("t", {"c": "int"}, key=(), snapshot=False)
    event = follower.run()
    assert [part.error for part in event.tables] == []
    source.tables["t"].rows[2] = {"c": 7}
    source.event("t", "c", {"c": 7}, None, 2)
    follower.run()
    assert [row.get("c") for row in follower.all_rows("t")] == [7]
