"""The Python daemon that Spark forks its workers from, without three hidden costs of every PySpark task.

Measured on a reused worker: 130-170 ms of each task is re-reading the directories of the zip and jar files that Spark
puts on the workers' path (a pip-installed PySpark needs none of them), about 60 ms is a garbage collection over
every object of numpy and pyarrow, and half a second of the first task is importing these. So: drop the archives,
import first, freeze the heap, then hand over to PySpark's own daemon. Switched on by ``spark.python.daemon.module``.
"""

from __future__ import annotations

import gc
import sys


def _drop_archives() -> None:
    archives = (".zip", ".jar")
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(archives)]
    for entry in [e for e in sys.path_importer_cache if e.endswith(archives)]:
        del sys.path_importer_cache[entry]


def main() -> None:
    """Prepare the process and run PySpark's daemon in it."""
    _drop_archives()
    import pyspark.daemon

    import pipeline.stream.tasks  # noqa: F401 - what the tasks will need, imported once before the fork

    gc.collect()
    gc.freeze()
    pyspark.daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
