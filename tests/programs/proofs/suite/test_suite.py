"""Scripts of ours in the language of MariaDB's suite, recorded; and files of the suite at a real server.

``tests/data/suite/NAME.test`` are the scripts; the directory NAME beside each is what a ``Run`` saved of it. To record
a script again, remove its directory and run, in the project's directory, ``python -m tests.programs.proofs suite
--no-page --place tests/data --option suite=record --option suite=$PWD/tests/data/suite``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.paths import DATA
from tests.programs.oracle.comparison import Failure
from tests.programs.oracle.exceptions import UNDETERMINED
from tests.programs.oracle.play import Stream, play
from tests.programs.oracle.recording import Recording
from tests.programs.proofs.part import Outcome, Task
from tests.programs.proofs.suite.binlog_part import BinlogPart
from tests.programs.proofs.suite.delivered import ALTERED_DATES, as_delivered, decodings
from tests.programs.proofs.suite.judge import judged
from tests.programs.proofs.suite.package import files
from tests.programs.proofs.suite.part import SUITE
from tests.programs.proofs.suite.reasons import reason_of
from tests.programs.proofs.suite.recorder import Run

_SCRIPTS = DATA / "suite"
_EQUAL, _UNKNOWN = (Outcome.EQUAL, ""), (Outcome.REFUSED, UNDETERMINED.reason)
_KEY = (Outcome.REFUSED, "quarantined: ddl_refused: the key becomes KEY, and only the source knows the values")
_NULL_KEY = (Outcome.REFUSED, "quarantined: null_key")
_REAL_KEY = (Outcome.REFUSED, "behind: every record of the table is refused")
#: Each script, and what becomes of its segments: the outcome, and the beginning of the reason.
SCRIPTS = {
    "again": [_EQUAL] * 4,
    "changed": [_EQUAL],
    "dealt": [_EQUAL],
    "derived": [_UNKNOWN],
    "keyless": [_NULL_KEY, _REAL_KEY, _UNKNOWN],
    "misread": [(Outcome.LOST, "the connector's definition of a column")],
    "numbered": [_KEY, _EQUAL],
    "otherwise": [
        (Outcome.LOST, "the newest image of the row in the topic has another value"),
        _EQUAL,
        (Outcome.LOST, "the connector cannot parse a statement"),
    ],
    "parted": [_UNKNOWN, _EQUAL],
    "replaced": [_EQUAL] * 3,
    "rounded": [_UNKNOWN, _EQUAL],
    "spoken": [_EQUAL],
    "undone": [_EQUAL, _UNKNOWN],
    "yearless": [(Outcome.LOST, ALTERED_DATES)],
}


def run(name: str) -> Run:
    return Run.load(_SCRIPTS / name)


def test_each_script_is_recorded() -> None:
    assert files(_SCRIPTS) == [f"{name}.test" for name in SCRIPTS]


@pytest.mark.first(1)
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_equal_or_says_why_not(name: str) -> None:
    recorded = run(name)
    verdict, segments = judged(recorded)
    assert len(segments) == len(SCRIPTS[name])
    for segment, (outcome, reason) in zip(segments, SCRIPTS[name], strict=True):
        assert (segment.outcome, segment.reason[: len(reason)]) == (outcome, reason), verdict.detail
    refused_on_purpose = (_SCRIPTS / f"{name}.test").read_text().count("--error")
    assert (recorded.end, recorded.deaths, recorded.ran["refused"]) == ("", [], refused_on_purpose)


@pytest.mark.parametrize("name", ["changed", "spoken"])
def test_a_record_that_is_not_applied_is_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control; a record that is not in the topic is the connector's loss."""
    [whole] = run(name).recordings
    last = max(at for at, record in enumerate(whole.records) if record.topic is not None and record.value is not None)
    less = replace(whole, records=whole.records[:last])

    def forgetful(stream: Stream, way: str) -> None:
        stream.recording, known = less, stream.recording
        play(stream, way)
        stream.recording = known

    assert judged(Run(name, recordings=[less], unparsed=[[]]))[0].outcome in (Outcome.LOST, Outcome.WRONG)
    monkeypatch.setattr("tests.programs.oracle.trial.play", forgetful)
    verdict, [segment] = judged(Run(name, recordings=[whole], unparsed=[[]]))
    assert (verdict.outcome, segment.carried) == (Outcome.WRONG, False)


