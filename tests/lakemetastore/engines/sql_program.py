"""A Spark session whose catalog is a Hive Metastore: requests in on standard input, answers out, a JSON line each.

A request is a statement, or a list: the words of Hudi's HiveSync.

``python -m tests.lakemetastore.engines.sql_program CONF``; ``CONF``: Spark properties as JSON. A process of its own,
since a JVM keeps the catalog it began with.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

from binlake.stream.spark.java import find_java


def main(conf: dict[str, str]) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Java prints is no answer
    os.environ["JAVA_HOME"] = str(find_java().home)
    builder = SparkSession.builder.master("local[1]").appName("engines")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.enableHiveSupport().getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"rows": [[session.version]]}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(session, json.loads(line)), default=str), file=answers, flush=True)
    session.stop()


def answer(session: SparkSession, request: str | list[str]) -> dict[str, Any]:
    """Rows as lists, or the error's text."""
    try:
        if isinstance(request, list):
            return {"rows": sync(session, request)}
        return {"rows": [list(row) for row in session.sql(request).collect()]}
    except Exception as error:
        return {"error": str(error)}


def sync(session: SparkSession, words: list[str]) -> list[Any]:
    """Run HiveSync."""
    context: Any = session.sparkContext
    java = context._jvm
    arguments = context._gateway.new_array(java.java.lang.String, len(words))
    for position, word in enumerate(words):
        arguments[position] = word
    java.org.apache.hudi.hive.HiveSyncTool.main(arguments)
    return []


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
