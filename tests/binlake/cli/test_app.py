"""The list of commands: each is imported only when it is called."""

from __future__ import annotations

import inspect
import io
import re
import subprocess
import sys
from importlib.metadata import version

import pytest
import typer
from typer.testing import CliRunner

from binlake.cli.app import COMMANDS, app
from binlake.cli.exit_codes import EXIT_CODES
from binlake.cli.text import Terminal
from binlake.cli.typer_extras import Lazy
from tests.paths import ROOT


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_an_entry_says_what_its_command_says(entry: Lazy) -> None:
    found = entry.load()
    text = found.info.help if isinstance(found, typer.Typer) else inspect.getdoc(found)
    assert text is not None
    summary, *more = (" ".join(part.split()) for part in text.split("\n\n"))
    assert entry.help == summary
    done = CliRunner().invoke(app, [entry.name, "--help"], terminal_width=200)
    assert done.exit_code == 0, done.output
    assert [part for part in more if part not in " ".join(done.output.split())] == []
    assert f"Usage: binlake {entry.name}" in done.output


def test_the_help_names_every_command_and_imports_none() -> None:
    look = "import sys; from binlake.cli.app import app; app(standalone_mode=False); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", look, "--help"], capture_output=True, text=True, check=True, cwd=ROOT)
    *shown, modules = done.stdout.splitlines()
    assert [entry.name for entry in COMMANDS if not any(f" {entry.name} " in line for line in shown)] == []
    ours = {name for name in modules.split() if name.partition(".")[0] in {"binlake", "lakemetastore", "hudilake"}}
    assert ours == {
        "binlake",
        "binlake.cli",
        "binlake.cli.app",
        "binlake.cli.exit_codes",
        "binlake.cli.typer_extras",
        "hudilake",
        "hudilake.errors",
    }
    assert {"numpy", "pyarrow", "pyspark", "pydantic", "duckdb"}.isdisjoint(modules.split())


@pytest.mark.parametrize("words", [["-h"], ["tables", "-h"], ["table", "pause", "-h"]])
def test_the_help_has_a_short_name(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, "Usage: binlake" in done.output) == (0, True)


def test_a_command_that_is_not_there_is_refused() -> None:
    done = CliRunner().invoke(app, ["runn"])
    assert done.exit_code == 2
    assert "runn" in done.output


def test_the_version_is_that_of_the_distribution() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"binlake {version('binlake')}\n")


def test_the_help_has_the_exit_codes_of_the_runbooks() -> None:
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/runbooks/index.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code) for code in rows} == set(EXIT_CODES)
    for words in ([], *([entry.name] for entry in COMMANDS), ["quarantine", "list"], ["metastore", "serve"]):
        done = CliRunner().invoke(app, [*words, "--help"], terminal_width=200)
        help_text = " ".join(done.output.split())
        assert [code for code, meaning in EXIT_CODES.items() if f"{code} {meaning}" not in help_text] == [], words


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("qu", ["query", "quarantine"]), ("quarantine l", ["list"]), ("metastore ch", ["check"]), ("nothing-such", [])],
)
def test_a_shell_completes_commands(typed: str, offered: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """As the function that ``--show-completion`` prints asks for it."""
    words = {
        "COMP_WORDS": f"binlake {typed}",
        "COMP_CWORD": str(len(typed.split())),
        "_BINLAKE_COMPLETE": "complete_bash",
    }
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, [], prog_name="binlake")
    assert (done.exit_code, done.output.split()) == (0, offered)


def test_without_colours_nothing_is_bold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")
    printed = io.StringIO()
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value)
        console = Terminal()
        console.file = printed
        console.print("a name", style="bold")
    first, second = printed.getvalue().splitlines()
    assert ("\x1b[1m" in first, second) == (True, "a name")
