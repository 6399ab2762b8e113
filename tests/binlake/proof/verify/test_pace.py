"""Rows pass no faster than they may."""

from __future__ import annotations

import time

from binlake.source.database.pace import Pace


def test_rows_pass_no_faster_than_they_may() -> None:
    pace, began_s = Pace(1_000), time.monotonic()
    for _ in range(5):
        pace.passed(50)
    assert time.monotonic() - began_s >= 0.2


def test_without_a_limit_nothing_waits() -> None:
    Pace(None).passed(10**9)
