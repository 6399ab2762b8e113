"""The recorded topics in the test broker, and a stream over them."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.run import Stream
from demo.gone_columns import gone_columns
from demo.messages import Message
from demo.produce import Sender, create_topics
from demo.readback import read_table
from demo.scenario import Recorded, load_recorded
from demo.verdict import TableVerdict, judge
from hudilake.clock import new_uuid
from hudilake.format.definition.column_names import lake_name
from tests.services.kafka import Broker

#: Recordings that are in a broker already, by (broker, database, variant).
_played: dict[tuple[str, str, str], Recording] = {}


@dataclass(frozen=True)
class Recording:
    """One recording, played into the broker once a test run."""

    database: str
    variant: str
    recorded: Recorded
    prefix: str

    @property
    def topics(self) -> list[str]:
        return [t for t in self.recorded.topics if t != self.prefix]

    def messages(self, table: object) -> Sequence[Message]:
        return next((m for t, m in self.recorded.topics.items() if t.endswith(f".{table}")), [])


def play(broker: Broker, database: str, variant: str, *, shared: bool = True) -> Recording:
    """Put a recording into the broker, topic by topic, in recorded partitions and order.

    Its topics get a prefix of their own: other tests share the broker. They share the topics too, if ``shared``.
    """
    place = (broker.bootstrap_servers, database, variant)
    if place not in _played or not shared:
        recording = _renamed(database, variant, f"{database}_{variant}_{new_uuid()[:8]}")
        topics = recording.recorded.topics
        partitions = {t: max((m.partition for m in ms), default=0) + 1 for t, ms in topics.items()}
        create_topics(broker.bootstrap_servers, partitions)
        sender = Sender(broker.bootstrap_servers)
        for messages in topics.values():
            sender.send(messages)
        sender.flush()
        if not shared:
            return recording
        _played[place] = recording
    return _played[place]


def _renamed(database: str, variant: str, prefix: str) -> Recording:
    recorded = load_recorded(database, variant)
    topics = {}
    for topic, messages in recorded.topics.items():
        name = topic.replace(f"{database}_{variant}", prefix, 1)
        topics[name] = [dataclasses.replace(m, topic=name) for m in messages]
    return Recording(database, variant, Recorded(topics, recorded.tables), prefix)


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
        """The recording whose envelopes tell which columns there were; the flat form has none."""
        if self.recording.variant != "flat":
            return self.recording
        return _renamed("shop", "schema", "told")

    def document(self) -> dict[str, Any]:
        flat = self.recording.variant == "flat"
        kafka = {
            "bootstrap_servers": self.broker.bootstrap_servers,
            "topics": self.recording.topics,
            "ddl_topics": [self.recording.prefix],
        }
        forms = {"decimal_handling_mode": "string", "bigint_unsigned_handling_mode": "precise"} if flat else {}
        base: dict[str, Any] = {
            "name": f"{self.recording.database}_{self.recording.variant}",
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
            derived = {rules.partition.field} if rules.partition else set()
            gone = gone_columns(table, self._told.messages(table))
            found.append(judge(table, rows, gone=gone, derived=derived, lake_name=lake_name))
        return found

    def unequal(self) -> dict[str, str]:
        return {v.table: repr(v) for v in self.verdicts() if not v.equal}

    def commits(self) -> list[Path]:
        return sorted(self.lake.glob("*/*/.hoodie/timeline/*_*.deltacommit"))
