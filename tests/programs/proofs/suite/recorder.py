"""Records test files: what Debezium writes while a file runs at the server, cut into segments with the server's rows.

One connector follows the files of many. A *mark*, a row of a table of ours, stands in its topic before and after each
*segment*: the statements from a moment without tables to the last moment before the tables are dropped. At each
*stop*, before a table goes, all tables are read.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo.truth import TruthTable
from hudilake.errors import TransientError
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.script import Script, Statement
from tests.programs.oracle.services import Services, cause
from tests.programs.oracle.topic import ConnectorDiedError, OneTopic, records_of
from tests.programs.proofs.suite.interpreter import EnoughError
from tests.programs.proofs.suite.server import MARKS, SuiteServer
from tests.programs.proofs.suite.walk import FileWalk

_UNPARSED = re.compile(r"Ignoring unparseable DDL statement '(.*?)'(?:: |\n|$)", re.DOTALL)
_PATIENCE_S, _DEATHS, _STOPS = 30.0, 4, 5


@dataclass(frozen=True)
class Stop:
    """A moment at which tables were read. ``first``, ``last``: the marks around the events."""

    first: int
    last: int
    truth: tuple[TruthTable, ...]
    statements: tuple[str, ...]


@dataclass
class Run:
    """What came of a file. ``deaths``: what the connector died of. ``end``: why the file was given up, or nothing."""

    name: str
    end: str = ""
    ran: Counter[str] = field(default_factory=Counter)
    recordings: list[Recording] = field(default_factory=list)
    unparsed: list[list[str]] = field(default_factory=list)
    deaths: list[str] = field(default_factory=list)

    def save(self, place: Path) -> None:
        """Write it into a directory: ``run.json`` and a file for each recording."""
        place.mkdir(parents=True, exist_ok=True)
        for number, recording in enumerate(self.recordings):
            recording.save(place / f"{number:03}.json.gz")
        document = {"name": self.name, "end": self.end, "ran": self.ran, "unparsed": self.unparsed}
        (place / "run.json").write_text(json.dumps(document | {"deaths": self.deaths}))

    @staticmethod
    def load(place: Path) -> Run:
        """Read what ``save`` wrote."""
        document = json.loads((place / "run.json").read_text())
        recordings = [Recording.load(place / f"{number:03}.json.gz") for number in range(len(document["unparsed"]))]
        return Run(**document | {"ran": Counter(document["ran"]), "recordings": recordings})


class Recorder:
    """Records files one after the other.

    Args:
        services: the server, the broker and Connect.
        home: the suite.
    """

    def __init__(self, services: Services, home: Path) -> None:
        self._services, self.server = services, SuiteServer(services.database, services.place, home)
        self._names = itertools.count(1)
        self._topic: OneTopic | None = None
        self._places: dict[int, int] = {}
        self._scanned = 0

    def record(self, name: str) -> Run:
        """Record a file. If the connector dies of it, it runs again, and each segment waits for the connector.

        Raises ServerGoneError.
        """
        for careful in (False, True):
            run, log = Run(name), self._services.log_size
            try:
                self.server.clean()
                self.follow()
                _Attempt(self, run, careful).run()
            except ConnectorDiedError as died:
                self.restart()
                run.deaths.append(cause(str(died)))
                if not careful:
                    continue
            self._note_unparsed(run, self._services.log_since(log))
            return run
        raise AssertionError

    # -- the connector -------------------------------------------------------------------------------------------------

    def follow(self) -> OneTopic:
        """The topic of the connector, which starts if it is not there. Raises ConnectorDiedError."""
        if self._topic is None:
            number = next(self._names)
            self._topic = self._services.follow(f"suite{number}", 9000 + number, ".*")
            self._topic.patience_s = _PATIENCE_S
            self._places, self._scanned = {}, 0
        return self._topic

    def restart(self) -> None:
        """Leave the connector; the next file starts another one."""
        if self._topic is not None:
            self._services.leave(self._topic.name)
            self._topic = None

    def wait_for(self, mark: int) -> None:
        """Wait until a mark is in the topic. Raises ConnectorDiedError."""
        topic = self.follow()
        if mark not in self._places:
            try:
                topic.read_until(lambda p: p["source"]["db"] == MARKS and p["op"] == "c" and p["after"]["id"] == mark)
            except TransientError as error:
                raise ConnectorDiedError(error.what) from error
        for place in range(self._scanned, len(topic.records)):
            value = topic.records[place][1]
            if value is not None and f'"db":"{MARKS}"' in value:
                payload = json.loads(value)["payload"]
                if payload.get("after"):
                    self._places[payload["after"]["id"]] = place
        self._scanned = len(topic.records)

    def recording(self, name: str, stop: Stop) -> Recording:
        """What is between the marks of a stop."""
        topic = self.follow()
        records = topic.records[self._places[stop.first] + 1 : self._places[stop.last]]
        databases = {_database(value) for _, value in records if value is not None} - {MARKS, "", "mysql"}
        statements = tuple(Statement(sql.encode("utf-8", "replace").decode()) for sql in stop.statements)
        return Recording(Script(name, (), statements), "test", tuple(records_of(databases, records)), stop.truth, {})

    def _note_unparsed(self, run: Run, log: str) -> None:
        unparsed = {text.strip() for text in _UNPARSED.findall(log)}
        for recording in run.recordings:
            mine = [s.sql for s in recording.script.after if s.sql.strip() in unparsed]
            run.unparsed.append(mine)


class _Attempt:
    """A file on its way (a WalkListener): its stops so far."""

    def __init__(self, recorder: Recorder, run: Run, careful: bool) -> None:
        self._recorder, self._run, self._careful = recorder, run, careful
        self._stops: list[list[Stop]] = [[]]
        self._first = 0

    def run(self) -> None:
        """Raises ConnectorDiedError."""
        walk = FileWalk(self._recorder.server, self)
        self._run.ran = walk.ran
        self._run.end = walk.run(self._run.name)
        if not self._careful:
            self._recorder.wait_for(self._recorder.server.mark())
            for stops in self._stops:
                self._keep(stops)

    def begin(self) -> None:
        """Mark it."""
        self._first = self._recorder.server.mark()

    def stop(self, truth: tuple[TruthTable, ...], statements: Sequence[str], *, is_last: bool) -> None:
        """Keep it, with a mark."""
        self._stops[-1].append(Stop(self._first, self._recorder.server.mark(), truth, tuple(statements)))

    def end(self) -> None:
        """Begin another list of stops."""
        stops = self._stops[-1]
        if stops:
            if self._careful:
                self._keep_carefully(stops)
            self._stops.append([])

    def _keep_carefully(self, stops: Sequence[Stop]) -> None:
        try:
            self._recorder.wait_for(stops[-1].last)
            self._keep(stops)
        except ConnectorDiedError as died:
            self._run.deaths.append(cause(str(died)))
            self._recorder.restart()
            if len(self._run.deaths) >= _DEATHS:
                raise EnoughError("the connector dies again and again") from died
            self._recorder.follow()

    def _keep(self, stops: Sequence[Stop]) -> None:
        chosen = stops if len(stops) <= _STOPS else [stops[n * (len(stops) - 1) // (_STOPS - 1)] for n in range(_STOPS)]
        for stop in chosen:
            recording = self._recorder.recording(f"{self._run.name}#{len(self._run.recordings)}", stop)
            if recording.records:
                self._run.recordings.append(recording)


def _database(value: str) -> str:
    payload = json.loads(value)["payload"]
    return str(payload["databaseName"] or "") if "ddl" in payload else str(payload["source"]["db"])
