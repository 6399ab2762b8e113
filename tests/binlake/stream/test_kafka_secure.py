"""SASL, TLS and mutual TLS on a real broker, by both ways of fetching; clear errors; and no secret anywhere."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from pyspark.sql import SparkSession

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import Check
from binlake.source import log_tail, positions
from binlake.source.client import GROUP
from binlake.source.offsets import Offsets
from binlake.stream.spark.java import java_environment
from embedded.jars import spark_packages
from hudilake.errors import ConfigError, LakeError
from tests.binlake.stream.kafka_bank import Bank, make_topic, send
from tests.binlake.stream.watched_run import readable_with
from tests.selection import first
from tests.services.secure_kafka import KEY_PASSWORD, PASSWORD, SecureBroker, start_secure_broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TOPIC = "secure.shop.accounts"
SECRETS = {"THE_PASSWORD": PASSWORD, "THE_KEY_PASSWORD": KEY_PASSWORD}
MARK = "the-mark-that-all-may-see"
ROWS = {n: f"o{100 + n}" for n in range(20)}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    with start_secure_broker(tmp_path_factory.mktemp("secure")) as secure:
        make_topic(secure.plain, TOPIC)
        make_topic(secure.plain, "secure.shop.secret")
        send(secure.plain, TOPIC, list(ROWS), 100)
        secure.allow_reading([TOPIC], GROUP)
        yield secure


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client tries again until its time is over; here that is soon."""
    for module in (log_tail, positions):
        monkeypatch.setattr(module, "_ASK_S", 3.0)


WAYS = [
    ("direct", "PLAIN"),
    ("direct", "SCRAM-SHA-512"),
    ("direct", "locked certificate"),
    ("spark", "SCRAM-SHA-256"),
    ("spark", "certificate"),
    ("spark", "locked certificate"),
    ("spark", "key store certificate"),
]


def way_in(broker: SecureBroker, way: str) -> tuple[str, dict[str, str]]:
    if way == "key store certificate":
        return broker.certificates, broker.key_store()
    if "certificate" in way:
        return broker.certificates, broker.certificate(locked="locked" in way)
    return broker.passwords, broker.login(way)


@pytest.mark.full
@pytest.mark.parametrize(("fetch", "way"), first(2, WAYS))
def test_a_stream_reads_with_nothing_but_the_right_to(
    spark: SparkSession, broker: SecureBroker, tmp_path: Path, fetch: str, way: str
) -> None:
    servers, properties = way_in(broker, way)
    bank = Bank(spark, servers, TOPIC, tmp_path, properties=properties, fetch=fetch)
    bank.run()
    assert bank.owners() == ROWS
    assert bank.run() == []


def complaint(broker: SecureBroker, kind: str) -> tuple[str, dict[str, str], str]:
    """A wrong way in, and what must be told about it."""
    login = broker.login("SCRAM-SHA-512")
    alien = broker.stranger.identity("alien")
    return {
        "wrong password": (broker.passwords, broker.login("SCRAM-SHA-512", "no-" + PASSWORD), "sasl.password"),
        "wrong user": (broker.passwords, broker.login("PLAIN", user="mallory"), "sasl.username"),
        "unknown authority": (
            broker.passwords,
            login | {"ssl.ca.location": str(broker.stranger.file)},
            "ssl.ca.location",
        ),
        "no certificate": (
            broker.certificates,
            {"security.protocol": "SSL", "ssl.ca.location": str(broker.authority.file)},
            "ssl.certificate.location",
        ),
        "strange certificate": (
            broker.certificates,
            broker.certificate()
            | {"ssl.certificate.location": str(alien.certificate), "ssl.key.location": str(alien.key)},
            "ssl.certificate.location",
        ),
        "wrong key password": (
            broker.certificates,
            broker.certificate(locked=True) | {"ssl.key.password": "no-" + KEY_PASSWORD},
            "ssl.key.password",
        ),
        "no authority's file": (broker.passwords, login | {"ssl.ca.location": "/nowhere"}, "ssl.ca.location"),
    }[kind]


KINDS = [
    "wrong password",
    "wrong user",
    "unknown authority",
    "no certificate",
    "strange certificate",
    "wrong key password",
    "no authority's file",
]


@pytest.mark.full
def test_a_wrong_way_in_is_the_settings_fault_and_is_told(broker: SecureBroker, tmp_path: Path, soon: None) -> None:
    wrong = {kind: complaint(broker, kind) for kind in KINDS}
    with ThreadPoolExecutor(len(KINDS)) as pool:  # each waits for its clients' last try
        told = list(pool.map(lambda kind: refused(*wrong[kind], tmp_path / kind), KINDS))
    for kind, (hint, errors) in zip(KINDS, told, strict=True):
        assert len(errors) == 3, kind
        for error in errors:
            assert isinstance(error, ConfigError), (kind, error)
            assert hint in error.do_next, (kind, error)
            assert PASSWORD not in str(error)
            assert KEY_PASSWORD not in str(error)


def refused(servers: str, properties: dict[str, str], hint: str, place: Path) -> tuple[str, list[LakeError]]:
    """What is to be told of a wrong way in, and what was: by the check, the stream's start and the monitoring."""
    settings = Bank(None, servers, TOPIC, place, properties=properties).settings()  # type: ignore[arg-type]
    config = settings.kafka.client_properties()
    errors = failures(run_checks(settings, kafka_timeout_s=3))
    for ask in (
        lambda: positions.starting_positions(config, [TOPIC], {}, "earliest"),
        lambda: positions.end_offsets(config, Offsets({TOPIC: {0: 0}}), 3),
    ):
        try:
            ask()
        except LakeError as error:
            errors.append(error)
    return hint, errors


