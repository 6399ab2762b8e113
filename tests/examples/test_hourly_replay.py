"""The example ``hourly_replay``: Airflow and Dagster, in environments of their own, replay an hour and audit it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hudi import HudiTableBuilder

from binlake.stream.spark.cache import cached
from examples.hourly_replay.program import RETRY, BinlakeError, binlake
from hudilake.clock import new_uuid
from tests.binlake.load.replay.dumped import lines_of, write
from tests.binlake.load.replay.test_commands import NOON, conf  # noqa: F401 - a fixture
from tests.binlake.stream.test_exactly_once import row
from tests.binlake.stream.topic_log import event
from tests.docker.exit_codes import PERSON, RESTART
from tests.paths import ROOT

#: The hour 2026-11-21T04.
HOUR = NOON - 8
_TIMEOUT_S = 1500
_AIRFLOW = """
import json
from datetime import UTC, datetime
from examples.hourly_replay.airflow_dag import the_dag

run = the_dag.test(logical_date=datetime(2026, 11, 21, 5, 10, tzinfo=UTC))
tasks = [[one.task_id, one.state] for one in run.get_task_instances()]
print(json.dumps({"succeeded": run.state == "success", "tasks": tasks}))
"""
_DAGSTER = """
import json
import dagster
from examples.hourly_replay.dagster_assets import audited, replayed_hour

with dagster.DagsterInstance.ephemeral() as instance:
    done = dagster.materialize(
        [replayed_hour, audited], partition_key="2026-11-21-04:00", instance=instance, raise_on_error=False
    )
checks = [one.passed for one in done.get_asset_check_evaluations()]
print(json.dumps({"succeeded": done.success and checks == [True], "checks": checks}))
"""


def environment(name: str, requirement: str) -> Path:
    """The Python of an environment with an orchestrator, which is installed if the cache lacks it."""

    def make(work: Path) -> Path:
        subprocess.run([sys.executable, "-m", "venv", str(work / "environment")], check=True, timeout=_TIMEOUT_S)
        command = [str(work / "environment" / "bin" / "python"), "-m", "pip", "install", "--quiet", requirement]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
        assert done.returncode == 0, done.stderr[-4000:]
        return work / "environment"

    return cached(f"{name}-{requirement.partition('==')[2]}", make) / "bin" / "python"


@dataclass(frozen=True)
class Shop:
    """A stream with an hour of dumps, and a program that fails as it is asked, then runs binlake."""

    place: Path
    settings: Path

    @property
    def variables(self) -> dict[str, str]:
        """What the example reads."""
        program = self.place / "binlake"
        log = self.place / "tries"
        real = Path(sys.executable).with_name("binlake")
        program.write_text(
            f'#!/bin/sh\necho "$1" >> {log}\n'
            f'if [ "$FAILS" = "$1" ] && [ "$(grep -c "^$1" {log})" = 1 ]\n'
            'then echo "error: asked to" >&2; exit "$CODE"; fi\n'
            f'exec {real} "$@"\n'
        )
        program.chmod(0o755)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        own = {"BINLAKE": str(program), "BINLAKE_SETTINGS": str(self.settings), "BINLAKE_RETRY_SECONDS": "0"}
        return kept | own | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}

    def tries(self) -> list[str]:
        """The commands that were run."""
        return (self.place / "tries").read_text().split()

    def rows(self) -> list[int]:
        """The ids of the lake's rows, for hudi-rs."""
        table = HudiTableBuilder.from_base_uri(str(self.place / "lake" / "shop" / "orders")).build()
        return sorted(one["id"] for batch in table.read() for one in batch.to_pylist())


@pytest.fixture
def shop(conf: Path, tmp_path: Path) -> Shop:  # noqa: F811
    document = json.loads(conf.read_text())
    document["dump"]["uri"] = str(tmp_path / "dumps")
    conf.write_text(json.dumps(document))
    for hour, ids in ((HOUR, (1, 2, 3)), (HOUR + 1, (9,))):
        lines = lines_of([event("orders", "c", number, row(number)) for number in ids])
        write(tmp_path / "dumps", "orders", hour, "a.jsonl", lines)
    return Shop(tmp_path, conf)


def answer(python: Path, program: str, variables: dict[str, str], place: Path) -> dict[str, Any]:
    done = subprocess.run(
        [str(python), "-c", program], env=variables, cwd=place, capture_output=True, text=True, timeout=_TIMEOUT_S
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def by_airflow(shop: Shop, variables: dict[str, str]) -> dict[str, Any]:
    python = environment("airflow", "apache-airflow==3.3.2")
    variables |= {
        "AIRFLOW_HOME": str(shop.place / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "examples" / "hourly_replay"),
    }
    for words in (["db", "migrate"], ["dags", "reserialize"]):
        command = [str(python), "-m", "airflow", *words]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=_TIMEOUT_S)
        assert done.returncode == 0, done.stderr[-4000:]
    return answer(python, _AIRFLOW, variables, shop.place)


def by_dagster(shop: Shop, variables: dict[str, str]) -> dict[str, Any]:
    return answer(environment("dagster", "dagster==1.13.29"), _DAGSTER, variables, shop.place)


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("run", [by_airflow, by_dagster])
@pytest.mark.parametrize(
    ("fails", "code", "tries"),
    [
        ("replay", 75, ["replay", "replay", "audit"]),
        ("audit", 70, ["replay", "audit", "audit"]),
        ("replay", 65, ["replay"]),
        ("audit", 66, ["replay", "audit"]),
    ],
)
def test_an_hour(
    shop: Shop, run: Callable[[Shop, dict[str, str]], dict[str, Any]], fails: str, code: int, tries: list[str]
) -> None:
    """The first run of one command fails. What may pass is tried again, and the lake has the hour; the rest is not."""
    told = run(shop, shop.variables | {"FAILS": fails, "CODE": str(code)})
    assert shop.tries() == tries, told
    assert told["succeeded"] == (code in RESTART), told
    if fails == "audit" or code in RESTART:
        assert shop.rows() == [1, 2, 3], "this hour, and no other"
    else:
        assert not (shop.place / "lake" / "shop" / "orders").exists()


def test_codes_that_are_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert RETRY == RESTART
    program = tmp_path / new_uuid()
    monkeypatch.setenv("BINLAKE", str(program))
    for end, may_pass in [
        *((f"exit {code}", True) for code in RESTART),
        *((f"exit {code}", False) for code in PERSON),
        ("kill -9 $$", True),
    ]:
        program.write_text(f"#!/bin/sh\necho 'error: asked to' >&2\n{end}\n")
        program.chmod(0o755)
        with pytest.raises(BinlakeError, match="error: asked to") as caught:
            binlake("audit", "shop.yaml")
        assert caught.value.may_pass is may_pass
