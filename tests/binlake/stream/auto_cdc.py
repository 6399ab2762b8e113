"""Spark's AUTO CDC over files of events: ``python -m tests.binlake.stream.auto_cdc PLACE JAR``.

Each file of ``PLACE/batches`` is a run of one pipeline with three targets; then ``PLACE/rows.json`` has their rows.
The targets are tables in memory of Spark's own tests (JAR), since a flow needs tables that take MERGE.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from binlake.stream.spark.jars import resolve_archive

#: The targets, and what is said of each.
FLOWS: dict[str, dict[str, Any]] = {
    "newest": {"stored_as_scd_type": 1},
    "versions": {"stored_as_scd_type": 2},
    "tracked": {"stored_as_scd_type": 2, "track_history_column_list": ["owner"]},
}
#: Where targets are: ``mem.db.NAME``.
CATALOG, DATABASE = "mem", "db"
EVENTS = "id long, owner string, region string, place long, op string"
#: Tables in memory that take MERGE, of Spark's own tests. They exist for 4.2 and run on 4.3.
_TABLES = "org.apache.spark:spark-catalyst_2.13:4.2.0:jar:tests"
_CATALOG_CLASS = "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
#: A column of each target that is AUTO CDC's own.
_OWN = "__spark_autocdc_metadata"


def jar_of_tables() -> Path:
    """The jar with the tables in memory."""
    return resolve_archive(_TABLES, "auto-cdc")


def start_session(jar: Path, conf: Mapping[str, str]) -> Any:  # noqa: ANN401 - a session of Spark Connect
    """A session of one core whose catalog keeps its tables in memory. ``conf``: further properties."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    own = {"spark.jars": str(jar), f"spark.sql.catalog.{CATALOG}": _CATALOG_CLASS, "spark.sql.shuffle.partitions": "1"}
    own |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.remote("local[1]")
    for name, value in (own | dict(conf)).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql(f"create namespace {CATALOG}.{DATABASE}")
    return spark


def run_pipeline(
    spark: Any,  # noqa: ANN401 - a session of Spark Connect
    storage: Path,
    events: Callable[[], Any],
    flows: Mapping[str, Mapping[str, Any]],
) -> None:
    """One run of a pipeline: what is new of a stream goes to a target for each flow.

    Args:
        spark: the session.
        storage: where the pipeline keeps how far its flows are.
        events: makes the stream: ``id``, ``place``, ``op`` and the columns of the targets.
        flows: target -> what is said of it.
    """
    pipelines = importlib.import_module("pyspark.pipelines")  # since Spark 4.1
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run

    graph = create_dataflow_graph(spark, default_catalog=CATALOG, default_database=DATABASE, sql_conf={})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)):
        pipelines.temporary_view(name="events")(events)
        for name, more in flows.items():
            pipelines.create_streaming_table(name)
            pipelines.create_auto_cdc_flow(
                target=name,
                source="events",
                keys=["id"],
                sequence_by="place",
                apply_as_deletes="op = 'd'",
                except_column_list=["op", "place"],
                **more,
            )
    refresh: dict[str, Any] = {"full_refresh": [], "full_refresh_all": False, "refresh": [], "dry": False}
    handle_pipeline_events(start_run(spark, graph, storage=storage.as_uri(), **refresh))


def rows_of(spark: Any, target: str) -> Any:  # noqa: ANN401 - a frame of Spark Connect
    """The rows of a target."""
    return spark.table(f"{CATALOG}.{DATABASE}.{target}").drop(_OWN)


def _new_of(spark: Any, place: Path) -> Any:  # noqa: ANN401 - a frame of Spark Connect
    return spark.readStream.schema(EVENTS).json(place.as_uri())


def main(place: Path, jar: Path) -> None:
    """Run the flows over the batches, one after the other."""
    spark = start_session(jar, {})
    (place / "in").mkdir()
    for batch in sorted((place / "batches").iterdir()):
        shutil.copy(batch, place / "in")
        run_pipeline(spark, place / "storage", partial(_new_of, spark, place / "in"), FLOWS)
    rows = {name: [row.asDict() for row in rows_of(spark, name).collect()] for name in FLOWS}
    (place / "rows.json").write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
