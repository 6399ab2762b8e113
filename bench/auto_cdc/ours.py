"""binlake's side: ``python -m bench.auto_cdc.ours PLACE KIND``; a line of standard input is a turn.

The stream's own batches in this process, over records in memory: neither Kafka nor Spark.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

from bench.auto_cdc.sides import BOUNDS, KINDS, Spent
from bench.events import COLUMNS, DATABASE
from bench.history import Held, Stream
from hudilake import open_table
from hudilake.clock import monotonic_s


def main(place: Path, kind: str) -> None:
    """Take the turns; rows go to ``PLACE/TARGET``."""
    batches = [file.read_bytes().splitlines() for file in sorted((place / "batches").iterdir())]
    values: list[bytes | None] = [line for batch in batches for line in batch]
    stream = Stream(place / "lake", Held([None] * len(values), values), KINDS[kind].tables)
    Spent(time.process_time(), 0).tell()
    end = 0
    for batch, _ in zip(batches, sys.stdin, strict=False):
        end += len(batch)
        cpu, clock = time.process_time(), monotonic_s()
        stream.batch(end)
        Spent(time.process_time() - cpu, monotonic_s() - clock).tell()
    for target in KINDS[kind].scd_types:
        table = open_table(f"{place}/lake/{DATABASE}/{KINDS[kind].lake[target]}")
        columns = [*COLUMNS, *(BOUNDS.values() if target == "versions" else ())]
        (place / target).mkdir()
        pq.write_table(table.scan(columns=columns).to_arrow(), place / target / "rows.parquet")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
