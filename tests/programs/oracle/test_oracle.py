"""A dozen seeds at the real server, and the oracle itself: it notices what is wrong, and makes a failure small."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.hypothesis_profile import usually
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same
from tests.judges.hudi_spark import HudiSpark
from tests.programs.oracle.desk import Written
from tests.programs.oracle.forms import Form
from tests.programs.oracle.generate.maker import KINDS, Maker
from tests.programs.oracle.play import WAYS
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.run import Run
from tests.programs.oracle.script import Script, Statement, parse
from tests.programs.oracle.services import Services, left_on_sigterm, start_services
from tests.programs.oracle.trial import played, tried

#: What a usual run draws from. A kind comes in when the lake follows it.
KINDS_IN_MAKE_TEST = frozenset(
    {
        "insert",
        "update",
        "delete",
        "replace",
        "insert ignore",
        "key update",
        "upsert",
        "transaction",
        "insert select",
        "add column",
        "add columns",
        "drop column",
        "rename column",
        "widen column",
        "reorder column",
        "default of column",
        "index",
        "table options",
        "create table",
        "drop table",
        "truncate",
        "add time column",
        "create like",
        "create select",
        "rename table",
        "move table",
        "swap tables",
        "rename chain",
        "rename and back",
        "name used again",
        "add primary key",
        "new primary key",
        "drop primary key",
        "create partitioned",
        "partition by",
        "truncate partition",
        "drop partition",
        "add partition",
        "reorganize partition",
        "remove partitioning",
        "pt-osc",
        "gh-ost",
        "charset of table",
    }
)
#: The seeds of a usual run.
SEEDS = tuple(range(1, 13))
#: In how many ways a usual run plays a seed, and a kept case.
SEED_WAYS, CASE_WAYS = usually((2, 1), (len(WAYS), len(WAYS)))
CASES = Path(__file__).parent / "cases"
#: Cases that the lake does not follow yet, a line each: each leaves the list with its mend.
OPEN = frozenset((CASES / "open.txt").read_text().split())


@pytest.fixture(scope="module")
def source() -> Iterator[Services]:
    with start_services() as services:
        yield services


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
def test_a_dozen_seeds_end_equal(source: Services) -> None:
    assert {kind.name for kind in KINDS} >= KINDS_IN_MAKE_TEST
    report = Run(source, each=SEED_WAYS, kinds=KINDS_IN_MAKE_TEST).seeds(SEEDS)
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert report.lost == []
    assert report.trials == len(SEEDS) * SEED_WAYS
    assert report.statements - report.refused > 20 * len(SEEDS)


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
def test_kept_cases_end_equal(source: Services) -> None:
    """Small scripts of failures that were found once."""
    files = [file for file in sorted(CASES.glob("*.sql")) if file.stem not in OPEN]
    assert {file.stem for file in CASES.glob("*.sql")} >= OPEN
    report = Run(source, each=CASE_WAYS).scripts([Written(parse(file.stem, file.read_text())) for file in files])
    assert list(report.kinds) == [], "\n".join(report.lines())
    assert (report.lost, report.refused) == ([], 0)
    assert report.trials == len(files) * CASE_WAYS


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
def test_a_record_that_is_lost_or_altered_is_noticed(source: Services, tmp_path: Path) -> None:
    """The control. The recording is kept in between as ``--keep`` keeps it."""
    text = "INSERT INTO t VALUES (1, 'a');\n\n-- the connector takes its snapshot here\n\nUPDATE t SET a = 'b';"
    made = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9));\n"
    [recording] = source.record([Written(parse("control", made + text))]).recordings
    recording.save(tmp_path / "control.json.gz")
    recording = Recording.load(tmp_path / "control.json.gz")
    for way in WAYS:
        assert tried(recording, way).failures == ()
        lost = replace(recording, records=recording.records[:-1])
        assert [f.kind for f in tried(lost, way).failures] == ["values of varchar"]
        never = replace(recording, records=tuple(r for r in recording.records if r.topic is None))
        assert [f.kind for f in tried(never, way).failures] == ["table missing"]


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_reads_what_hudi_rs_reads(source: Services, hudi_spark: HudiSpark) -> None:
    """All lake tables of a few seeds, each from another way; hudi-rs has shown the source's rows."""
    found = source.record([Maker(seed, KINDS_IN_MAKE_TEST) for seed in SEEDS[: len(WAYS)]])
    for recording, way in zip(found.recordings, WAYS, strict=True):
        with played(recording, way, Form.PLAIN) as (stream, trial):
            assert trial.failures == ()
            tables = [path.parents[1] for path in stream.place.rglob(".hoodie/hoodie.properties")]
            lake_tables = [table for table in tables if ".hoodie" not in table.parts]
            assert lake_tables
            for table in lake_tables:
                assert_same("Hudi Spark", hudi_spark.snapshot(str(table)), hudi_rs.snapshot(table))


def test_a_script_survives_its_text() -> None:
    script = Script(
        "s", (Statement("CREATE TABLE t (a TEXT)", "create table"),), (Statement("INSERT\nINTO t VALUES ('x;')"),)
    )
    assert parse("s", script.text("why it is kept")) == script


def test_a_statement_of_another_script_is_not_taken() -> None:
    assert Statement("SELECT * FROM oracle_db.t, oracle_db_2.u").at("o1_007") == "SELECT * FROM o1_007.t, o1_007_2.u"


def test_sigterm_leaves_the_block_of_the_services() -> None:
    left: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, lambda number, frame: left.append("not caught"))  # the control: it must not run
    ours = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="143"), left_on_sigterm():
            os.kill(os.getpid(), signal.SIGTERM)
        assert (left, signal.getsignal(signal.SIGTERM)) == ([], ours)
    finally:
        signal.signal(signal.SIGTERM, before)
