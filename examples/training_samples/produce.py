"""Writes features and labels to Kafka: ``python -m examples.training_samples.produce --broker HOST:PORT``.

A message says one fact, in Canal's flat JSON: any program can write it, for the order of the facts about a key is that
of the topic. A click follows its impression after a while; about one impression in five never gets a label.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from confluent_kafka import Producer

FEATURES_TOPIC, LABELS_TOPIC = "serving.impressions", "client.clicks"
#: The weights by which clicks depend on the features; ``train`` should find them.
WEIGHTS = {"price": -1.5, "age_days": -0.5, "affinity": 2.0}
BIAS = 0.25
_LABELLED = 0.8
_FEATURE_TYPES = {"request_id": "varchar(40)", **dict.fromkeys(WEIGHTS, "double"), "shown_at_ms": "bigint"}
_LABEL_TYPES = {"impression": "varchar(40)", "clicked": "int", "dwell_ms": "int"}


@dataclass(frozen=True)
class Fact:
    """A message: its topic, key and value."""

    topic: str
    key: str
    value: bytes


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def facts(count: int, delay: int = 200, seed: int = 1, first: int = 0) -> Iterator[Fact]:
    """The facts about ``count`` impressions.

    Args:
        count: of impressions.
        delay: impressions between one and its label.
        seed: of the random values.
        first: the number of the first impression.
    """
    random = np.random.default_rng([seed, first])
    waiting: deque[Fact] = deque()
    for number in range(first, first + count):
        request = f"request-{number:09d}"
        features = {name: float(value) for name, value in zip(WEIGHTS, random.normal(size=3).round(4), strict=True)}
        yield _fact(
            FEATURES_TOPIC,
            request,
            _FEATURE_TYPES,
            {"request_id": request, **features, "shown_at_ms": _now_ms()},
        )
        clicked = random.random() < chance(features)
        if random.random() < _LABELLED:
            label = {"impression": request, "clicked": int(clicked), "dwell_ms": int(random.integers(0, 60_000))}
            waiting.append(_fact(LABELS_TOPIC, request, _LABEL_TYPES, label))
        if len(waiting) > delay:
            yield waiting.popleft()
    yield from waiting


def chance(features: Mapping[str, float]) -> float:
    """The true probability of a click."""
    score = BIAS + sum(weight * features[name] for name, weight in WEIGHTS.items())
    return float(1 / (1 + np.exp(-score)))


def _fact(topic: str, key: str, types: Mapping[str, str], row: Mapping[str, object]) -> Fact:
    database, table = topic.split(".")
    body = {
        "type": "INSERT",
        "database": database,
        "table": table,
        "isDdl": False,
        "pkNames": [next(iter(types))],
        "mysqlType": dict(types),
        "data": [{name: None if value is None else str(value) for name, value in row.items()}],
        "old": None,
        "es": _now_ms(),
        "ts": _now_ms(),
    }
    return Fact(topic, key, json.dumps(body, separators=(",", ":")).encode())


def send(broker: str, given: Iterator[Fact]) -> int:
    """Write facts, and wait until the broker has them; returns their number."""
    producer = Producer({"bootstrap.servers": broker, "enable.idempotence": True, "linger.ms": 20})
    count = 0
    for fact in given:
        producer.produce(fact.topic, fact.value, fact.key.encode())
        producer.poll(0)
        count += 1
    producer.flush()
    return count


def main() -> None:
    """Write the facts that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="127.0.0.1:9092")
    parser.add_argument("--impressions", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first impression")
    given = parser.parse_args()
    print(f"{send(given.broker, facts(given.impressions, first=given.first)):,} messages")


if __name__ == "__main__":
    main()
