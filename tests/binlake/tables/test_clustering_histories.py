"""Histories of a stream and a clustering by another process: no commit of the stream is ever lost."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from binlake.tables.kinds.looked_up import LookedUpRows
from hudilake.services.clustering import completion
from hudilake.services.clustering.completion import ClusteringResult
from hudilake.services.clustering.plan import ClusteringUnit
from hudilake.table import overtaking
from tests.binlake.tables.clustered import KEYED, KINDS, ClusteredLake, drawn
from tests.binlake.tables.clusterer import Clusterer
from tests.hypothesis_profile import scaled
from tests.judges.agreement import read_ourselves

STEPS = ("rows", "changes", "one change", "plan", "begin", "end", "die", "restart")


def steps_of(here: ClusteredLake, clusterer: Clusterer) -> dict[str, Callable[[], object]]:
    """What each step does."""

    def rows() -> None:
        here.insert(4)
        here.run()

    def changes(count: int) -> None:
        here.change(count)
        if here.appends:
            here.insert(1)
        if here.waits:
            here.run()

    return {
        "rows": rows,
        "changes": lambda: changes(5),
        "one change": lambda: changes(1),
        "plan": clusterer.plan,
        "begin": clusterer.begin,
        "end": clusterer.end,
        "die": clusterer.open,
        "restart": here.start,
    }


@pytest.mark.full
@settings(max_examples=scaled(30, least=5, divisor=6))
@given(st.sampled_from([*KINDS]), st.integers(0, 2**16), st.lists(st.sampled_from(STEPS), min_size=6, max_size=18))
# Its last batch deletes a key that the index does not know.
@example("mor_record_index", 0, ["rows", "rows", "changes", "one change", "rows", "changes"])
def test_no_change_is_lost(kind: str, seed: int, steps: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as place:
        here = ClusteredLake(Path(place), kind, "process", seed=seed)
        here.insert(6)
        here.run()
        clusterer = Clusterer(here)
        does = steps_of(here, clusterer)
        for step in steps:
            does[step]()
            rows = read_ourselves(here.place)
            found = {row["id"]: row["owner"] for row in rows.to_pylist()}
            assert (found, rows.num_rows) == ({key: owner for key, (owner, _) in here.rows.items()}, len(here.rows))
        clusterer.begin()
        clusterer.end()
        here.insert(2)
        here.change(3)
        here.run()
        here.check()


def a_changed_row_and_a_clustering(here: ClusteredLake) -> None:
    """A commit changes a row of a planned file group after its rows were laid out anew."""
    for _ in range(2):
        here.batch(changes=0)
    clusterer = Clusterer(here)
    clusterer.plan()
    clusterer.begin()
    for key, (_, region) in list(here.rows.items())[:2]:
        here.put("u", key, "changed", region)
    here.run()
    clusterer.end()
    here.check()


@pytest.mark.parametrize("kind", drawn("mor_record_index", among=KEYED))
def test_a_clustering_that_did_not_give_way_would_lose_changes(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: the histories would see it."""

    def stubborn(_table: object, units: Sequence[ClusteringUnit], _time: str) -> list[ClusteringUnit]:
        return list(units)

    a_changed_row_and_a_clustering(ClusteredLake(tmp_path / "right", kind, "process"))
    monkeypatch.setattr(completion, "holding", stubborn)
    with pytest.raises(AssertionError):
        a_changed_row_and_a_clustering(ClusteredLake(tmp_path / "wrong", kind, "process"))


def a_clustering_while_a_commit_is_written(here: ClusteredLake, monkeypatch: pytest.MonkeyPatch) -> Clusterer:
    """A clustering begins and ends after a commit has looked up its rows and written its files."""
    for _ in range(2):
        here.batch(changes=0)
    clusterer, write = Clusterer(here), LookedUpRows.write
    calls: list[ClusteringResult | None] = []

    def overtaken(*arguments: Any) -> Any:  # noqa: ANN401 - passed on
        done = write(*arguments)
        if not calls:
            calls.append(clusterer.whole())
        return done

    with monkeypatch.context() as patched:
        patched.setattr(LookedUpRows, "write", overtaken)
        here.change(4)
        here.insert(1)
        told = here.run()
    assert (told.error, [done.completed for done in calls if done is not None]) == (None, [True])
    here.check()
    return clusterer


@pytest.mark.parametrize("kind", drawn("mor_external", among=KEYED))
def test_a_commit_that_meets_replaced_file_groups_is_written_again(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ClusteredLake(tmp_path / "right", kind, "process")
    a_clustering_while_a_commit_is_written(here, monkeypatch)
    here.batch()
    monkeypatch.setattr(overtaking, "check_completed", lambda *_: None)
    monkeypatch.setattr("hudilake.table.publisher.check_completed", lambda *_: None)
    with pytest.raises(AssertionError):  # the control
        a_clustering_while_a_commit_is_written(ClusteredLake(tmp_path / "wrong", kind, "process"), monkeypatch)
