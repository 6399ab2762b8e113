"""The harness of the benchmark without Spark and Kafka: what it counts, what it accepts, how it goes on."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from hashlib import sha256
from pathlib import Path
from statistics import mean

import pyarrow as pa
import pytest

from bench.aged_hudi import age
from bench.events import Shape, events
from bench.hudi_tagging import tagging_ms
from bench.kafka_load import table_events
from bench.model import digest, expected, expected_of_loaded, newest, rows_of
from bench.ours import settings_for
from bench.report import compared_by, overview, table, times_as_good, write_report
from bench.spec import Batch, Recorder, Spec, read_batches
from bench.suite import Plan, Suite, in_turns, read_runs, writers_of
from bench.summary import freshness, over_rounds, percentile, summarise
from bench.workloads import COPY_ON_WRITE, INDEXED, INGEST, Workload, on_large_table
from binlake.source.offsets import Offsets
from hudilake.read import TableReader

SHAPES = {"plain": Shape(), "wide": Shape(columns=100), "partitioned": Shape(partitions=100)}


def test_the_plain_workload_is_the_one_that_was_always_measured() -> None:
    made = list(events(2_000))
    assert 530 < mean(len(value) for _, value in made) < 550
    text = b"".join(key + value for key, value in made)
    assert sha256(text).hexdigest() == PLAIN_SHA256


PLAIN_SHA256 = "fe8276ecf29d3a53d79820aa3011cc66e3791b71fa40523f40255a0994254021"


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_events_are_of_their_shape(shape: Shape) -> None:
    for _, value in events(200, keys=50, shape=shape):
        told = json.loads(value)
        row = told["before"] if told["op"] == "d" else told["after"]
        assert list(row) == list(shape.types())
        assert row["country"] == (f"{row['id'] % 100:02d}" if shape.partitions else "DE")


def _one(after: str | None) -> bytes:
    return f'{{"before":null,"after":{after or "null"},"source":{{"db":"bench"}},"op":"u"}}'.encode()


def test_the_model_keeps_the_last_change_of_each_key() -> None:
    shape = Shape()
    ((_, first),) = events(1)
    image = json.dumps(json.loads(first)["after"], separators=(",", ":"))
    later = image.replace('"quantity":0', '"quantity":5')
    changes = [(b"a", _one(image)), (b"b", _one(image)), (b"b", _one(None)), (b"a", _one(later))]
    found = expected(newest(changes), shape)
    assert found == digest(rows_of([later.encode()], shape), shape)
    assert found != digest(rows_of([image.encode()], shape), shape)
    assert expected({}, shape).rows == 0


def _table(shape: Shape, count: int = 60) -> pa.Table:
    last = newest(events(count, keys=1_000, shape=shape))
    return rows_of([json.dumps(json.loads(v)["after"]).encode() for v in last.values() if b'"op":"d"' not in v], shape)


@pytest.mark.full
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_every_cell_is_in_the_digest(shape: Shape) -> None:
    whole = _table(shape)
    right = digest(whole, shape)
    for at, name in enumerate(whole.column_names):
        column = whole.column(name).combine_chunks()
        null = pa.concat_arrays([column[:-1], pa.nulls(1, column.type)])
        other = pa.concat_arrays([column[:-1], _another(column[-1])])
        assert digest(whole.set_column(at, name, other), shape).sha256 != right.sha256, name
        if name != "id":
            assert digest(whole.set_column(at, name, null), shape).sha256 != right.sha256, name
    assert digest(whole[1:], shape) != right


def _another(value: pa.Scalar) -> pa.Array:
    plain = value.value if pa.types.is_timestamp(value.type) else value.as_py()
    if isinstance(plain, str):
        return pa.array([f"{plain}x"], value.type)
    return pa.array([plain + 1]).cast(value.type)


def test_the_digest_does_not_depend_on_order_and_widths() -> None:
    shape, whole = Shape(), _table(Shape())
    turned = whole.take(list(range(len(whole)))[::-1]).append_column("_hoodie_file_name", pa.nulls(len(whole)))
    turned = turned.set_column(1, "customer_id", turned.column("customer_id").cast(pa.int32()))
    at = turned.column_names.index("created_at")
    turned = turned.set_column(at, "created_at", turned.column("created_at").cast(pa.timestamp("us", tz="UTC")))
    assert digest(turned.select(sorted(turned.column_names)), shape) == digest(whole, shape)


def batch(number: int, count: int, trigger: int, visible: int, end: int = 0, **stages: float) -> Batch:
    return Batch(number, count, trigger, visible, Offsets({"t": {0: end}}), stages)


def test_the_warm_up_and_part_batches_are_left_out() -> None:
    work = Workload("w", 50, 10, warm_up=2)
    batches = [batch(0, 10, 0, 900), batch(1, 10, 900, 1_000), batch(2, 10, 1_000, 1_100, commit=4.0)]
    batches += [batch(3, 10, 1_200, 1_500, commit=8.0), batch(4, 5, 1_500, 2_000)]
    found = summarise(batches, work, busy=False)
    assert (found["batches"], found["events"], found["batch_ms"]) == (2, 25, 200)
    assert found["events_per_s"] == 25.0
    assert found["stage_commit_ms"] == 6.0
    assert summarise(batches, work, busy=True)["events_per_s"] == pytest.approx(25 / 0.9)
    with pytest.raises(ValueError, match="warm-up"):
        summarise(batches[:2], work, busy=False)


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.5, 5), (0.95, 10), (0.99, 10), (1.0, 10)])
def test_percentiles(share: float, value: int) -> None:
    assert percentile([3, 1, 2, 10, 9, 8, 7, 6, 5, 4], share) == value


def test_freshness_is_of_the_live_events_but_for_the_first_third() -> None:
    work = Workload("live", 2, 10, live_per_s=5, live_s=1)
    times = {(0, offset): 1_000 * offset for offset in range(7)}
    batches = [batch(0, 2, 0, 90_000, end=2), batch(1, 4, 0, 6_500, end=6), batch(2, 1, 0, 6_700, end=7)]
    assert freshness(batches, times, work) == {"visible_p50_ms": 1_500, "visible_p99_ms": 3_500}


def test_writers_take_turns_and_another_one_begins_each_round() -> None:
    turns = list(in_turns(["a", "b", "c"], 2))
    assert turns == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a")]


def test_the_floor_runs_where_it_means_something() -> None:
    wanted = ["binlake", "floor"]
    without = {w.name for w in INGEST if writers_of(w, wanted) == ["binlake"]}
    assert without == {"freshness", "old", "idle"}


@pytest.mark.parametrize("work", INGEST, ids=lambda w: w.name)
def test_a_trial_has_batches_beyond_the_warm_up(work: Workload) -> None:
    small = work.scaled(0.01)
    assert small.events // small.batch > small.warm_up or small.live_events
    assert small.batch >= small.tables * small.topic_partitions
    assert work.scaled(1.0) == work


def test_a_spec_and_its_batches_go_through_json(tmp_path: Path) -> None:
    spec = Spec("hudi", INGEST[3], "h:1", tmp_path, until=30, prefix="p")
    assert Spec.from_json(spec.to_json()) == spec
    assert list(spec.topics()) == ["p.bench.orders"]
    recorder = Recorder(spec)
    assert not recorder.note(0, Offsets({"t": {0: 10, 1: 5}}), 7, {"commit": 1.5})
    assert recorder.note(1, Offsets({"t": {0: 20, 1: 10}}), 9)
    assert [(b.number, b.events, b.trigger_ms, b.end) for b in read_batches(tmp_path)] == [
        (0, 15, 7, Offsets({"t": {0: 10, 1: 5}})),
        (1, 15, 9, Offsets({"t": {0: 20, 1: 10}})),
    ]


def run_of(writer: str, number: int, error: str | None = None, **metrics: float) -> dict[str, object]:
    found = {"workload": "small", "writer": writer, "round": number, "scale": 1.0}
    return {**found, "error": error, "metrics": metrics, "facts": {"cores": 2}}


RUNS = [
    run_of("binlake", 0, batch_ms=100, events_per_s=10),
    run_of("binlake", 1, batch_ms=300, events_per_s=30),
    run_of("binlake", 2, batch_ms=200, events_per_s=20),
    run_of("hudi", 0, batch_ms=2_000, events_per_s=1),
    run_of("hudi", 1, error="1 tables are not right", batch_ms=1, events_per_s=9_999),
]


def test_medians_are_of_the_runs_that_count() -> None:
    found = over_rounds(RUNS)["small"]
    assert found["binlake"]["batch_ms"] == {"median": 200, "min": 100, "max": 300, "rounds": 3}
    assert found["hudi"]["events_per_s"]["max"] == 1
    assert compared_by("small") == ("batch_ms", False)
    assert times_as_good("small", found["binlake"], found["hudi"]) == 10
    assert times_as_good("catch-up", found["binlake"], found["hudi"]) == 20
    assert "| hudi | 1 | 1 | 2,000 | 10.0x |" in table("small", found)
    told = overview({"small": found, "catch-up": {"hudi": found["hudi"]}})
    assert "| small, batch ms | **200** | 2,000 (10.0x) |" in told
    assert "| catch-up, events/s | - | 1.0 |" in told


def test_the_report_says_what_does_not_count(tmp_path: Path) -> None:
    log = tmp_path / "runs.jsonl"
    log.write_text("".join(f"{json.dumps(run)}\n" for run in RUNS))
    told = write_report(log, tmp_path, 1.0)
    assert "- small, hudi, round 2: 1 tables are not right" in told
    ET.fromstring((tmp_path / "results.svg").read_text())
    assert (
        json.loads((tmp_path / "results.json").read_text())["workloads"]["small"]["hudi"]["batch_ms"]["median"] == 2_000
    )
    log.write_text(log.read_text() + json.dumps(run_of("hudi", 1, batch_ms=2_100, events_per_s=1)) + "\n")
    assert "do not count" not in write_report(log, tmp_path, 1.0)


@pytest.mark.full
def test_a_suite_runs_checks_and_goes_on(tmp_path: Path) -> None:
    """The floor from one end to the other, and again after a kill in the middle of a line."""
    plan = Plan(["catch-up"], ["floor"], 1, 0.001, tmp_path / "results", tmp_path / "work")
    Suite(plan, "nowhere:1", {}).run()
    (first,) = read_runs(plan.log)
    assert first["error"] is None
    assert first["metrics"]["events"] >= 160
    assert first["metrics"]["peak_rss_mb"] > 10
    with plan.log.open("a") as log:
        log.write('{"workload": "catch-up", "wri')
    Suite(plan, "nowhere:1", {}).run()
    assert read_runs(plan.log) == [first]
    (model,) = (plan.work / "models").iterdir()
    kept = json.loads(model.read_text())
    kept["tables"]["orders"]["rows"] += 1
    model.write_text(json.dumps(kept))
    Suite(dataclasses.replace(plan, rounds=2), "nowhere:1", {}).run()
    assert [bool(run["error"]) for run in read_runs(plan.log)] == [False, True]


def test_the_old_table_that_hudi_goes_on_with_is_right(tmp_path: Path) -> None:
    work = dataclasses.replace(Workload("old", 0, 10, keys=40, buckets=2, age=12, age_batch=15))
    spec = Spec("hudi", work, "nowhere:1", tmp_path, ageing=True)
    age(spec, metadata=True)
    (shape,) = work.shapes()
    reader = TableReader.open((spec.lake / shape.table).as_uri())
    found = pa.Table.from_batches(list(reader.batches(reader.plan())))
    assert digest(found, shape) == expected(newest(table_events(work, shape)), shape)
    assert len(reader.table.timeline.completed()) == 13


def test_the_model_of_a_loaded_table_is_that_of_all_its_events() -> None:
    work = on_large_table("index-bloom", rows=3_000, files=3, batch=500, batches=2)
    shape = work.shapes()[0]
    everything = list(table_events(work, shape))
    assert len({key for key, _ in everything[:3_000]}) == 3_000
    assert expected_of_loaded(everything, shape, work.loaded) == expected(newest(everything), shape)


@pytest.mark.parametrize("name", [*INDEXED, COPY_ON_WRITE])
def test_our_settings_for_large_tables_name_their_kind(tmp_path: Path, name: str) -> None:
    work = on_large_table(name, rows=6_000, files=3, batch=500, batches=2)
    found = settings_for(Spec("binlake", work, "h:1", tmp_path)).tables.defaults
    assert (found.index.type, found.type, found.buckets) == (work.index, work.table_type, 3)
    assert found.files.target_bytes < 200_000


def test_hudis_tagging_is_what_its_jobs_took_up_to_the_profile_without_reading_kafka(tmp_path: Path) -> None:
    log = tmp_path / "events"
    log.mkdir()
    lines: list[object] = []
    for batch, base in enumerate((0, 10_000)):
        jobs = [
            ([0, 1], "HoodieSimpleIndex: Obtain"),
            ([2], "SparkExecutor: Building workload profile: t"),
            ([3], "Doing"),
        ]
        spans = {
            0: (0, 100, "KafkaSourceRDD"),
            1: (100, 300, "map"),
            2: (250, 400 + batch, "map"),
            3: (500, 900, "map"),
        }
        for stages, told in jobs:
            ids = [base + stage for stage in stages]
            properties = {"streaming.sql.batchId": str(batch), "spark.job.description": told}
            lines.append({"Event": "SparkListenerJobStart", "Stage IDs": ids, "Properties": properties})
        for stage, (begin, end, rdd) in spans.items():
            info = {"Stage ID": base + stage, "Submission Time": base + begin, "Completion Time": base + end}
            lines.append({"Event": "SparkListenerStageCompleted", "Stage Info": info | {"RDD Info": [{"Name": rdd}]}})
    (log / "app").write_text("\n".join(map(json.dumps, lines)))
    assert tagging_ms(tmp_path, [0, 1]) == 300.5
    assert tagging_ms(tmp_path, [1]) == 301
    with pytest.raises(ValueError, match="no workload profile"):
        tagging_ms(tmp_path, [1, 2])
