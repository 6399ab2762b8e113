"""A backfill that died goes on where it stopped, and applies each portion once."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.load.backfill import run as backfill_run
from binlake.load.backfill.inputs import find_input
from binlake.load.backfill.request import BackfillRequest
from binlake.load.backfill.run import Backfill, BackfillReport
from binlake.position.record_reader import RecordReader
from binlake.settings import Settings
from binlake.settings.sections import LockingSettings
from binlake.stream.monitoring.progress import ProgressEvent
from hudilake.errors import BadInputError, LostOwnershipError
from hudilake.storage import open_storage
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.load.backfill.lake_with_rows import LIVE, backfilled, fed, rows_of, scores, with_scores, written
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.hypothesis_profile import scaled


class Stopped(Exception):
    """The process ends behind a portion."""


def stopped_after(lake: FedLake, source: str, portions: int, **more: Any) -> None:  # noqa: ANN401
    """A backfill that ends behind so many portions, without a word."""
    seen: list[ProgressEvent] = []

    def die(event: ProgressEvent) -> None:
        seen.append(event)
        if len(seen) == portions:
            raise Stopped

    request = BackfillRequest(("score",), **{"portion_rows": 3, **more})
    with pytest.raises(Stopped):
        Backfill(lake.settings, "shop.a", request, on_progress=die).run(find_input(lake.settings, source))


def applied(lake: FedLake) -> Counter[tuple[str, int]]:
    """How often each portion was committed, by run."""
    table = lake.table()
    records = (RecordReader.of_commit(table.timeline.commit_metadata(i).extra) for i in table.timeline.completed())
    return Counter((r.backfill.run, r.backfill.portion) for r in records if r.backfill is not None)


@pytest.mark.parametrize("kind", ["parquet", "query"])
def test_an_interrupted_backfill_goes_on(tmp_path: Path, kind: str) -> None:
    """Of a query the rows are kept: what has become of the file that it read does not matter."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    text = source if kind == "parquet" else f"SELECT id, score FROM '{source}'"
    stopped_after(lake, text, 2)
    if kind == "query":
        Path(source).unlink()
    report = backfilled(lake, text, portion_rows=8)  # the portions of the first run stay
    assert (report.portions, report.before, report.counts.read) == (3, 2, 2)
    assert rows_of(lake, "score") == with_scores()
    assert set(applied(lake).values()) == {1}
    assert len(applied(lake)) == 3
    assert not [info for info in state_of(lake) if not info.endswith("/run")]


def state_of(lake: FedLake) -> list[str]:
    state = open_storage(lake.settings.state_uri).sub("backfills")
    return [info.path for info in state.walk("")]


