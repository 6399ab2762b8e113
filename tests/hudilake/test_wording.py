"""Numbers with their nouns, and that no message of ours gives one thing the plural."""

from __future__ import annotations

import re

import pytest

from hudilake.wording import counted
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("count", "words", "text"),
    [
        (0, ("batch",), "0 batches"),
        (1, ("batch",), "1 batch"),
        (12_345, ("row",), "12,345 rows"),
        (2, ("entry",), "2 entries"),
        (2, ("key",), "2 keys"),
        (1, ("file group", "has", "have"), "1 file group has"),
        (2, ("file group", "has", "have"), "2 file groups have"),
    ],
)
def test_a_number_and_its_noun(count: int, words: tuple[str, ...], text: str) -> None:
    assert counted(count, *words) == text


def test_what_people_read_counts_its_nouns() -> None:
    counts = re.compile(r"\{(?:number\(|len\()[^{}]*\} (?:tables|rows|batches|topics|commits)\b(?!/s)")
    assert counts.search('f"{len(tables)} tables"')  # the control
    ours = (ROOT / "pipeline/binlake/cli").rglob("*.py")
    assert {path.name: found for path in ours if (found := counts.findall(path.read_text()))} == {}
