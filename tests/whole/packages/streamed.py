"""A stream in a clean environment: the console command takes recorded events, two readers judge its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.spark.jars import kafka_connector
from demo.gone_columns import gone_columns
from demo.truth import TruthTable
from demo.verdict import judge
from hudilake.format.definition.column_names import lake_name
from tests.binlake.stream.played import Recording, play
from tests.judges import hudi_rs
from tests.services.kafka import Broker
from tests.whole.packages.environment import Environment

#: With decimals, dates, times, deletes, keys of two columns and columns that come and go.
_TABLES = ("coupons", "customers", "orders")


def check_stream(environment: Environment, broker: Broker, work: Path) -> None:
    """Run ``binlake run CONF --once`` in a directory; its tables must be the source's final rows, for hudilake in the
    environment and for hudi-rs in this process.

    Args:
        environment: with binlake.
        broker: gets the recorded events.
        work: the directory of the user, with ``read.py``.
    """
    recording = play(broker, "shop", "schema")
    topics = [f"{recording.prefix}.shop.{table}" for table in _TABLES]
    lake = work / "recorded"
    settings = {
        "name": "recorded",
        "lake": {"uri": str(lake)},
        "kafka": {"bootstrap_servers": broker.bootstrap_servers, "topics": topics, "ddl_topics": [recording.prefix]},
        "tables": {"defaults": {"buckets": 2}},
        "spark": {"driver_memory_mb": 512},
    }
    (work / "recorded.yaml").write_text(json.dumps(settings))
    _lend_connector(environment)
    printed = environment.run(["binlake", "run", "recorded.yaml", "--once", "--json"], work)
    batches = [ProgressEvent.from_json(json.loads(line)) for line in printed.splitlines() if line.startswith("{")]
    assert sum(batch.events_read for batch in batches) == sum(len(recording.recorded.topics[t]) for t in topics)

    files = {table: work / f"{table}.arrow" for table in _TABLES}
    pairs = [text for table, file in files.items() for text in (str(lake / "shop" / table), str(file))]
    environment.run(["python", "read.py", *pairs], work)
    truths = [truth for truth in recording.recorded.tables if truth.table in _TABLES]
    assert len(truths) == len(_TABLES)
    for truth in truths:
        with pa.OSFile(str(files[truth.table])) as file:
            _compare(recording, truth, pa.ipc.open_file(file).read_all())
        _compare(recording, truth, hudi_rs.snapshot(lake / "shop" / truth.table))


def _lend_connector(environment: Environment) -> None:
    """Put Spark's connector of Kafka, which is no Python package, into the environment's cache from this machine's."""
    entry = kafka_connector()[0].parent
    target = environment.cache / "jars" / entry.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.symlink_to(entry)


def _compare(recording: Recording, truth: TruthTable, rows: pa.Table) -> None:
    verdict = judge(truth, rows, gone=gone_columns(truth, recording.messages(truth)), lake_name=lake_name)
    assert verdict.equal, verdict
    assert verdict.cells
