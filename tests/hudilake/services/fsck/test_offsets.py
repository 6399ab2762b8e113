from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.services.fsck import Check, Severity
from hudilake.table.table import HudiTable
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import KEYS, offsets, report


def commit(path: Path, extra: dict[str, str]) -> None:
    table = HudiTable.open(lake.storage_at(path))
    lake.commit(table, lake.upserts([1], 50), extra)


def of_offsets(path: Path) -> list[tuple[Severity, str]]:
    return [(f.severity, f.what) for f in report(path).findings if f.check is Check.OFFSETS]


def test_ranges_that_follow_each_other(plain: Path) -> None:
    commit(plain, offsets(30, 40))
    assert of_offsets(plain) == []


def test_a_gap_is_told(plain: Path) -> None:
    commit(plain, offsets(35, 40))
    assert of_offsets(plain) == [(Severity.INFO, "stream s, t/0: no commit covers offsets 30 to 34")]


@pytest.mark.parametrize(("start", "end", "twice"), [(25, 40, "25 to 29"), (3, 7, "3 to 6"), (0, 30, "0 to 9")])
def test_an_overlap_is_an_error(plain: Path, start: int, end: int, twice: str) -> None:
    commit(plain, offsets(start, end))
    found = of_offsets(plain)
    assert {severity for severity, _ in found} == {Severity.ERROR}
    assert any(f"offsets {twice} are covered by the commits" in what for _, what in found)


def test_an_overlap_that_the_commit_accounts_for(plain: Path) -> None:
    commit(plain, offsets(25, 40, already_applied=5))
    ((severity, what),) = of_offsets(plain)
    assert severity is Severity.INFO
    assert "skipped 5 events" in what


def test_other_streams_topics_and_partitions_are_apart(plain: Path) -> None:
    commit(plain, {**offsets(0, 10), KEYS.stream: "other"})
    commit(plain, {**offsets(0, 10), KEYS.offsets: '{"t": {"1": [0, 10]}, "u": {"0": [0, 10]}}'})
    assert of_offsets(plain) == []


def test_archived_commits_count(plain: Path) -> None:
    body = CommitMetadata(extra=offsets(5, 9)).to_bytes()
    lake.write_history(plain, {"20200101000000000": "20200101000000001"}, {"20200101000000000": body})
    ((severity, what),) = of_offsets(plain)
    assert severity is Severity.ERROR
    assert "offsets 5 to 8" in what


def test_offsets_that_are_no_offsets(plain: Path) -> None:
    commit(plain, {**offsets(0, 10), KEYS.offsets: "[1]"})
    ((severity, _),) = of_offsets(plain)
    assert severity is Severity.ERROR
