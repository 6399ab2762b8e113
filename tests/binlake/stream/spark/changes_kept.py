"""A stream of changes that keeps each batch in a file of its own, as its sink does the next time after a death:
``python -m tests.binlake.stream.spark.changes_kept TABLE PLACE`` runs until it is killed."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from binlake.stream.spark.changes_source import NAME, register_changes


def kept_by(frame: DataFrame, place: Path) -> DataStreamWriter:
    """A query that writes each batch to a file by its number, and dies behind it once if there is a file ``die`` beside
    ``place``."""

    def keep(batch: DataFrame, number: int) -> None:
        changes = [one.asDict(recursive=True) for one in batch.collect()]
        (place / "batches").mkdir(parents=True, exist_ok=True)
        path = place / "batches" / f"{number:06}"
        path.with_suffix(".new").write_bytes(pickle.dumps(changes))
        path.with_suffix(".new").rename(path)
        print(f"batch {number}: {len(changes)}", flush=True)
        if (place.parent / "die").exists():
            (place.parent / "die").unlink()
            raise RuntimeError("it dies here")

    return frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(place / "checkpoint"))


def changes_kept(place: Path) -> list[list[dict[str, Any]]]:
    """The changes of each batch that has some, by its number."""
    batches = [pickle.loads(path.read_bytes()) for path in sorted((place / "batches").glob("[0-9]*[0-9]"))]
    return [batch for batch in batches if batch]


def main() -> None:
    """Stream, with a batch as soon as there is a commit."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    register_changes(session)
    frame = session.readStream.format(NAME).option("since", "earliest").load(sys.argv[1])
    kept_by(frame, Path(sys.argv[2])).trigger(processingTime="100 milliseconds").start().awaitTermination()


if __name__ == "__main__":
    main()
