"""The whole stream as a state machine: whatever happens in any order, every reader shows what the model holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from tests.hypothesis_profile import scaled
from tests.judges.hudi_spark import HudiSpark
from tests.machine.checks import judge_by_spark, write_by_spark
from tests.machine.machine import KEYS, WHICH, Machine

_ANY_TIME = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=scaled(40), stateful_step_count=20, deadline=None, print_blob=True, suppress_health_check=_ANY_TIME
)


@pytest.mark.spark
@pytest.mark.judge
def test_with_hudi_spark_among_the_writers_and_readers(hudi_spark: HudiSpark) -> None:
    """Commits of Hudi's own writer in between; at the end Hudi Spark reads every table and its pasts."""

    class Judged(Machine):
        @rule(lake=WHICH, key=KEYS)
        def spark_commit(self, lake: str, key: int) -> None:
            if self.world.knows_all_statements and self.world.open(lake) is not None:
                write_by_spark(self.world, lake, key, hudi_spark)
                self.changed = True

        def teardown(self) -> None:
            try:
                if hasattr(self, "world") and not self.changed:
                    judge_by_spark(self.world, hudi_spark)
            finally:
                super().teardown()

    # Shrinking costs Spark's time at each step: a failure is printed as it was found.
    examples: dict[str, Any] = {"max_examples": scaled(10, least=2), "phases": [Phase.explicit, Phase.generate]}
    checks = [*_ANY_TIME, HealthCheck.function_scoped_fixture]
    run_state_machine_as_test(
        Judged, settings=settings(**examples, stateful_step_count=12, deadline=None, suppress_health_check=checks)
    )
