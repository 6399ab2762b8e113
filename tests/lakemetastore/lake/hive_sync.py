"""Hudi's own HiveSync as a program, and what it left in a metastore."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pyspark

from binlake.stream.spark.java import find_java
from embedded.jars import spark_packages

_OPENED = ("java.net", "java.lang", "java.util", "java.nio")
#: What a metastore and HiveSync say of themselves and of the moment.
_OWN = {"totalSize", "numFiles", "transient_lastDdlTime", "hudi_writer_version"}
_NOTED = {"last_commit_time_sync", "last_commit_completion_time_sync"}


def hive_sync(uri: str, database: str, table: Path, *options: str) -> None:
    """Sync a table by its tool, in ``hms`` mode. Raises CalledProcessError with what it said."""
    jars = [*map(str, spark_packages(hudi=True)), f"{Path(pyspark.__file__).parent}/jars/*"]
    opened = [f"--add-opens=java.base/{name}=ALL-UNNAMED" for name in _OPENED]
    flags = ["-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *opened, "-cp", ":".join(jars)]
    place = ["--metastore-uris", uri, "--sync-mode", "hms", "--database", database, "--base-path", str(table)]
    command = [str(find_java().command), *flags, "org.apache.hudi.hive.HiveSyncTool", *place, "--table", table.name]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, "Exception" in done.stderr) == (0, False), done.stderr[-4000:]


def as_golden(client: Any, database: str, name: str, root: Path) -> dict[str, Any]:  # noqa: ANN401 - generated
    """A Hive table with its partitions, in the form of ``golden/hive_sync.json``."""
    table = client.get_table(database, name)
    return {
        "kind": table.tableType,
        "keys": _columns(table.partitionKeys),
        "parameters": {k: v for k, v in sorted(table.parameters.items()) if k not in _OWN | _NOTED},
        "noted": sorted(_NOTED & set(table.parameters)),
        **_storage(table.sd, root),
        "partitions": [
            {"values": part.values, **_storage(part.sd, root)} for part in client.get_partitions(database, name, -1)
        ],
    }


def _columns(columns: list[Any]) -> list[list[str]]:
    return [[column.name, column.type, column.comment or ""] for column in columns]


def _storage(said: Any, root: Path) -> dict[str, Any]:  # noqa: ANN401 - generated
    parameters = {k: v.replace(f"file:{root}", "{root}") for k, v in said.serdeInfo.parameters.items()}
    return {
        "columns": _columns(said.cols),
        "location": said.location.replace(f"file:{root}", "{root}"),
        "input": said.inputFormat,
        "output": said.outputFormat,
        "buckets": said.numBuckets,
        "compressed": said.compressed,
        "serde": said.serdeInfo.serializationLib,
        "serde_parameters": {k: v.replace(str(root), "{root}") for k, v in parameters.items()},
    }
