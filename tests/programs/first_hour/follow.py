"""Follows the pages from nothing: a database, Kafka and Connect of its own, a copy of the checkout, an empty home."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from binlake.source.positions import end_offsets, starting_positions
from embedded.connect import EmbeddedConnect
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import monotonic_s
from hudilake.errors import LakeError
from tests.paths import ROOT
from tests.programs.first_hour.shell import Shell
from tests.programs.first_hour.steps import Step, steps_of

#: A password that stands in the pages.
_PASSWORD = "secret"
_SHOP = f"""
CREATE USER cdc@'%' IDENTIFIED BY '{_PASSWORD}';
GRANT SELECT, RELOAD, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO cdc@'%';
CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT PRIMARY KEY, customer_id BIGINT, status VARCHAR(20), total DECIMAL(12,2));
INSERT INTO shop.orders VALUES (1, 42, 'paid', 12.5), (2, 42, 'open', 7), (3, 43, 'paid', 100);
"""
#: The worker's properties that the page asks for.
_PROVIDER = {
    "config.providers": "env",
    "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
}
#: Variables of this process that a new terminal of the machine has too.
_KEPT = ("PIP_", "SSL_", "REQUESTS_", "UV_", "HTTP", "NO_PROXY", "http", "no_proxy", "LANG", "LC_", "BINLAKE_MAVEN")
_ORDERS = 3
#: Of a line that was typed. An installation took a quarter of an hour where much other work ran on the machine.
_LIMIT_S = 3600.0
_SEEN_S = 120.0


class PageFailed(Exception):
    """A line of a page did not do what the page says."""


@dataclass(frozen=True)
class Timed:
    """A line that was typed, and the seconds that it took."""

    step: Step
    seconds: float


@dataclass
class Sources:
    """What the reader has: a database, a broker and a worker of Connect."""

    database: EmbeddedMariaDB
    kafka: EmbeddedKafka
    connect: EmbeddedConnect

    @property
    def addresses(self) -> Mapping[str, str]:
        """What the pages say -> what is so here."""
        return {
            "127.0.0.1:3306": f"127.0.0.1:{self.database.port}",
            "127.0.0.1:9092": self.kafka.bootstrap_servers,
            "127.0.0.1:8083": f"127.0.0.1:{self.connect.port}",
        }


@contextmanager
def sources(place: Path) -> Iterator[Sources]:
    """Sources that run for the duration of the block. ``place``: a short path, which sockets need."""
    os.environ["BINLAKE_MYSQL_PASSWORD"] = _PASSWORD  # of the worker, which is a child of this process
    with EmbeddedMariaDB(place / "db") as database, EmbeddedKafka(place / "kafka") as kafka:
        database.execute(_SHOP)
        with EmbeddedConnect(place / "connect", kafka.bootstrap_servers, {}, properties=_PROVIDER) as connect:
            yield Sources(database, kafka, connect)


@contextmanager
def reader(place: Path) -> Iterator[Shell]:
    """A terminal in a copy of the checkout, whose home is empty and which knows no virtual environment."""
    checkout, home = place / "checkout", place / "home"
    home.mkdir()
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    for name in files:
        if (ROOT / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, checkout / name)
    own = (str(ROOT), os.environ.get("VIRTUAL_ENV", str(ROOT)))
    paths = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if not part.startswith(own)]
    kept = {name: value for name, value in os.environ.items() if name.startswith(_KEPT)}
    environment = {**kept, "HOME": str(home), "PATH": os.pathsep.join(paths), "NO_COLOR": "1"}
    with Shell(checkout, environment, _LIMIT_S) as shell:
        yield shell


@dataclass
class FirstHour:
    """One reader.

    Args:
        shell: the terminal.
        given: the sources.
        say: is told each line as it ends.
    """

    shell: Shell
    given: Sources
    say: Callable[[str], None]
    done: list[Timed] = field(default_factory=list)

    def first_table(self) -> None:
        """The page Your first table, up to the rows."""
        for step in steps_of(ROOT / "docs/first-table.md", "", self.given.addresses):
            printed = self._type(step)
            if step.text.startswith("curl "):
                self._wait(step, "the connector's snapshot", self._snapshot_is_over)
        if not any("paid" in line for line in printed):
            raise PageFailed(f"the query shows no rows: {printed}")

    def quick_start(self) -> None:
        """The README's stream of one's own, in a directory of its own. What is installed stays so."""
        self.shell.run("mkdir quick && cd quick")
        for step in steps_of(ROOT / "README.md", "A stream of your own", self.given.addresses):
            if step.stays:
                self._stop(self._start(step, "batch "))
            elif step.text.startswith("binlake "):
                self._type(step)
        self.shell.run("cd ..")

    def table_life(self) -> None:
        """The page Tables added, reloaded, dropped, beside the running stream."""
        page = ROOT / "docs/table-life.md"
        # its records were taken by an earlier line, so it waits for the next ones
        pid = self._start(Step("docs/table-life.md", "sh", "binlake run shop.yaml"), "waiting for records of ")
        for step in steps_of(page, "", self.given.addresses):
            if step.language == "sql":
                self.given.database.execute(step.text)
                if "CREATE TABLE" in step.text:
                    self._wait(step, "the new table in the lake", self._has_returns)
            else:
                self._type(step)
        self._stop(pid)

    def without_kafka(self) -> None:
        """The page Without Kafka, in a directory of its own. The stream finds what came since the load."""
        self.shell.run("mkdir direct && cd direct")
        printed: list[str] = []
        for step in steps_of(ROOT / "docs/without-kafka.md", "", self.given.addresses):
            if step.stays:
                self.given.database.execute("INSERT INTO shop.orders VALUES (4, 44, 'late', 1)")
                self._stop(self._start(step, "batch "))
            else:
                printed = self._type(step)
        if not any("late" in line for line in printed):
            raise PageFailed(f"the query does not show the row that came after the load: {printed}")
        self.shell.run("cd ..")

    def _type(self, step: Step) -> list[str]:
        started = monotonic_s()
        code, printed = self.shell.run(step.text)
        self._note(step, monotonic_s() - started)
        if code:
            raise PageFailed(f"{step.place}: {step.text} ended with {code}: {printed[-20:]}")
        return printed

    def _start(self, step: Step, says: str) -> int:
        """Type a command that goes on, and wait for a line that begins so; its process id."""
        started, first = monotonic_s(), len(self.shell.printed)
        pid = self.shell.start(step.text)
        self.shell.wait_for(says, first)
        self._note(step, monotonic_s() - started)
        return pid

    def _stop(self, pid: int) -> None:
        code = self.shell.stop(pid)
        if code:
            raise PageFailed(f"the stream ended with {code}: {self.shell.printed[-20:]}")

    def _wait(self, step: Step, what: str, happened: Callable[[], bool]) -> None:
        started = monotonic_s()
        while not happened():
            if monotonic_s() - started > _SEEN_S:
                raise PageFailed(f"{step.place}: {what} did not come within {_SEEN_S:.0f} s")
            time.sleep(1)
        self._note(Step(step.place, "", f"({what})"), monotonic_s() - started)

    def _note(self, step: Step, seconds: float) -> None:
        self.done.append(Timed(step, seconds))
        self.say(f"{seconds:7.1f} s  {step.place}  {step.text.strip()}")

    def _snapshot_is_over(self) -> bool:
        """Whether all rows of the source are in Kafka."""
        config = {"bootstrap.servers": self.given.kafka.bootstrap_servers}
        try:
            places = starting_positions(config, ["shop.shop.orders"], {}, "earliest").positions
            return sum(end for _, _, end in end_offsets(config, places, 10).places()) >= _ORDERS
        except LakeError:  # no topic yet
            return False

    def _has_returns(self) -> bool:
        return any("shop.returns" in line for line in self.shell.run("binlake tables shop.yaml")[1])
