"""Any history of changes, in any cut and order: the table is what the model says, after every commit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, given, settings

from tests.binlake.rows.upsert.history import KEYED, KEYLESS, ROUNDS, Plan, Round, plans, world
from tests.binlake.rows.upsert.ingest import Kind
from tests.hypothesis_profile import scaled

_SETTINGS = settings(
    max_examples=scaled(60, divisor=10),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@_SETTINGS
@given(plans(KEYED, (0, 1, 2)), ROUNDS)
def test_tables_with_a_key(plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)


@_SETTINGS
@given(plans({**KEYED, **KEYLESS}, kinds=[Kind("copy_on_write")]), ROUNDS)
def test_copy_on_write_tables(plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)


@pytest.mark.full
@_SETTINGS
@given(plans({**KEYED, **KEYLESS}, (0, 2), [Kind(index="consistent_bucket")]), ROUNDS)
def test_tables_with_consistent_hashing(plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)


@pytest.mark.full
@_SETTINGS
@given(plans(KEYLESS, (0, 1, 2)), ROUNDS)
def test_tables_without_a_key(plan: Plan, rounds: Sequence[Round]) -> None:
    with world(plan) as here:
        here.live(rounds)
