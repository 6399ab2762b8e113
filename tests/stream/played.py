"""The recorded topics in the test broker, and a stream over them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from jobs.demo.ddl_cells import ddl_only
from jobs.demo.messages import Message
from jobs.demo.produce import Sender, create_topics
from jobs.demo.readback import read_table
from jobs.demo.scenario import Recorded, load_recorded
from jobs.demo.verdict import TableVerdict, judge
from pipeline.settings import Settings
from pipeline.stream.progress import ProgressEvent
from pipeline.stream.run import Stream
from pipeline.upsert.target import lake_name
from tests.services.kafka import Broker

_produced: set[tuple[str, str, str]] = set()


@dataclass(frozen=True)
class Recording:
    """One recording, played into the broker once a test run."""

    database: str
    variant: str
    recorded: Recorded

    @property
    def prefix(self) -> str:
        return f"{self.database}_{self.variant}"

    @property
    def topics(self) -> list[str]:
        return [t for t in self.recorded.topics if t != self.prefix]

    def messages(self, table: object) -> Sequence[Message]:
        return next((m for t, m in self.recorded.topics.items() if t.endswith(f".{table}")), [])


def play(broker: Broker, database: str, variant: str) -> Recording:
    """Put a recording into the broker, topic by topic, in recorded partitions and order."""
    recording = Recording(database, variant, load_recorded(database, variant))
    if (broker.bootstrap_servers, database, variant) not in _produced:
        partitions = {t: max((m.partition for m in ms), default=0) + 1 for t, ms in recording.recorded.topics.items()}
        create_topics(broker.bootstrap_servers, partitions)
        sender = Sender(broker.bootstrap_servers)
        for messages in recording.recorded.topics.values():
            sender.send(messages)
        sender.flush()
        _produced.add((broker.bootstrap_servers, database, variant))
    return recording


@dataclass
class Play:
    """A stream over a recording, on a lake of its own."""

    spark: SparkSession
    broker: Broker
    recording: Recording
    lake: Path
    sections: dict[str, Any] = field(default_factory=dict)
    events: list[ProgressEvent] = field(default_factory=list)

    @property
    def _told(self) -> Recording:
        """The recording whose envelopes tell what a row's last event carried; the flat form has none."""
        if self.recording.variant != "flat":
            return self.recording
        return Recording("shop", "schema", load_recorded("shop", "schema"))

    def document(self) -> dict[str, Any]:
        flat = self.recording.variant == "flat"
        kafka = {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "topics": self.recording.topics,
            "ddl_topics": [self.recording.prefix],
        }
        forms = {"decimal_handling_mode": "string", "bigint_unsigned_handling_mode": "precise"} if flat else {}
        base: dict[str, Any] = {
            "name": self.recording.prefix,
            "lake": {"uri": str(self.lake), "options": {"fsync": "false"}},
            "kafka": kafka,
            "source": {"debezium": forms},
            "batch": {"max_events": 3_000, "trigger_interval_ms": 0},
            "tables": {"defaults": {"buckets": 2}},
        }
        for name, section in self.sections.items():
            base[name] = {**base.get(name, {}), **section}
        return base

    def settings(self) -> Settings:
        return Settings.parse(json.dumps(self.document()))

    def stream(self) -> Stream:
        """A new stream, as a restarted process would make it."""
        return Stream(self.settings(), self.spark, self.events.append, threading.Event())

    def run(self) -> None:
        """Apply all there is."""
        self.stream().run(once=True)

    def verdicts(self) -> list[TableVerdict]:
        """Every table through hudi-rs against the source's final SELECT."""
        found = []
        for table in self.recording.recorded.tables:
            rules = self.settings().table_rules(table)
            rows = read_table(self.lake / rules.path)
            derived = {rules.partition.name} if rules.partition else set()
            excused = ddl_only(table, self._told.messages(table))
            found.append(judge(table, rows, ddl_only=excused, derived=derived, lake_name=lake_name))
        return found

    def unequal(self) -> dict[str, str]:
        return {v.table: repr(v) for v in self.verdicts() if not v.equal}

    def commits(self) -> list[Path]:
        return sorted(self.lake.glob("*/*/.hoodie/timeline/*_*.deltacommit"))
