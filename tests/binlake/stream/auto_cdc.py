"""Spark's AUTO CDC over files of events: ``python -m tests.binlake.stream.auto_cdc PLACE JAR``.

Each file of ``PLACE/batches`` is a run of one pipeline with three targets; then ``PLACE/rows.json`` has their rows.
The targets are tables in memory of Spark's own tests (JAR), since a flow needs tables that take MERGE.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import shutil
import sys
from pathlib import Path
from typing import Any

#: The targets, and what is said of each.
FLOWS: dict[str, dict[str, Any]] = {
    "newest": {"stored_as_scd_type": 1},
    "versions": {"stored_as_scd_type": 2},
    "tracked": {"stored_as_scd_type": 2, "track_history_column_list": ["owner"]},
}
CATALOG = "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
EVENTS = "id long, owner string, region string, place long, op string"


def main(place: Path, jar: str) -> None:
    """Run the flows over the batches, one after the other."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    conf = {"spark.jars": jar, "spark.sql.catalog.mem": CATALOG, "spark.sql.shuffle.partitions": "1"}
    conf |= {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    builder = SparkSession.builder.remote("local[1]")
    for name, value in conf.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sql("create namespace mem.db")
    (place / "in").mkdir()
    for batch in sorted((place / "batches").iterdir()):
        shutil.copy(batch, place / "in")
        _run(spark, place)
    rows = {
        name: [row.asDict() for row in spark.table(f"mem.db.{name}").drop("__spark_autocdc_metadata").collect()]
        for name in FLOWS
    }
    (place / "rows.json").write_text(json.dumps(rows))
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    spark.stop()
    print(sum(one.ru_utime + one.ru_stime for one in spent))


def _run(spark: Any, place: Path) -> None:  # noqa: ANN401 - a session of Spark Connect
    pipelines = importlib.import_module("pyspark.pipelines")  # since Spark 4.1
    from pyspark.pipelines.graph_element_registry import graph_element_registration_context
    from pyspark.pipelines.spark_connect_graph_element_registry import SparkConnectGraphElementRegistry
    from pyspark.pipelines.spark_connect_pipeline import create_dataflow_graph, handle_pipeline_events, start_run

    graph = create_dataflow_graph(spark, default_catalog="mem", default_database="db", sql_conf={})
    with graph_element_registration_context(SparkConnectGraphElementRegistry(spark, graph)):
        pipelines.temporary_view(name="events")(lambda: spark.readStream.schema(EVENTS).json((place / "in").as_uri()))
        for name, more in FLOWS.items():
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
    handle_pipeline_events(start_run(spark, graph, storage=(place / "storage").as_uri(), **refresh))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
