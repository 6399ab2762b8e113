"""Files of Hudi's own tests: each is as expected or refused by a rule, and a damaged one is wrong."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.files.bloom import BloomFilter
from hudilake.format.files.log_file import iter_blocks
from tests.programs.proofs.fixtures import Fixtures, bloom_differs, judge, positions_differ
from tests.programs.proofs.part import Outcome, Task


@pytest.mark.full
def test_files_of_hudi_are_as_expected_or_refused_by_a_rule(tmp_path: Path) -> None:
    verdicts = list(Fixtures().run(Task(tmp_path)))
    assert Counter(verdict.outcome for verdict in verdicts) == {Outcome.EQUAL: 8, Outcome.REFUSED: 3}
    refused = sorted(verdict.reason for verdict in verdicts if verdict.outcome is Outcome.REFUSED)
    assert refused == ["bloom filter version -1, hash 0"] * 2 + ["delete block version 2"]


def test_what_is_not_expected_is_wrong() -> None:
    def unknown() -> None:
        raise UnsupportedError("a thing that no page names", do_next="")

    def garbled() -> None:
        raise CorruptDataError("garbled", do_next="")

    differing = [unknown, garbled, lambda: "other bytes"]
    assert [judge("x", differs).outcome for differs in differing] == [Outcome.WRONG] * 3
    empty = BloomFilter.simple(200, 1e-6)
    name = "format/bloom-filter/hadoop/simple_200_000001_murmur.bf.data"
    assert bloom_differs(name, empty.to_base64(), ["a"]) == "1 keys are not inside"
    empty.add(["a", "b"])
    assert bloom_differs(name, empty.to_base64(), ["a"]) == "other bytes"


def test_a_block_that_is_not_read_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert positions_differ("x") is None
    monkeypatch.setattr("tests.programs.proofs.fixtures.iter_blocks", lambda data: list(iter_blocks(data))[1:])
    assert positions_differ("x") == "1 other blocks"
