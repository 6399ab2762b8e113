"""``conf/grafana.json`` against Grafana's schemas, and its expressions and those of the alerts against what is told."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from binlake.cli.console.metrics import rendered_metrics
from binlake.position.compared import ComparedTables
from binlake.stream.monitoring.metrics import StreamMetrics
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched as WatchedByConsole
from tests.binlake.stream.monitoring.test_monitoring import Watched, read
from tests.paths import CONF, DATA
from tests.services.promtool import unparsed

BOARD: Mapping[str, Any] = json.loads((CONF / "grafana.json").read_text())
METRIC, PROMETHEUS_ADDS = re.compile(r"binlake_[a-z_]+"), {"job", "instance"}
#: The choices of Grafana -> what it puts in their place.
CHOICES = {"$__rate_interval": "1m", "$job": "a|b", "$table": ".*"}


def validator(schema: str, definition: str) -> jsonschema.Draft7Validator:
    definitions = json.loads((DATA / f"grafana/{schema}.schema.json").read_text())["definitions"]
    return jsonschema.Draft7Validator({"$ref": f"#/definitions/{definition}", "definitions": definitions})


def troubles(board: Mapping[str, Any]) -> list[str]:
    """Where a dashboard is none by Grafana's schemas: of the dashboard, its panels' plugins and their queries."""
    found = list(validator("dashboard", "Dashboard").iter_errors(board))
    for panel in board["panels"]:
        parts = [(panel["type"], "Options", panel.get("options", {}))]
        if panel["type"] == "timeseries":
            parts.append(("timeseries", "FieldConfig", panel["fieldConfig"]["defaults"].get("custom", {})))
        parts += [("prometheus", "Dataquery", target) for target in panel["targets"]]
        for schema, definition, value in parts:
            checks = validator(schema, definition)
            required = [] if definition == "Dataquery" else checks.schema["definitions"][definition].get("required", [])
            # Grafana fills in the options that a panel leaves out
            found += [e for e in checks.iter_errors(value) if not (e.validator == "required" and required)]
    return [error.message for error in found]


def expressions() -> list[str]:
    board = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    for choice, value in CHOICES.items():
        board = [one.replace(choice, value) for one in board]
    assert not any("$" in one for one in board)
    [group] = yaml.safe_load((CONF / "alerts.yaml").read_text())["groups"]
    return [*board, *(rule["expr"] for rule in group["rules"])]


def test_the_dashboard_is_one_by_grafanas_schemas() -> None:
    assert troubles(BOARD) == []
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    declared = {f"${one['name']}" for one in BOARD["templating"]["list"]} | {"$__rate_interval"}
    used = set(re.findall(r"\$\w+", json.dumps(BOARD).replace("${source}", "$source")))
    assert used == declared


def _of_the_board(board: dict[str, Any]) -> None:
    board["refresh_every"] = "10s"


def _of_a_panel(board: dict[str, Any]) -> None:
    board["panels"][0]["gridPos"]["w"] = "4"


def _of_a_query(board: dict[str, Any]) -> None:
    board["panels"][0]["targets"][0]["legend"] = "x"


@pytest.mark.parametrize("harm", [_of_the_board, _of_a_panel, _of_a_query])
def test_a_dashboard_that_is_none_is_found(harm: Callable[[dict[str, Any]], None]) -> None:
    """The control."""
    board = copy.deepcopy(dict(BOARD))
    harm(board)
    assert len(troubles(board)) == 1


@pytest.mark.full
def test_prometheus_parses_each_expression(tmp_path: Path) -> None:
    assert unparsed(expressions(), tmp_path) == ""
    assert "parse error" in unparsed([*expressions(), "sum by (a (binlake_lag)"], tmp_path)


def strays(expression: str, labels: Mapping[str, set[str]]) -> set[str]:
    """The labels that an expression asks for, and none of its metrics has."""
    had = set().union(*(labels[name] for name in METRIC.findall(expression))) | PROMETHEUS_ADDS
    grouped = [name for names in re.findall(r"\b(?:by|on) \(([^)]*)\)", expression) for name in names.split(",")]
    selected = [
        (name, label)
        for name, inside in re.findall(r"(binlake_\w+)\{([^}]*)\}", expression)
        for label in re.findall(r"(\w+)=", inside)
    ]
    return {one.strip() for one in grouped if one.strip() not in had} | {
        label for name, label in selected if label not in labels[name] | PROMETHEUS_ADDS
    }


@pytest.fixture
def told(tmp_path: Path) -> dict[str, list[dict[str, str]]]:
    """What a stream and a console tell: metric -> the labels of each sample."""
    lake = Watched(tmp_path)
    lake.feed(3)
    lake.log.add("s.shop.a", b"{broken", None)
    lake.feed(1)
    lake.monitor.kafka_said(lake.log.end())
    state = open_storage(f"{lake.path}/.binlake/shop")
    ComparedTables.load(state).note_differing(state, "shop/a", 3)
    text = lake.monitor.render() + rendered_metrics([WatchedByConsole.of(lake.conf).watch.view])
    samples: dict[str, list[dict[str, str]]] = {}
    for name, labels in read(text):
        samples.setdefault(name, []).append(dict(labels))
    return samples


def test_each_expression_asks_for_metrics_labels_and_values_that_are_told(
    told: dict[str, list[dict[str, str]]],
) -> None:
    """A label that no sample has makes an alert that never fires."""
    registry = StreamMetrics().registry
    labels = {
        name: {*collector._labelnames, *(["le"] if name.endswith("_bucket") else [])}  # type: ignore[attr-defined]
        for name, collector in registry._names_to_collectors.items()
    }
    for name, samples in told.items():
        assert labels.setdefault(name, set(samples[0])) == set(samples[0])
    for expression in expressions():
        assert set(METRIC.findall(expression)) <= labels.keys()
        assert strays(expression, labels) == set(), expression
        for name, inside in re.findall(r"(binlake_\w+)\{([^}]*)\}", expression):
            for label, value in re.findall(r'(\w+)="([^"]*)"', inside):
                assert any(sample[label] == value for sample in told[name]), expression
    assert strays('sum by (tabel) (binlake_lag{change="x"})', labels) == {"tabel", "change"}  # the control
