"""``python -m tests.binlake.hbase.record_export DIRECTORY`` records what HBase's Export job writes.

One table, with the seed of a workload: ``plain`` (visible versions), ``raw`` (with markers), ``gzip`` (visible versions
in compressed blocks), each a directory of ``part-m-*``; ``scan.jsonl`` and ``raw.jsonl``. The job runs in one process.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from binlake.stream.spark.jars import resolve
from embedded.hbase import EmbeddedHBase, java
from embedded.hbase_source import HBaseSource
from tests.binlake.hbase.workload import Workload

TABLE: Final = "live:exported"
_LOCAL_JOBS: Final = ("org.apache.hadoop:hadoop-mapreduce-client-jobclient:3.4.1",)
_LOCAL: Final[Mapping[str, str]] = {
    "mapreduce.framework.name": "local",
    "fs.file.impl": "org.apache.hadoop.fs.LocalFileSystem",
}
_EXPORT: Final = "org.apache.hadoop.hbase.mapreduce.Export"
_VERSIONS: Final = "100000"
_OUTPUT: Final = "mapreduce.output.fileoutputformat.compress"
_KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "plain": {},
    "raw": {"hbase.mapreduce.include.deleted.rows": "true"},
    "gzip": {
        _OUTPUT: "true",
        f"{_OUTPUT}.type": "BLOCK",
        f"{_OUTPUT}.codec": "org.apache.hadoop.io.compress.GzipCodec",
    },
}


def record(directory: Path) -> None:
    """Write all files into a directory."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        EmbeddedHBase(Path(scratch)) as service,
        HBaseSource(service) as source,
    ):
        workload = Workload(source, TABLE, seed=6, rows=12, binary=True)
        workload.create()
        workload.run(250)
        source.write_scan(TABLE, directory / "scan.jsonl")
        source.write_scan(TABLE, directory / "raw.jsonl", raw=True)
        for name, settings in _KINDS.items():
            _export(service.configuration, settings, directory / name)


def _export(configuration: Path, settings: Mapping[str, str], output: Path) -> None:
    *options, classes = java(configuration, "-Xmx300m")
    local = resolve(_LOCAL_JOBS, "hadoop-local-jobs")[0].parent
    given = [f"-D{name}={value}" for name, value in {**_LOCAL, **settings}.items()]
    command = [*options, f"{classes}:{local}/*", _EXPORT, *given, TABLE, output.absolute().as_uri(), _VERSIONS]
    subprocess.run(command, check=True)
    for other in [*output.glob(".*"), output / "_SUCCESS"]:
        other.unlink()


def main(arguments: Sequence[str]) -> int:
    """Record into a new directory."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    directory = Path(arguments[0])
    directory.mkdir(parents=True)
    record(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
