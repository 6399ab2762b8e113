"""Readers beside a service of several processes on one address: each commit is in the next plan, whoever answers."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hudilake.read import TableReader
from lakemetastore.api import paths
from lakemetastore.api.tables import TableWire
from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.registration import register
from lakemetastore.client.requests import MetastoreClient
from tests.hudilake.read.lakes import ids, new_table, row
from tests.lakemetastore.service.served import served


@pytest.mark.full
def test_every_process_shows_every_commit(tmp_path: Path) -> None:
    """Also when a process is killed: its connections end, and the next plan goes to another one."""
    table = new_table(tmp_path / "lake" / "t")
    table.write([row(0, 1)])
    lake = (tmp_path / "lake").as_uri()
    with served(tmp_path / "service", processes=2, lakes=[{"uri": lake}], reconcile_seconds=3600) as service:
        address = f"http://127.0.0.1:{service.ports.http}"
        kept = TableReader.open(table.storage, service=ServicePlans(MetastoreClient(address, pause_s=0)))
        for key in range(1, 9):
            table.write([row(key, 1)])
            instant = table.table.timeline.completed()[-1].requested_time
            fresh = MetastoreClient(address, pause_s=0)  # its connection is taken by any process
            if key % 2:
                assert register(fresh, table.storage.uri, instant).seen
            elsewhere = {"location": table.storage.uri, "max_age_ms": "3600000", "at_least": instant}
            assert fresh.ask("GET", paths.TABLE, TableWire, elsewhere).instants[-1].requested == instant
            if key == 5:
                os.kill(service.processes.pids["0"] or 0, signal.SIGKILL)
            plan = kept.plan(columns=["id"])
            assert ids(kept, plan) == list(range(key + 1))
            assert key == 5 or not plan.warnings
