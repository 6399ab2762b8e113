"""The Python daemon that Spark forks its workers from, without five hidden costs of every PySpark task.

Measured on a reused worker: 130-170 ms of each task is re-reading the directories of the zip and jar files that Spark
puts on the workers' path (a pip-installed PySpark needs none of them), about 60 ms is a garbage collection over
every object of numpy and pyarrow, and half a second of the first task is importing these. So: drop the archives,
import first, freeze the heap, then hand over to PySpark's own daemon. Switched on by ``spark.python.daemon.module``.

40 ms of each task is two of TCP's habits that meet: the JVM's end of the socket holds small writes back until the first
one is acknowledged (Nagle), and this end acknowledges late. So it is told not to, at the start of each task, as the
kernel forgets (a job of two tasks: 66 -> 29 ms).

Kafka's messages are objects that the garbage collector looks at, a hundred thousand a task, none of them in a cycle:
with Python's own thresholds that is a third of the fetch. PySpark collects between tasks in any case.
"""

from __future__ import annotations

import contextlib
import gc
import socket
import sys

_COLLECT_EVERY = (200_000, 20, 20)


def _drop_archives() -> None:
    archives = (".zip", ".jar")
    sys.path[:] = [entry for entry in sys.path if not entry.endswith(archives)]
    for entry in [e for e in sys.path_importer_cache if e.endswith(archives)]:
        del sys.path_importer_cache[entry]


def _prompt(sock: socket.socket) -> None:
    """Acknowledge what comes, and send what goes, at once."""
    if hasattr(socket, "TCP_QUICKACK"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def main() -> None:
    """Prepare the process and run PySpark's daemon in it."""
    _drop_archives()
    import pyspark.daemon

    import pipeline.decode.templates.scan  # what the tasks will need, imported and compiled once before the fork
    import pipeline.tasks.decode_and_route
    import pipeline.tasks.write_parcels  # noqa: F401

    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)
    run_task = pyspark.daemon.worker

    def run_promptly(sock: socket.socket, authenticated: bool) -> int:
        with contextlib.suppress(OSError):  # no TCP socket: nothing to hurry
            _prompt(sock)
        return run_task(sock, authenticated)  # type: ignore[no-untyped-call, no-any-return]

    pyspark.daemon.worker = run_promptly
    pyspark.daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
