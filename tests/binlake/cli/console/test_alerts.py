"""The rules of ``conf/alerts.yaml``: each metric is told by a stream or the console, each alert leads to a runbook."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from binlake.cli.console.metrics import rendered_metrics
from binlake.position.compared import ComparedTables
from binlake.stream.monitoring.metrics import StreamMetrics
from binlake.stream.monitoring.writers import Writer
from hudilake.storage import open_storage
from tests.binlake.cli.console.watched_lake import Watched
from tests.binlake.cli.fed_lake import FedLake
from tests.paths import CONF, ROOT
from tests.services.promtool import promtool

RULES = CONF / "alerts.yaml"
#: What must be alerted of.
WANTED = {"Down", "Stalled", "Lag", "Freshness", "Quarantine", "CompactionBehind", "LockHeld", "VerifyDifferences"}
METRIC = re.compile(r"binlake_[a-z_]+")


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


@pytest.fixture
def seen(tmp_path: Path) -> Watched:
    lake = FedLake(tmp_path)
    lake.feed(2)
    return Watched.of(lake.conf)


def unknown(expressions: str, told: set[str]) -> set[str]:
    return set(METRIC.findall(expressions)) - told


def test_each_metric_of_the_rules_and_the_page_is_told(seen: Watched) -> None:
    streams = {metric.name for metric in StreamMetrics().registry.collect()} | {"binlake_records_total"}
    console = set(METRIC.findall("\n".join(re.findall(r"^# TYPE (\S+)", rendered_metrics([seen.watch.view]), re.M))))
    expressions = " ".join(rule["expr"] for rule in rules())
    assert unknown(expressions, streams | console) == set()
    assert unknown(f"{expressions} binlake_none", streams | console) == {"binlake_none"}  # the control
    documented = set(re.findall(r"^\| `(binlake_console_\w+)`", (ROOT / "docs/monitoring.md").read_text(), re.M))
    assert documented == console


def test_each_alert_has_words_and_a_runbook_that_the_site_has() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    assert {rule["alert"].removeprefix("Binlake") for rule in rules()} >= WANTED
    for rule in rules():
        book = rule["annotations"]["runbook"]
        assert (ROOT / book).is_file(), book
        assert book.removeprefix("docs/") in site
        assert f"**{rule['alert']}**" in (ROOT / book).read_text() or rule["alert"] == "BinlakeTableStopped"
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["expr"].count("(") == rule["expr"].count(")")


@pytest.mark.full
def test_prometheus_takes_the_rules_and_lets_alerts_fire(tmp_path: Path) -> None:
    assert all(set(rule) <= {"alert", "expr", "for", "labels", "annotations"} for rule in rules())
    series = [
        {"series": 'binlake_console_up{stream="shop"}', "values": "1 0x10"},
        {"series": 'binlake_lag{instance="a",topic="t",partition="0"}', "values": "5x10"},
        {"series": 'binlake_last_batch_age_seconds{instance="a"}', "values": "301x10"},
        {"series": 'binlake_console_lock_held_seconds{stream="shop",table="shop.a"}', "values": "0 400x10"},
    ]
    fired: list[dict[str, Any]] = [
        {"eval_time": "5m", "alertname": name, "exp_alerts": [{"exp_labels": labels}]}
        for name, labels in (
            ("BinlakeDown", {"severity": "page", "stream": "shop"}),
            ("BinlakeStalled", {"severity": "page", "instance": "a"}),
            ("BinlakeLockHeld", {"severity": "ticket", "stream": "shop", "table": "shop.a"}),
            ("BinlakeVerifyDifferences", None),
        )
    ]
    for one in fired:
        known = {rule["alert"]: rule["annotations"] for rule in rules()}[one["alertname"]]
        [expected] = one["exp_alerts"]
        if expected["exp_labels"] is None:
            one["exp_alerts"] = []
            continue
        words = known["summary"].replace("{{ $value }}", "400")
        for label, value in expected["exp_labels"].items():
            words = words.replace(f"{{{{ $labels.{label} }}}}", value)
        expected["exp_annotations"] = {**known, "summary": words}
    case = {"interval": "1m", "input_series": series, "alert_rule_test": fired}
    (tmp_path / "test.json").write_text(json.dumps({"rule_files": [str(RULES)], "tests": [case]}))
    assert promtool("test", "rules", tmp_path / "test.json") == ""
    fired[-1]["exp_alerts"] = [{"exp_labels": {"severity": "ticket"}}]  # the control: an alert that does not fire
    (tmp_path / "test.json").write_text(json.dumps({"rule_files": [str(RULES)], "tests": [case]}))
    assert "BinlakeVerifyDifferences" in promtool("test", "rules", tmp_path / "test.json")


def test_the_console_tells_of_locks_and_of_what_verify_found(seen: Watched) -> None:
    state = open_storage(seen.watch.settings.state_uri)
    ComparedTables.load(state).note_differing(state, "shop/a", 3)
    ComparedTables.load(state).note(state, "shop/b", 7)
    assert ComparedTables.load(state) == ComparedTables({"shop/b": 7}, {"shop/a": 3})
    again = Watched.of(Path(seen.watch.conf))
    text = again.get("/metrics").text
    assert 'binlake_console_verify_differences{stream="shop",table="shop.a"} 3.0' in text
    assert 'binlake_console_verify_differences{stream="shop",table="shop.b"}' not in text
    assert 'binlake_console_up{stream="shop"} 0.0' in text
    assert 'binlake_console_lock_held_seconds{stream="shop",table="shop.a"} 0.0' in text
    table = again.watch.view.tables["shop/a"]
    assert table.status is not None
    held = replace(table, status=replace(table.status, lock=Writer("x", "h", 1, 0.0, True)), lock_since_ms=1)
    view = replace(again.watch.view, tables={"shop/a": held})
    [value] = re.findall(r'lock_held_seconds\{stream="shop",table="shop.a"\} (\S+)', rendered_metrics([view]))
    assert float(value) > 1e9
