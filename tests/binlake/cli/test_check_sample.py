"""``binlake check`` on the records themselves, on this machine, and on where the stream stands."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from binlake.cli.commands.stream.check_machine import machine_steps
from binlake.cli.commands.stream.check_sample import SampleFinding, sampled
from binlake.settings import Settings
from hudilake.errors import ConfigError
from lakemetastore.settings.problems import SettingsError
from tests.binlake.decode.recordings import records
from tests.binlake.stream.topic_log import event

TOPIC = "p.shop.orders"
SCHEMAS = "source: {schemas: {shop.orders: {columns: {id: bigint, tier: text}, key: [id]}}}\n"


def settings(lake: Path, more: str = "") -> Settings:
    head = (
        f"name: shop\nlake: {{uri: 'file://{lake}'}}\nkafka: {{bootstrap_servers: '127.0.0.1:9', topics: [{TOPIC}]}}\n"
    )
    return Settings.parse(head + more)


def findings(chosen: Settings, *values: object) -> list[SampleFinding]:
    keys: list[bytes | None] = [b'{"id": 1}' for _ in values]
    return list(sampled(chosen, {TOPIC: records(keys, [json.dumps(value).encode() for value in values], TOPIC)}))


GOOD = event("orders", "c", 5, {"id": 1, "tier": "a"})


def test_records_of_declared_columns_are_described(tmp_path: Path) -> None:
    (one,) = findings(settings(tmp_path, SCHEMAS), GOOD)
    assert (one.name, one.refused, one.error) == ("records of shop.orders", False, None)
    size = len(json.dumps(GOOD))
    told = (
        f"debezium, {size} bytes each; schema from source.schemas; key id; to shop/orders, merge_on_read, index bucket"
    )
    assert one.detail == told


def test_records_without_a_schema_fail_and_the_ways_out_are_named(tmp_path: Path) -> None:
    (one,) = findings(settings(tmp_path), GOOD, GOOD)
    assert one.error is not None
    assert "2 of 2 sampled records would be quarantined (2 no_schema)" in one.detail
    for way in ("kafka.ddl_topics", "schemas.enable", "source.schemas"):
        assert way in one.error.do_next


def test_a_wrong_format_fails(tmp_path: Path) -> None:
    (one,) = findings(settings(tmp_path, SCHEMAS.replace("{schemas", "{format: canal, schemas")), GOOD)
    assert one.error is not None
    assert "source.format" in one.error.do_next


def test_some_bad_records_are_a_warning(tmp_path: Path) -> None:
    described, refused = findings(settings(tmp_path, SCHEMAS), GOOD, [1])
    assert described.error is None
    assert (refused.refused, refused.error) == (True, None)
    assert refused.detail.startswith("1 of 2 sampled records would be quarantined")


def test_tables_that_are_left_out_are_said_to_be(tmp_path: Path) -> None:
    (one,) = findings(settings(tmp_path, SCHEMAS + "tables: {exclude: ['shop.*']}"), GOOD)
    assert one.detail == "are left out by tables.include and exclude"


@pytest.mark.parametrize(
    ("spark", "problem"),
    [
        ("{driver_memory_mb: 64}", "spark.driver_memory_mb: must be ≥ 512"),
        ("{master: 'lokal[2]'}", "spark.master: lokal[2] is no Spark master"),
        ("{master: 'local[2]'}", None),
        ("{master: 'k8s://https://api:6443'}", None),
    ],
)
def test_what_spark_would_refuse_the_settings_refuse(tmp_path: Path, spark: str, problem: str | None) -> None:
    if problem is None:
        settings(tmp_path, f"spark: {spark}")
        return
    with pytest.raises(SettingsError, match="1 mistake") as raised:
        settings(tmp_path, f"spark: {spark}")
    assert problem in raised.value.what


def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        step = dict(machine_steps(settings(tmp_path, f"monitoring: {{port: {port}}}")))["monitoring"]
        with pytest.raises(ConfigError, match="metrics cannot listen") as raised:
            step()
    assert raised.value.where == {"address": f"127.0.0.1:{port}"}
    assert step() == f"127.0.0.1:{port} is free"


def test_java_and_memory_are_told(tmp_path: Path) -> None:
    steps = dict(machine_steps(settings(tmp_path)))
    assert steps["Java"]().startswith("Java 17 at ")
    assert steps["memory"]().startswith("heap 1024 MB of ")
    huge = settings(tmp_path, "spark: {driver_memory_mb: 100000000}")
    with pytest.raises(ConfigError, match="the machine has"):
        dict(machine_steps(huge))["memory"]()


def test_a_jvm_of_spark_submit_is_not_looked_at(tmp_path: Path) -> None:
    assert dict(machine_steps(settings(tmp_path, "spark: {master: null}"))) == {}
