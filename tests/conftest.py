"""Services that many tests share, each started at most once a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services import kafka
from tests.services.kafka import Broker, start_broker
from tests.spark_session import hudi_spark, spark  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for the whole run; tests keep apart by their topic names."""
    with start_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the services ran in: a fallback must be seen."""
    for choice in dict.fromkeys(kafka.choices):
        terminalreporter.write_line(f"binlake: {choice}")
