"""A few segments of MariaDB's suite, recorded; and files of it at a real server, as `make proofs` runs them.

``tests/data/suite`` has what Debezium wrote for statements of mariadb-test-data 10.11, and the server's rows.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.paths import DATA
from tests.programs.oracle.exceptions import UNDETERMINED
from tests.programs.oracle.recording import Recording
from tests.programs.proofs.part import Outcome, Task
from tests.programs.proofs.suite.delivered import ALTERED_DATES, as_delivered
from tests.programs.proofs.suite.judge import judged
from tests.programs.proofs.suite.part import SUITE
from tests.programs.proofs.suite.recorder import Run

#: Each recording, what becomes of it and why. The first three were silently wrong.
SEGMENTS = {
    "main.alter_table": (Outcome.EQUAL, "tables with a key"),  # its new key is refused, and the rows keep the old one
    "main.type_datetime_round": (Outcome.REFUSED, UNDETERMINED.reason),
    "suite.rpl.t.rpl_row_create_table": (Outcome.REFUSED, UNDETERMINED.reason),
    "main.alter_table_autoinc-5574": (Outcome.EQUAL, "tables with a key"),
    "main.alter_table_online": (Outcome.EQUAL, "tables with a key"),
    "main.delete": (Outcome.EQUAL, "tables with a key"),
    "suite.rpl.t.rpl_row_USER": (Outcome.EQUAL, "tables with a key"),
    "main.type_date": (Outcome.LOST, ALTERED_DATES),
}


def recording(name: str) -> Recording:
    return Recording.load(DATA / "suite" / f"{name}.json.gz")


@pytest.mark.parametrize("name", SEGMENTS)
def test_a_segment_of_the_suite_is_equal_or_says_why_not(name: str) -> None:
    verdict, _ = judged(Run(name, recordings=[recording(name)], unparsed=[[]]))
    assert (verdict.outcome, verdict.reason) == SEGMENTS[name], verdict.detail


@pytest.mark.parametrize("name", ["main.delete", "suite.rpl.t.rpl_row_USER"])
def test_a_record_that_does_not_come_is_wrong(name: str) -> None:
    """The control."""
    whole = recording(name)
    last = max(at for at, record in enumerate(whole.records) if record.topic is not None and record.value is not None)
    verdict, _ = judged(Run(name, recordings=[replace(whole, records=whole.records[:last])], unparsed=[[]]))
    assert verdict.outcome is Outcome.WRONG


def test_only_what_the_topic_shows_is_altered() -> None:
    """The year 0 comes as 1900: the recording has both."""
    whole = recording("main.type_date")
    delivered, altered = as_delivered(whole)
    assert [table.rows for table in (*whole.truth, *delivered.truth)] == [[("0000",)], [("1900",)]]
    assert +altered == {ALTERED_DATES: 1}


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
def test_files_of_the_suite_at_a_real_server(tmp_path: Path) -> None:
    names = ("main/alter_table_autoinc-5574", "main/insert_innodb", "suite/rpl/t/rpl_row_create_table")
    verdicts = {verdict.source: verdict for verdict in SUITE.run(Task(tmp_path, options=names))}
    assert set(verdicts) == {f"{name}.test" for name in names}
    outcomes = [verdicts[f"{name}.test"].outcome for name in names]
    assert outcomes == [Outcome.EQUAL, Outcome.EQUAL, Outcome.REFUSED], verdicts
