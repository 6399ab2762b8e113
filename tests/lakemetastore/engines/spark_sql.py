"""Spark SQL in a process of its own, over a metastore."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from binlake.stream.spark.lines import spark_line
from embedded.jars import spark_packages
from tests.paths import ROOT

_ANSWER_S = 240.0


class SqlError(Exception):
    """What Spark says of a statement that it cannot carry out."""


class SparkSql:
    """A session for the ``with`` block.

    Args:
        uris: addresses of the metastore, ``thrift://host:port``, in the order in which they are tried.
        place: directory of the warehouse and of the log ``spark.log``.
    """

    def __init__(self, uris: str, place: Path, **conf: str) -> None:
        self._place = place
        hudi = spark_line() == "3.5"
        self._conf = {
            "spark.hadoop.hive.metastore.uris": uris,
            "spark.sql.catalogImplementation": "hive",
            "spark.sql.warehouse.dir": (place / "warehouse").as_uri(),
            "spark.ui.enabled": "false",
            "spark.driver.memory": "768m",
            "spark.sql.shuffle.partitions": "1",
            "spark.driver.extraJavaOptions": "-Duser.timezone=UTC -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            **(self._hudi() if hudi else {}),
            **conf,
        }

    @staticmethod
    def _hudi() -> dict[str, str]:
        return {
            "spark.jars": ",".join(map(str, spark_packages(hudi=True))),
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        }

    def __enter__(self) -> Self:
        self._place.mkdir(parents=True, exist_ok=True)
        self._log = (self._place / "spark.log").open("wb")
        command = [sys.executable, "-m", "tests.lakemetastore.engines.sql_program", json.dumps(self._conf)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.version = self._answer()[0][0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def sql(self, statement: str) -> list[list[Any]]:
        """The rows of a statement. Raises SqlError."""
        return self._asked(statement)

    def hive_sync(self, *words: str) -> None:
        """Run Hudi's HiveSync with these arguments, in the same Java. Raises SqlError."""
        self._asked(list(words))

    def column(self, statement: str) -> list[Any]:
        """The first column of its rows."""
        return [row[0] for row in self.sql(statement)]

    def _asked(self, request: str | list[str]) -> list[list[Any]]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> list[list[Any]]:
        assert self._process.stdout is not None
        late = threading.Timer(_ANSWER_S, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            raise SqlError(f"the session has ended: {(self._place / 'spark.log').read_text()[-2000:]}")
        answer = json.loads(line)
        if "error" in answer:
            raise SqlError(answer["error"])
        rows: list[list[Any]] = answer["rows"]
        return rows
