"""The schema registry over HTTP: what is asked, what is tried again, and what the errors say."""

from __future__ import annotations

import base64
import json
import pickle
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from binlake.cli.commands.stream.check import run_checks
from binlake.cli.commands.stream.check_result import Check, CheckOutcome
from binlake.decode.options import SchemaLookup
from binlake.settings import Settings, SettingsError
from binlake.source.registry import SchemaRegistryClient, schema_registry
from hudilake.errors import ConfigError, LakeError, TransientError
from tests.binlake.decode.formats.registry_server import Registry, serving
from tests.logged import events

DOCUMENT = {"name": "s", "lake": {"uri": "/x"}, "kafka": {"bootstrap_servers": "h:1", "topics": ["t"]}}


@pytest.fixture
def registry() -> Iterator[Registry]:
    with serving(Registry(schemas={1: '"string"', 2: '"int"'})) as found:
        yield found


def client(registry: Registry, retry_s: float = 0.0) -> SchemaLookup:
    found: SchemaLookup = pickle.loads(pickle.dumps(SchemaRegistryClient(registry.url, retry_s=retry_s)))
    return found


def settings(registry: dict[str, object], **source: object) -> Settings:
    text = json.dumps({**DOCUMENT, "source": {"registry": registry, **source}})
    return Settings.parse(text, environ={"REGISTRY_PASSWORD": "hidden-word"})


def test_a_schema_is_asked_for_once_a_process(registry: Registry) -> None:
    assert client(registry).schema(1, "t-value") == '"string"'
    assert client(registry).schema(1, "t-value") == '"string"'
    assert client(registry).schema(2, "t-value") == '"int"'
    assert registry.asked == ["/schemas/ids/1", "/schemas/ids/2"]


def test_an_id_that_is_not_there_is_no_error_and_not_remembered(registry: Registry) -> None:
    assert client(registry).schema(9, "t-value") is None
    registry.schemas[9] = '"long"'
    assert client(registry).schema(9, "t-value") == '"long"'


def test_a_passing_failure_is_tried_again(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "binlake")
    registry.failures = [500, 429, 503]
    assert client(registry, retry_s=20).schema(1, "t-value") == '"string"'
    assert len(registry.asked) == 4
    told = events(caplog)["registry_asked_again"]
    assert (told["levelname"], told["schema_id"], "503" in told["error"]) == ("INFO", 1, True)


def raised(asked: SchemaLookup) -> LakeError:
    with pytest.raises(LakeError) as caught:
        asked.schema(1, "t-value")
    for fact in (asked.describe(), "schema_id=1", "subject=t-value"):
        assert fact in str(caught.value)
    return caught.value


def test_a_lasting_failure_is_transient(registry: Registry) -> None:
    registry.failures = [500] * 50
    error = raised(client(registry, retry_s=0.5))
    assert type(error) is TransientError
    assert 1 < len(registry.asked) < 50


def test_nobody_at_the_port() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert type(raised(SchemaRegistryClient(f"http://127.0.0.1:{port}", retry_s=0))) is TransientError


@pytest.mark.parametrize("answer", [b"<html>hello</html>", b'{"schema":"{}","schemaType":"PROTOBUF"}', b"[]"])
def test_what_is_no_registry_of_avro(registry: Registry, answer: bytes) -> None:
    registry.answer = answer
    assert type(raised(client(registry))) is ConfigError


def test_a_path_that_is_not_there_and_a_redirect(registry: Registry) -> None:
    wrong = SchemaRegistryClient(f"{registry.url}/nowhere", retry_s=0)
    assert "not a schema registry" in str(raised(wrong))
    registry.failures = [302]
    assert "302" in str(raised(client(registry)))
    assert registry.asked[-1] == "/schemas/ids/1", "credentials follow nobody"


def test_credentials_are_sent_and_never_shown(registry: Registry) -> None:
    registry.authorization = "Basic " + base64.b64encode(b"binlake:hidden-word").decode()
    found = settings({"url": registry.url + "/", "username": "binlake", "password": "${env:REGISTRY_PASSWORD}"})
    asked = schema_registry(found)
    assert asked is not None
    assert asked.schema(1, "t-value") == '"string"'
    wrong = SchemaRegistryClient(registry.url, "Basic hidden-word")
    shown = [repr(asked), repr(wrong), str(found.effective()), repr(found), found.model_dump_json()]
    assert not any("hidden-word" in text or registry.authorization in text for text in shown)
    assert found.effective()["source"]["registry"]["password"] == "${env:REGISTRY_PASSWORD}"


def test_refused_credentials(registry: Registry) -> None:
    registry.authorization = "Bearer right"
    asked = schema_registry(settings({"url": registry.url, "token": "wrong"}))
    assert asked is not None
    error = raised(asked)
    assert type(error) is ConfigError
    assert "401" in str(error)
    assert "wrong" not in str(error)
    right = schema_registry(settings({"url": registry.url, "token": "right"}))
    assert right is not None
    assert right.schema(1, "t-value") == '"string"'


@pytest.mark.parametrize(
    ("registry_", "source", "words"),
    [
        ({}, {"format": "debezium_avro"}, "registry.url"),
        ({"url": "ftp://h"}, {}, "http"),
        ({"url": "http://u:secret@h"}, {}, "username and password"),
        ({"url": "http://h", "username": "u", "token": "t"}, {}, "either"),
        ({}, {"time_zone": "Mars/Olympus"}, "time zone"),
        ({}, {"format": "xml"}, "canal"),
    ],
)
def test_mistakes_in_the_settings(registry_: dict[str, object], source: dict[str, object], words: str) -> None:
    with pytest.raises(SettingsError, match=words) as caught:
        settings(registry_, **source)
    assert "secret" not in str(caught.value)


def test_check_asks_the_registry(registry: Registry, tmp_path: Path) -> None:
    def found() -> Check:
        lake = {"lake": {"uri": str(tmp_path)}, "source": {"registry": {"url": registry.url}}}
        checks = run_checks(Settings.parse(json.dumps(DOCUMENT | lake)), kafka_timeout_s=0.2)
        return next(check for check in checks if check.name == "schema registry")

    assert (found().verdict, found().detail) == (CheckOutcome.OK, f"{registry.url} answers")
    registry.failures = [503]
    assert found().verdict is CheckOutcome.FAILED


def test_no_registry_is_none() -> None:
    assert schema_registry(settings({})) is None


def test_a_certificate_file_that_is_not_there() -> None:
    asked = SchemaRegistryClient("https://127.0.0.1:1", ca_file="/nowhere.pem", retry_s=0)
    with pytest.raises(ConfigError, match="certificates cannot be read"):
        asked.schema(1, "t-value")
