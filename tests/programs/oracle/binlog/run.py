"""A run of the oracle without Kafka: each script runs once at the server, and a lake in each way follows it."""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import USER_SQL
from tests.programs.oracle.binlog.lake import BinlogLake
from tests.programs.oracle.binlog.ways import SHARE, WAYS, Follower
from tests.programs.oracle.catalog import read_tables, read_truth
from tests.programs.oracle.desk import Author, Desk, Written
from tests.programs.oracle.exceptions import Excuses
from tests.programs.oracle.generate.maker import Maker
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.report import Report, smallest
from tests.programs.oracle.services import Round, left_on_sigterm
from tests.programs.oracle.session import SqlSession
from tests.programs.oracle.shrink import shrunk
from tests.programs.oracle.trial import Trial
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.suite.reasons import named, reason_without_connector

FORM = "binlog"


@contextlib.contextmanager
def start_server() -> Iterator[EmbeddedMariaDB]:
    """A server, with the user of the streams, for the length of the block. SIGTERM stops it, too."""
    with (
        tempfile.TemporaryDirectory(prefix="or") as place,
        left_on_sigterm(),
        EmbeddedMariaDB(Path(place)) as server,
    ):
        server.execute("SET sql_log_bin = 0; " + USER_SQL)
        yield server


@dataclass
class BinlogRun:
    """One run at a server.

    Args:
        server: with a user for the streams.
        ways: in which lakes follow.
        each: in how many of them a script is followed; they take turns.
        kinds: of statements that seeds draw from; None for all.
        share: of the statements behind which lakes go on that follow live.
        say: where lines for people go.
        report: what the run has come to.
    """

    server: EmbeddedMariaDB
    ways: Sequence[str] = WAYS
    each: int = len(WAYS)
    kinds: Collection[str] | None = None
    share: float = SHARE
    say: Callable[[str], None] = lambda line: print(line, flush=True)
    report: Report = field(default_factory=Report)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def seeds(self, numbers: Sequence[int]) -> Report:
        """Generated scripts."""
        return self.scripts([Maker(number, self.kinds) for number in numbers])

    def scripts(self, authors: Sequence[Author]) -> Report:
        """Any scripts, one after the other."""
        with SqlSession(self.server) as session:
            for number, author in enumerate(authors):
                first = number % len(self.ways)
                ways = [self.ways[(first + turn) % len(self.ways)] for turn in range(self.each)]
                for trial in self._followed(session, author, ways):
                    self.report.add(trial)
                    if trial.failures:
                        self.say("\n".join(trial.lines()))
                self.report.count(1, [trial.recording.script])
        return self.report

    def shrink(self) -> list[Trial]:
        """The smallest scripts found for one example of each kind of failure."""

        def run(scripts: Sequence[Written]) -> Round:
            return Round([Recording(written.script, "", (), (), {}) for written in scripts])

        def retry(recording: Recording, way: str, form: str) -> Trial:
            with SqlSession(self.server) as session:
                return self._followed(session, Written(recording.script), [way])[0]

        return shrunk(smallest(self.report), run, self.say, retry)

    def _followed(self, session: SqlSession, author: Author, ways: Sequence[str]) -> list[Trial]:
        """Run a script with a lake in each way beside it."""
        desk = Desk(session, f"o{next(self._numbers)}_0")
        start = ":".join(str(cell) for cell in session.query("SHOW MASTER STATUS")[0][:2])
        for database in desk.databases:
            session.query(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
        with contextlib.ExitStack() as places:
            followers = []
            for way in ways:
                place = places.enter_context(tempfile.TemporaryDirectory(prefix="oracle-lake-"))
                draw, tables = (
                    random.Random(f"{author.name.split()[0]} {way}"),
                    [f"{name}.*" for name in desk.databases],
                )
                followers.append(Follower(BinlogLake(self.server, Path(place), tables, start, draw), way, self.share))

            def pause() -> None:
                for follower in followers:
                    follower.pause()

            desk.pause = pause
            desk.sit_down()
            author.before(desk)
            desk.split = len(desk.done)
            session.query("COMMIT")
            for follower in followers:
                follower.split()
            desk.sit_down()
            author.after(desk)
            desk.sit_down()
            recording = self._recording(session, desk, author.name)
            trials = [_trial(follower, recording) for follower in followers]
        session.drop_databases(desk.databases)
        return trials

    def _recording(self, session: SqlSession, desk: Desk, name: str) -> Recording:
        """The script and the server's tables, which are dropped: a recording without records."""
        tables = [(base, table) for base in desk.databases for table in read_tables(session, base, base)]
        truth = tuple(read_truth(session, base, table) for base, table in tables)
        return Recording(desk.script(name), desk.database, (), truth, {})


def _trial(follower: Follower, recording: Recording) -> Trial:
    excuses = Excuses(by_connector=False)
    follower.lake.read = recording.truth
    follower.lake.statements = [one.at(recording.database) for one in recording.script.statements]
    failures = follower.end(excuses)
    words = named(follower.lake) if failures else {}
    reasons = [reason_without_connector(failure, failures, words) for failure in failures]
    silent = tuple(one for one, (outcome, _) in zip(failures, reasons, strict=True) if outcome is Outcome.WRONG)
    said = tuple(reason for outcome, reason in reasons if outcome is not Outcome.WRONG)
    return Trial(recording, follower.way, FORM, silent, excuses, said)
