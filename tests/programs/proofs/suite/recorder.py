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
from hudilake import clock
from hudilake.errors import TransientError
from tests.programs.oracle.catalog import read_tables, read_truth
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.script import Script, Statement
from tests.programs.oracle.services import Services, cause
from tests.programs.oracle.topic import ConnectorDiedError, OneTopic, records_of
from tests.programs.proofs.suite.interpreter import EnoughError, Interpreter, start_variables
from tests.programs.proofs.suite.sessions import ServerGoneError, Session

MARKS = "binlake_marks"
_OWN = f"('mysql', 'sys', 'information_schema', 'performance_schema', '{MARKS}')"
_STOP = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*(drop\s+(table|database|schema)|create\s+or\s+replace\s+table|truncate|alter\s+table.*\b(drop|"
    r"truncate|exchange)\s+partition)\b",
    re.IGNORECASE | re.DOTALL,
)
_UNPARSED = re.compile(r"Ignoring unparseable DDL statement '(.*?)'(?:: |\n|$)", re.DOTALL)
_SECONDS, _PATIENCE_S, _LOG_BYTES, _DEATHS, _STOPS = 30.0, 30.0, 2_000_000, 4, 5


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
        self._services, self._home = services, home
        self._marks, self._names = itertools.count(1), itertools.count(1)
        self._topic: OneTopic | None = None
        self._places: dict[int, int] = {}
        self._scanned = 0
        services.database.execute(
            f"CREATE DATABASE {MARKS}; CREATE TABLE {MARKS}.marks (id INT PRIMARY KEY) ENGINE=InnoDB;"
            f" INSERT INTO {MARKS}.marks VALUES (0);"
        )
        self._own = Session(services.database, "utf8mb4", None, patience_s=60)
        self._own.query("SET SESSION lock_wait_timeout = 1, time_zone = '+00:00', max_statement_time = 20")
        self._globals = self._pairs("SHOW GLOBAL VARIABLES")
        self._var = services.place
        for name in ("std_data", "suite"):
            (self._var / name).symlink_to(home / name)
        (self._var / "tmp").mkdir()

    def record(self, name: str) -> Run:
        """Record a file. If the connector dies of it, it runs again, and each segment waits for the connector.

        Raises ServerGoneError.
        """
        for careful in (False, True):
            run, log = Run(name), self._services.log_size
            try:
                self._clean()
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

    def mark(self) -> int:
        """Write the next mark."""
        number = next(self._marks)
        answer = self._own.run(f"INSERT INTO {MARKS}.marks VALUES ({number})")
        if answer.error:
            raise EnoughError(f"no mark could be written: {answer.error}")
        return number

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

    # -- the server ----------------------------------------------------------------------------------------------------

    def connect(self, schema: str) -> Session:
        """A connection for a file."""
        return Session(self._services.database, "latin1", schema)

    def variables(self) -> dict[str, str]:
        """What the suite's own runner gives to a file."""
        known = {
            "MASTER_MYPORT": str(self._services.database.port),
            "MASTER_MYSOCK": str(self._services.database.socket),
        }
        return start_variables(self._home, self._var, known)

    @property
    def home(self) -> Path:
        """The suite."""
        return self._home

    def position(self) -> int:
        """Where the binlog ends, in bytes."""
        return int(self._own.query("SHOW MASTER STATUS")[0][1] or 0)

    def has_tables(self) -> bool:
        """Whether a database of the file has any."""
        return bool(
            self._own.query(
                f"SELECT 1 FROM information_schema.tables WHERE table_schema NOT IN {_OWN}"
                " AND table_type <> 'VIEW' LIMIT 1"
            )
        )

    def truth(self) -> tuple[TruthTable, ...] | None:
        """All tables and their rows; None if a lock is in the way."""
        tables: list[TruthTable] = []
        try:
            for database in self._databases():
                engines = self._pairs(
                    f"SELECT table_name, engine FROM information_schema.tables WHERE table_schema = '{database}'"
                )
                for table in read_tables(self._own, database, database):
                    if engines.get(table.name) in ("MRG_MyISAM", "BLACKHOLE"):
                        continue
                    tables.append(read_truth(self._own, database, table))
        except (AssertionError, KeyError, ValueError):
            return None
        return tuple(tables)

    def _databases(self) -> list[str]:
        names = f"SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {_OWN}"
        return [str(name) for [name] in self._own.query(names)]

    def _pairs(self, sql: str) -> dict[str, str]:
        return {str(name): value or "" for name, value in self._own.query(sql)}

    def _clean(self) -> None:
        """Take away what the file before left."""
        for number, user in self._own.query("SELECT id, user FROM information_schema.processlist"):
            if user == "root":
                mine = self._own.query("SELECT CONNECTION_ID()")[0][0]
                if number != mine:
                    self._own.run(f"KILL {number}")
        for row in self._own.run("XA RECOVER FORMAT='SQL'").rows:
            self._own.run(f"XA ROLLBACK {row[-1]}")
        deadline = clock.monotonic_s() + _PATIENCE_S
        while databases := self._databases():
            for database in databases:
                self._own.run("DROP DATABASE `{}`".format(database.replace("`", "``")))
            if clock.monotonic_s() > deadline:
                raise ServerGoneError(f"a lock of a connection that ended stays on {databases}")
        now = self._pairs("SHOW GLOBAL VARIABLES")
        for name in (name for name, value in self._globals.items() if now.get(name) != value):
            value = self._globals[name].replace("'", "''")
            if self._own.run(f"SET GLOBAL {name} = '{value}'").error:
                self._own.run(f"SET GLOBAL {name} = {value or 'DEFAULT'}")
        self._own.query("CREATE DATABASE test CHARACTER SET latin1")

    def _note_unparsed(self, run: Run, log: str) -> None:
        unparsed = {text.strip() for text in _UNPARSED.findall(log)}
        for recording in run.recordings:
            mine = [s.sql for s in recording.script.after if s.sql.strip() in unparsed]
            run.unparsed.append(mine)


class _Attempt:
    """A file on its way: its stops so far."""

    def __init__(self, recorder: Recorder, run: Run, careful: bool) -> None:
        self._recorder, self._run, self._careful = recorder, run, careful
        self._stops: list[list[Stop]] = [[]]
        self._statements: list[str] = []
        self._first = self._from = self._last = 0
        self._dropped = False
        self._seen = 0
        self._interpreter = Interpreter(
            recorder.home, recorder.connect, self._before, recorder.variables(), clock.monotonic_s() + _SECONDS
        )

    def run(self) -> None:
        """Raises ConnectorDiedError."""
        self._run.ran = self._interpreter.ran
        try:
            self._begin()
            self._from = self._recorder.position()
            self._run.end = self._interpreter.run(self._run.name)
            self._commit()
            self._stop()
            self._end_segment()
        except EnoughError as enough:
            self._run.end = self._run.end or str(enough)
        finally:
            self._interpreter.close()
        if not self._careful:
            self._recorder.wait_for(self._recorder.mark())
            for stops in self._stops:
                self._keep(stops)

    def _begin(self) -> None:
        self._first = self._recorder.mark()
        self._last = self._recorder.position()
        self._statements.clear()

    def _before(self, sql: str) -> None:
        self._seen += 1
        if self._dropped:
            self._dropped = False
            if not self._recorder.has_tables():
                self._end_segment()
        if self._seen % 100 == 0 and self._recorder.position() - self._from > _LOG_BYTES:
            raise EnoughError("writes too many rows")
        if _STOP.match(sql):
            self._commit()
            self._stop()
            self._dropped = True
        self._statements.append(sql)

    def _commit(self) -> None:
        """What a DROP does first. What other connections have not committed, is in neither log nor truth."""
        session = self._interpreter.sessions.get(self._interpreter.current)
        if session is not None:
            session.run("COMMIT")

    def _stop(self) -> None:
        position = self._recorder.position()
        if position - self._from > _LOG_BYTES:
            raise EnoughError("writes too many rows")
        if position == self._last:
            return
        truth = self._recorder.truth()
        if truth is None:
            return
        if any(table.rows for table in truth):
            self._stops[-1].append(Stop(self._first, self._recorder.mark(), truth, tuple(self._statements)))
        self._last = self._recorder.position()

    def _end_segment(self) -> None:
        stops = self._stops[-1]
        if stops:
            if self._careful:
                self._keep_carefully(stops)
            self._stops.append([])
        self._begin()

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
