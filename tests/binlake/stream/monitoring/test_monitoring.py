"""What a stream measures of itself, over HTTP as Prometheus and a load balancer ask for it."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import socket
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prometheus_client
import pytest

from binlake.cli.commands.stream.run import run as run_settings
from binlake.decode.changes import SourceTable
from binlake.position.held_tables import Stop
from binlake.source.offsets import NO_OFFSETS, Offsets
from binlake.stream.monitoring.monitor import Monitor
from binlake.stream.monitoring.progress import (
    DdlProgress,
    DerivedRows,
    OnProgress,
    PartitionProgress,
    ProgressEvent,
    TableProgress,
)
from binlake.stream.monitoring.watched import monitored
from hudilake.errors import ConfigError
from lakemetastore.service.monitoring import MonitoringServer
from tests.binlake.cli.fed_lake import FedLake
from tests.binlake.stream.topic_log import event, settings
from tests.paths import CONF

GRAFANA = CONF / "grafana.json"
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


class Clock:
    """Seconds that pass when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def read(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of an exposition; every line must be one, or a comment."""
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"^# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))$", line)
            continue
        match = SAMPLE.match(line)
        assert match is not None, line
        key = match[1], tuple(sorted(LABEL.findall(match[2] or "")))
        assert key not in found
        found[key] = float(match[3])
    return found


def value(monitor: Monitor, name: str, **labels: str) -> float | None:
    return read(monitor.render()).get((name, tuple(sorted(labels.items()))))


class Watched(FedLake):
    """A lake whose stream has a monitor."""

    def start(self) -> None:
        super().start()
        self.clock = Clock()
        self.monitor = Monitor(300.0, self.clock)
        self.monitor.attach(self.runner._lake, self.runner.ledger)

    def batch(self, tables: tuple[str, ...] = ("a", "b")) -> ProgressEvent:
        done = super().batch(tables)
        self.monitor.update(done)
        return done


@pytest.fixture
def lake(tmp_path: Path) -> Watched:
    return Watched(tmp_path)


def test_records_are_counted_by_fate_and_table(lake: Watched) -> None:
    lake.feed(3)
    lake.log.add("s.shop.a", b"{broken", None)
    lake.log.add("s.shop.a", event("a", "u", 1, {"id": 1, "owner": "x", "colour": "red"}), {"id": 1})
    lake.feed(1)
    m = lake.monitor
    fates = {f: value(m, "binlake_records_total", table="shop.a", fate=f) for f in ("applied", "superseded")}
    assert fates == {"applied": 13, "superseded": 1}
    assert value(m, "binlake_records_total", table="shop.a", fate="quarantined") == 1
    assert value(m, "binlake_records_total", table="-", fate="quarantined") == 1
    assert (value(m, "binlake_batches_total"), value(m, "binlake_commits_total", table="shop.b")) == (4, 4)
    assert value(m, "binlake_template_records_total") == 29, "all but the one that is broken"
    assert value(m, "binlake_written_bytes_total", table="shop.a")
    assert value(m, "binlake_batch_seconds_count") == 4
    assert value(m, "binlake_stage_seconds_count", stage="decode") == 4
    assert value(m, "binlake_commit_seconds_count") == 8
    assert (value(m, "binlake_freshness_seconds", table="shop.a", change="newest") or 0) > 0


def test_position_lag_and_age(lake: Watched) -> None:
    lake.feed(2)
    m, end = lake.monitor, lake.log.end()["s.shop.a"][0]
    place = {"topic": "s.shop.a", "partition": "0"}
    assert (value(m, "binlake_position", **place), value(m, "binlake_lag", **place)) == (end, 0)
    m.kafka_said(Offsets({"s.shop.a": {0: end + 7}}))
    assert (value(m, "binlake_lag", **place), value(m, "binlake_kafka_answers")) == (7, 1)
    lake.clock.now += 42
    assert value(m, "binlake_last_batch_age_seconds") == 42
    m.kafka_said(None)
    assert (value(m, "binlake_lag", **place), value(m, "binlake_kafka_answers")) == (7, 0)


def test_sizes_ratio_and_compactions(tmp_path: Path) -> None:
    lake = Watched(tmp_path, {"compaction": {"mode": "inline", "after_commits": 3}})
    lake.feed(3)
    m = lake.monitor
    assert value(m, "binlake_compactions_total", table="shop.a") == 1
    newest: dict[str, tuple[str, int]] = {}
    for file in (lake.path / "shop/a").glob("*.parquet"):
        group, _, instant = file.stem.split("_")
        newest[group] = max(newest.get(group, ("", 0)), (instant, file.stat().st_size))
    base = sum(size for _, size in newest.values())
    assert value(m, "binlake_base_bytes", table="shop.a") == base
    logs = value(m, "binlake_log_bytes", table="shop.a")
    lake.clock.now += 60
    lake.feed(1)
    more = value(m, "binlake_log_bytes", table="shop.a")
    assert logs is not None
    assert more is not None
    assert more > logs
    assert value(m, "binlake_log_base_ratio", table="shop.a") == pytest.approx(more / base)
    assert value(m, "binlake_pending_compactions", table="shop.a") == 0


def test_a_scrape_asks_the_storage_nothing(lake: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.feed(2)
    monkeypatch.delattr("hudilake.storage.local.LocalStorage.list")
    monkeypatch.delattr("hudilake.storage.local.LocalStorage.read")
    monkeypatch.delattr("hudilake.storage.local.LocalStorage.walk")
    assert lake.monitor.render()
    assert lake.monitor.health().well


def test_a_table_that_fails_is_counted_and_not_well(lake: Watched) -> None:
    lake.feed(2)
    (lake.path / "shop/a/.hoodie/hoodie.properties").rename(lake.path / "aside")
    done = lake.batch()
    assert [t.table for t in done.tables if t.error] == ["shop.a"]
    m = lake.monitor
    assert value(m, "binlake_table_errors_total", table="shop.a") == 1
    assert value(m, "binlake_table_behind", table="shop.a") == 1
    assert (value(m, "binlake_healthy"), m.health().reasons) == (0, ("stopped: shop.a",))
    (lake.path / "aside").rename(lake.path / "shop/a/.hoodie/hoodie.properties")
    lake.catch_up()
    m.update(lake.batch())
    assert (value(m, "binlake_table_behind", table="shop.a"), m.health().well) == (0, True)


def test_a_paused_table_is_well_and_a_stopped_one_is_not(lake: Watched) -> None:
    lake.feed(2)
    m, ledger = lake.monitor, lake.runner.ledger
    a, b = SourceTable("shop", "a"), SourceTable("shop", "b")
    ledger.pause(a, ["s.shop.a"], 1)
    m.update(lake.batch())
    assert (value(m, "binlake_table_paused", table="shop.a"), m.health().well) == (1, True)
    ledger.stop(b, Stop("why", "what next", "ConfigError", 1), ["s.shop.b"])
    m.update(lake.batch())
    assert (value(m, "binlake_table_stopped", table="shop.b"), m.health().reasons) == (1, ("stopped: shop.b",))
    ledger.unpause(a)
    m.update(lake.batch())
    assert value(m, "binlake_table_paused", table="shop.a") == 0
    assert m.health().reasons == ("behind: shop.a", "stopped: shop.b")


def test_a_stream_that_lags_and_stands_is_not_well() -> None:
    clock = Clock()
    monitor = Monitor(60.0, clock)
    assert monitor.health().well
    clock.now += 1000
    assert monitor.health().well  # nothing waits


def test_a_stream_that_stands_while_records_wait(lake: Watched) -> None:
    lake.feed(1)
    m, end = lake.monitor, lake.log.end()["s.shop.a"][0]
    lake.clock.now += 301
    assert m.health().well
    m.kafka_said(Offsets({"s.shop.a": {0: end + 3}}))
    assert m.health().reasons == ("no batch has finished for 301 s, and 3 offsets wait",)
    lake.clock.now -= 2
    assert m.health().well


#: The metrics are an interface: dashboards and alerts of users name them.
METRICS = {
    "binlake_base_bytes": ("gauge", {"table"}),
    "binlake_batch_seconds": ("histogram", set()),
    "binlake_batches_total": ("counter", set()),
    "binlake_template_records_total": ("counter", set()),
    "binlake_commit_seconds": ("histogram", set()),
    "binlake_commits_total": ("counter", {"table"}),
    "binlake_derived_rows_total": ("counter", {"table", "outcome"}),
    "binlake_compactions_total": ("counter", {"table"}),
    "binlake_clusterings_total": ("counter", {"table"}),
    "binlake_freshness_seconds": ("gauge", {"table", "change"}),
    "binlake_healthy": ("gauge", set()),
    "binlake_kafka_answers": ("gauge", set()),
    "binlake_lag": ("gauge", {"topic", "partition"}),
    "binlake_last_batch_age_seconds": ("gauge", set()),
    "binlake_metastore_told_total": ("counter", set()),
    "binlake_metastore_failed_total": ("counter", set()),
    "binlake_metastore_dropped_total": ("counter", set()),
    "binlake_metastore_waiting": ("gauge", set()),
    "binlake_log_base_ratio": ("gauge", {"table"}),
    "binlake_log_bytes": ("gauge", {"table"}),
    "binlake_pending_compactions": ("gauge", {"table"}),
    "binlake_position": ("gauge", {"topic", "partition"}),
    "binlake_records_total": ("counter", {"table", "fate"}),
    "binlake_stage_seconds": ("histogram", {"stage"}),
    "binlake_table_behind": ("gauge", {"table"}),
    "binlake_table_errors_total": ("counter", {"table"}),
    "binlake_table_paused": ("gauge", {"table"}),
    "binlake_table_stopped": ("gauge", {"table"}),
    "binlake_table_warnings_total": ("counter", {"table"}),
    "binlake_unmatched_deletes": ("gauge", {"table"}),
    "binlake_written_bytes_total": ("counter", {"table"}),
}


OUTCOMES = ("written", "deleted", "quarantined")


def kinds(monitor: Monitor) -> dict[str, str]:
    """The type of every metric that Kafka's answer makes complete."""
    monitor.kafka_said(NO_OFFSETS)
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", monitor.render(), re.MULTILINE))


def test_the_metrics_there_are(tmp_path: Path) -> None:
    lake = Watched(tmp_path, {"compaction": {"mode": "inline", "after_commits": 2}})
    lake.feed(2)
    lake.runner.ledger.note_behind(SourceTable("shop", "b"), {"s.shop.b": {0: 0}})
    lake.monitor.attach(lake.runner._lake, lake.runner.ledger)
    wide = TableProgress("shop.wide", derived=DerivedRows(3, 2, 1, 1, 5.0))
    lake.monitor.update(ProgressEvent(3, 1.0, tables=(wide,)))
    written = [value(lake.monitor, "binlake_derived_rows_total", table="shop.wide", outcome=o) for o in OUTCOMES]
    assert written == [2, 1, 1]
    types = kinds(lake.monitor)
    labels: dict[str, set[str]] = {}
    for name, said in read(lake.monitor.render()):
        base = next(n for n in (name, name.rpartition("_")[0]) if n in types)
        labels[base] = {label for label, _ in said if label != "le"}
    assert {name: (types[name], labels[name]) for name in types} == METRICS


def test_the_text_form() -> None:
    monitor, strange = Monitor(1.0, Clock()), 'a"b\\c\nd'
    for ms in (50, 100, 500, 1000, 7000, 10**6):
        monitor.update(ProgressEvent(1, ms, tables=(TableProgress(strange, applied=2, commit_instant="1"),)))
    lines = monitor.render().splitlines()
    assert 'binlake_commits_total{table="a\\"b\\\\c\\nd"} 6.0' in lines
    start = lines.index("# HELP binlake_batch_seconds From the trigger to the last table's commit.")
    assert lines[start + 1] == "# TYPE binlake_batch_seconds histogram"
    counts = {"0.05": 1, "0.1": 2, "0.25": 2, "0.5": 3, "0.75": 3, "1": 4, "1.5": 4, "2": 4, "3": 4, "5": 4}
    counts |= {"10": 5, "30": 5, "60": 5, "300": 5, "+Inf": 6}
    expected = [f'binlake_batch_seconds_bucket{{le="{bound}"}} {count}.0' for bound, count in counts.items()]
    expected += ["binlake_batch_seconds_count 6.0", "binlake_batch_seconds_sum 1008.65"]
    assert lines[start + 2 : start + 19] == expected
    at = lines.index("# TYPE binlake_freshness_seconds gauge")
    assert lines[at + 1].startswith("# HELP")  # no value is known, so there is none
    assert not [line for line in lines if "_created" in line]


def test_kafka_has_no_answer_before_it_was_asked() -> None:
    monitor = Monitor(1.0)
    assert value(monitor, "binlake_kafka_answers") is None
    monitor.kafka_said(None)
    assert value(monitor, "binlake_kafka_answers") == 0


def test_two_streams_of_a_process_have_metrics_of_their_own() -> None:
    one, other = Monitor(1.0), Monitor(1.0)
    one.update(ProgressEvent(1, 1.0))
    assert (value(one, "binlake_batches_total"), value(other, "binlake_batches_total")) == (1, 0)
    assert "binlake" not in prometheus_client.generate_latest().decode()


def test_the_dashboard_shows_the_metrics_there_are_and_no_others() -> None:
    types = kinds(Monitor(1.0))
    told = {name for name, kind in types.items() if kind != "histogram"}
    told |= {
        f"{name}{end}" for name, kind in types.items() if kind == "histogram" for end in ("_bucket", "_sum", "_count")
    }
    board = json.loads(GRAFANA.read_text())
    shown = set(re.findall(r"binlake_[a-z_]+", " ".join(t["expr"] for p in board["panels"] for t in p["targets"])))
    asked = set(re.findall(r"binlake_[a-z_]+", json.dumps(board["templating"])))
    assert shown | asked <= told
    assert {re.sub("_(bucket|sum|count)$", "", name) for name in shown} == set(types)
    places = [tuple(p["gridPos"].values()) for p in board["panels"]]
    assert len(set(places)) == len(places)


# -- over HTTP ------------------------------------------------------------------------------------------------------


def asked(port: int, path: str) -> tuple[int, str, str]:
    """Status, content type and body."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers["Content-Type"], error.read().decode()


@pytest.fixture
def server(lake: Watched) -> Iterator[MonitoringServer]:
    made = MonitoringServer(lake.monitor, "127.0.0.1", 0, {"/batches.json": lake.monitor.batches})
    yield made
    made.close()


def test_it_is_served(lake: Watched, server: MonitoringServer) -> None:
    lake.feed(1)
    status, kind, text = asked(server.port, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    assert ("binlake_batches_total", ()) in read(text)
    assert asked(server.port, "/health?verbose=1")[0] == 200
    status, kind, text = asked(server.port, "/batches.json")
    [batch] = json.loads(text)
    assert (status, kind, batch["batch"]) == (200, "application/json", 0)
    assert batch["stage_ms"].keys() >= {"tasks", "commit"}
    assert batch["records"] > 0 < batch["latency_ms"]
    assert asked(server.port, "/") == (404, "text/plain", "there are /metrics, /health, /batches.json\n")
    lake.runner.ledger.note_behind(SourceTable("shop", "b"), {"s.shop.b": {0: 0}})
    lake.monitor.attach(lake.runner._lake, lake.runner.ledger)
    status, _, text = asked(server.port, "/health")
    assert (status, json.loads(text)) == (503, {"status": "failing", "reasons": ["behind: shop.b"]})


def test_the_server_logs_and_does_not_print(
    server: MonitoringServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG, "lakemetastore")
    asked(server.port, "/health")
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        reset = struct.pack("ii", 1, 0)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)  # the close is an error for the server
        client.sendall(b"GET /metrics HTTP/1.1\r\n")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(caplog.records) < 2:
        time.sleep(0.01)
    found = [(record.levelname, vars(record)["event"]) for record in caplog.records]
    assert found == [("DEBUG", "http_request"), ("WARNING", "http_failed")]
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken(lake: Watched, server: MonitoringServer) -> None:
    with pytest.raises(ConfigError, match="cannot serve metrics"):
        MonitoringServer(lake.monitor, "127.0.0.1", server.port)


def test_it_is_off_unless_the_settings_say_so(tmp_path: Path) -> None:
    with monitored(settings(str(tmp_path), ["a"])) as monitor:
        assert monitor is None
    with monitored(settings(str(tmp_path), ["a"], monitoring={"port": 0})) as monitor:
        assert monitor is not None


# -- the log --------------------------------------------------------------------------------------------------------


class Silent:
    """A display that shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def update(self, event: ProgressEvent) -> None:
        """Nothing."""


class Session:
    """A Spark session that does nothing, on a master elsewhere."""

    master = "spark://elsewhere:7077"
    _gateway = None

    @property
    def sparkContext(self) -> Session:
        """Itself: its master and its JVM, which another process has, are all that is asked for."""
        return self

    def stop(self) -> None:
        """Nothing."""


def logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *happened: Any) -> list[dict[str, Any]]:  # noqa: ANN401
    """The log of a run in which those events (or an error) come."""

    class Played:
        def __init__(self, given: object, spark: object, on_progress: OnProgress, *_: object, **__: object) -> None:
            self._on_progress = on_progress

        def run(self, *, once: bool) -> None:
            for what in happened:
                if isinstance(what, Exception):
                    raise what
                self._on_progress(what)

    monkeypatch.setattr("binlake.stream.spark.session.spark_session", lambda given: Session())
    monkeypatch.setattr("binlake.stream.run.Stream", Played)
    file = tmp_path / "log.json"
    with contextlib.suppress(ConfigError, ValueError):
        run_settings(settings(str(tmp_path), ["a"]), Silent(), once=True, log_json=str(file))
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_line_for_every_commit_with_instant_and_offsets(
    lake: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = lake.batch()
    failed = TableProgress("shop.c", events_read=1, error="no space", warning="slow")
    other = ProgressEvent(7, 1.0, tables=(failed,), partitions=(PartitionProgress("t", 0, 5, 9),))
    lines = logged(tmp_path, monkeypatch, done, other)
    assert [line["event"] for line in lines] == [
        *("started", "commit", "commit", "batch"),
        *("table_failed", "warning", "batch", "stopped"),
    ]
    first = next(line for line in lines if line.get("table") == "shop.a")
    assert first["instant"] == lake.commits()[0]
    assert first["offsets"] == {"s.shop.a": {"0": [0, lake.log.end()["s.shop.a"][0]]}}
    assert first["offsets"] == json.loads(lake.table().extra_metadata("binlake.offsets") or "")
    assert {line["stream"] for line in lines} == {"shop"}
    assert (lines[4]["level"], lines[4]["error"], lines[6]["lag"]) == ("error", "no space", 4)
    assert ProgressEvent.from_json(json.loads(json.dumps(done.to_json()))) == done


def test_the_failure_that_ends_a_run_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = logged(tmp_path, monkeypatch, ConfigError("no such topic", do_next="make it", topic="t"))
    assert (lines[-1]["event"], lines[-1]["error"], lines[-1]["where"]) == ("failed", "no such topic", {"topic": "t"})
    lines = logged(tmp_path, monkeypatch, ValueError("odd"))
    assert (lines[-1]["level"], lines[-1]["error"]) == ("error", "ValueError('odd')")


#: The fields of a line by its event, after ``time``, ``level``, ``event`` and ``stream``: programs read them.
COUNTS = ["events_read", "applied", "superseded", "filtered", "quarantined", "already_applied"]
OF_TABLE = ["batch", "table", "offsets"]
FIELDS = {
    "started": [],
    "ddl": ["batch", "table", "place", "statement", "verdicts", "instant", "error", "undetermined"],
    "ddl_failed": ["batch", "table", "place", "statement", "verdicts", "instant", "error", "undetermined"],
    "notice": ["batch", "notice"],
    "commit": [*OF_TABLE, "instant", "bytes", *COUNTS, "latency_ms", "freshness_ms"],
    "compaction": [*OF_TABLE, "instant"],
    "clustering": [*OF_TABLE, "instant"],
    "warning": [*OF_TABLE, "instant", "warning"],
    "no_commit": [*OF_TABLE, *COUNTS],
    "table_failed": [*OF_TABLE, "error", *COUNTS],
    "batch": ["batch", "latency_ms", "stage_ms", "records", "by_template", "lag", "quarantined_without_table"],
    "failed": ["error", "where", "next"],
}


def test_the_fields_of_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = (
        TableProgress("s.a", commit_instant="1", compaction_instant="2", clustering_instant="3", warning="slow"),
        TableProgress("s.b", filtered=1),
        TableProgress("s.c", error="no space"),
    )
    ddl = (DdlProgress("s.a", verdicts=("ADD x",)), DdlProgress("s.b", error="later"))
    event = ProgressEvent(7, 1.5, {"plan": 0.123}, tables, notices=("news",), ddl=ddl)
    lines = logged(tmp_path, monkeypatch, event, ConfigError("no such topic"))
    assert {line["event"]: list(line)[4:] for line in lines} == FIELDS
    for line in lines:
        assert list(line)[:4] == ["time", "level", "event", "stream"]
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    levels = {line["event"]: line["level"] for line in lines if line["level"] != "info"}
    errors, warnings = dict.fromkeys(("table_failed", "failed"), "error"), ("ddl_failed", "notice", "warning")
    assert levels == errors | dict.fromkeys(warnings, "warning")
    assert next(line["verdicts"] for line in lines if line["event"] == "ddl") == ["ADD x"]
    assert lines[-2]["stage_ms"] == {"plan": 0.1}
