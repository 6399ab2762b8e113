"""Reads the offsets that Spark planned for a batch from the offset log of its checkpoint.

Structured Streaming writes ``offsets/<batch id>`` before a batch runs: a version line, one line of JSON about the
batch, one line of JSON of end offsets per source (Spark 3.5 to 4.3, ``OffsetSeqLog``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from binlake.source.offsets import NO_OFFSETS, Offsets
from hudilake.errors import UnsupportedError
from hudilake.storage import Storage, StorageNotFoundError

_NONE = "-"


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """A batch that Spark planned: its end offsets, and the time of its trigger (ms since the epoch)."""

    end: Offsets
    trigger_ms: int


def last_finished(checkpoint: Storage) -> Offsets:
    """The end offsets of the last batch that Spark has recorded as finished; empty for a new checkpoint."""
    return _newest(checkpoint, "commits")


def last_planned(checkpoint: Storage) -> Offsets:
    """The end offsets of the last batch that Spark has planned; empty for a new checkpoint."""
    return _newest(checkpoint, "offsets")


def _newest(checkpoint: Storage, log: str) -> Offsets:
    batches = [int(name) for info in checkpoint.list(log) if (name := info.path.rpartition("/")[2]).isdigit()]
    planned = planned_batch(checkpoint, max(batches)) if batches else None
    return planned.end if planned else NO_OFFSETS


def planned_batch(checkpoint: Storage, batch_id: int) -> PlannedBatch | None:
    """The plan of a batch; None if Spark has kept none. Raises UnsupportedError for a log of another format."""
    path = f"offsets/{batch_id}"
    try:
        lines = checkpoint.read(path).decode().splitlines()
    except StorageNotFoundError:
        return None
    if len(lines) != 3 or lines[0] != "v1" or lines[2] == _NONE:
        raise UnsupportedError(
            "Spark's offset log has an unknown form",
            do_next="use a line of Spark that docs/support.md names",
            path=f"{checkpoint.uri}/{path}",
        )
    return PlannedBatch(Offsets.from_text(lines[2]), int(json.loads(lines[1])["batchTimestampMs"]))