def _told_otherwise(recording: Recording, told: str, instead: str) -> Recording:
    """The recording in whose topic a text is another one."""
    assert any(told in record.value for record in recording.records if record.value is not None)
    records = (replace(r, value=r.value and r.value.replace(told, instead)) for r in recording.records)
    return replace(recording, records=tuple(records))


def test_what_a_definition_has_as_the_server_is_not_misread() -> None:
    """The control: a default, or a name, that comes as it is excuses nothing."""
    defaulted, named = run("misread").recordings
    differs = Failure("values of varchar", "test.singers", "name: 2 differ: key (1,): source 'Ã‰dith', lake 'Édith'")
    missing = Failure("table missing", "test.sÃ¤ngerin", "1 rows, and no lake table")
    for recording, failure, told in ((defaulted, differs, "Édith"), (named, missing, "sängerin")):
        server = told.encode().decode("cp1252")
        assert reason_of(recording, failure, [failure], {}, [])[0] is Outcome.LOST
        as_it_is = _told_otherwise(recording, told, server)
        assert reason_of(as_it_is, failure, [failure], {}, []) == (Outcome.WRONG, failure.kind)
    more = replace(differs, detail=differs.detail.replace("2", "4"))
    assert reason_of(defaulted, more, [more], {}, [])[0] is Outcome.WRONG


def test_only_what_the_topic_shows_is_altered() -> None:
    """The year 0 comes as 1900: the recording has both."""
    [whole] = run("yearless").recordings
    delivered, altered = as_delivered(whole)
    assert [table.rows for table in (*whole.truth, *delivered.truth)] == [[("0000",)], [("1900",)]]
    assert +altered == {ALTERED_DATES: 1}


def test_a_text_of_another_character_set_is_its_own_bytes_as_utf_8() -> None:
    """Of latin1, utf16, utf16le and utf32; a text that is the same in both is none."""
    assert decodings("ab") == {"\0a\0b", "a\0b\0", "\0\0\0a\0\0\0b"}
    assert "ä" in decodings("Ã¤")


@pytest.mark.full
@pytest.mark.kafka
@pytest.mark.database
def test_files_of_the_suite_at_a_real_server(tmp_path: Path) -> None:
    names = ("main/alter_table_autoinc-5574", "main/insert_innodb", "suite/rpl/t/rpl_row_create_table")
    verdicts = {verdict.source: verdict for verdict in SUITE.run(Task(tmp_path, options=names))}
    assert set(verdicts) == {f"{name}.test" for name in names}
    outcomes = [verdicts[f"{name}.test"].outcome for name in names]
    assert outcomes == [Outcome.EQUAL, Outcome.EQUAL, Outcome.REFUSED], verdicts


@pytest.mark.full
@pytest.mark.database
def test_scripts_without_a_connector(tmp_path: Path) -> None:
    """What a connector loses is there where the binlog itself is read. What it says of another table is named:
    rows that are written through a table of the engine MERGE (docs/limits.md)."""
    (tmp_path / "binlog").mkdir()
    verdicts = BinlogPart().run(Task(tmp_path / "binlog", options=(str(_SCRIPTS),)))
    outcomes = {verdict.source.removesuffix(".test"): verdict for verdict in verdicts}
    assert outcomes.keys() == SCRIPTS.keys()
    assert {one.outcome for one in outcomes.values()} == {Outcome.EQUAL, Outcome.REFUSED}, outcomes
    merged = outcomes["otherwise"]
    assert (merged.outcome, merged.reason) == (Outcome.REFUSED, UNDETERMINED.reason)
    assert merged.detail.startswith("2 segments equal; 1 "), merged
    assert {outcomes[name].outcome for name in ("undone", "yearless")} == {Outcome.EQUAL}, outcomes
