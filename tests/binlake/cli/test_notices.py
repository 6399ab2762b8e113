"""What a stream has to tell beside its counts: on the terminal, in plain lines, and in the log for machines."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from binlake.cli.display import LiveDisplay, PlainDisplay
from binlake.cli.logs import json_log
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.monitoring.run_log import RunLog

NOTICE = "shop.orders has a new partition 3"
EVENT = ProgressEvent(batch_id=7, latency_ms=1.0, notices=(NOTICE,))


@pytest.mark.parametrize("kind", ["live", "plain"])
def test_people_see_a_notice(kind: str) -> None:
    told = io.StringIO()
    console = Console(file=told, force_terminal=kind == "live", width=100)
    with LiveDisplay("shop", console) if kind == "live" else PlainDisplay(console) as display:
        display.update(EVENT)
        display.update(ProgressEvent(batch_id=8, latency_ms=1.0))
    assert told.getvalue().count(f"NOTICE: {NOTICE}") == 1


def test_machines_see_a_notice(tmp_path: Path) -> None:
    with json_log("shop", str(tmp_path / "log")), RunLog("shop") as log:
        log.update(EVENT)
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    found = [line for line in lines if line["event"] == "notice"]
    assert [(line["level"], line["batch"], line["notice"]) for line in found] == [("warning", 7, NOTICE)]


def test_a_notice_travels() -> None:
    assert ProgressEvent.from_json(json.loads(json.dumps(EVENT.to_json()))) == EVENT
