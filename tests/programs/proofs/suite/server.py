"""The server at which files of the suite run, between two of which it is as at its start."""

from __future__ import annotations

from pathlib import Path

from demo.truth import TruthTable
from embedded.database import EmbeddedDatabase
from hudilake import clock
from tests.programs.oracle.catalog import read_tables, read_truth
from tests.programs.proofs.suite.interpreter import EnoughError, start_variables
from tests.programs.proofs.suite.sessions import ServerGoneError, Session

MARKS = "binlake_marks"
_OWN = f"('mysql', 'sys', 'information_schema', 'performance_schema', '{MARKS}')"
_PATIENCE_S = 30.0


class SuiteServer:
    """A running server.

    Args:
        database: the server.
        place: a directory for what the files read and write.
        home: the suite.
    """

    def __init__(self, database: EmbeddedDatabase, place: Path, home: Path) -> None:
        self._database, self._home, self._var = database, home, place
        self._marks = 0
        database.execute(
            f"CREATE DATABASE {MARKS}; CREATE TABLE {MARKS}.marks (id INT PRIMARY KEY) ENGINE=InnoDB;"
            f" INSERT INTO {MARKS}.marks VALUES (0);"
        )
        self._own = Session(database, "utf8mb4", None, patience_s=60)
        self._own.query("SET SESSION lock_wait_timeout = 1, time_zone = '+00:00', max_statement_time = 20")
        self._globals = self._pairs("SHOW GLOBAL VARIABLES")
        for name in ("std_data", "suite"):
            (self._var / name).symlink_to(home / name)
        (self._var / "tmp").mkdir()

    def mark(self) -> int:
        """Write the next mark. Raises EnoughError."""
        self._marks += 1
        answer = self._own.run(f"INSERT INTO {MARKS}.marks VALUES ({self._marks})")
        if answer.error:
            raise EnoughError(f"no mark could be written: {answer.error}")
        return self._marks

    def connect(self, schema: str) -> Session:
        """A connection for a file."""
        return Session(self._database, "latin1", schema)

    def variables(self) -> dict[str, str]:
        """What the suite's own runner gives to a file."""
        known = {
            "MASTER_MYPORT": str(self._database.port),
            "MASTER_MYSOCK": str(self._database.socket),
        }
        return start_variables(self._home, self._var, known)

    @property
    def home(self) -> Path:
        """The suite."""
        return self._home

    def position(self) -> int:
        """Where the binlog ends, in bytes."""
        return int(self._own.query("SHOW MASTER STATUS")[0][1] or 0)

    @property
    def end(self) -> str:
        """Where the binlog ends: file and position, as ``source.mysql.start``."""
        file, position = self._own.query("SHOW MASTER STATUS")[0][:2]
        return f"{file}:{position}"

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

    def clean(self) -> None:
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
