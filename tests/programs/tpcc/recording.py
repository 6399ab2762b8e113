"""A recording: the records of all topics of a run, in their order and with their times."""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from binlake.decode.changes import RawRecords
from binlake.source.offsets import OffsetRange, Offsets

DATABASE, PREFIX, STREAM = "tpcc", "t", "tpcc"
TRANSACTIONS = f"{PREFIX}.transaction"
TABLES = ("warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "stock", "item")
#: The records of a topic partition from offset 0: time in ms, key, value.
Records = list[tuple[int, bytes | None, bytes | None]]

_SNAPSHOT = b'"op":"r"'


@dataclass(frozen=True)
class TpccRecording:
    """``topics``: the records of each topic partition, from offset 0."""

    topics: Mapping[tuple[str, int], Records]

    def end(self, moment_ms: int | None = None) -> Offsets:
        """Where the topics end; with a time, where they ended then."""
        return Offsets.of_places(
            (topic, partition, len(held) if moment_ms is None else self.offset_at(topic, partition, moment_ms))
            for (topic, partition), held in self.topics.items()
        )

    def offset_at(self, topic: str, partition: int, time_ms: int) -> int:
        """The offset of the first record of a time, in ms, or later."""
        held = self.topics[topic, partition]
        return next((offset for offset, (ms, _, _) in enumerate(held) if ms >= time_ms), len(held))

    def cut_out(self, of: OffsetRange) -> RawRecords:
        """The records of a range."""
        held = self.topics[of.topic, of.partition][of.start : of.end]
        offsets, times = np.arange(of.start, of.end, dtype=np.int64), np.array([ms for ms, _, _ in held], np.int64)
        return RawRecords(of.topic, of.partition, offsets, times, [k for _, k, _ in held], [v for _, _, v in held])

    def values(self, topic: str) -> Sequence[bytes]:
        """The values of a topic."""
        return [v for (name, _), held in self.topics.items() if name == topic for _, _, v in held if v is not None]

    def snapshot(self) -> Offsets:
        """The offsets after the connector's snapshot, of the topics that have rows of it."""
        return Offsets.of_places(
            (topic, partition, 1 + max(rows))
            for (topic, partition), held in self.topics.items()
            if (rows := [n for n, (_, _, value) in enumerate(held) if value is not None and _SNAPSHOT in value])
        )

    def save(self, path: Path) -> None:
        """Write it, compressed."""
        lines = [
            json.dumps([topic, partition, [[ms, _text(key), _text(value)] for ms, key, value in held]])
            for (topic, partition), held in sorted(self.topics.items())
        ]
        path.write_bytes(lzma.compress("\n".join(lines).encode(), preset=9))

    @staticmethod
    def load(path: Path) -> TpccRecording:
        """Read what ``save`` wrote."""
        topics: dict[tuple[str, int], Records] = {}
        for line in lzma.decompress(path.read_bytes()).splitlines():
            topic, partition, held = json.loads(line)
            topics[topic, partition] = [(ms, _bytes(key), _bytes(value)) for ms, key, value in held]
        return TpccRecording(topics)


def _text(raw: bytes | None) -> str | list[str] | None:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return [base64.b64encode(raw).decode()]


def _bytes(text: str | list[str] | None) -> bytes | None:
    if text is None:
        return None
    return text.encode() if isinstance(text, str) else base64.b64decode(text[0])
