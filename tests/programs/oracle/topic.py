"""The one topic that a round's connector writes to, and the records of a script in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from binlake.decode.changes import SourceTable
from binlake.source.offsets import topic_suffix
from embedded.connect import EmbeddedConnect
from hudilake import clock
from hudilake.errors import TransientError
from tests.programs.oracle.recording import Record

PREFIX = "s"
_PATIENCE_S = 180.0
_CONSUMER = {"group.id": "oracle", "enable.auto.commit": False}
#: A Debezium payload.
Payload = Mapping[str, Any]


class ConnectorDiedError(Exception):
    """Debezium's connector failed."""


@dataclass
class OneTopic:
    """The topic of a round: its records so far as (key, value). ``patience_s``: the most time to wait for one."""

    servers: str
    name: str
    connect: EmbeddedConnect
    records: list[tuple[str | None, str | None]] = field(default_factory=list)
    patience_s: float = _PATIENCE_S

    def read_until(self, found: Callable[[Payload], bool]) -> None:
        """Read on until a row has come that is looked for. Raises ConnectorDiedError."""
        consumer = Consumer({"bootstrap.servers": self.servers, **_CONSUMER})
        consumer.assign([TopicPartition(self.name, 0, len(self.records))])
        deadline = clock.monotonic_s() + self.patience_s
        try:
            while clock.monotonic_s() < deadline:
                messages = consumer.consume(2_000, 0.2)
                if not messages:
                    self._check()
                for message in (m for m in messages if m.error() is None):
                    key, value = (None if raw is None else raw.decode() for raw in (message.key(), message.value()))
                    self.records.append((key, value))
                    payload = json.loads(value)["payload"] if value is not None else {}
                    if "op" in payload and found(payload):
                        return
        finally:
            consumer.close()
        raise TransientError("the end marker never came", do_next="read the log of Connect")

    def _check(self) -> None:
        try:
            self.connect.check()
        except TransientError as error:
            raise ConnectorDiedError(error.what) from error


def records_of(databases: set[str], records: Sequence[tuple[str | None, str | None]]) -> Iterator[Record]:
    """The records of these databases under the names of their topics. A tombstone follows its delete."""
    topic: str | None = None
    mine = False
    for key, value in records:
        if value is not None:
            payload = json.loads(value)["payload"]
            topic, mine = _place(payload, databases)
        if mine:
            yield Record(topic, key, value)


def _place(payload: Payload, databases: set[str]) -> tuple[str | None, bool]:
    """The topic of a record (None: the one with DDL), and whether the record is about one of these databases."""
    if "ddl" in payload:
        return None, payload["databaseName"] in databases
    source = payload["source"]
    return f"{PREFIX}.{topic_suffix(SourceTable(source['db'], source['table']))}", source["db"] in databases
