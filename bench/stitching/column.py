"""A column added to all rows of a table of 100 columns: the bytes that each way writes, and the time that it takes.

``python -m bench.stitching column`` measures Hudi's ``MERGE INTO`` with partial updates, and Delta's ``MERGE`` with
deletion vectors, beside ``binlake backfill``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from bench.peers import Delta, Hudi
from bench.process import tree_bytes
from bench.stitching.peers import start_session
from bench.summary import Metrics
from hudilake.clock import monotonic_s

COLUMNS = 100
BUCKETS = 4
#: Spark SQL for the value of column ``n`` of row ``id``, in rotation.
_VALUES = (
    "CAST(hash(id, {n}) AS BIGINT)",
    "CONCAT('text ', hex(hash(id, {n}) % 100000))",
    "hash(id, {n}) / 64.0D",
    "CAST(hash(id, {n}) % 1000 AS INT)",
)
_NEW = "CAST(hash(id, -1) AS DOUBLE) / 64"


@dataclass(frozen=True)
class Wide:
    """The table: its rows, and where it is."""

    rows: int
    place: Path

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.place / "lake" / "wide"

    def source(self, session: SparkSession) -> str:
        """A view of the rows."""
        values = ", ".join(f"{_VALUES[n % len(_VALUES)].format(n=n)} AS c{n:02d}" for n in range(COLUMNS - 1))
        session.range(self.rows).createOrReplaceTempView("ids")
        session.sql(f"CREATE OR REPLACE TEMP VIEW source AS SELECT id, {values} FROM ids")
        session.sql(f"CREATE OR REPLACE TEMP VIEW news AS SELECT id, {_NEW} AS score FROM ids")
        return "source"


def hudi(wide: Wide, heap_mb: int) -> Metrics:
    """``MERGE INTO`` on a merge-on-read table with a bucket index, partial updates on."""
    session = start_session(Hudi(metadata=True), wide.place, heap_mb)
    for name, value in _HUDI.items():
        session.sql(f"SET {name}={value}")
    options = {"type": "mor", "primaryKey": "id", **_HUDI}
    given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    session.sql(
        f"CREATE TABLE wide USING hudi TBLPROPERTIES ({given}) LOCATION '{wide.path.as_uri()}' "
        f"AS SELECT * FROM {wide.source(session)}"
    )
    found = _spent(session, wide, "ALTER TABLE wide ADD COLUMNS (score DOUBLE)", "wide")
    session.stop()
    return found


def delta(wide: Wide, heap_mb: int) -> Metrics:
    """``MERGE`` on a table with deletion vectors."""
    session = start_session(Delta(), wide.place, heap_mb)
    name = f"delta.`{wide.path}`"
    session.sql(
        f"CREATE TABLE {name} USING delta TBLPROPERTIES ('delta.enableDeletionVectors' = 'true') "
        f"AS SELECT * FROM {wide.source(session)}"
    )
    found = _spent(session, wide, f"ALTER TABLE {name} ADD COLUMNS (score DOUBLE)", name)
    session.stop()
    return found


def _spent(session: SparkSession, wide: Wide, alter: str, name: str) -> Metrics:
    table = tree_bytes(wide.path)
    started = monotonic_s()
    session.sql(alter)
    session.sql(f"MERGE INTO {name} t USING news s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.score = s.score")
    seconds = monotonic_s() - started
    written = tree_bytes(wide.path) - table
    session.catalog.clearCache()
    right = session.sql(f"SELECT count(*) FROM {name} t JOIN news s ON t.id = s.id AND t.score = s.score").first()
    if right is None or right[0] != wide.rows:
        raise RuntimeError(f"{right and right[0]} of {wide.rows} rows have the new value")
    return {
        "seconds": seconds,
        "table_mb": table / 1e6,
        "written_mb": written / 1e6,
        "written_percent": 100 * written / table,
    }


_HUDI = {
    "hoodie.record.merge.mode": "COMMIT_TIME_ORDERING",
    "hoodie.index.type": "BUCKET",
    "hoodie.bucket.index.hash.field": "id",
    "hoodie.bucket.index.num.buckets": str(BUCKETS),
    "hoodie.spark.sql.merge.into.partial.updates": "true",
    "hoodie.parquet.compression.codec": "zstd",
    "hoodie.combine.before.upsert": "false",
    "hoodie.write.markers.type": "DIRECT",
    "hoodie.embed.timeline.server": "false",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.compact.inline": "false",
}
SIDES = {"hudi": hudi, "delta": delta}
