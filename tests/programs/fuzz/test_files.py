"""Fuzzed files of each kind: they are read, or refused by an error of the project's own."""

from __future__ import annotations

import pytest

from tests.hypothesis_profile import scaled
from tests.programs.fuzz import campaign, files, worker
from tests.programs.fuzz.campaign import fuzz


@pytest.mark.full
def test_a_short_campaign() -> None:
    """With the kept corpus, in a process of its own: it neither dies nor hangs."""
    count = scaled(40_000) // 20
    outcome = fuzz(tuple(files.TARGETS), seed=scaled(1000), seconds=300, count=count)
    assert outcome.failures == []
    assert outcome.done >= count * len(files.TARGETS)


@pytest.mark.parametrize("target", files.TARGETS)
def test_the_seeds_are_sound(target: str) -> None:
    found = files.TARGETS[target]()
    assert found.seeds
    if target != "bloom":
        for data in found.seeds:
            found.read(data)


def test_control_a_worker_that_dies_or_fails_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "MEMORY", 1 << 20)  # too little to start
    assert "died" in fuzz(["log"], 1, 1).failures[0]


def test_control_an_error_of_another_kind_is_noticed(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    def read(data: bytes) -> None:
        raise KeyError("no error of the project")

    with pytest.raises(KeyError):
        files.Files([b""], read).run(b"")
    assert worker.BATCH > 1
