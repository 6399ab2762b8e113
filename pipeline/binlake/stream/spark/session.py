"""The Spark session of a stream."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from binlake.settings import Settings
from binlake.stream.spark.cache import log_file
from binlake.stream.spark.class_archive import archive_options, make_archive
from binlake.stream.spark.jars import kafka_connector
from binlake.stream.spark.java import find_java_of, java_environment
from binlake.stream.spark.lines import connector_coordinate, spark_line
from hudilake.errors import ConfigError
from hudilake.storage.redaction import without_passwords

_log = logging.getLogger(__name__)

#: Names (or values) that Spark hides in its UI, its event log and its plans: its own default, and the properties of
#: Kafka's client with ``kafka.fetch: spark``.
REDACTED = r"(?i)secret|password|passwd|token|credential|access[.]?key|account[.]?key|jaas|keystore|ssl[.]key"
#: No record crosses the JVM: it plans batches and launches tasks, so compilers and collectors made for throughput cost
#: more than they save (measured: 430 -> 250 ms of CPU per batch).
_LEAN_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: Properties by which a user sets the source of Spark's packages: Spark then resolves the connector itself.
_OWN_RESOLVER = {"spark.jars.ivySettings", "spark.jars.repositories", "spark.jars.ivy"}
_LOG4J = Path(__file__).with_name("log4j2.properties")
_POOLS = Path(__file__).with_name("pools.xml")


def spark_session(settings: Settings) -> SparkSession:
    """A session with the properties that a stream needs; ``spark.conf`` of the settings overrides all of them.

    Raises ConfigError when no session can be made, and TransientError when the Kafka connector cannot be fetched.
    """
    if settings.spark.master:  # under spark-submit a JVM exists already
        find_java_of(spark_line())
    if _needs_connector(settings):
        prepare_spark()
    conf = session_properties(settings)
    _prepare_environment(settings)
    builder = SparkSession.builder.appName(f"binlake-{settings.name}")
    if settings.spark.master:
        builder = builder.master(settings.spark.master)
    for name, value in conf.items():
        builder = builder.config(name, value)
    _log.info("starting Spark: %s", without_passwords(settings.spark.master or "in the JVM of spark-submit"))
    try:
        session = builder.getOrCreate()
    except Exception as error:  # of many types: no JVM, no jars, no master
        raise ConfigError(
            f"no Spark session: {without_passwords(str(error))}",
            do_next="check JAVA_HOME (Java 17) and the spark section of the settings",
        ) from error
    session.sparkContext.setLogLevel("WARN")
    _silence_accumulators(session)
    return session


def _silence_accumulators(session: SparkSession) -> None:
    """Keep PySpark's server of accumulators from printing a traceback when the JVM ends: other calls raise errors."""
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: _log.debug("the JVM has left the server of accumulators", exc_info=True)


def prepare_spark() -> None:
    """Fetch and make the files that a session needs and the cache lacks. Raises as ``kafka_connector``."""
    kafka_connector()
    make_archive()


def session_properties(settings: Settings) -> dict[str, str]:
    """The ``spark.*`` properties of a stream's session.

    Raises TransientError, ConfigError and UnsupportedError as ``kafka_connector`` does, where it is needed.
    """
    return {**_defaults(settings), **settings.spark.properties()}


def _prepare_environment(settings: Settings) -> None:
    """Set the Java of the driver; in local mode also set this Python for the workers, instead of ``python3`` on the
    path."""
    if settings.spark.master:
        os.environ.update(java_environment())
    if (settings.spark.master or "").startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if "SPARK_LOCAL_IP" not in os.environ:  # without a name Spark looks for an address, and warns of loopback
            os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")


def _defaults(settings: Settings) -> dict[str, str]:
    conf = {
        **_connector(settings),
        "spark.driver.memory": f"{settings.spark.driver_memory_mb}m",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.minBatchesToRetain": "5",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.python.worker.reuse": "true",
        "spark.scheduler.mode": "FAIR",
        "spark.redaction.regex": REDACTED,
    }
    if settings.spark.master:
        conf |= _own_java(spark_log(settings))
    if (settings.spark.master or "").startswith("local"):
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.showConsoleProgress": "false",
            # the checkpoint is disposable: a checksum beside each of its files costs a second chmod (15 ms) for nothing
            "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
            # parcels go to the driver as they are, not by way of the block manager, and compressed (30-60 ms a batch)
            "spark.task.maxDirectResultSize": "64m",
            "spark.rdd.compress": "false",
        }
        conf |= _own_daemon()
        if settings.kafka.fetch == "direct":
            conf["spark.driver.extraJavaOptions"] = _LEAN_JAVA
    return conf


def _connector(settings: Settings) -> dict[str, str]:
    """The Kafka connector, where Spark needs one: jars that are resolved once. The settings of jars and repositories
    take precedence."""
    coordinate = connector_coordinate()
    if settings.spark.brings_jars or coordinate is None:
        return {}
    if not _needs_connector(settings):
        return {"spark.jars.packages": coordinate}
    return {"spark.jars": ",".join(map(str, kafka_connector()))}


def _needs_connector(settings: Settings) -> bool:
    """Whether the connector comes from the cache."""
    return not settings.spark.brings_jars and not _OWN_RESOLVER & set(settings.spark.conf)


def spark_log(settings: Settings) -> Path:
    """The file that has Spark's warnings and errors with their stack traces, where binlake starts the JVM.

    Two streams of one name on one machine have two states, and so two files.
    """
    place = hashlib.sha256(settings.state_uri.encode()).hexdigest()[:8]
    return log_file(f"spark-{settings.name}-{place}")


def _own_java(log: Path) -> dict[str, str]:
    """Properties of a JVM that binlake starts: classes from the archive, and no warnings about harmless conditions.

    The files beside this module are missing if the module is imported from a zip. ``log``: where stack traces go; with
    BINLAKE_SPARK_LOG=console they are on standard error too.
    """
    options = [archive_options()]
    if _LOG4J.is_file() and not _has_log4j():
        options += [f"-Dlog4j2.configurationFile={_LOG4J.as_uri()}", f'"-Dbinlake.spark.log={log}"']
        if os.environ.get("BINLAKE_SPARK_LOG") == "console":
            options += ["-Dbinlake.console.severest=FATAL", "-Dbinlake.console.trace=full"]
    conf = {"spark.driver.defaultJavaOptions": " ".join(filter(None, options))}
    if _POOLS.is_file():
        conf["spark.scheduler.allocation.file"] = _POOLS.as_uri()
    return conf


def _has_log4j() -> bool:
    """Whether the user has configured the log of Spark, in a directory that Spark puts on the class path."""
    places = [os.environ.get("SPARK_CONF_DIR"), f"{home}/conf" if (home := os.environ.get("SPARK_HOME")) else None]
    return any(True for place in places if place for _ in Path(place).glob("log4j2*"))


def _own_daemon() -> dict[str, str]:
    """Workers fork from binlake's daemon if they run this Python; on a cluster the settings decide."""
    spec = importlib.util.find_spec("binlake")
    if spec is None or not spec.submodule_search_locations:
        return {}
    root = os.path.dirname(next(iter(spec.submodule_search_locations)))  # noqa: PTH120 - a plain string for the environment
    paths = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "spark.python.daemon.module": "binlake.stream.spark.daemon",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(paths),
        "spark.executorEnv.PYTHONSAFEPATH": "1",  # a folder named like a package, where the stream is started, is none
    }
