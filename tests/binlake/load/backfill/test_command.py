"""``binlake backfill`` and the calls from Python."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from binlake.load.backfill.frames import backfill
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.pieces import InputPortion
from binlake.load.backfill.portion_write import PortionPlan, PortionResult
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill
from binlake.load.backfill.workers import LocalWorkers
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.errors import ConfigError
from tests.binlake.load.backfill.lake_with_rows import backfilled, fed, filled_by, rows_of, scores, with_scores, written


def test_the_command(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    words = ("shop.a", "--from", source, "--columns", "score", "--portion-rows", "3")
    before = lake.commits()
    [*_, dry] = lake.json("backfill", *words, "--dry-run")
    assert (dry["counts"]["changed"], dry["counts"]["missing"], dry["bytes_written"]) == (4, 4, 0)
    assert lake.commits() == before
    assert "score" not in lake.table().schema.names
    *portions, done = lake.json("backfill", *words)
    assert [p["tables"][0]["applied"] for p in portions] == [2, 2, 0]
    assert (done["portions"], done["group"], done["held"]) == (3, "backfill", False)
    assert rows_of(lake, "score") == with_scores()
    again = lake.run("backfill", *words)
    assert "nothing to do: the table holds score of this input" in again.stdout
    told = lake.run("backfill", *words, "--restart", "--where", "id > 2", "--no-display")
    assert "read 8 = changed 2 + inserted 0 + newer in the table 0" in told.stdout.replace("\n", " ")
    audit = lake.json("audit", "shop.a")
    assert [row for row in audit if not row.get("balanced", True)] == []


@pytest.mark.parametrize("options", [("--from", "none.parquet"), ("--from", "a.txt"), ("--from", "SELECT nothing")])
def test_an_input_that_is_none(tmp_path: Path, options: tuple[str, ...]) -> None:
    lake = fed(tmp_path)
    (tmp_path / "a.txt").write_text("id")
    words = [str(tmp_path / word) if word.endswith((".parquet", ".txt")) else word for word in options]
    done = lake.run("backfill", "shop.a", *words, "--columns", "score")
    assert isinstance(done.exception, ConfigError)


def test_a_stop_finishes_the_portion(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    stop = threading.Event()

    def ask(event: ProgressEvent) -> None:
        stop.set()

    job = Backfill(lake.settings, "shop.a", BackfillRequest(("score",), portion_rows=3), on_progress=ask, stop=stop)
    report = job.run(find_input(lake.settings, source))
    assert (report.stopped, len(report.events)) == (True, 1)
    assert backfilled(lake, source).before == 1
    assert rows_of(lake, "score") == with_scores()


@pytest.mark.first(1)
@pytest.mark.parametrize("form", ["table", "reader"])
def test_rows_from_python(tmp_path: Path, form: str) -> None:
    """The content is the identity: the same rows are applied once."""
    lake, rows = fed(tmp_path), scores()
    for expected in (4, 0):
        frame = rows if form == "table" else pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches(2))
        report = backfill(lake.settings, "shop.a", frame, ["score"], portion_rows=3)
        assert (report.counts.changed, report.held) == (expected, expected == 0)
    assert rows_of(lake, "score") == with_scores()
    other = backfill(lake.settings, "shop.a", scores(factor=2.0), ["score"])
    assert other.counts.changed == 4
    assert rows_of(lake, "score") == with_scores(factor=2.0)
    assert list((lake.path / ".binlake").rglob("*.parquet")) == []


def test_a_writer_that_commits_meanwhile(tmp_path: Path) -> None:
    """The stream commits while portions are written: they are written again on the table's new state."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    overtaken = 0

    class Overtaken(LocalWorkers):
        def run(self, plan: PortionPlan, portion: InputPortion) -> PortionResult:
            nonlocal overtaken
            result = super().run(plan, portion)
            if portion.number == 1 and overtaken < 3:
                overtaken += 1
                if overtaken < 3:  # the third attempt holds the table's lock
                    lake.feed(1, ("a",))
            return result

    filled_by(lake, source, Overtaken())
    assert overtaken == 3
    expected = {key: (key * 1.5, "o6") for key in (0, 2, 4, 5, 6)}  # the stream deleted 2, and brought it again
    assert rows_of(lake, "score", "owner") == {**expected, 1: (None, "o6")}
