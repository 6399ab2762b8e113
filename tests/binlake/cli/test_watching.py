"""A stream that runs as a process is watched: metrics, health, log, ``binlake status``, ``binlake audit``."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from binlake.cli.app import app
from embedded.process import free_ports
from tests.binlake.cli.test_run import Pipeline, pipeline
from tests.binlake.stream.monitoring.test_monitoring import read

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.full]
__all__ = ["pipeline"]


def get(port: int, path: str) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def until(condition: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the condition gives
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.3)
    raise AssertionError("that never came")


def status(conf: object) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["status", str(conf), "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_running_stream_is_seen(pipeline: Pipeline) -> None:
    [port] = free_ports(1)
    log = pipeline.conf.with_suffix(".log")
    document = yaml.safe_load(pipeline.conf.read_text())
    pipeline.conf.write_text(yaml.safe_dump({**document, "monitoring": {"port": port}}))
    pipeline.produce(100)
    process = pipeline.start("--json", "--log-json", str(log))
    try:

        def all_read() -> dict[Any, float] | None:
            samples = read(get(port, "/metrics"))
            lags = [value for (name, _), value in samples.items() if name == "binlake_lag"]
            fates = [value for (name, _), value in samples.items() if name == "binlake_records_total"]
            return samples if lags and not any(lags) and sum(fates) == pipeline.sender.sent else None

        samples = until(all_read)
        assert samples["binlake_healthy", ()] == 1
        assert json.loads(get(port, "/health")) == {"status": "ok", "reasons": []}
        stream, *tables = status(pipeline.conf)
        assert (stream["run"]["pid"], stream["run"]["alive"], stream["lag"]) == (process.pid, True, 0)
        assert {t["table"] for t in tables} == {f"live.{t.name}" for t in pipeline.source.tables}
        assert all(t["commit"] and t["freshness_ms"] is not None for t in tables)
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    pipeline.produce(20)
    stream = status(pipeline.conf)[0]
    assert stream["run"] is None
    assert stream["lag"] > 0
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert (lines[0]["event"], lines[-1]["event"]) == ("started", "stopped")
    assert {line["table"] for line in lines if line["event"] == "commit"} == {t["table"] for t in tables}
    audited = CliRunner().invoke(app, ["audit", str(pipeline.conf)])
    assert audited.exit_code == 0, audited.output