def test_a_right_that_lacks_is_named(spark: SparkSession, broker: SecureBroker, tmp_path: Path) -> None:
    topic = "secure.shop.secret"
    bank = Bank(spark, broker.passwords, topic, tmp_path, properties=broker.login("PLAIN"))
    with pytest.raises(ConfigError) as caught:
        bank.run()
    assert f"READ on the topic {topic}" in caught.value.do_next


def failures(checks: list[Check]) -> list[LakeError]:
    return [c.error for c in checks if c.error is not None]


@pytest.mark.full
def test_what_spark_cannot_be_given_is_seen_by_check(broker: SecureBroker, tmp_path: Path) -> None:
    properties = broker.login("PLAIN") | {"enable.ssl.certificate.verification": "false"}
    bank = Bank(None, broker.passwords, TOPIC, tmp_path, properties=properties)  # type: ignore[arg-type]
    assert "always verifies" in failures(run_checks(bank.settings()))[0].what


# -- no secret is seen ----------------------------------------------------------------------------------------------


def watched_run(place: Path, document: dict[str, Any], environment: dict[str, str]) -> Path:
    """Run the stream in a process of its own, with Spark's UI and event log; what it showed is below the result."""
    shown = place / "shown"
    (place / "conf.yaml").write_text(json.dumps(document))
    (place / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.binlake.stream.watched_run", str(place / "conf.yaml"), str(shown)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        env={**os.environ, **java_environment(), **environment, "TMPDIR": str(place / "tmp")},
    )
    (shown / "stdout").write_text(done.stdout)
    (shown / "stderr").write_text(done.stderr)
    assert done.returncode == 0, done.stderr[-3000:]
    return shown


def secret_bank(broker: SecureBroker, place: Path) -> dict[str, Any]:
    """A stream that has both a password and a locked key, by reference; what they are is in ``SECRETS``."""
    mine = {name: value for name, value in broker.certificate(locked=True).items() if name.startswith("ssl.")}
    properties = broker.login("SCRAM-SHA-512") | mine
    properties |= {"sasl.password": "${env:THE_PASSWORD}", "ssl.key.password": "${env:THE_KEY_PASSWORD}"}
    bank = Bank(None, broker.passwords, TOPIC, place, properties=properties, fetch="spark")  # type: ignore[arg-type]
    document, local, log = bank.document(), place / "tmp", place / "shown" / "eventlog"
    log.mkdir(parents=True)
    document["spark"] = {
        "driver_memory_mb": 768,
        "conf": {
            "spark.jars": ",".join(map(str, spark_packages())),
            "spark.ui.port": "0",
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": log.as_uri(),
            "spark.local.dir": str(local),
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={local}",
            "spark.binlake.mark": MARK,
            "spark.binlake.keystore": "${env:THE_KEY_PASSWORD}",
        },
    }
    return document


def holding(secrets: list[str], *places: Path) -> set[str]:
    """The files below the places in which a secret stands, in any of the ways that texts write it."""
    forms = {
        form.encode() for s in secrets for form in (s, json.dumps(s)[1:-1], json.dumps(s, ensure_ascii=False)[1:-1])
    }
    files = [f for place in places for f in place.rglob("*") if f.is_file()]
    return {f.name for f in files if any(form in f.read_bytes() for form in forms)}


def pieces_of(locked_key: bytes) -> list[str]:
    """A piece of a key as it is, and of the opened key: one that lies within a line, however PEM is broken up."""
    opened = serialization.load_pem_private_key(locked_key, KEY_PASSWORD.encode())
    plain = serialization.NoEncryption()
    der = opened.private_bytes(serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, plain)
    return [locked_key.decode().splitlines()[4], base64.b64encode(der).decode()[194:226]]


@pytest.mark.full
def test_no_secret_is_seen(broker: SecureBroker, tmp_path: Path) -> None:
    """Not in Spark's UI, its event log, its plans, our output, our files, or a file that others may read."""
    shown = watched_run(tmp_path, secret_bank(broker, tmp_path), SECRETS)
    assert len(list((shown / "ui").iterdir())) > 10
    hidden = [*SECRETS.values(), *pieces_of(broker.locked_client.key.read_bytes())]
    assert holding(hidden, shown, tmp_path / "lake") == set()
    assert (shown / "readable").read_text() == ""
    control = holding([MARK], shown)
    assert {"environment_", "effective"} < control, "the control: what is no secret is seen, so secrets would be"
    assert any(name.startswith("local-") for name in control), "in the event log too"


def test_the_search_for_readable_files_finds_one(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "closed").mkdir(mode=0o700)
    for name in ("open", "closed"):
        (tmp_path / name / "file").write_text("x" + PASSWORD)
        (tmp_path / name / "file").chmod(0o644)
    assert readable_with([PASSWORD.encode()], tmp_path) == [str(tmp_path / "open" / "file")]
    (tmp_path / "open" / "file").chmod(0o600)
    assert readable_with([PASSWORD.encode()], tmp_path) == []
