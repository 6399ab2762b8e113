"""The example ``page_views``: views through the stream, an order for the queries, fewer files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.tables.lake import Lake
from examples.page_views.produce import TOPIC, views
from hudilake.clock import now_ms
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services
from tests.paths import ROOT

PLACE = ROOT / "examples" / "page_views"
CONF, QUERIES = PLACE / "settings.yaml", PLACE / "queries.sql"
VIEWS, BATCHES = 16_000, 4


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The table after some batches, of records in memory."""
    environ = {"BINLAKE_EXAMPLE_DIR": str(tmp_path), "BINLAKE_EXAMPLE_BROKER": "127.0.0.1:1"}
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    conf = Settings.load(CONF)
    log, ledger = TopicLog(), Ledger(conf.name, positions={TOPIC: {0: 0}})
    root = Lake(open_storage(conf.lake.uri, {"fsync": "false"}))
    runner = BatchRunner(conf, root, open_storage(conf.state_uri), ledger, SchemaRegistry(conf), services(), None)
    for number in range(BATCHES):
        each = VIEWS // BATCHES
        log.records.setdefault((TOPIC, 0), []).extend((None, view) for view in views(each, number * each))
        event = runner.run(runner.ledger.batch + 1, log.end(), now_ms(), LocalEngine(log))
        assert [table.error or table.warning for table in event.tables] == [None]
    return tmp_path


def binlake(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_the_proposal_is_what_the_settings_say(lake: Path) -> None:
    found = json.loads(binlake("layout", "web.page_views", "--conf", CONF, "--queries", QUERIES, "--json"))
    assert set(found["order"]["columns"]) == {"url", "user_id"}
    assert found["order"]["curve"] in ("z_order", "hilbert")
    assert min(query["now"] for query in found["queries"]) > 0.8
    assert sum(query["after"] for query in found["queries"]) < 0.6 * len(found["queries"])


def test_clustering_saves_what_was_foreseen(lake: Path) -> None:
    """The files that the queries read after it, against those that the proposal counts with."""
    foreseen = json.loads(binlake("layout", "web.page_views", "--conf", CONF, "--queries", QUERIES, "--json"))
    done = json.loads(binlake("cluster", CONF, "--now", "--json"))
    assert done["error"] is None
    assert done["rows"] == VIEWS
    after = json.loads(binlake("layout", "web.page_views", "--conf", CONF, "--queries", QUERIES, "--json"))
    read = {query["text"]: query["now"] for query in after["queries"]}
    share = sum(read.values()) / len(read)
    assert share == pytest.approx(sum(query["after"] for query in foreseen["queries"]) / len(read), abs=0.15)
    assert share < 0.7
    told = binlake("explain", "web.page_views", "select * from t where user_id = 1017", "--conf", CONF)
    (line,) = [line for line in told.splitlines() if line.startswith("laid out by clustering")]
    assert f"{done['completed'][0]}, hilbert (sampled) by url, user_id: files {done['made']}, skipped" in line
