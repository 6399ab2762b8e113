"""Fuzzed messages of each format: every record is a right row or refused, its neighbours come through as they are."""

from __future__ import annotations

import time

import pytest

from tests.hypothesis_profile import is_nightly, scaled
from tests.programs.fuzz import events
from tests.programs.fuzz.campaign import fuzz

SECONDS_AT_MOST = 120
#: A usual run takes one of so many extreme values, which are 18 for each format of JSON.
USUAL_SHARE = 4


@pytest.mark.full
def test_a_short_campaign() -> None:
    """With the kept corpus, in a process of its own: it neither dies nor hangs."""
    count = scaled(40_000) // 20
    outcome = fuzz(tuple(events.TARGETS), seed=scaled(1000), seconds=300, count=count)
    assert outcome.failures == []
    assert outcome.done >= count * len(events.TARGETS)


@pytest.mark.first(1)
@pytest.mark.parametrize("target", events.TARGETS)
def test_extreme_values(target: str) -> None:
    """20 MB in a value, a million brackets, 100,000 levels and members, numbers of 20 million digits."""
    found = events.TARGETS[target]()
    began = time.process_time()
    found.run(found.extremes()[:: 1 if is_nightly() else USUAL_SHARE])
    assert time.process_time() - began < SECONDS_AT_MOST


def test_control_a_wrong_row_is_seen() -> None:
    """A check that changes a good row, or takes a damaged one for sound, is noticed."""
    found = events.TARGETS["debezium_plain"]()
    damaged = found.seeds[0].replace(b'"after":{', b'"after":{"twice":1,"twice":2,')
    assert not events._may_be_a_row(damaged)
    assert events._may_be_a_row(found.seeds[0])
    assert not events._may_be_a_row(found.seeds[0][:-1])
