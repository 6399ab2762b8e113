import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "binlake.cli"]


def binlake(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.full
def test_the_schema_of_the_settings_is_printed_as_json() -> None:
    done = binlake("config-schema")
    assert done.returncode == 0
    assert json.loads(done.stdout)["title"] == "Settings"


@pytest.mark.full
def test_mistakes_in_the_settings_end_with_their_exit_code_and_no_traceback(tmp_path: Path) -> None:
    conf = tmp_path / "bad.yaml"
    conf.write_text("name: x\nkafka: {topics: [a]}\n")
    for command in ("check", "run"):
        done = binlake(command, str(conf))
        assert done.returncode == 2
        assert "kafka.bootstrap_servers: is required (line 2)" in done.stderr
        assert "lake: is required" in done.stderr
        assert "Next: correct the settings" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.full
def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = binlake("--debug", "check", str(tmp_path / "none.yaml"))
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "cannot read the settings file" in done.stderr


@pytest.mark.full
def test_check_prints_verdicts_and_ends_with_the_first_failures_class(tmp_path: Path) -> None:
    conf = tmp_path / "conf.yaml"
    lake = tmp_path / "lake"
    text = f"name: x\nlake: {{uri: 'file://{lake}'}}\nkafka: {{bootstrap_servers: '127.0.0.1:9', topics: [a.b.c]}}\n"
    conf.write_text(text)
    done = binlake("check", str(conf), "--show", "--kafka-timeout-s", "0.1")
    assert done.returncode == 75
    assert "cannot reach Kafka" in done.stdout
    assert "trigger_interval_ms: 500" in done.stdout
    assert not lake.exists()


@pytest.mark.full
def test_inspect_without_a_table_is_a_settings_error() -> None:
    done = binlake("inspect", "/no/such/table")
    assert done.returncode == 2
    assert "/no/such/table" in done.stderr


@pytest.mark.first(1)
@pytest.mark.parametrize("arguments", [["run"], ["no-such-command"], ["run", "x", "--no-such-option"]])
def test_wrong_arguments_are_a_usage_error(arguments: list[str]) -> None:
    assert binlake(*arguments).returncode == 2
