"""Recorded Kafka topics: one gzipped file of JSON lines for each topic, one line per record."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from demo.messages import Message

#: Directory of the recordings in a checkout; they are test data and not part of the installed package.
RECORDINGS = Path(__file__).parents[1] / "tests" / "data" / "cdc"


def read_recording(file: Path) -> Iterator[Message]:
    """The records of a file, partition by partition in offset order."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield _message(json.loads(line))


def _message(line: dict[str, Any]) -> Message:
    return Message(
        topic=line["topic"],
        partition=line["partition"],
        timestamp_ms=line["timestamp"],
        key=_bytes(line["key"]),
        value=_bytes(line["value"]),
        headers=tuple((name, _bytes(value)) for name, value in line.get("headers", ())),
    )


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")
