"""The Python daemon that Spark forks its workers from, without five hidden costs of every PySpark task.

Measured on a reused worker: each task spends 130-170 ms on reading again the directories of the zip and jar files that
Spark puts on the workers' path (a pip-installed PySpark needs none of them) and about 60 ms on a garbage collection
over every object of numpy and pyarrow. The first task spends half a second on importing these. The daemon therefore
drops the archives, imports the modules first, freezes the heap, and then runs PySpark's own daemon. The setting
``spark.python.daemon.module`` selects it.

Two properties of TCP together cost 40 ms of each task: the JVM's end of the socket holds small writes back until the
first one is acknowledged (Nagle), and this end delays its acknowledgement. The delay is switched off at the start of
each task, because the kernel resets the option (measured, a job of two tasks: 66 -> 29 ms).

A task creates about a hundred thousand objects for Kafka's messages, and none of them is in a reference cycle. With
Python's own thresholds, garbage collection takes a third of the fetch time. PySpark collects between tasks in any case.
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
    """Make the socket acknowledge received data, and send data, without delay."""
    if hasattr(socket, "TCP_QUICKACK"):  # Linux
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def main() -> None:
    """Prepare the process and run PySpark's daemon in it."""
    _drop_archives()
    import pyspark.daemon

    import binlake.rows.tasks.decode_and_route  # modules that tasks need, imported and compiled once before the fork
    import binlake.rows.tasks.write_parcels  # noqa: F401
    from binlake.stream.spark.ahead import import_for_tasks

    import_for_tasks()

    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT_EVERY)
    run_task = pyspark.daemon.worker

    def run_promptly(sock: socket.socket, authenticated: bool) -> int:
        with contextlib.suppress(OSError):  # not a TCP socket: it has no such delay
            _prompt(sock)
        return run_task(sock, authenticated)  # type: ignore[no-untyped-call, no-any-return]

    pyspark.daemon.worker = run_promptly
    pyspark.daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
