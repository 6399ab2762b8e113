"""What ``binlake check`` says of the places of a stream: Java, memory and ports, the stores, the offsets in Kafka."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from functools import partial

from binlake.cli.text import number
from binlake.position.ledger import Ledger
from binlake.position.topics import Topics
from binlake.settings import Settings
from binlake.stream.recovery import recover
from binlake.stream.spark.java import find_java_of
from binlake.stream.spark.lines import spark_line
from binlake.tables.lake import Lake
from hudilake.errors import ConfigError
from hudilake.storage import check_exclusive_create, open_storage

#: What a small stream took beside the heap of its JVM: the driver's Python, two workers, Java outside of the heap (MB).
_BESIDE_HEAP_MB = 1_000


def machine_steps(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """Name and function of each check."""
    if settings.spark.master and settings.source.mysql is None:
        yield "Java", _java
        yield "memory", partial(_memory, settings)
    if settings.monitoring.port:
        yield "monitoring", partial(_port, settings.monitoring.host, settings.monitoring.port)


def position_steps(settings: Settings) -> Iterator[tuple[str, Callable[[], str]]]:
    """Whether Kafka still has what the stream would read next. To be asked where Kafka answers."""
    yield "position", partial(_position, settings)


def _java() -> str:
    java = find_java_of(spark_line())
    return f"Java {java.version} at {java.home}"


def _memory(settings: Settings) -> str:
    """Whether the machine has the memory that the settings ask for."""
    wanted = settings.spark.driver_memory_mb + _BESIDE_HEAP_MB
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1_000_000
    if there < wanted:
        raise ConfigError(
            f"the machine has {number(there)} MB, and the stream may take {number(wanted)}",
            do_next="lower spark.driver_memory_mb (512 at least), or take a larger machine",
        )
    return f"heap {settings.spark.driver_memory_mb} MB of {number(there)}"


def _port(host: str, port: int) -> str:
    """Whether the port of metrics and health is free. A running stream of the same settings has it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ConfigError(
                f"metrics cannot listen: {error.strerror}",
                do_next="set another monitoring.port; if the stream runs already, it is the one that listens",
                address=f"{host}:{port}",
            ) from error
    return f"{host}:{port} is free"


def _position(settings: Settings) -> str:
    """Raises BadInputError where topics were made again or Kafka has deleted records that were not read."""
    saved = _saved(settings)
    ledger = saved or ledger_of(settings)
    Topics(settings.kafka, ledger).start(whole=saved is not None, skip_missing=False)
    if not ledger.positions:
        return f"a new stream; it begins at the {settings.kafka.start} records"
    return f"after batch {number(ledger.batch)}; Kafka has all records since"


def _saved(settings: Settings) -> Ledger | None:
    return Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)


def ledger_of(settings: Settings) -> Ledger:
    """The stream's ledger, or the one that its tables' commits come to. Raises CorruptDataError, StorageError."""
    root = open_storage(settings.lake.uri, settings.lake.storage_options())
    return _saved(settings) or recover(settings, root, Lake(root))


def lake_is_writable(settings: Settings) -> str:
    """Create and remove a file in the lake's root. Raises StorageError, UnsupportedError for a store that writes over
    files."""
    lake = open_storage(settings.lake.uri, settings.lake.storage_options())
    check_exclusive_create(lake)
    return f"{lake.uri} can be written to, and no file twice"


def state_is_writable(settings: Settings) -> str:
    """The same in the place of the stream's state."""
    state = open_storage(settings.state_uri, settings.state_options())
    check_exclusive_create(state)
    return f"{state.uri} can be written to, and no file twice"
