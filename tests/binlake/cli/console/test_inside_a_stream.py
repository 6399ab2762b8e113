"""``monitoring.console``: the pages are served from inside the process of ``binlake run``, while it runs."""

from __future__ import annotations

import json
import logging
import re
import socket
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from binlake.cli.commands.stream import run
from hudilake.errors import ConfigError
from tests.binlake.cli.fed_lake import FedLake


@pytest.mark.full
@pytest.mark.parametrize("wanted", [True, False])
def test_a_stream_serves_the_console_if_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, wanted: bool
) -> None:
    lake = FedLake(tmp_path)
    lake.feed(1)
    document = json.loads(lake.conf.read_text())
    document["monitoring"] = {"console": wanted, "console_port": 0}
    lake.conf.write_text(json.dumps(document))
    answers: list[str] = []

    def streams(*_: object, **__: object) -> None:
        for address in re.findall(r"the console is at (\S+)", caplog.text):
            with urllib.request.urlopen(f"{address}state.json", timeout=600) as answer:
                answers.extend([address, json.loads(answer.read())[0]["stream"]])

    monkeypatch.setattr(run, "run_stream", streams)
    with caplog.at_level(logging.INFO, logger=run.__name__):
        assert lake.run("run", "--once", "--no-display").exit_code == 0
    assert answers[1:] == (["shop"] if wanted else [])
    if wanted:  # it ends with the stream
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(answers[0], timeout=5)


def test_a_port_that_is_taken_ends_the_stream_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = FedLake(tmp_path)
    document = json.loads(lake.conf.read_text())
    with socket.create_server(("127.0.0.1", 0)) as other:
        document["monitoring"] = {"console": True, "console_port": other.getsockname()[1]}
        lake.conf.write_text(json.dumps(document))
        monkeypatch.setattr(run, "run_stream", lambda *_, **__: pytest.fail("it began"))
        done = lake.run("run", "--once", "--no-display")
    assert isinstance(done.exception, ConfigError)
    assert "cannot listen" in done.exception.what
