"""The Helm chart: Helm renders it, Kubernetes' schemas take it, and its parts speak of the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from binlake.settings import Settings
from lakemetastore.settings.service import MetastoreSettings
from tests.docker.exit_codes import RESTART
from tests.docker.kubernetes import CHART, complaints, render
from tests.docs.test_commands import parse
from tests.paths import ROOT

SETTINGS = r"""
name: shop
lake: {uri: "s3://lake/shop", options: {secret_access_key: "${env:S3_SECRET}"}}
kafka: {bootstrap_servers: "kafka:9092", topic_pattern: 'shop\.shop\..+'}
batch: {max_events: 5000000}
monitoring: {stalled_seconds: 120, port: 1}
dump: {uri: "s3://lake/dumps"}
"""
ALL: dict[str, Any] = {
    "secrets": ["shop"],
    "env": {"TZ": "UTC"},
    "lakeClaim": "lake",
    "imagePullSecrets": [{"name": "registry"}],
    "metastore": {"enabled": True, "settings": {"store": {"uri": "s3://lake/metastore"}, "warehouse": "s3://lake/w"}},
    "replay": {"enabled": True},
    "verify": {"enabled": True, "arguments": ["--rows-per-second=20000"]},
}
LEAST: dict[str, Any] = {}


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("settings") / "shop.yaml"
    file.write_text(SETTINGS)
    return file


@pytest.fixture(scope="module")
def manifests(settings: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    return render(settings, ALL, tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="module")
def objects(manifests: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(manifests))


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in objects if one["kind"] == kind}


def pods(objects: list[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The templates of pods, with the names of what they belong to."""
    for name, one in of_kind(objects, "Deployment").items():
        yield name, one["spec"]["template"]
    for name, one in of_kind(objects, "CronJob").items():
        yield name, one["spec"]["jobTemplate"]["spec"]["template"]


def test_jobs_are_tried_again_after_the_codes_that_the_error_tree_means() -> None:
    """Of the text alone, so that it is held without Helm; 137 is a kill."""
    text = (CHART / "templates" / "_helpers.tpl").read_text()
    [codes] = re.findall(r"action: FailJob\n\s+onExitCodes:\n\s+operator: NotIn\n\s+values: \[(.*)\]", text)
    assert set(map(int, codes.split(","))) == RESTART | {137}
    # Whatever else runs is a Deployment, which starts containers again after any code: the script in it decides.
    for file in (CHART / "templates").glob("*.yaml"):
        kinds = set(re.findall(r"(?m)^kind: (\w+)$", file.read_text()))
        assert kinds <= {"ConfigMap", "Service", "Deployment", "CronJob"}
        if "Deployment" in kinds:
            assert "command: [/opt/binlake/supervise.py, binlake]\n" in file.read_text()
            assert "livenessProbe" not in file.read_text(), "it would start what waits for a person"
        if "CronJob" in kinds:
            assert 'include "binlake.job"' in file.read_text()


def test_the_chart_names_the_image_of_compose() -> None:
    image = yaml.safe_load((CHART / "values.yaml").read_text())["image"]
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())
    assert f"{image['repository']}:{image['tag']}" == compose["services"]["binlake"]["image"]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == image["tag"]


@pytest.mark.full
@pytest.mark.parametrize("values", [ALL, LEAST], ids=["all", "least"])
def test_kubernetes_takes_the_manifests(settings: Path, values: dict[str, Any], tmp_path: Path) -> None:
    assert complaints(render(settings, values, tmp_path), tmp_path) == []


@pytest.mark.full
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("terminationGracePeriodSeconds: 300", "terminationGraceSeconds: 300"),
        ("onExitCodes:", "onExitCode:"),
        ("replicas: 1", "replicas: one"),
        ("port: health", "prot: health"),
    ],
)
def test_control_a_misspelt_field_is_refused(manifests: str, right: str, wrong: str, tmp_path: Path) -> None:
    assert right in manifests
    assert complaints(manifests.replace(right, wrong, 1), tmp_path) != []


@pytest.mark.full
def test_the_settings_in_the_map_are_those_of_the_user(
    settings: Path, objects: list[dict[str, Any]], tmp_path: Path
) -> None:
    [config] = of_kind(objects, "ConfigMap").values()
    for name, text in config["data"].items():
        (tmp_path / name).write_text(text)
    environment = {"S3_SECRET": "s"}
    inside = Settings.load(tmp_path / "stream.yaml", environment)
    own = Settings.load(settings, environment)
    assert (inside.monitoring.host, inside.monitoring.port) == ("0.0.0.0", 9108)
    assert inside.model_copy(update={"monitoring": own.monitoring}) == own
    metastore = MetastoreSettings.load(tmp_path / "metastore.yaml")
    assert [lake.settings for lake in metastore.lakes] == [str(tmp_path / "stream.yaml")]
    services = of_kind(objects, "Service")
    assert {one["port"] for one in services["shop-metastore"]["spec"]["ports"]} == {
        metastore.thrift.port,
        metastore.http.port,
    }
    asked = {name: pod["spec"]["containers"][0] for name, pod in pods(objects)}
    for name, port in (("shop-stream", inside.monitoring.port), ("shop-metastore", metastore.monitoring.port)):
        assert asked[name]["readinessProbe"]["httpGet"] == {"path": "/health", "port": "health"}
        assert {"name": "health", "containerPort": port} in asked[name]["ports"]


@pytest.mark.full
def test_pods_run_commands_that_binlake_has(objects: list[dict[str, Any]]) -> None:
    commands = {}
    for name, pod in pods(objects):
        [container] = pod["spec"]["containers"]
        words = [*container["command"], *container.get("args", [])]
        if words[0] == "sh":
            words = words[2].replace('$(date -u -d "-24 hours" +%Y-%m-%dT%H)', "2026-11-21T05").replace('"', "").split()
        commands[name] = words[words.index("binlake") + 1 :]
        parse(commands[name])
        assert container["envFrom"] == [{"secretRef": {"name": "shop"}}]
        mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounted == {"settings": "/etc/binlake", "lake": "/lake"}
        assert {volume["name"] for volume in pod["spec"]["volumes"]} == set(mounted)
        assert pod["spec"]["securityContext"]["runAsUser"] == 185
    assert commands["shop-replay"][:3] == ["replay", "/etc/binlake/stream.yaml", "--since"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d", commands["shop-replay"][3]), "an hour, of GNU date"
    assert set(commands) == {"shop-stream", "shop-metastore", "shop-replay", "shop-verify"}
    for name, one in of_kind(objects, "CronJob").items():
        spec = one["spec"]["jobTemplate"]["spec"]
        assert spec["template"]["spec"]["restartPolicy"] == "Never", f"{name}: a policy of failures asks for it"
        assert one["spec"]["concurrencyPolicy"] == "Forbid"
    stream = of_kind(objects, "Deployment")["shop-stream"]["spec"]
    assert (stream["replicas"], stream["strategy"]) == (1, {"type": "Recreate"})


@pytest.mark.full
@pytest.mark.parametrize(
    ("text", "message"), [("", "stream.settings is empty"), ("a: [", "stream.settings is no YAML")]
)
def test_a_chart_without_settings_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "shop.yaml").write_text(text)
    with pytest.raises(RuntimeError, match=message):
        render(tmp_path / "shop.yaml", LEAST, tmp_path)
