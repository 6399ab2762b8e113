"""binlake's own ingest speed: catch-up in large batches, and the latency of small ones. ``python -m bench.ingest``.

One table, 8 buckets, 4 topic partitions, Spark ``local[2]``, Kafka and commit included. Prints a JSON line a batch and
the medians at the end; the first batches of a session warm it up and are left out of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.events import COLUMNS, DATABASE, TABLE, events
from bench.kafka_load import create_topic, produce
from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.start import run_stream
from embedded.jars import spark_packages
from embedded.kafka import EmbeddedKafka

TOPIC = f"bench.{DATABASE}.{TABLE}"
WARM_UP = 2


@dataclass(frozen=True)
class Options:
    """Options of the stream: see ``--help``."""

    fetch: str = "direct"
    shuffle_above_bytes: int = 256 << 20
    master: str = "local[2]"
    metadata: bool = True
    compact_after: int | None = None


def settings(root: Path, bootstrap: str, batch: int, options: Options) -> Settings:
    return Settings.parse(json.dumps(document(root, bootstrap, batch, options)))


def document(root: Path, bootstrap: str, batch: int, options: Options) -> dict[str, Any]:
    compaction = {"after_commits": options.compact_after, "log_ratio": None}
    return {
        "name": "bench",
        "lake": {"uri": str(root / "lake")},
        "kafka": {"bootstrap_servers": bootstrap, "topics": [TOPIC], "fetch": options.fetch},
        "source": {"schemas": {f"{DATABASE}.{TABLE}": {"columns": COLUMNS, "key": ["id"]}}},
        "tables": {"defaults": {"metadata": {"enabled": options.metadata}, "compaction": compaction}},
        "batch": {
            "max_events": batch,
            "trigger_interval_ms": 0,
            "shuffle_above_bytes": options.shuffle_above_bytes,
        },
        "spark": {
            "master": options.master,
            "conf": {
                "spark.jars": ",".join(map(str, spark_packages())),
                "spark.ui.enabled": "false",
            },
        },
    }


def measure(count: int, batch: int, options: Options) -> list[ProgressEvent]:
    """Load ``count`` events into a fresh broker and apply them all; returns one event for each batch."""
    seen: list[ProgressEvent] = []

    def show(event: ProgressEvent) -> None:
        seen.append(event)
        stages = {k: round(v) for k, v in event.stage_ms.items()}
        print(
            json.dumps({"batch": event.batch_id, "events": event.events_read, "ms": event.latency_ms, "stages": stages})
        )

    with tempfile.TemporaryDirectory(prefix="binlake-bench-") as place:
        root = Path(place)
        with EmbeddedKafka(root / "kafka") as kafka:
            create_topic(kafka.bootstrap_servers, TOPIC, 4)
            produce(kafka.bootstrap_servers, TOPIC, events(count))
            run_stream(
                settings(root, kafka.bootstrap_servers, batch, options),
                once=True,
                on_progress=show,
            )
    return seen


def summary(seen: list[ProgressEvent], batch: int) -> dict[str, float]:
    full = [e for e in seen[WARM_UP:] if e.events_read >= 0.9 * batch]
    spent = [e.latency_ms for e in full]
    return {
        "batches": len(full),
        "median_ms": statistics.median(spent),
        "min_ms": min(spent),
        "max_ms": max(spent),
        "events_per_s": round(statistics.median(e.events_read / e.latency_ms * 1000 for e in full)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, help="by default enough for five measured batches")
    parser.add_argument("--batch", type=int, action="append", help="events a batch; may be given more than once")
    parser.add_argument("--fetch", choices=("direct", "spark"), default="direct")
    parser.add_argument("--shuffle-above-bytes", type=int, default=256 << 20)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--no-metadata", action="store_true", help="tables without a metadata table")
    parser.add_argument("--compact-after", type=int, help="commits; by default no compaction falls into the run")
    given = parser.parse_args()
    options = Options(given.fetch, given.shuffle_above_bytes, given.master, not given.no_metadata, given.compact_after)
    lines = []
    for batch in given.batch or [200_000, 2_000]:
        count = given.events or batch * (WARM_UP + (5 if batch > 10_000 else 40))
        found = summary(measure(count, batch, options), batch)
        lines.append(
            f"| {batch:,} | {found['batches']} | {found['median_ms']:.0f} | {found['min_ms']:.0f}-{found['max_ms']:.0f}"
            f" | {found['events_per_s']:,} |"
        )
    print("| events a batch | batches | median ms, trigger to visible commit | min-max ms | events/s |")
    print("| --- | --- | --- | --- | --- |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
