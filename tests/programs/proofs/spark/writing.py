"""Hudi's own writer carries out what was drawn, in a session of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tests.programs.proofs.spark.drawing import DrawnTable, Row, Step

#: What a service of the table is in SQL.
_SERVICES = {
    "compact": "call run_compaction(op => 'scheduleandexecute', path => '{path}')",
    "cluster": "call run_clustering(path => '{path}')",
    "clean": "call run_clean(table => '{table}', retain_commits => 1)",
    "rollback": "call rollback_to_instant(table => '{table}', instant_time => '{newest}')",
}


@dataclass(frozen=True)
class SparkWriter:
    """Writes a drawn table at a path."""

    session: SparkSession
    table: DrawnTable
    path: Path

    def write(self) -> None:
        """All steps. Raises what Spark raises."""
        for step in self.table.steps:
            if step.kind in _SERVICES:
                self._serve(step)
            else:
                self._save(step.rows, step)

    def _save(self, rows: Sequence[Row], step: Step) -> None:
        schema = ", ".join(f"`{name}` {kind}" for name, kind in step.columns.items())
        cells = [tuple(row.get(name) for name in step.columns) for row in rows]
        frame = self.session.createDataFrame(cells, schema).coalesce(1)
        options = {**self.table.options, "hoodie.datasource.write.operation": step.kind}
        frame.write.format("hudi").options(**options).mode("append").save(str(self.path))

    def _serve(self, step: Step) -> None:
        name = f"drawn_{self.table.seed}"
        self.session.sql(f"create table if not exists {name} using hudi location '{self.path}'")
        try:
            newest = ""
            if step.kind == "rollback":
                shown = self.session.sql(f"call show_commits(table => '{name}', limit => 1)").collect()
                newest = shown[0]["commit_time"]
            text = _SERVICES[step.kind].format(path=self.path, table=name, newest=newest)
            options = " ".join(f"{key}={value}" for key, value in self.table.options.items() if ".bucket." in key)
            if step.kind == "cluster" and options:
                text = text.replace(")", f", options => '{options.replace(' ', ',')}')")
            self.session.sql(text).collect()
        finally:
            self.session.sql(f"drop table if exists {name}")
