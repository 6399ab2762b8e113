"""The report must tell drift from noise, or its verdict says nothing."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from bench.drift import WINDOW, drift
from tests.programs.soak.latency import WARM_UP, Batch, Recorder, lines, percentiles, report


def batches(
    count: int, ms: Callable[[int], float], seed: int = 1, busy: Callable[[int], float] = lambda n: 1.0
) -> list[Batch]:
    """As a shared machine gives them: long tails, now and then a stall."""
    chance = random.Random(seed)
    made = []
    for n in range(count):
        spent = ms(n) * chance.lognormvariate(0, 0.25) + 800 * (chance.random() < 0.02)
        made.append(Batch(1, spent * busy(n), spent / 3, 50, (f"{n:017d}",), 5.0 * busy(n)))
    return made


def verdict(made: list[Batch]) -> str:
    return str(report(made, lambda b: False)["drift"]["batch_ms"]["verdict"])


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_no_drift(seed: int) -> None:
    assert verdict(batches(2_000, lambda n: 250, seed)) == "no drift"


@pytest.mark.parametrize("seed", range(5))
def test_growth_is_drift(seed: int) -> None:
    assert verdict(batches(2_000, lambda n: 250 + n / 2_000 * 60, seed)) == "drift"


def test_one_noisy_window_is_no_drift() -> None:
    assert verdict(batches(2_000, lambda n: 2_500 if n >= 1_900 else 250)) == "no drift"


@pytest.mark.parametrize("seed", range(5))
def test_a_machine_that_is_busy_for_a_while_neither_makes_nor_hides_drift(seed: int) -> None:
    for busy in (lambda n: 1 + 2 * (n < 800), lambda n: 1 + 2 * (n >= 1_200)):
        assert verdict(batches(2_000, lambda n: 250, seed, busy)) == "no drift"
        assert verdict(batches(2_000, lambda n: 250 + n / 2_000 * 120, seed, busy)) == "drift"


def test_uneven_windows_leave_it_undecided() -> None:
    chance = random.Random(3)
    level = [chance.choice((150, 250, 400)) for _ in range(20)]
    assert verdict(batches(2_000, lambda n: level[n // 100])).startswith("undecided")


def test_a_short_run_says_nothing() -> None:
    assert verdict(batches(500, lambda n: 250 + n)).startswith("too short")


def test_a_straight_line_is_found_exactly() -> None:
    found = drift([(n, 100 + 2.0 * n) for n in range(20)])
    assert (found.per_1000, found.low, found.high) == pytest.approx((2.0 * 1000 / WINDOW,) * 3)
    assert (found.first_fifth, found.last_fifth) == (103.0, 135.0)


def test_percentiles() -> None:
    assert percentiles([float(n) for n in range(1, 101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0, "count": 100}
    assert percentiles([]) == {}


def test_the_first_batches_of_each_process_are_left_out() -> None:
    recorder = Recorder()
    for start in (1, 2):
        recorder.batches += [Batch(start, 1.0, 1.0, 1, ("1",), 1.0)] * (WARM_UP + 3)
    assert [b.start for b in recorder.warm()] == [1] * 3 + [2] * 3


def test_beside_and_without_are_told_apart() -> None:
    made = batches(300, lambda n: 400 if n % 2 else 200)
    told = report(made, lambda b: int(b.instants[0]) % 2 == 1)
    assert told["all"]["batch_ms_beside_compaction"]["p50"] > 1.5 * told["all"]["batch_ms_without"]["p50"]
    assert told["all"]["batch_ms_without"]["count"] == 150
    assert len(lines(told)) == 2 + 3 + 1 + 6
