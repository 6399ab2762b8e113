"""The entry point of binlake's image by itself: which program each first argument runs, and with which words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT

ENTRY = ROOT / "docker" / "binlake_entry.sh"
#: Stands for a program: prints its own name and each of its words on a line, and ends with 75.
PROGRAM = """#!/bin/bash
basename "$0"
printf '%s\\n' "$@"
exit 75
"""
EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "1",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-application",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.9",
    "SPARK_EXECUTOR_POD_NAME": "shop-exec-1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """An environment whose binlake, spark-submit and java are the program above."""
    for name in ("bin/binlake", "spark/bin/spark-submit", "java/bin/java"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text(PROGRAM)
        path.chmod(0o755)
    places = {"SPARK_HOME": str(tmp_path / "spark"), "JAVA_HOME": str(tmp_path / "java")}
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", **places}


def entered(machine: dict[str, str], *arguments: str, **variables: str) -> list[str]:
    """The lines of the program that ran; its exit code is that of the entry point."""
    command = ["bash", str(ENTRY), *arguments]
    done = subprocess.run(command, env={**machine, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode == 75, done.stderr
    return done.stdout.splitlines()


def test_other_words_are_a_command_of_binlake(machine: dict[str, str]) -> None:
    assert entered(machine, "run", "/etc/a file.yaml", "--once") == ["binlake", "run", "/etc/a file.yaml", "--once"]


def test_a_driver_is_submitted_in_client_mode(machine: dict[str, str]) -> None:
    words = entered(machine, "driver", "--class", "C", "local:///app.py", SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")
    assert words[0] == "spark-submit"
    assert "spark.driver.bindAddress=10.0.0.7" in words
    assert words[-5:] == ["--deploy-mode", "client", "--class", "C", "local:///app.py"]


def test_an_executor_knows_its_driver_by_its_variables(machine: dict[str, str]) -> None:
    # ten and more of them are in the order of their numbers, and one with spaces is one word
    options = {f"SPARK_JAVA_OPT_{i}": f"-Dnumber={i} of them" for i in range(11)}
    words = entered(machine, "executor", **EXECUTOR, **options, SPARK_EXTRA_CLASSPATH="/more/*", SPARK_CONF_DIR="/conf")
    assert words[:12] == ["java", *options.values()]
    assert words[12:15] == ["-Xms512m", "-Xmx512m", "-cp"]
    assert words[15] == f"/conf:/more/*:{machine['SPARK_HOME']}/jars/*"
    named = dict(zip(words[17::2], words[18::2], strict=True))
    assert words[16] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert named == {
        "--driver-url": EXECUTOR["SPARK_DRIVER_URL"],
        "--executor-id": "1",
        "--cores": "2",
        "--app-id": "spark-application",
        "--hostname": "10.0.0.9",
        "--resourceProfileId": "0",
        "--podName": "shop-exec-1",
    }


@pytest.mark.parametrize("missing", sorted(EXECUTOR))
def test_an_executor_without_a_variable_does_not_start(machine: dict[str, str], missing: str) -> None:
    variables = {name: value for name, value in EXECUTOR.items() if name != missing}
    command = ["bash", str(ENTRY), "executor"]
    done = subprocess.run(command, env={**machine, **variables}, capture_output=True, text=True, check=False)
    assert done.returncode not in (0, 75)
    assert missing in done.stderr
