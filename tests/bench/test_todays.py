"""Today's peers without any of them: the laws of keys, processor time, packages, and the report's versions."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from bench.events import ZIPF_EXPONENT, ZIPF_PARTS, Shape, Skew, events
from bench.report import write_report
from bench.spec import Batch, Recorder, Spec, read_batches
from bench.suite import read_runs
from bench.summary import summarise
from bench.todays import environments, libraries
from bench.todays.__main__ import WRITERS, main
from bench.workloads import TODAYS, Workload
from binlake.source.offsets import Offsets
from embedded import hudi_rs
from hudilake.errors import TransientError

KEYS, COUNT = 9_000, 20_000
#: The kernel counts hundredths of a second, of each process and kind.
BURNT_S, TICKS_S = 0.5, 0.1


def _shares(skew: Skew) -> list[float]:
    """The share of the events in each of LakeLoader's parts of the keys."""
    counts = Counter(int(key[6:-1]) * ZIPF_PARTS // KEYS for key, _ in events(COUNT, KEYS, shape=Shape(skew=skew)))
    return [counts[part] / COUNT for part in range(ZIPF_PARTS)]


def test_keys_are_drawn_by_lake_loaders_law() -> None:
    whole = sum(rank**-ZIPF_EXPONENT for rank in range(1, ZIPF_PARTS + 1))
    found = _shares("zipf")
    assert found[:3] == pytest.approx([rank**-ZIPF_EXPONENT / whole for rank in (1, 2, 3)], abs=0.01)
    assert found[0] > 0.8


def test_keys_are_drawn_alike() -> None:
    found = _shares("uniform")
    assert sum(found) == pytest.approx(1)
    assert max(found) < 1.5 / ZIPF_PARTS
    assert min(found) > 0.5 / ZIPF_PARTS
    assert max(_shares("80/20")) > 1.5 / ZIPF_PARTS


def _burn() -> None:
    program = f"import time\nwhile time.process_time() < {BURNT_S}: pass"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.full
def test_a_batch_counts_the_processor_time_of_processes_that_have_ended(tmp_path: Path) -> None:
    recorder = Recorder(Spec("floor", TODAYS[0], "h:1", tmp_path))
    recorder.begin()
    _burn()
    recorder.note(0, Offsets({"t": {0: 1}}), 0)
    _burn()
    recorder.begin()
    recorder.note(1, Offsets({"t": {0: 2}}), 0)
    began = time.process_time()
    while time.process_time() < began + BURNT_S:
        pass
    recorder.note(2, Offsets({"t": {0: 3}}), 0)
    first, second, third = (batch.processor_s for batch in read_batches(tmp_path))
    assert first > BURNT_S - TICKS_S
    assert second < TICKS_S
    assert third > BURNT_S - TICKS_S


def test_processor_time_is_of_the_batches_beyond_the_warm_up() -> None:
    work = Workload("w", 30, 10, warm_up=1)
    batches = [Batch(n, 10, 0, n + 1, Offsets({"t": {0: 10}}), {}, spent) for n, spent in enumerate((9.0, 1.0, 3.0))]
    assert summarise(batches, work, busy=False)["processor_s_per_million"] == 200_000


def test_each_writer_has_its_packages_before_the_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    installed = list[str]()

    def keep(wanted: object, place: Path) -> Path:
        installed.append(str(wanted))
        place.mkdir()
        return place

    monkeypatch.setenv("BINLAKE_CACHE", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/before")
    monkeypatch.setattr(environments, "_installed", keep)
    assert environments.environment_of("binlake") == {}
    found = {writer: environments.environment_of(writer)["PYTHONPATH"] for writer in environments.REQUIREMENTS}
    assert found["delta-4"] == found["iceberg"] != found["deltalake"]
    assert all(Path(path.removesuffix(":/before")).is_dir() and path.endswith(":/before") for path in found.values())
    assert len(installed) == len(set(found.values()))
    assert set(environments.REQUIREMENTS) < set(WRITERS)


@pytest.mark.full
def test_packages_that_pip_does_not_get_are_said(tmp_path: Path) -> None:
    with pytest.raises(TransientError, match=r"pip could not install .*missing\.whl"):
        environments._installed(["--no-index", str(tmp_path / "missing.whl")], tmp_path / "packages")


def test_the_crate_is_the_version_that_is_named() -> None:
    crate = Path(libraries.__file__).parent / "hudi_rs" / "Cargo.toml"
    assert f'version = "={hudi_rs.VERSION}"' in crate.read_text()


@pytest.mark.full
def test_the_command_measures_a_writer_without_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # it lives in this process
    place = ["--results", str(tmp_path / "results"), "--work", str(tmp_path / "work")]
    main(["--writers", "floor", "--rounds", "1", "--scale", "0.002", *place])
    told = capsys.readouterr().out
    assert "do not count" not in told
    assert f"- floor: pyarrow {pa.__version__}" in told
    runs = read_runs(tmp_path / "results" / "runs.jsonl")
    assert [run["workload"] for run in runs] == ["uniform", "zipf", "load"]
    assert all(run["metrics"]["processor_s_per_million"] > 0 for run in runs)


def test_the_report_names_versions_and_processor_time(tmp_path: Path) -> None:
    run = {"workload": "zipf", "writer": "iceberg", "round": 0, "scale": 1.0, "error": None, "facts": {}}
    run |= {"version": "iceberg 1 on Spark 4", "metrics": {"events_per_s": 5.0, "processor_s_per_million": 12.34}}
    log = tmp_path / "runs.jsonl"
    log.write_text(json.dumps(run) + "\n")
    told = write_report(log, tmp_path, 1.0, [work.name for work in TODAYS])
    assert "- iceberg: iceberg 1 on Spark 4" in told
    assert "| 12.3 |" in told
    assert "CPU s per million events" in told
