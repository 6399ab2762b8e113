"""docker/compose.yaml held against itself: nothing it names may be missing, and its parts must speak of the same."""

from __future__ import annotations

import ast
import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from binlake.decode.changes import SourceTable
from binlake.settings import Settings
from binlake.stream.spark import jars
from embedded.jars import DEBEZIUM, KAFKA_BROKER
from lakemetastore.settings.service import MetastoreSettings
from tests.paths import ROOT

HERE = ROOT / "docker"
_DEFAULT = re.compile(r"\$\{(\w+):-([^}]*)\}")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((HERE / "compose.yaml").read_text())
    return loaded


def interpolated(text: str) -> str:
    """As compose does it where no variable is set."""
    return _DEFAULT.sub(lambda m: m[2], text).replace("$$", "$")


def environment(compose: Mapping[str, Any], service: str) -> dict[str, str]:
    return {k: interpolated(str(v)) for k, v in compose["services"][service].get("environment", {}).items()}


def mounts(service: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for volume in service.get("volumes", ()):
        source, target, *_ = volume.split(":")
        yield source, target


def connector() -> dict[str, str]:
    loaded: dict[str, str] = json.loads((HERE / "compose" / "connector.json").read_text())
    return loaded


def lake_settings(compose: Mapping[str, Any], place: Path) -> Settings:
    """The settings as the container of binlake sees them; a file of the image is stood in for."""
    service = compose["services"]["binlake"]
    inside = {target: source for source, target in mounts(service)}
    text = (HERE / inside[service["command"][1]]).read_text()
    (place / "conf.yaml").write_text(text)
    return Settings.load(place / "conf.yaml", environment(compose, "binlake"))


def sql() -> str:
    return (HERE / "compose" / "shop.sql").read_text()


def test_images_are_pinned(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert re.fullmatch(r"[\w./-]+:\d+\.\d+\.\d+[\w.-]*", service["image"]), name
    dockerfile = (HERE / "binlake.Dockerfile").read_text()
    assert re.search(r"^ARG BASE_IMAGE=debian:\w+-\d{8}-slim$", dockerfile, re.MULTILINE)
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${BASE_IMAGE}"}


def test_services_are_of_the_versions_that_are_tested(compose: dict[str, Any]) -> None:
    services = compose["services"]
    version = {c.rsplit(":", 2)[1]: c.rsplit(":", 1)[1] for c in (*KAFKA_BROKER, *DEBEZIUM)}
    assert services["kafka"]["image"].endswith(f":{version['kafka_2.13']}")
    assert services["connect"]["image"].endswith(f":{version['debezium-connector-mariadb']}")
    assert services["register"]["image"] == services["connect"]["image"]


def test_what_is_mounted_and_waited_for_is_there(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for source, target in mounts(service):
            if source.startswith("."):
                assert (HERE / source).is_file(), f"{name} mounts {source}"
            else:
                assert source in compose["volumes"], f"{name} mounts the volume {source}"
            assert target.startswith("/")
        for other, how in service.get("depends_on", {}).items():
            assert other in compose["services"]
            if how["condition"] == "service_healthy":
                assert "healthcheck" in compose["services"][other], f"{name} waits for {other}"
            else:
                assert how["condition"] == "service_completed_successfully"
    assert {v for s in compose["services"].values() for v, _ in mounts(s) if not v.startswith(".")} == set(
        compose["volumes"]
    )


def test_ports_are_open_on_loopback_alone(compose: dict[str, Any]) -> None:
    published = [port for service in compose["services"].values() for port in service.get("ports", ())]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_the_image_is_built_from_what_is_there(compose: dict[str, Any]) -> None:
    build = compose["services"]["binlake"]["build"]
    context = (HERE / build["context"]).resolve()
    dockerfile = context / build["dockerfile"]
    assert context == ROOT
    text = dockerfile.read_text()
    ignored = dockerfile.with_name(dockerfile.name + ".dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    for line in re.findall(r"^COPY (?!--from=)(.+)$", text, re.MULTILINE):
        for source in shlex.split(line)[:-1]:
            assert (context / source).exists(), source
            assert f"!{source}" in ignored, f"{source} is not let through by the .dockerignore"


def test_the_settings_pass_and_name_what_compose_starts(compose: dict[str, Any], tmp_path: Path) -> None:
    settings, services = lake_settings(compose, tmp_path), compose["services"]
    host, port = settings.kafka.bootstrap_servers.split(":")
    assert host == "kafka"
    assert f"://{host}:{port}" in environment(compose, "kafka")["KAFKA_ADVERTISED_LISTENERS"]
    assert settings.lake.uri.removeprefix("file://") in dict(map(reversed, mounts(services["binlake"])))  # type: ignore[arg-type]
    assert f"127.0.0.1:{settings.monitoring.port}:{settings.monitoring.port}" in services["binlake"]["ports"]
    assert str(settings.monitoring.port) in " ".join(services["binlake"]["healthcheck"]["test"])
    assert f"EXPOSE {settings.monitoring.port}" in (HERE / "binlake.Dockerfile").read_text()


def test_the_metastore_serves_the_lake_of_the_stream(compose: dict[str, Any], tmp_path: Path) -> None:
    service = compose["services"]["metastore"]
    for source, target in mounts(service):
        if source.startswith("./"):
            (tmp_path / Path(target).name).write_text((HERE / source).read_text())
    settings = MetastoreSettings.load(tmp_path / Path(service["command"][-1]).name)
    [lake] = settings.lakes
    of_stream = Settings.load(str(lake.settings), environment(compose, "metastore")).lake
    assert of_stream == lake_settings(compose, tmp_path).lake
    published = {int(port.rsplit(":", 1)[1]) for port in service["ports"]}
    assert published == {settings.thrift.port, settings.http.port, settings.monitoring.port}


@pytest.mark.full
def test_the_connector_and_the_stream_agree(compose: dict[str, Any], tmp_path: Path) -> None:
    settings, told = lake_settings(compose, tmp_path), connector()
    database = told["database.include.list"]
    tables = re.findall(r"CREATE TABLE (\w+)", sql())
    assert f"USE {database};" in sql()
    assert len(tables) > 1
    for table in tables:
        assert re.fullmatch(str(settings.kafka.topic_pattern), f"{told['topic.prefix']}.{database}.{table}")
        assert settings.selects(SourceTable(database, table))
    assert settings.kafka.ddl_topics == (told["topic.prefix"],)
    assert told["include.schema.changes"] == "true"
    for topic in (told["topic.prefix"], told["schema.history.internal.kafka.topic"]):
        assert not re.fullmatch(str(settings.kafka.topic_pattern), topic)
    assert told["schema.history.internal.kafka.bootstrap.servers"] == settings.kafka.bootstrap_servers
    assert environment(compose, "connect")["BOOTSTRAP_SERVERS"] == settings.kafka.bootstrap_servers


def test_the_connector_finds_its_database(compose: dict[str, Any]) -> None:
    told, database = connector(), environment(compose, "mysql")
    assert told["database.hostname"] in compose["services"]
    assert (told["database.user"], told["database.include.list"]) == (
        database["MYSQL_USER"],
        database["MYSQL_DATABASE"],
    )
    reference = re.fullmatch(r"\$\{env:(\w+)\}", told["database.password"])
    assert reference is not None, "the password is by reference"
    connect = environment(compose, "connect")
    assert connect[reference[1]] == database["MYSQL_PASSWORD"]
    assert connect["CONNECT_CONFIG_PROVIDERS"] == "env"
    assert f"'{told['database.user']}'@'%'" in sql()
    registered = compose["services"]["register"]
    assert "/connector.json" in dict(map(reversed, mounts(registered)))  # type: ignore[arg-type]
    assert any("http://connect:8083/" in word for word in registered["entrypoint"])


def test_compose_itself_takes_the_file_where_it_is_installed() -> None:
    """Docker's own check of the file; where Docker Compose is not installed, the tests above are all there is."""
    docker = shutil.which("docker")
    found = docker and subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode == 0
    if found:
        command = ["docker", "compose", "-f", str(HERE / "compose.yaml"), "config", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_the_image_runs_only_modules_that_it_has() -> None:
    """The image keeps Spark's connector in its cache: what fills it must be in the image."""
    dockerfile = (HERE / "binlake.Dockerfile").read_text()
    copied = set(re.findall(r"^COPY (\w+) (?:\./|/opt/binlake/)\1$", dockerfile, re.MULTILINE))
    (script,) = re.findall(r'RUN python -c "([^"]+)"', dockerfile)
    modules = {
        str(node.module).split(".")[0] for node in ast.walk(ast.parse(script)) if isinstance(node, ast.ImportFrom)
    }
    assert copied == {"distributions", "pipeline", "jobs"}
    assert all((ROOT / "pipeline" / name).is_dir() for name in modules)
    assert "kafka_connector()" in script
    assert callable(jars.kafka_connector)
    assert dockerfile.index("BINLAKE_CACHE=") < dockerfile.index(script)
