"""binlake as users run it: ``run_stream`` over the workload's topics, with metadata table, ranges and blooms."""

from __future__ import annotations

import json
import threading
from importlib.metadata import version

import pyarrow as pa
import pyarrow.parquet as pq

from bench.events import DATABASE
from bench.kafka_load import topic_ends
from bench.local_stream import Here
from bench.spec import MASTER, SPARK_CONF, Recorder, Spec
from binlake.position.checkpoint import planned_batch
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from binlake.tables.lake import Lake, locking
from binlake.tables.services.table_services import TableServices
from demo.readback import read_table
from embedded.jars import spark_packages
from hudilake.clock import now_ms
from hudilake.storage import open_storage

#: binlake's writers: tables with keys, and append tables.
OURS = ("binlake", "binlake-append")
#: Bytes by which a row counts in the first commit, when no file tells the size of a stored row: measured, 20,000 rows
#: became 9 files under a target of 200,000 bytes.
FILE_BYTES_OF_ROW = 90
#: How far a target lies above the wanted size of files, so that a commit of so many files does not become one more.
_SPARE = 1.1


def settings_for(spec: Spec, row_bytes: float = FILE_BYTES_OF_ROW) -> Settings:
    """The stream's settings: binlake's defaults, except compaction, which is measured separately.

    ``row_bytes``: of a stored row; only files of a given number of rows ask for it.
    """
    shape = spec.workload.shape
    partition = {"column": "country", "transform": "identity"} if shape.partitions else None
    work = spec.workload
    compaction = {"mode": "inline" if spec.ageing and not work.loaded else "off"}
    # new keys begin new files, as with the peers: no file grows while it is measured
    files = (
        {"target_bytes": max(1, int(work.file_rows * row_bytes * _SPARE)), "small_bytes": 1} if work.file_rows else {}
    )
    document = {
        "name": "bench",
        "lake": {"uri": str(spec.lake)},
        "kafka": {"bootstrap_servers": spec.bootstrap, "topics": list(spec.topics())},
        "source": {
            "schemas": {f"{DATABASE}.{s.table}": {"columns": s.types(), "key": ["id"]} for s in spec.topics().values()}
        },
        "tables": {
            "path": "{table}",
            "defaults": {
                "kind": "append" if spec.writer == "binlake-append" else "upsert",
                "buckets": work.buckets,
                "partition": partition,
                "immutable_partition": partition is not None,  # a key's country never changes
                "compaction": compaction,
                "type": work.table_type,
                "index": {"type": work.index},
                "files": files,
            },
        },
        "batch": {"max_events": spec.batch, "trigger_interval_ms": 0},
        "spark": {
            "master": MASTER,
            "driver_memory_mb": spec.heap_mb,
            "conf": {**SPARK_CONF, "spark.jars": ",".join(map(str, spark_packages()))},
        },
    }
    return Settings.parse(json.dumps(document))


class OurRun:
    """binlake over the topics of a workload."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._settings = settings_for(spec)
        self._recorder = Recorder(spec)
        self.version = f"binlake {version('binlake')} on Spark {version('pyspark')}"

    def run(self) -> None:
        """Apply the topics' events."""
        if self._spec.ageing:
            _age(self._spec)
            return
        stop = threading.Event()
        checkpoint = open_storage(f"{self._settings.state_uri}/checkpoint")

        def note(event: ProgressEvent) -> None:
            planned = planned_batch(checkpoint, event.batch_id)
            bad = [t.error or t.warning for t in event.tables if t.error or t.warning or t.quarantined]
            if planned is None or bad:
                raise RuntimeError(f"batch {event.batch_id}: {bad or 'no offsets'}")
            if self._recorder.note(event.batch_id, planned.end, planned.trigger_ms, event.stage_ms):
                stop.set()

        run_stream(self._settings, once=not self._spec.until, on_progress=note, stop=stop)

    def contents(self) -> dict[str, pa.Table]:
        """Table -> all of its rows, read by hudi-rs."""
        return {s.table: read_table(self._spec.lake / s.table) for s in self._spec.topics().values()}

    def close(self) -> None:
        """No effect: nothing is open."""


def _age(spec: Spec) -> None:
    """Create the earlier commits of an old table, by the stream's own code but without Spark: minutes, not an hour.

    Where the rows of a file are given, the commits after the first take the size of a stored row from its files.
    """
    highs = topic_ends(spec.bootstrap, spec.topics())
    starts = {topic: dict.fromkeys(range(spec.workload.topic_partitions), 0) for topic in spec.topics()}
    ledger = Ledger("bench", positions=starts)
    runner = _runner(settings_for(spec), ledger)
    for number in range(1, spec.workload.age + 1):
        if number == 2 and spec.workload.file_rows:
            runner.close()
            runner = _runner(settings_for(spec, _stored_row_bytes(spec)), runner.ledger)
        reached = Offsets.of_places((t, p, high * number // spec.workload.age) for t, p, high in highs.places())
        runner.run(number, reached, now_ms(), Here())
    runner.close()


def _runner(settings: Settings, ledger: Ledger) -> BatchRunner:
    root = open_storage(settings.lake.uri, {"fsync": "false"})
    services = TableServices(lambda function, operations: [function(operation) for operation in operations])
    lake = Lake(root, locking(settings.locking, f"stream {settings.name}", one_run=True))
    state = open_storage(settings.state_uri)
    return BatchRunner(settings, lake, state, ledger, SchemaRegistry(settings), services, None)


def _stored_row_bytes(spec: Spec) -> float:
    """The bytes of a row in the base files of the one table that is loaded."""
    (shape,) = spec.workload.shapes()
    files = list((spec.lake / shape.table).glob("*.parquet"))
    rows: int = sum(pq.read_metadata(f).num_rows for f in files)
    return sum(f.stat().st_size for f in files) / rows
