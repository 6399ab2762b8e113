"""A service that is told of a lake: its tables are there without any command, and so is what the stream writes."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from tests.lakemetastore.engines.shop_lake import ShopLake
from tests.lakemetastore.service.served import client, served
from tests.lakemetastore.service.test_supervisor import until


@pytest.mark.full
def test_the_tables_of_a_lake_are_registered_and_an_instant_is_taken_in_when_it_is_told(tmp_path: Path) -> None:
    lake = ShopLake(tmp_path).fill()
    more = {"lakes": [{"settings": str(lake.conf)}], "reconcile_seconds": 3600}
    with served(tmp_path, **more) as service, client(service.ports.thrift) as hive:
        until(lambda: "orders_rt" in hive.get_all_tables("shop"))
        until(lambda: hive.get_partition_names("shop", "orders_rt", -1) == ["region=eu", "region=us"])
        lake.put("u", [(9, "ida", "ap")])
        told = {"location": lake.table("orders").storage.uri, "instant": lake.commits("orders")[-1]}
        request = urllib.request.Request(
            f"{service.http}/v1/lake/instants",
            data=json.dumps(told).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status // 100 == 2
        until(lambda: "region=ap" in hive.get_partition_names("shop", "orders", -1))
        assert set(service.processes.pids) == {"0", "lakes"}
        assert service.processes.reasons() == ()
