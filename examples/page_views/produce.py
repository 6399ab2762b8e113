"""Writes page views to Kafka: ``python -m examples.page_views.produce --broker HOST:PORT``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator

import numpy as np
from confluent_kafka import Producer

TOPIC = "web.views"
USERS, PAGES = 3000, 500
SECTIONS = ("books", "garden", "kitchen", "music", "toys", "travel")
_BEGIN_MS = 1_709_208_000_000


def views(count: int, first: int = 0, seed: int = 1) -> Iterator[bytes]:
    """Page views as JSON, a second apart; users and pages come at any time.

    Args:
        count: of views.
        first: the number of the first view.
        seed: of the random values.
    """
    random = np.random.default_rng([seed, first])
    users, pages = random.integers(0, USERS, count), random.integers(0, PAGES, count)
    sections, took = random.integers(0, len(SECTIONS), count), random.integers(5, 900, count)
    for number in range(count):
        view = {
            "at_ms": _BEGIN_MS + (first + number) * 1000,
            "user_id": int(users[number]),
            "url": f"http://www.shop.example/{SECTIONS[sections[number]]}/{pages[number]:04d}.html",
            "took_ms": int(took[number]),
        }
        yield json.dumps(view).encode()


def main() -> None:
    """Write the views that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", default="127.0.0.1:9092")
    parser.add_argument("--views", type=int, default=40_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first view")
    given = parser.parse_args()
    producer = Producer({"bootstrap.servers": given.broker, "enable.idempotence": True, "linger.ms": 20})
    for view in views(given.views, given.first):
        producer.produce(TOPIC, view)
        producer.poll(0)
    producer.flush()
    print(f"{given.views:,} messages")


if __name__ == "__main__":
    main()
