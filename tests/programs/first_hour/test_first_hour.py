"""The pages of the first hour do what they say, and the first rows take five lines."""

from __future__ import annotations

import pytest

from tests.paths import ROOT
from tests.programs.first_hour.__main__ import follow
from tests.programs.first_hour.steps import steps_of

ADDRESSES = {"127.0.0.1:9092": "broker:1"}


def test_the_lines_of_a_page_are_read_with_the_addresses_of_here() -> None:
    lines = [step.text for step in steps_of(ROOT / "docs/first-table.md", "", ADDRESSES)]
    assert len(lines) == 5
    assert " --kafka broker:1 " in lines[1]
    quick = list(steps_of(ROOT / "README.md", "A stream of your own", {}))
    assert [step.stays for step in quick if step.text.startswith("binlake run")] == [True]
    with pytest.raises(ValueError, match="not enough values"):
        list(steps_of(ROOT / "README.md", "No such heading", {}))


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.database
def test_the_first_table_is_followed_word_by_word() -> None:
    assert len([one for one in follow(whole=False).done if one.step.language]) == 5
