"""An Airflow DAG (3.3): each hour its dumps are replayed, then the lake is audited."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from airflow.sdk import CronDataIntervalTimetable, dag, task
from airflow.sdk.exceptions import AirflowFailException

from examples.hourly_replay import program


def tried(command: Callable[[], str]) -> str:
    """What a command prints. A failure that may pass is tried again; any other one fails the task at once."""
    try:
        return command()
    except program.BinlakeError as error:
        if error.may_pass:
            raise
        raise AirflowFailException(str(error)) from error


@dag(
    # The run of an hour begins when it is over, ten minutes later, so that its last file is there.
    schedule=CronDataIntervalTimetable("10 * * * *", timezone="UTC"),
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=True,
    max_active_runs=1,
    default_args={
        "retries": 5,
        "retry_delay": timedelta(seconds=int(os.environ.get("BINLAKE_RETRY_SECONDS", "60"))),
    },
)
def hourly_replay() -> None:
    """Hours may come in any order, and a second run of an hour does nothing: clear and backfill as you like."""

    @task
    def replay(data_interval_start: datetime | None = None) -> str:
        assert data_interval_start is not None
        return tried(lambda: program.replay(f"{data_interval_start:%Y-%m-%dT%H}"))

    @task
    def audit() -> str:
        return tried(program.audit)

    replay() >> audit()


the_dag = hourly_replay()
