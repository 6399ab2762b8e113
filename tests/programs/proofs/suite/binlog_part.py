"""The part that judges the suite's files by ``source.mysql``, without Kafka and a connector."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import TransientError
from tests.programs.oracle.binlog.run import start_server
from tests.programs.proofs.checkouts import checkout_of
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.suite.follower import FileFollower
from tests.programs.proofs.suite.judge import KEYED, verdict_of
from tests.programs.proofs.suite.package import suite_home
from tests.programs.proofs.suite.part import SUITE, chosen
from tests.programs.proofs.suite.server import SuiteServer
from tests.programs.proofs.suite.sessions import ServerGoneError
from tests.programs.proofs.suite.walk import FileWalk
from tests.programs.proofs.verdicts import known

#: After how many files the server starts anew.
_FILES = 200
BOTH = f"{KEYED}, judged through Debezium too"


class BinlogPart:
    """The files of the suite, each by a stream that reads the server's binlog itself."""

    name = "binlog"
    owner = "MariaDB"
    inputs = "test files"
    about = """The files of [suite](#suite), without Kafka and a connector: while a file runs, `source.mysql` brings the
lake to each stop, in one process after the other, and hudi-rs must show the server's rows. A segment is followed from a
backlog, live or with a storage that dies; `source.zero_dates` is `null` or `text`. At most five stops of a segment are
judged. Where files were judged there too, the last rows of the table say what became of them here."""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge files. The option ``drawn`` takes a sample; an absolute path is another home of files, other words are
        parts of names.

        Raises ConfigError, TransientError, UnsupportedError.
        """
        home = checkout_of(task.options) or suite_home()
        with _RunningServer(home) as server:
            for name in chosen(task, home)[: task.limit]:
                yield server.judged(name)

    def compared(self, verdicts: Sequence[Verdict], place: Path) -> list[Verdict]:
        """With tags of what became of each file through Debezium, as far as it has been judged that way."""
        there = {one.source: one for one in known(SUITE.name, place)}
        return [
            replace(here, tags=(*here.tags, *_tags(here, there[here.source]))) if here.source in there else here
            for here in verdicts
        ]


def _tags(here: Verdict, there: Verdict) -> Iterator[str]:
    if KEYED in (*here.tags, *there.tags):
        yield BOTH
        yield f"{BOTH}: {there.outcome.value} there"
        if Outcome.EQUAL in (here.outcome, there.outcome):
            yield f"{BOTH}: equal there or here"


class _RunningServer(contextlib.AbstractContextManager["_RunningServer"]):
    """A server that the first file starts; it stays until it ends or many files ran."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._stack = contextlib.ExitStack()
        self._running: tuple[EmbeddedMariaDB, SuiteServer] | None = None
        self._files = 0

    def __exit__(self, *error: object) -> None:
        self._stop()

    def judged(self, name: str) -> Verdict:
        """The verdict of a file."""
        try:
            database, server = self._start()
            server.clean()
            follower = FileFollower(database, server, name)
            with follower:
                end = FileWalk(server, follower).run(name)
        except (ServerGoneError, TransientError) as gone:
            self._stop()
            return Verdict(name, Outcome.SKIPPED, "the server ended", str(gone))
        return verdict_of(name, end, follower.segments)

    def _start(self) -> tuple[EmbeddedMariaDB, SuiteServer]:
        if self._files == _FILES:
            self._stop()
        if self._running is None:
            database = self._stack.enter_context(start_server())
            place = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="suite-var-")))
            self._running = database, SuiteServer(database, place, self._home)
        self._files += 1
        return self._running

    def _stop(self) -> None:
        self._stack.close()
        self._running, self._files = None, 0
