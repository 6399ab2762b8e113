"""The whole stream as a state machine: whatever happens in any order, every reader shows what the model holds."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.hypothesis_profile import scaled
from tests.programs.machine.machine import Machine

_ANY_TIME = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=scaled(40, divisor=8),
    stateful_step_count=20,
    deadline=None,
    print_blob=True,
    suppress_health_check=_ANY_TIME,
)
