"""AUTO CDC's side: ``python -m bench.auto_cdc.theirs PLACE KIND``, with the Python of an environment of Spark 4.3.

A line of standard input is a turn: a run of the pipeline that takes one batch. A run that has nothing to do comes
before, and its processor time is taken off.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from bench.auto_cdc.sides import KINDS, Spent
from bench.events import PLAIN
from bench.peer_stream import envelope_type, typed_columns
from binlake.stream.spark.java import java_environment
from hudilake.clock import monotonic_s
from tests.binlake.stream.auto_cdc import jar_of_tables, rows_of, run_pipeline, start_session

_CONF = {"spark.sql.session.timeZone": "UTC", "spark.driver.memory": "3g"}


def main(place: Path, kind: str) -> None:
    """Take the turns; rows go to ``PLACE/TARGET``."""
    os.environ.update(java_environment())
    spark = start_session(jar_of_tables(), _CONF)
    seen = place / "in"
    seen.mkdir()
    flows = {target: {"stored_as_scd_type": scd} for target, scd in KINDS[kind].scd_types.items()}

    def run() -> Spent:
        cpu, clock = cpu_s(), monotonic_s()
        run_pipeline(spark, place / "storage", lambda: events(spark, seen), flows)
        return Spent(cpu_s() - cpu, monotonic_s() - clock)

    Spent(cpu_s(), 0).tell()
    for batch, _ in zip(sorted((place / "batches").iterdir()), sys.stdin, strict=False):
        nothing = run()
        batch.rename(seen / batch.name)
        whole = run()
        Spent(whole.cpu - nothing.cpu, whole.clock - nothing.clock).tell()
    for target in flows:
        rows_of(spark, target).write.parquet((place / target).as_uri())
    spark.stop()


def cpu_s() -> float:
    """Processor time of this process and of Spark's JVM, which it has started."""
    own = psutil.Process()
    spent = [one.cpu_times() for one in (own, *own.children(recursive=True))]
    return float(sum(one.user + one.system for one in spent))


def events(spark: Any, place: Path) -> Any:  # noqa: ANN401 - of Spark Connect
    """The stream of a directory of lines: the columns, ``place`` and ``op``."""
    source = st.StructType([st.StructField("file", st.StringType()), st.StructField("pos", st.LongType())])
    lines = spark.readStream.text(place.as_uri())
    parsed = lines.select(sf.from_json("value", envelope_type(PLAIN).add("source", source)).alias("e"))
    number = sf.substring_index("e.source.file", ".", -1).cast("long")
    at = (number * sf.lit(1 << 32) + sf.col("e.source.pos")).alias("place")
    rows = parsed.select(sf.coalesce("e.after", "e.before").alias("r"), sf.col("e.op").alias("op"), at)
    return rows.select(*typed_columns(PLAIN), "place", "op")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
