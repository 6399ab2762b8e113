"""Commands whose settings name a metastore."""

from __future__ import annotations

import json
from pathlib import Path

import urllib3
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.storage import open_storage
from lakemetastore.api import paths
from tests.hudilake.read.lakes import new_table, row
from tests.lakemetastore.http.served import serving


def settings(lake: Path, address: str | None) -> Path:
    """A settings file of the lake, with a metastore or without."""
    given = {
        "name": "shop",
        "lake": {"uri": lake.as_uri()},
        "kafka": {"bootstrap_servers": "localhost:9092", "topics": ["none"]},
        "metastore": {"uri": address},
    }
    path = lake.parent / "settings.json"
    path.write_text(json.dumps(given))
    return path


def run(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def plans(address: str) -> int:
    text = urllib3.request("GET", address + paths.METRICS).data.decode()
    answered = f'requests_total{{method="POST",route="{paths.PLAN}",status="200"}} '
    return int(float(text.partition(answered)[2].partition("\n")[0] or 0))


def test_query_and_explain_ask_the_metastore(tmp_path: Path) -> None:
    """The rows and the plan are those without it; when it is down, a warning says so."""
    lake = tmp_path / "lake"
    table = new_table(lake / "t")
    table.write([row(key, 1) for key in range(12)])
    words = ("t", "SELECT id FROM t WHERE part = 'p1' ORDER BY id", "--conf")
    alone = [run(command, *words, str(settings(lake, None))) for command in ("query", "explain")]
    with serving([open_storage(str(lake))]) as address:
        conf = str(settings(lake, address))
        assert [run(command, *words, conf) for command in ("query", "explain")] == alone
        assert plans(address) == 2
    assert "warning: metastore: not used" in run("explain", *words, conf)
