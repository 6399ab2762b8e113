"""The runner: it goes on where it ended, and the page has what ran."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.proofs.__main__ import main, run
from tests.programs.proofs.catalog import PARTS
from tests.programs.proofs.page import PAGE, page
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.suite.binlog_part import BOTH, BinlogPart
from tests.programs.proofs.suite.judge import KEYED
from tests.programs.proofs.verdicts import add, keep, load_kept

DAY, LATER = dt.date(2026, 11, 24), dt.date(2026, 11, 27)


@dataclass(frozen=True)
class Numbers:
    """Ten inputs; every third one is wrong."""

    name: str = "numbers"
    owner: str = "nobody"
    inputs: str = "numbers"
    about: str = "A number is wrong if three divides it."

    def run(self, task: Task) -> Iterator[Verdict]:
        open_ones = [number for number in range(task.start, 10) if str(number) not in task.judged]
        for number in open_ones[: task.limit]:
            wrong = number % 3 == 0
            yield Verdict(str(number), Outcome.WRONG if wrong else Outcome.EQUAL, "divided | by 3" if wrong else "")


def test_a_run_goes_on_where_it_ended(tmp_path: Path) -> None:
    part = Numbers()
    assert [verdict.source for verdict in run(part, tmp_path, limit=2)] == ["0", "1"]
    with (tmp_path / "numbers.jsonl").open("a") as lines:
        lines.write('{"source": "2", "outc')
    assert [verdict.source for verdict in run(part, tmp_path, limit=3)] == ["0", "1", "2", "3", "4"]
    assert len((tmp_path / "numbers.jsonl").read_text().splitlines()) == 5


def test_a_run_goes_on_from_the_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part, kept = Numbers(), tmp_path / "kept" / "numbers.txt"
    monkeypatch.setattr("tests.programs.proofs.verdicts.KEPT", kept.parent)
    monkeypatch.setattr("tests.programs.proofs.__main__.PARTS", (part,))
    monkeypatch.setattr("tests.programs.proofs.__main__.PAGE", tmp_path / "page.md")
    kept.parent.mkdir()
    assert main(["numbers", "--limit", "2", "--place", str(tmp_path / "one")]) == 1
    assert not kept.exists()
    kept.touch()
    assert main(["numbers", "--limit", "2", "--place", str(tmp_path / "one")]) == 1
    assert kept.read_text() == "equal\t\n  1\n  2\nwrong\tdivided | by 3\n  0\t\n  3\t\n"
    elsewhere = run(part, tmp_path / "other", limit=2)
    assert {verdict.source for verdict in elsewhere} == {"0", "1", "2", "3", "4", "5"}
    assert len((tmp_path / "other" / "numbers.jsonl").read_text().splitlines()) == 2
    assert [verdict.source for verdict in run(part, tmp_path / "other", limit=1, again=True)][-2:] == ["4", "5"]
    assert len((tmp_path / "other" / "numbers.jsonl").read_text().splitlines()) == 3


def test_verdicts_of_the_repository_are_what_was_kept(tmp_path: Path) -> None:
    file = tmp_path / "part.txt"
    file.touch()
    verdicts = [
        Verdict("a/b.test", Outcome.EQUAL, "with a key", "said of equal ones to nobody", ("x", "x, in a")),
        Verdict("a/a.test", Outcome.REFUSED, "two\nlines\t", "no\ttab, no\nline, no \udce4 byte"),
        Verdict("a/c.test", Outcome.EQUAL, "with a key", "", ("x", "x, in a")),
        Verdict("a/d.test", Outcome.SKIPPED),
    ]
    keep(file, verdicts)
    assert load_kept(file) == [
        Verdict("a/b.test", Outcome.EQUAL, "with a key", "", ("x", "x, in a")),
        Verdict("a/c.test", Outcome.EQUAL, "with a key", "", ("x", "x, in a")),
        Verdict("a/a.test", Outcome.REFUSED, "two lines", "no tab, no line, no \\udce4 byte"),
        Verdict("a/d.test", Outcome.SKIPPED),
    ]
    keep(file, load_kept(file))
    assert load_kept(file)[2].detail == "no tab, no line, no \\udce4 byte"


def test_the_page_keeps_the_parts_that_did_not_run(tmp_path: Path) -> None:
    first = page("", {Numbers(name="early"): [Verdict("a", Outcome.EQUAL), Verdict("b", Outcome.LOST, "it died")]}, DAY)
    part = Numbers()
    both = page(first, {part: run(part, tmp_path)}, LATER)
    assert "| [early](#early) | nobody | numbers | 2 | 1 | 0 | 1 | 0 | 0 | 2026-11-24 |\n| [numbers](#numbers)" in both
    assert "| 10 | 6 | 0 | 0 | 0 | 4 | 2026-11-27 |\n" in both
    assert "| lost by the connector | it died | 1 | `b` |" in both
    assert "| wrong | divided by 3 | 4 | `0`, `3`, `6` |" in both
    assert page(both, {part: run(part, tmp_path)}, LATER) == both


def test_the_page_tells_names_of_others_from_files_of_ours() -> None:
    inputs = [Verdict(name, Outcome.LOST, "it died") for name in ("tests/a.test", "main/a.test")]
    assert "| `theirs/tests/a.test`, `main/a.test` |" in page("", {Numbers(name="theirs"): inputs}, DAY)


def test_a_wrong_verdict_is_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.programs.proofs.__main__.PARTS", (Numbers(),))
    common = ["numbers", "--no-page", "--place", str(tmp_path)]
    assert main([*common, "--start", "1", "--limit", "2"]) == 0
    assert main([*common, "--limit", "1"]) == 1
    assert main(common[1:]) == 1
    assert main(["another", *common[1:]]) == 2


def test_what_became_of_an_input_elsewhere_is_compared_when_the_page_is_written(tmp_path: Path) -> None:
    for name, outcome in (("lost", Outcome.LOST), ("both", Outcome.EQUAL), ("bare", Outcome.EQUAL)):
        add(tmp_path / "suite.jsonl", Verdict(name, outcome, tags=(KEYED,) if name != "bare" else ()))
    here = [Verdict(name, Outcome.EQUAL, tags=(KEYED,)) for name in ("lost", "both", "here alone")]
    here.append(Verdict("bare", Outcome.EQUAL))
    tags = {verdict.source: set(verdict.tags) for verdict in BinlogPart().compared(here, tmp_path)}
    assert tags["lost"] == {KEYED, BOTH, f"{BOTH}: lost by the connector there", f"{BOTH}: equal there or here"}
    assert tags["both"] == {KEYED, BOTH, f"{BOTH}: equal there", f"{BOTH}: equal there or here"}
    assert (tags["here alone"], tags["bare"]) == ({KEYED}, set())


def test_names_are_words_and_the_page_has_only_parts() -> None:
    names = [part.name for part in PARTS]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and name.islower() for name in names)
    assert set(re.findall(r"^## (.*)$", PAGE.read_text(), re.MULTILINE)) <= set(names)
