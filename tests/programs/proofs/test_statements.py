"""The part ``statements``: a file is judged by its statements, from a directory and from a git directory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.programs.proofs import statements
from tests.programs.proofs.checkouts import sql_files
from tests.programs.proofs.part import Outcome, Task
from tests.programs.proofs.statements import StatementsPart

PART = StatementsPart("sql", "nobody", "files", "", "a/")
TEXT = "CREATE TABLE t (id INT PRIMARY KEY, a DECIMAL(3,1) DEFAULT 'x');\nif exists; ALTER TABLE t DROP a; }"


def test_files_below_a_directory_of_either_kind_are_judged(tmp_path: Path) -> None:
    for name in ("a/one.sql", "b/other.sql"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(TEXT)
    [verdict] = PART.run(Task(tmp_path, options=(str(tmp_path),)))
    assert (verdict.source, verdict.outcome, verdict.detail) == ("a/one.sql", Outcome.EQUAL, "4 statements, 2 effects")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "files"]):
        subprocess.run([*git, *command], check=True)
    assert list(sql_files(tmp_path / ".git", "a/")) == [("a/one.sql", TEXT)]


def test_an_exception_of_the_reader_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(statement: str, database: str) -> tuple[()]:
        raise IndexError(f"{statement} of {database}")

    monkeypatch.setattr(statements, "parse_ddl", broken)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "one.sql").write_text(TEXT)
    [verdict] = PART.run(Task(tmp_path, options=(str(tmp_path),)))
    assert (verdict.outcome, verdict.reason) == (Outcome.WRONG, "IndexError of the reader")