def test_a_changed_input_is_refused(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    stopped_after(lake, source, 1)
    written(tmp_path / "in.parquet", scores(factor=2.25))
    before = lake.commits()
    with pytest.raises(BadInputError, match=r"its input has changed: in\.parquet (had|was)"):
        backfilled(lake, source)
    assert lake.commits() == before
    report = backfilled(lake, source, restart=True)
    assert (report.before, report.counts.changed) == (0, 4)
    assert rows_of(lake, "score") == with_scores(factor=2.25)
    changed = scores(factor=3.0)  # a backfill that is done does not forbid the next one
    written(tmp_path / "in.parquet", changed)
    assert backfilled(lake, source).counts.changed == 4
    assert rows_of(lake, "score") == with_scores(factor=3.0)


def test_without_its_state_a_backfill_goes_on_if_its_input_is_the_same(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    stopped_after(lake, source, 1)
    shutil.rmtree(lake.path / ".binlake/shop/backfills")
    with pytest.raises(BadInputError, match="had 3 portions; now there are 1"):
        backfilled(lake, source, portion_rows=8)
    shutil.rmtree(lake.path / ".binlake/shop/backfills")
    assert backfilled(lake, source).before == 1
    assert rows_of(lake, "score") == with_scores()
    text = f"SELECT id, score FROM '{source}' WHERE id < 9"
    stopped_after(lake, text, 1)
    shutil.rmtree(lake.path / ".binlake/shop/backfills")
    with pytest.raises(BadInputError, match="are not kept any more"):
        backfilled(lake, text)
    assert backfilled(lake, text, restart=True).before == 0


def test_a_restored_table_gets_its_portions_again(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    before = lake.commits()[-1]
    backfilled(lake, source)
    done = lake.run("restore", "shop.a", before, "--yes")
    assert done.exit_code == 0, done.output
    assert rows_of(lake, "owner") == dict.fromkeys(LIVE, ("o4",))
    assert backfilled(lake, source).counts.changed == 4
    assert rows_of(lake, "score") == with_scores()


def through(settings: Settings, source: str, fate: Fate, patch: pytest.MonkeyPatch) -> BackfillReport:
    """A backfill whose lake and state answer as fate has it."""
    patch.setattr(backfill_run, "open_storage", lambda *a: DyingStore(open_storage(*a), fate))
    try:
        request = BackfillRequest(("score",), portion_rows=4)
        return Backfill(settings, "shop.a", request).run(find_input(settings, source))
    finally:
        patch.undo()


@pytest.mark.full
def test_a_death_at_any_storage_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run goes on; every portion is in the table once, and so is every row."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores(), row_group_size=4)
    lake.settings = lake.settings.model_copy(update={"locking": LockingSettings(lock="process")})
    kept = tmp_path / "kept"
    shutil.copytree(lake.path, kept)
    whole = Fate()
    assert through(lake.settings, source, whole, monkeypatch).portions == 2
    points = [
        (at, answer)
        for at, (method, _) in enumerate(whole.calls)
        if method in ("create", "write", "delete", "delete_tree")
        for answer in (Answer.LOST, Answer.DONE)
    ]
    step = max(1, len(points) // scaled(len(points), 10))
    deaths = 0
    for at, answer in points[::step]:
        shutil.rmtree(lake.path)
        shutil.copytree(kept, lake.path)
        fate = Fate(at, answer)
        with contextlib.suppress(Killed):
            through(lake.settings, source, fate, monkeypatch)
            deaths -= 1
        deaths += 1
        fate.settle()
        bury(lake)
        backfilled(lake, source, portion_rows=4)
        assert rows_of(lake, "score") == with_scores(), (at, answer, whole.calls[at])
        assert sorted(portion for _, portion in applied(lake)) == [0, 1], (at, answer)
        assert set(applied(lake).values()) == {1}
    assert deaths > len(points[::step]) // 2


def bury(lake: FedLake) -> None:
    """Take away what says that a process lives: this one, which played the dead one, does."""
    for path in lake.path.rglob("backfills/*/run"):
        path.unlink()


def test_control_a_portion_that_is_not_recorded_is_applied_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the tests above would see without the record."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    stopped_after(lake, source, 2)
    monkeypatch.setattr("binlake.load.backfill.work.newest_of", lambda table, name: None)
    backfilled(lake, source)
    assert Counter(portion for _, portion in applied(lake)) == Counter({0: 2, 1: 2, 2: 1})


def test_two_backfills_of_a_table_do_not_run_at_once(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    refused: list[str] = []

    def second(event: ProgressEvent) -> None:
        with pytest.raises(LostOwnershipError, match="another run") as error:
            backfilled(lake, source)
        refused.append(str(error.value))

    request = BackfillRequest(("score",), portion_rows=8)
    Backfill(lake.settings, "shop.a", request, on_progress=second).run(find_input(lake.settings, source))
    assert len(refused) == 1


def test_values_of_one_schema(tmp_path: Path) -> None:
    """Files whose columns differ are refused before anything of them is written."""
    lake = fed(tmp_path)
    written(tmp_path / "in-0.parquet", scores())
    written(tmp_path / "in-1.parquet", pa.table({"id": [0], "other": [1]}))
    with pytest.raises(BadInputError, match="score"):
        backfilled(lake, f"{tmp_path}/in-*.parquet", portion_rows=3)
