"""A Dagster asset (1.13): an hour of dumps in the lake, a partition an hour, and an audit as its check.

Dagster looks at the types of arguments when it reads this, so annotations are no text here.
"""

import os
from collections.abc import Callable

import dagster

from examples.hourly_replay import program

HOURS = dagster.HourlyPartitionsDefinition(start_date="2026-11-01-00:00", timezone="UTC")


def tried(command: Callable[[], str]) -> str:
    """What a command prints. A failure that may pass is tried again; any other one fails the step at once."""
    try:
        return command()
    except program.BinlakeError as error:
        if error.may_pass:
            seconds = float(os.environ.get("BINLAKE_RETRY_SECONDS", "60"))
            raise dagster.RetryRequested(max_retries=5, seconds_to_wait=seconds) from error
        raise dagster.Failure(str(error), allow_retries=False) from error


@dagster.asset(partitions_def=HOURS)
def replayed_hour(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
    """Hours may come in any order, and a second run of an hour does nothing."""
    printed = tried(lambda: program.replay(f"{context.partition_time_window.start:%Y-%m-%dT%H}"))
    return dagster.MaterializeResult(metadata={"replay": dagster.MetadataValue.text(printed)})


@dagster.asset_check(asset=replayed_hour)
def audited() -> dagster.AssetCheckResult:
    """The lake accounts for every record; what differs, or cannot be determined, is a failed check."""
    try:
        printed = tried(program.audit)
    except dagster.Failure as failure:
        return dagster.AssetCheckResult(passed=False, description=failure.description)
    return dagster.AssetCheckResult(passed=True, metadata={"audit": dagster.MetadataValue.text(printed)})


definitions = dagster.Definitions(assets=[replayed_hour], asset_checks=[audited])
