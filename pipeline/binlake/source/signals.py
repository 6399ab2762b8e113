"""Signals to Debezium through its Kafka channel (``signal.enabled.channels`` with ``kafka``).

The record's key must be the connector's ``topic.prefix``; its value has the members ``type``, ``data`` and ``id``
(Debezium's documentation, "Sending signals to a Debezium connector").
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer

from binlake.decode.changes import SourceTable
from binlake.source.client import Complaints, failure
from binlake.source.log_tail import partitions_of
from hudilake.errors import TransientError

_ANSWER_S = 20.0


@dataclass(frozen=True, slots=True)
class SnapshotSignal:
    """A signal to read a table by an incremental snapshot.

    Args:
        id: which the connector's notifications repeat.
        prefix: the connector's ``topic.prefix``.
        table: at the source.
    """

    id: str
    prefix: str
    table: SourceTable

    def value(self) -> bytes:
        """The record's value. The connector takes the table's name as a regular expression."""
        data = {"data-collections": [re.escape(str(self.table))], "type": "INCREMENTAL"}
        return json.dumps({"id": self.id, "type": "execute-snapshot", "data": data}).encode()


def send_signal(config: Mapping[str, str], topic: str, signal: SnapshotSignal) -> None:
    """Write a signal, and wait until the brokers have it.

    ``config``: the client's properties. Raises ConfigError if the topic does not exist or may not be written,
    TransientError if the brokers do not answer.
    """
    partitions_of(config, topic)
    complaints, refusals = Complaints(), list[KafkaError]()

    def delivered(error: KafkaError | None, message: object) -> None:
        if error is not None:
            refusals.append(error)

    try:
        producer = Producer({"acks": "all", **config, "error_cb": complaints})
        producer.produce(topic, key=signal.prefix.encode(), value=signal.value(), on_delivery=delivered)
        left = producer.flush(_ANSWER_S)
    except KafkaException as error:
        raise failure(dict(config), error, complaints.take(), "the signal cannot be sent", topic=topic) from None
    if refusals:
        raise failure(dict(config), refusals[0], complaints.take(), "the signal cannot be sent", topic=topic)
    if left:
        raise TransientError(
            "the brokers did not take the signal in time",
            do_next="check the brokers and repeat the command",
            topic=topic,
        )
