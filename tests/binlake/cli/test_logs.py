"""Where the log goes: short lines for people, JSON lines for machines, and nothing that the library prints itself."""

from __future__ import annotations

import ast
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live
from typer.testing import CliRunner

import binlake
from binlake.cli.app import app
from binlake.cli.logs import console_log, json_log
from binlake.stream.monitoring.run_log import RunLog
from hudilake.errors import ConfigError

ROOT = Path(binlake.__file__).parents[1]
LOG = logging.getLogger("binlake.somewhere")


def speak() -> None:
    """A record of every level."""
    for level in ("debug", "info", "warning", "error"):
        getattr(LOG, level)("%s [said]", level, extra={"event": f"{level}_event", "table": "shop.a"})


@pytest.mark.parametrize(
    ("level", "lines"),
    [
        (logging.DEBUG, ["debug: debug [said]", "info [said]", "warning: warning [said]", "error: error [said]"]),
        (logging.INFO, ["info [said]", "warning: warning [said]", "error: error [said]"]),
        (logging.WARNING, ["warning: warning [said]", "error: error [said]"]),
    ],
)
def test_people_see_short_lines(level: int, lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with console_log(level):
        speak()
    speak()
    assert capsys.readouterr() == ("", "\n".join(lines) + "\n")


def test_warnings_and_errors_stand_out(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with console_log():
        speak()
    plain, warning, error = capsys.readouterr().err.splitlines()
    assert plain == "info [said]"
    assert warning == "\x1b[1;33mwarning: \x1b[0mwarning [said]"
    assert error == "\x1b[1;31merror: \x1b[0merror [said]"


def test_a_long_line_stays_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with console_log():
        LOG.warning("long " * 200)
    assert capsys.readouterr().err.count("\n") == 1


def test_lines_go_above_a_live_table(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(force_terminal=True, width=40)
    with console_log(), Live("the table", console=console, auto_refresh=False):
        speak()
    out, err = capsys.readouterr()
    assert "warning: warning [said]" in out
    assert err == ""


def test_a_run_is_shown_by_its_display_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with console_log(logging.DEBUG), pytest.raises(ConfigError), RunLog("shop"):
        raise ConfigError("no such topic")
    assert capsys.readouterr().err == ""


def test_the_options_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def schema() -> str:
        speak()
        return "schema"

    monkeypatch.setattr("binlake.cli.commands.stream.config_schema.json_schema", schema)
    for options, seen in {
        (): "iwe",
        ("-v",): "diwe",
        ("--verbose",): "diwe",
        ("-q",): "we",
        ("--quiet",): "we",
    }.items():
        done = CliRunner().invoke(app, [*options, "config-schema"])
        said = [line.removeprefix(f"{line.split(':')[0]}: ") for line in done.stderr.splitlines()]
        assert "".join(line[0] for line in said) == seen
        assert done.stdout == "schema\n"
    assert CliRunner().invoke(app, ["-v", "-q", "config-schema"]).exit_code == 2
    assert logging.getLogger("binlake").handlers == []


def test_machines_see_every_record_with_its_fields(tmp_path: Path) -> None:
    file = tmp_path / "log"
    for _ in range(2):  # a file is appended to
        with console_log(logging.ERROR), json_log("shop", str(file)):
            speak()
            LOG.info("ünnamed %d", 1)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["info_event", "warning_event", "error_event", "message"] * 2
    del lines[0]["time"], lines[3]["time"]
    assert lines[0] == {"level": "info", "event": "info_event", "stream": "shop", "table": "shop.a"}
    message = {"event": "message", "logger": LOG.name, "message": "ünnamed 1"}
    assert lines[3] == {"level": "info", "stream": "shop", **message}
    assert "ünnamed" in file.read_text()


def test_standard_error_is_either_for_people_or_for_machines(capsys: pytest.CaptureFixture[str]) -> None:
    with console_log():
        with json_log("shop", "-"):
            speak()
        LOG.info("afterwards")
    *lines, last = capsys.readouterr().err.splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["info_event", "warning_event", "error_event"]
    assert last == "afterwards"


def test_a_log_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot write the log"), json_log("shop", str(tmp_path)):
        pass


def modules() -> Iterator[Path]:
    """The modules that are no command and no program."""
    return (p for p in ROOT.rglob("*.py") if "cli" not in p.relative_to(ROOT).parts and p.name != "__main__.py")


def printed(tree: ast.AST) -> Iterator[str]:
    """What of a module writes to the terminal by itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name in {"sys.stderr", "sys.stdout", "warnings.warn", "logging.basicConfig", "traceback.print_exc"}:
                yield f"{node.lineno}: {name}"
        elif isinstance(node, ast.Name) and node.id == "print":
            yield f"{node.lineno}: print"


def test_no_other_module_prints() -> None:
    assert list(printed(ast.parse("import sys\nprint(1, file=sys.stderr)"))) == ["2: print", "2: sys.stderr"]
    found = {str(path): list(printed(ast.parse(path.read_text()))) for path in modules()}
    assert len(found) > 100
    assert {path: where for path, where in found.items() if where} == {}


def test_the_library_leaves_logging_as_it_is() -> None:
    program = (
        "import logging, binlake.stream.run, binlake.load.replay.replay_dumps, binlake.load.replay.dump\n"
        "ours = ('binlake', 'lakemetastore', 'hudilake')\n"
        "names = [None, *[n for n in logging.root.manager.loggerDict if n.split('.')[0] in ours]]\n"
        "loggers = [logging.getLogger(name) for name in names]\n"
        "assert len(loggers) > 3\n"
        "print([(log.name, log.level) for log in loggers if log.handlers or log.level])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "[('root', 30)]\n"


def test_a_lost_jvm_prints_no_traceback_of_py4j_and_nothing_twice() -> None:
    program = """
import logging
from binlake.cli.logs import console_log

GATEWAY = "import logging; logging.exception('Exception while sending command.')"
with console_log(LEVEL):
    exec(compile(GATEWAY, "/lib/py4j/java_gateway.py", "exec"))
    logging.getLogger("binlake.x").warning("of binlake")
    logging.getLogger("urllib3").warning("of a library")
"""

    def said(level: int) -> str:
        words = [sys.executable, "-c", program.replace("LEVEL", str(level))]
        return subprocess.run(words, capture_output=True, text=True, check=True).stderr

    quiet = said(logging.INFO)
    assert "Exception while sending" not in quiet
    assert quiet.count("of binlake") == quiet.count("of a library") == 1
    assert "Exception while sending" in said(logging.DEBUG)
