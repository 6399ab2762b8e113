"""Secrets of the settings are in no file of the lake, no log, no message, no plan and no traceback.

``tests/binlake/stream/test_kafka_secure.py`` shows the same for Kafka's secrets, Spark's plans and Spark's web pages.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from binlake.cli.logs import json_log
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange
from binlake.stream.monitoring.run_log import RunLog
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from tests.binlake.stream.topic_log import LocalEngine
from tests.whole.security.hostile import HostileTopic

SECRETS = {
    name: f"{name.lower()}-k9x2q7-never-printed"
    for name in ("KAFKA_PASSWORD", "REGISTRY_PASSWORD", "SALT", "SEAL", "SPARK_SECRET", "STORE_KEY")
}
MARK = "a-word-that-all-may-see"
SECTIONS = {
    "kafka": {
        "bootstrap_servers": "127.0.0.1:1",
        "topics": ["t"],
        "properties": {"sasl.password": "${env:KAFKA_PASSWORD}", "client.id": MARK},
    },
    "source": {
        "registry": {
            "url": "http://127.0.0.1:1",
            "username": "u",
            "password": "${env:REGISTRY_PASSWORD}",
            "retry_seconds": 0,
        }
    },
    "quarantine": {"seal": "${env:SEAL}", "max_fraction": 1.0},
    "spark": {"conf": {"spark.authenticate.secret": "${env:SPARK_SECRET}"}},
    "dump": {"uri": "s3://bucket/dump", "options": {"aws_secret_access_key": "${env:STORE_KEY}"}},
    "tables": {
        "defaults": {"columns": {"mask": {"v": {"how": "hash", "salt": "${env:SALT}"}}}, "compaction": {"mode": "off"}}
    },
}


@pytest.fixture(autouse=True, scope="module")
def environment() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SECRETS.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def here(tmp_path: Path) -> HostileTopic:
    """A stream with every kind of secret, after a batch of good, bad and refused records."""
    made = HostileTopic(tmp_path, **SECTIONS)
    logging.getLogger("hudilake").setLevel(logging.DEBUG)
    with json_log("shop", str(tmp_path / "log")), RunLog("shop") as log:
        for at in range(3):
            made.put("shop", "a", {"id": at, "v": MARK, "w": MARK})
        made.put("shop", "名" * 64, {"id": 1, "v": MARK})
        made.log.add("t", b"{broken", None)
        made.log.add("t", b"\0\0\0\0\x09broken", None)
        with pytest.raises(LakeError) as stopped:  # the registry does not answer
            made.batch()
        assert not leaked("".join(traceback.format_exception(stopped.value)))
        made.log.records["t", 0].pop()
        log.update(made.batch())
    logging.getLogger("hudilake").setLevel(logging.NOTSET)
    return made


def leaked(text: str | bytes) -> list[str]:
    """The names of the secrets in the text."""
    data = text.encode() if isinstance(text, str) else text
    return [name for name, value in SECRETS.items() if value.encode() in data]


def test_no_file_of_the_lake_and_no_line_of_the_log_has_a_secret(here: HostileTopic) -> None:
    files = [p for p in here.path.rglob("*") if p.is_file()]
    assert {p.name: leaked(p.read_bytes()) for p in files if leaked(p.read_bytes())} == {}
    names = {p.name for p in files}
    assert {"conf.yaml", "log", "ledger.json", "hoodie.properties"} <= names
    assert any(MARK.encode() in p.read_bytes() for p in files if p.is_relative_to(here.lake))


@pytest.mark.full
def test_no_command_prints_a_secret(here: HostileTopic) -> None:
    commands = [
        ("check", "CONF", "--show", "--kafka-timeout-s", "0.1"),
        ("status", "CONF", "--no-kafka", "--json"),
        ("quarantine", "show", "CONF"),
        ("inspect", "shop/a", "--conf", "CONF"),
        ("dump", "CONF", "--once"),
        ("replay", "CONF"),
    ]
    for command in commands:
        done = here.run(*command)
        told = done.output + ("".join(traceback.format_exception(done.exception)) if done.exception else "")
        assert leaked(told) == [], command
    shown = here.run(*commands[0]).output
    assert "${env:KAFKA_PASSWORD}" in shown
    assert MARK in shown


@pytest.mark.full
def test_no_traceback_has_a_secret(here: HostileTopic) -> None:
    """``binlake --debug`` in a process of its own, with a table that cannot be opened and a quarantine that is torn."""
    (here.lake / "shop/a/.hoodie/hoodie.properties").write_text("torn")
    for arguments in (["status", "CONF", "--no-kafka"], ["audit", "CONF"], ["inspect", "shop/a", "--conf", "CONF"]):
        words = [str(here.conf) if a == "CONF" else a for a in arguments]
        done = subprocess.run(
            [sys.executable, "-m", "binlake.cli", "--debug", *words], capture_output=True, env=os.environ, check=False
        )
        assert done.returncode != 0
        assert leaked(done.stdout + done.stderr) == []
        assert b"rror" in done.stderr


def test_no_value_of_the_stream_shows_a_secret_when_printed(here: HostileTopic) -> None:
    plans: list[BatchPlan] = []

    class Noting(LocalEngine):
        def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
            plans.append(plan)
            return super().run(plan, ranges, shuffle=shuffle)

    here.put("shop", "a", {"id": 9, "v": MARK, "w": MARK})
    here.runner.run(99, here.log.end(), 0, Noting(here.log))
    assert plans
    assert (
        leaked(repr(plans[0]) + repr(plans[0].decoding) + repr(here.settings) + repr(here.settings.table_rules)) == []
    )
    assert leaked(repr(here.settings.kafka) + repr(here.settings.tables) + json.dumps(here.settings.effective())) == []
    store = open_storage(
        "s3://bucket/x", {"aws_secret_access_key": SECRETS["STORE_KEY"], "region": "r", "aws_access_key_id": "k"}
    )
    assert leaked(repr(store)) == []


def test_mistakes_in_the_settings_quote_no_value() -> None:
    document = {
        "name": "${env:SALT}/",
        "lake": {"uri": "/x", "options": ["${env:STORE_KEY}"]},
        "kafka": {"bootstrap_servers": "h:1", "topics": "${env:KAFKA_PASSWORD}", "topic_pattern": "(${env:SALT}"},
        "batch": {"max_events": "${env:SEAL}"},
        "spark": {"conf": "${env:SPARK_SECRET}"},
        "source": {"registry": {"url": "http://u:${env:REGISTRY_PASSWORD}@h"}},
    }
    with pytest.raises(LakeError) as error:
        Settings.parse(json.dumps(document))
    assert leaked("".join(traceback.format_exception(error.value))) == []
    assert "mistakes" in str(error.value)
