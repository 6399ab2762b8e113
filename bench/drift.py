"""Tests whether a time grows over a long run, by the Theil-Sen slope over the medians of windows. A window in which the
machine was busy with other work does not change the result."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

#: Batches in one window, from which one median is taken.
WINDOW = 100
#: The least number of windows for a verdict about drift.
LEAST_WINDOWS = 10
#: Growth over the run, as a share of the median, that counts as drift.
TOLERATED = 0.10


@dataclass(frozen=True)
class Drift:
    """The slope of a median with age, in milliseconds per 1,000 batches, with the 95 % interval.

    ``windows``: their number, over ``length`` batches. ``first_fifth``, ``last_fifth``: medians of the windows' medians
    at both ends. ``spread``: the distance between the quartiles of all of them.
    """

    windows: int
    length: int = 0
    per_1000: float = 0.0
    low: float = 0.0
    high: float = 0.0
    median: float = 0.0
    first_fifth: float = 0.0
    last_fifth: float = 0.0
    spread: float = 0.0

    def grown(self, per_1000: float) -> float:
        """The growth over the length for a slope, as a share of the median."""
        return per_1000 * self.length / 1000 / self.median if self.median else 0.0

    @property
    def verdict(self) -> str:
        """``drift`` where the whole interval is above zero and the growth is relevant, ``no drift`` where the interval
        excludes such growth or nearly so."""
        if self.windows < LEAST_WINDOWS:
            return f"too short to tell: {self.windows} windows like each other, {LEAST_WINDOWS} are needed"
        if self.low > 0 and self.grown(self.per_1000) > TOLERATED:
            return "drift"
        most = self.grown(self.high)
        return "no drift" if most <= 2 * TOLERATED else f"undecided: up to {most:+.0%} over the run cannot be excluded"


def drift(medians: Sequence[tuple[int, float]]) -> Drift:
    """The drift of (number, median) pairs of windows in order."""
    count = len(medians)
    if count < 3:
        return Drift(count)
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(medians, 2))
    reach = 1.96 * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    low = slopes[max(0, math.floor((len(slopes) - reach) / 2))]
    high = slopes[min(len(slopes) - 1, math.ceil((len(slopes) + reach) / 2))]
    values = [value for _, value in medians]
    fifth = max(1, count // 5)
    quartiles = statistics.quantiles(values, n=4)
    scale = 1000 / WINDOW
    return Drift(
        count,
        (medians[-1][0] - medians[0][0] + 1) * WINDOW,
        statistics.median(slopes) * scale,
        low * scale,
        high * scale,
        statistics.median(values),
        statistics.median(values[:fifth]),
        statistics.median(values[-fifth:]),
        quartiles[2] - quartiles[0],
    )
