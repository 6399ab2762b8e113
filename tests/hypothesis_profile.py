"""How many examples the tests draw, and how Hypothesis runs here.

A usual run draws a share of the examples, histories and orders; ``make test-nightly`` draws all of them
(``--hypothesis-profile nightly``). There are no deadlines and no check of how fast examples are drawn, because test
machines are shared. A failure prints how to repeat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import HealthCheck, settings

NIGHTLY = "nightly"
#: A usual run draws one of so many examples.
USUAL_DIVISOR = 10
_EXAMPLES = 100

T = TypeVar("T")


def is_nightly() -> bool:
    """Whether this run draws everything. The command line is read before a test module is imported."""
    return settings.get_current_profile_name().startswith(NIGHTLY)


def scaled(nightly: int, least: int = 5, divisor: int = USUAL_DIVISOR) -> int:
    """How many examples, seeds or rounds this run takes.

    Args:
        nightly: how many a nightly run takes.
        least: how many a usual run takes at least, if the nightly run does.
        divisor: a usual run takes one of so many.
    """
    return nightly if is_nightly() else max(nightly // divisor, min(nightly, least))


def usually(usual: Sequence[T], nightly: Sequence[T]) -> Sequence[T]:
    """The cases that this run takes of a test whose cases take long: ``usual``, or in a nightly run ``nightly``."""
    return nightly if is_nightly() else usual


_PROFILE = settings(deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("binlake", _PROFILE, max_examples=_EXAMPLES // USUAL_DIVISOR)
settings.register_profile(NIGHTLY, _PROFILE, max_examples=_EXAMPLES)
settings.load_profile("binlake")
