"""Every supervisor starts binlake again after the same exit codes: those that the error tree means."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.docker.exit_codes import PERSON, RESTART
from tests.paths import ROOT

SCRIPT = ROOT / "docker/supervise.py"
UNIT = ROOT / "conf/binlake.service"
#: Notes each start, and ends with the code (or the signal, below zero) until the third one succeeds.
PROGRAM = """
import os, sys
path, code = sys.argv[1], int(sys.argv[2])
with open(path, "a") as starts:
    starts.write("x")
if os.path.getsize(path) > 2:
    sys.exit(0)
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""
#: Ends with 75 when it gets SIGTERM; says that it runs.
ENDLESS = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(75))
print("runs", flush=True)
signal.pause()
"""


@contextmanager
def supervised(*command: str) -> Iterator[subprocess.Popen[str]]:
    """The script over a Python program, without a pause. Its output is a pipe."""
    process = subprocess.Popen(
        [str(SCRIPT), sys.executable, "-c", *command],
        env={**os.environ, "SUPERVISE_PAUSE": "0"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_the_runbooks_name_the_codes() -> None:
    text = (ROOT / "docs/runbooks/index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| (yes|no)?[^|]*\|$", text, re.MULTILINE)
    assert {int(code) for code, answer in rows if answer == "yes"} == RESTART
    assert {int(code) for code, answer in rows if answer == "no"} == PERSON


@pytest.mark.parametrize("code", [*sorted(RESTART), -signal.SIGKILL, -signal.SIGSEGV])
def test_the_script_starts_again(tmp_path: Path, code: int) -> None:
    starts = tmp_path / "starts"
    with supervised(PROGRAM, str(starts), str(code)) as process:
        printed, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert starts.read_text() == "xxx"
    assert printed.count(f"exit code {code if code > 0 else 128 - code}: starts again in 0 s") == 2


@pytest.mark.first(6)
@pytest.mark.parametrize("code", sorted(PERSON))
def test_the_script_waits_for_a_person(tmp_path: Path, code: int) -> None:
    starts = tmp_path / "starts"
    with supervised(PROGRAM, str(starts), str(code)) as process:
        assert process.stdout is not None
        assert f"exit code {code} waits for a person" in process.stdout.readline()
        assert process.poll() is None, "the container stays"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == code
    assert starts.read_text() == "x"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_script_passes_a_stop_on_and_starts_nothing_after_it(number: signal.Signals) -> None:
    with supervised(ENDLESS) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        process.send_signal(number)
        assert process.wait(60) == 75
        assert process.stdout.read() == ""


def test_containers_of_binlake_run_under_the_script() -> None:
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    image = compose["services"]["binlake"]["image"]
    ours = [service for service in compose["services"].values() if service["image"] == image]
    assert len(ours) > 1
    for service in ours:
        assert service["entrypoint"] == [f"/opt/binlake/{SCRIPT.name}", "binlake"]
        assert service["restart"] == "unless-stopped"
    dockerfile = (ROOT / "docker/binlake.Dockerfile").read_text()
    assert "WORKDIR /opt/binlake\n" in dockerfile
    assert f"COPY docker/{SCRIPT.name} /opt/binlake/{SCRIPT.name}\n" in dockerfile


def test_the_unit_of_systemd() -> None:
    unit = configparser.ConfigParser(strict=False)
    unit.read(UNIT, encoding="utf-8")
    assert set(map(int, unit["Service"]["RestartForceExitStatus"].split())) == RESTART
    assert unit["Service"]["Restart"] == "on-abnormal", "of exit codes none but the forced ones"


def test_systemd_takes_the_unit_where_it_is_installed(tmp_path: Path) -> None:
    """Systemd's own check, with a control that it complains; elsewhere the test above is all there is."""
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    text = re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={shutil.which('true')}", UNIT.read_text())

    def complaints(unit: str) -> str:
        (tmp_path / "binlake@.service").write_text(unit)
        (tmp_path / "binlake@shop.service").write_text(unit)
        done = subprocess.run(
            [program, "verify", str(tmp_path / "binlake@shop.service")], capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    assert complaints(text) == ""
    assert "RestartForceExit" in complaints(text.replace("RestartForceExitStatus", "RestartForceExitStatuses"))
