"""Starts a stream in this process. The steps are slow, so they run at the same time.

Spark's JVM starts in a thread while this module imports the stream. Spark starts its first Python worker, which imports
and compiles the modules that tasks need, while the driver opens the tables and plans the first batch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from binlake.settings import MysqlSettings, Settings
from binlake.stream.monitoring.progress import OnProgress, ProgressEvent
from binlake.stream.monitoring.run_log import RunLog
from hudilake.errors import LakeError
from hudilake.storage import open_storage
from lakemetastore.client.registration import NO_REGISTRAR, Registrar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_stream(
    settings: Settings,
    *,
    once: bool = False,
    on_progress: OnProgress | None = None,
    stop: threading.Event | None = None,
    skip_missing: bool = False,
    registrar: Registrar = NO_REGISTRAR,
) -> None:
    """Run a stream in this process.

    Args:
        settings: of the stream.
        once: apply the records that exist at the start, then return.
        on_progress: called after every batch.
        stop: set it to end the stream after the current batch.
        skip_missing: continue where Kafka has deleted offsets, without their records.
        registrar: takes in the instants that complete; it belongs to the caller.

    Raises LakeError; everything committed stays committed, and the next run continues from there.
    """
    with RunLog(settings.name) as log:

        def tell(event: ProgressEvent) -> None:
            log.update(event)
            if on_progress is not None:
                on_progress(event)

        halt = stop or threading.Event()
        if settings.source.mysql is not None:
            _run_binlog(settings, settings.source.mysql, tell, halt, registrar, once=once)
        else:
            _run_kafka(settings, tell, halt, registrar, once=once, skip_missing=skip_missing)


def _run_binlog(
    settings: Settings,
    mysql: MysqlSettings,
    tell: OnProgress,
    halt: threading.Event,
    registrar: Registrar,
    *,
    once: bool,
) -> None:
    with ThreadPoolExecutor(1, thread_name_prefix="import") as pool:
        pool.submit(_import_compiled)
        from binlake.stream.binlog.run import BinlogStream
        from binlake.stream.monitoring.watched import monitored

        with monitored(settings) as monitor:
            BinlogStream(settings, mysql, tell, halt, monitor, registrar=registrar).run(once=once)


def _import_compiled() -> None:
    """Import what the first rows are read with, a third of a second, while the server and the disk are waited for. What
    fails here fails again at its first use."""
    import binlake.decode.templates.kernel  # noqa: F401


def _run_kafka(
    settings: Settings,
    tell: OnProgress,
    halt: threading.Event,
    registrar: Registrar,
    *,
    once: bool,
    skip_missing: bool,
) -> None:
    with _naming_the_log(settings), _session(settings) as session:
        # Imported here: the import takes half a second, while the JVM starts in any case.
        from binlake.position.ledger import Ledger
        from binlake.position.topics import await_topics
        from binlake.stream.monitoring.watched import monitored
        from binlake.stream.run import Stream
        from binlake.stream.spark.ahead import import_for_driver

        import_for_driver()
        with monitored(settings) as monitor:
            if (
                not once
                and Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name) is None
            ):
                session()  # what it ends with is said at once
                await_topics(settings.kafka, halt)
                if halt.is_set():
                    return
            stream = Stream(settings, session(), tell, halt, monitor, skip_missing=skip_missing, registrar=registrar)
            stream.run(once=once)


@contextlib.contextmanager
def _naming_the_log(settings: Settings) -> Iterator[None]:
    """Add the file that Spark's JVM has logged to since the start, if there is one, to an error."""
    from binlake.stream.spark.session import spark_log  # PySpark, which a stream of a binlog does not need

    before = _size_of_log(settings)
    try:
        yield
    except LakeError as error:
        if _size_of_log(settings) > before:
            error.where.setdefault("log", spark_log(settings))
        raise


def _size_of_log(settings: Settings) -> int:
    from binlake.stream.spark.session import spark_log

    try:
        return spark_log(settings).stat().st_size
    except OSError:
        return 0


@contextlib.contextmanager
def _session(settings: Settings) -> Iterator[Callable[[], SparkSession]]:
    """Start a session in a thread. The yielded function waits for the session, and raises as ``spark_session``."""
    from binlake.stream.spark.session import spark_session

    with ThreadPoolExecutor(1, thread_name_prefix="spark") as pool:
        starting = pool.submit(spark_session, settings)
        worker = pool.submit(lambda: _start_worker(starting.result()))  # one thread, so after the session
        try:
            yield starting.result
        finally:
            wait([worker])
            if starting.exception() is None:
                _end(starting.result())


def _end(session: SparkSession) -> None:
    """Stop a session, unless its JVM is gone: every call to it would fail."""
    from binlake.stream.spark.tasks import jvm_has_ended

    if not jvm_has_ended(session.sparkContext):
        session.stop()


def _start_worker(session: SparkSession) -> None:
    """Run an empty task if tasks run on this machine. The first batch meets the same error again and reports it."""
    context = session.sparkContext
    if (context.master or "").startswith("local"):
        context.parallelize([0], 1).count()
