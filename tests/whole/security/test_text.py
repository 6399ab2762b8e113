"""Names from topics steer no terminal, forge no line of a log, break no command and no metric."""

from __future__ import annotations

import io
import json
import logging
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from binlake.cli.display import LiveDisplay, PlainDisplay
from binlake.cli.logs import console_log, json_log
from binlake.cli.text import Terminal, one_line, print_error
from binlake.settings import path_name
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import PartitionProgress, ProgressEvent, TableProgress
from hudilake.errors import ConfigError
from tests.whole.security.hostile import IMPOSSIBLE, POSSIBLE, HostileTopic

#: ESC and the other control characters but line breaks, and what reorders text.
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
EVENT = ProgressEvent(
    1,
    1.0,
    {"plan": 1.0},
    tuple(
        TableProgress(f"shop.{n}", 1, error="e" if n == ".." else None, warning=n, commit_instant="1") for n in POSSIBLE
    ),
    (PartitionProgress("t\n", 0, 1, 2),),
    notices=tuple(POSSIBLE),
)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> HostileTopic:
    """A lake whose tables and quarantined records have hostile names."""
    made = HostileTopic(tmp_path_factory.mktemp("hostile"))
    for at, name in enumerate(POSSIBLE[::2]):
        made.put("shop", name, {"id": at, "v": name})
        made.put(name, "shop", {"id": at, "v": name})
        made.put("shop", name, {"id": at, "v": name, f"{name}x": name})
    for name in IMPOSSIBLE:
        made.put("\x1b[31m", name, {"id": 1})
    made.log.add("t", b"{broken \x1b[2J", None)
    made.batch()
    return made


COMMANDS = [
    ("status", "CONF", "--no-kafka"),
    ("audit", "CONF"),
    ("quarantine", "list", "CONF"),
    ("quarantine", "list", "CONF", "--records"),
    ("quarantine", "show", "CONF", "--limit", "50"),
    ("check", "CONF", "--show", "--kafka-timeout-s", "0.1"),
]


@pytest.mark.first(1)
@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: " ".join(c[:2]))
def test_commands_print_hostile_names_as_escapes(lake: HostileTopic, command: tuple[str, ...]) -> None:
    done = lake.run(*command)
    assert done.exit_code == 0 or command[0] == "check", (done.output, done.exception)
    assert STEERING.findall(done.output) == []


@pytest.mark.parametrize("name", POSSIBLE[::2], ids=lambda name: path_name(name)[:20])
def test_commands_about_one_table_take_hostile_names(lake: HostileTopic, name: str) -> None:
    path = f"shop/{path_name(name)}"
    for command in (("inspect", path, "--conf", "CONF"), ("fsck", str(lake.lake / path))):
        done = lake.run(*command)
        assert done.exit_code == 0, (command, done.output, done.exception)
        assert STEERING.findall(done.output) == []
    rows = lake.run("query", path, "select v from t", "--conf", "CONF", "--format", "json")
    assert json.loads(rows.stdout.splitlines()[0])["v"] == name


@pytest.mark.parametrize("kind", [PlainDisplay, LiveDisplay])
def test_displays(kind: type[PlainDisplay] | type[LiveDisplay]) -> None:
    console = Terminal(width=400)
    console.file = io.StringIO()
    with PlainDisplay(console) if kind is PlainDisplay else LiveDisplay("s", console) as display:
        display.update(EVENT)
    text = console.file.getvalue()
    assert STEERING.findall(text) == []
    assert "line\nbreak" not in text
    assert "[/bold]" in text


def test_a_log_record_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("binlake.somewhere")
    with console_log(logging.INFO), json_log("s", str(tmp_path / "log")):
        for name in POSSIBLE:
            log.warning("table %s is behind", name, extra={"event": "x", "table": name})
    assert len(capsys.readouterr().err.splitlines()) == len(POSSIBLE)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().split("\n") if line]
    assert [line["table"] for line in lines] == POSSIBLE


def test_an_error_names_its_place_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(ConfigError("no", do_next="look", table="a\nerror: forged\x1b[2J"), Terminal(stderr=True, width=200))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["error: no [table=a\\nerror: forged\\x1b[2J]. Next: look"]


def test_metrics_keep_hostile_names_in_their_labels() -> None:
    monitor = Monitor(1.0)
    monitor.update(EVENT)
    families = {f.name: f for f in text_string_to_metric_families(monitor.render())}
    named = {sample.labels["table"] for sample in families["binlake_commits"].samples}
    assert named == {f"shop.{name}" for name in POSSIBLE if name != ".."}
    assert {name for name in families if not name.startswith("binlake_")} == set()


def test_references_are_not_resolved_in_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """``${env:NAME}`` is for the settings file alone; what a reference gives is not looked at again."""
    monkeypatch.setenv("FIRST", "${env:SECOND}")
    monkeypatch.setenv("SECOND", "word-that-must-not-appear")
    made = HostileTopic(tmp_path, monitoring={"host": "${env:FIRST}"})
    assert made.settings.monitoring.host == "${env:SECOND}"
    made.put("shop", "${env:SECOND}", {"id": 1, "v": "${env:SECOND}"})
    made.batch()
    assert {path for path in made.tables() if "word" in path} == set()
    assert "shop/@0024@007benv@003aSECOND@007d" in made.tables()


def test_control_steering_characters_are_escaped() -> None:
    assert one_line("a\x1b[31m\n\u202eb\x9b") == "a\\x1b[31m\\n\\u202eb\\x9b"
