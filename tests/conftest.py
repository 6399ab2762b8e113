"""Services that many tests share, each started at most once by each process of a run."""

from __future__ import annotations

import math
import os
import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from types import FrameType
from typing import Any
from zlib import crc32

import pytest

from hudilake.clock import now_ms
from tests import hypothesis_profile  # noqa: F401 - loads the profile
from tests.binlake.stream.dying_store import silent_threads
from tests.json_lines import held_lines  # noqa: F401 - a fixture
from tests.services import kafka
from tests.services.databases import log_mariadb, log_postgresql  # noqa: F401 - fixtures
from tests.services.hbase import hbase  # noqa: F401 - a fixture
from tests.services.hdfs import HdfsCluster, start_hdfs
from tests.services.hms import hms, hms4  # noqa: F401 - fixtures
from tests.services.kafka import Broker, start_broker
from tests.services.s3 import S3Server, start_s3
from tests.spark_session import hudi_spark, spark  # noqa: F401 - fixtures

BUCKET = "lake"
#: Marks of the tests with services.
SERVICES = frozenset(
    {"spark", "kafka", "database", "hdfs", "judge", "cluster", "hms", "postgresql", "hbase", "trino", "mysql"}
)
#: What the services of pytest-xdist's workers ran in.
worker_services: list[str] = []
#: When no further test begins.
END = pytest.StashKey[float]()


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """SIGTERM ends a run as Ctrl-C does: what its fixtures have started is stopped, and does not stay behind.

    A heartbeat of a process that a test let die may beat once more, on a slow machine: pytest's own hook, which is set
    before this one, would take that for a failure.
    """
    # Processes that tests start keep the modules they compile; each would spend a second on that again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    silent = ExitStack()
    silent.enter_context(silent_threads())
    config.add_cleanup(silent.close)
    own = os.getpid()

    def end(number: int, _: FrameType | None) -> None:
        if os.getpid() == own:
            raise KeyboardInterrupt
        signal.signal(number, signal.SIG_DFL)  # a forked child dies of it, as its test expects
        os.kill(os.getpid(), number)

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, end)


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for all tests of this process; tests keep apart by their topic names."""
    with start_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    with start_s3() as server:
        server.create_bucket(BUCKET)
        yield server


@pytest.fixture(scope="session")
def hdfs_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HdfsCluster]:
    with start_hdfs(tmp_path_factory.mktemp("hdfs") / "cluster") as cluster:
        yield cluster


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem() -> Generator[None, object, object]:
    """Of the cases of a test with ``first(n)`` all but n take the mark ``full``, whichever of them the run asks for."""
    made = yield
    for number, case in enumerate(made if isinstance(made, list) else ()):
        mark = case.get_closest_marker("first")
        if mark is not None and number >= mark.args[0]:
            case.add_marker("full")
    return made


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests with services first, the shared Spark session's before all.

    With two workers the first begins with these and the second with the others; who is through takes from the end of
    the other's. So a second Spark session starts late or never, and no worker waits long for the last test.
    ``BINLAKE_TEST_ORDER`` draws the order of the modules among their like: a run that may end early leaves out others
    each time.
    """
    # What tests start, other runs of pytest among it, is whole.
    drawn = os.environ.pop("BINLAKE_TEST_ORDER", None)
    config.stash[END] = float(os.environ.pop("BINLAKE_TEST_END", math.inf))
    items.sort(key=lambda item: (_rank(item), 0 if drawn is None else crc32(f"{drawn} {item.path}".encode())))


def _rank(item: pytest.Item) -> int:
    if "spark" in getattr(item, "fixturenames", ()):
        return 0
    return 1 if any(mark.name in SERVICES for mark in item.iter_markers()) else 2


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what would begin after ``BINLAKE_TEST_END``, in seconds of Unix time."""
    if now_ms() / 1000 > item.config.stash[END]:
        pytest.skip("not run: the time of BINLAKE_TEST_END is over")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker of pytest-xdist tells the process that prints the summary what its services ran in."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["services"] = kafka.choices


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:  # noqa: ANN401 - pytest-xdist's type, which its own hooks do not name
    """Take what a worker told; one that crashed told nothing."""
    worker_services.extend(getattr(node, "workeroutput", {}).get("services", []))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the broker ran in: a fallback must be seen."""
    for choice in dict.fromkeys([*kafka.choices, *worker_services]):
        terminalreporter.write_line(f"binlake: {choice}")
