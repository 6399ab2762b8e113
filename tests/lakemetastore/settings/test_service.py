from __future__ import annotations

from pathlib import Path

import pytest

from binlake.settings import Settings, SettingsError
from hudilake.errors import ConfigError
from lakemetastore.settings.service import MetastoreSettings
from tests.paths import ROOT

CONF = ROOT / "conf"
ENVIRON = {"METASTORE_PASSWORD": "hunter22"}
STREAM = "name: s\nlake: {uri: /lake}\nkafka: {bootstrap_servers: 'b:9092', topics: [t]}\n"


def test_the_least_that_is_needed() -> None:
    settings = MetastoreSettings.parse("store: {uri: /data/metastore}")
    assert (settings.processes, settings.thrift.port, settings.http.port) == (1, 9083, 9084)
    assert settings.lakes == ()


def test_the_example_is_valid_and_prints_no_password() -> None:
    settings = MetastoreSettings.load(CONF / "metastore.yaml", environ=ENVIRON)
    assert "hunter22" in settings.store.uri
    assert "hunter22" not in repr(settings)
    assert settings.lakes[0].storage_options() == {"region": "eu-central-1"}


def test_a_lakes_settings_are_found_from_the_file_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "metastore.yaml").write_text("store: {uri: /m}\nlakes: [{settings: shop.yaml}]\n")
    assert MetastoreSettings.load(tmp_path / "metastore.yaml").lakes[0].settings == str(tmp_path / "shop.yaml")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("store: {}", "store.uri: is required (line 1)"),
        ("store: {uri: /m}\nprocess: 2", "process: unknown setting; did you mean processes? (line 2)"),
        ("store: {uri: /m}\nlakes: [{}]", "lakes[0]: exactly one of settings and uri must be given (line 2)"),
        (
            "store: {uri: /m}\nlakes: [{settings: a.yaml, options: {a: b}}]",
            "lakes[0]: options belong to uri; the settings file has its own (line 2)",
        ),
        ("store: {uri: /m}\nthrift: {port: 70000}", "thrift.port: must be ≤ 65535 (line 2)"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, mistake: str) -> None:
    with pytest.raises(SettingsError) as caught:
        MetastoreSettings.parse(text)
    assert [str(problem) for problem in caught.value.problems] == [mistake]


def test_a_file_that_is_not_yaml() -> None:
    with pytest.raises(ConfigError, match="settings is not YAML"):
        MetastoreSettings.parse("store: [")


def test_a_stream_takes_addresses_of_the_service() -> None:
    text = STREAM + "metastore: {uri: 'http://a:9084/, https://b:9084'}\n"
    assert Settings.parse(text).metastore.addresses == ("http://a:9084", "https://b:9084")
    assert Settings.parse(STREAM).metastore.addresses == ()


def test_a_thrift_address_is_refused() -> None:
    with pytest.raises(SettingsError, match="must be addresses that begin with http:// or https://"):
        Settings.parse(STREAM + "metastore: {uri: 'thrift://a:9083'}\n")
