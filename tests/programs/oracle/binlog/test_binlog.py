"""Seeds and kept cases with a stream that reads the server's binlog itself; and the control."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from tests.hypothesis_profile import usually
from tests.programs.oracle.binlog.run import BinlogRun, start_server
from tests.programs.oracle.binlog.ways import WAYS
from tests.programs.oracle.desk import Written
from tests.programs.oracle.script import parse
from tests.programs.oracle.test_oracle import CASES, KINDS_IN_MAKE_TEST, OPEN, SEEDS

#: Scripts of failures that were found here.
OWN_CASES = Path(__file__).parent / "cases"


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedMariaDB]:
    with start_server() as started:
        yield started


def written(file: Path) -> Written:
    return Written(parse(file.stem, file.read_text()))


@pytest.mark.full
@pytest.mark.database
def test_a_few_seeds_end_equal(server: EmbeddedMariaDB) -> None:
    seeds = usually(SEEDS[:4], SEEDS)
    report = BinlogRun(server, each=1, kinds=KINDS_IN_MAKE_TEST).seeds(seeds)
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert report.trials == len(seeds)
    assert report.statements - report.refused > 20 * len(seeds)


@pytest.mark.full
@pytest.mark.database
def test_more_seeds_end_equal_in_all_ways(server: EmbeddedMariaDB) -> None:
    report = BinlogRun(server, kinds=KINDS_IN_MAKE_TEST).seeds(range(5, 25))
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert report.trials == 20 * len(WAYS)


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("way", WAYS)
def test_own_cases_end_equal(server: EmbeddedMariaDB, way: str) -> None:
    files = sorted(OWN_CASES.glob("*.sql"))
    report = BinlogRun(server, ways=(way,), each=1).scripts([written(file) for file in files])
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert (report.refused, report.trials) == (0, len(files))


@pytest.mark.full
@pytest.mark.database
def test_own_cases_end_equal_with_a_run_behind_each_statement(server: EmbeddedMariaDB) -> None:
    """What a statement gives, a later run knows, also if no row has come in between."""
    files = sorted(OWN_CASES.glob("*.sql"))
    report = BinlogRun(server, ways=("live",), each=1, share=1.0).scripts([written(file) for file in files])
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert (report.refused, report.trials) == (0, len(files))


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("way", ["live", "loaded"])
def test_a_key_is_that_of_the_rows_whenever_they_come(server: EmbeddedMariaDB, way: str) -> None:
    """A statement that gives a table another key and need not name it is carried out before the table's next row."""
    files = sorted(OWN_CASES.glob("key_*.sql"))
    report = BinlogRun(server, ways=(way,), each=1, share=1.0).scripts([written(file) for file in files])
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert (len(files), len(report.named)) == (7, 0)


@pytest.mark.full
@pytest.mark.database
def test_kept_cases_end_equal(server: EmbeddedMariaDB) -> None:
    """Those that were found with a connector."""
    files = [file for file in sorted(CASES.glob("*.sql")) if file.stem not in OPEN]
    report = BinlogRun(server, each=1).scripts([written(file) for file in files])
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert report.trials == len(files)


@pytest.mark.database
def test_a_change_without_an_event_is_noticed(server: EmbeddedMariaDB) -> None:
    """The control, in each way."""
    made = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9));\nINSERT INTO t VALUES (1, 'a');\n\n"
    hidden = "SET sql_log_bin = 0;\nUPDATE t SET a = 'b';\nSET sql_log_bin = 1;"
    script = Written(parse("control", f"{made}-- the connector takes its snapshot here\n\n{hidden}"))
    report = BinlogRun(server).scripts([script])
    assert list(report.kinds) == ["values of varchar"]
    assert [trial.way for trial in report.examples["values of varchar"]] == list(WAYS)
