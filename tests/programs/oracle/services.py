"""The source of the recordings: one MariaDB, one broker and one Connect worker for many scripts.

A *round* is one connector over the databases of many scripts. Its records all go to one topic, so that their order over
all tables is known; the connector's own topic names are worked out again from the records.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from embedded.connect import EmbeddedConnect, database_connector
from embedded.database import EmbeddedDatabase
from embedded.jars import DEBEZIUM, DEBEZIUM_MYSQL
from embedded.kafka import EmbeddedKafka
from embedded.mariadb import EmbeddedMariaDB
from embedded.mysql import EmbeddedMySQL
from hudilake.errors import TransientError
from tests.programs.oracle.catalog import read_tables, read_truth
from tests.programs.oracle.desk import Author, Desk, Written
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.script import Script
from tests.programs.oracle.session import SqlSession
from tests.programs.oracle.topic import PREFIX, ConnectorDiedError, OneTopic, records_of

USER, PASSWORD = "dbz", "dbz-" + "x7!Kq"
_UNPARSED = "Ignoring unparseable DDL statement"
_RIGHTS = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"


@dataclass(frozen=True)
class Lost:
    """A script that the connector could not follow. ``why``: its error, or the statement that it cannot parse."""

    script: Script
    why: str


@dataclass
class Round:
    """What came of a round. ``lost``: the scripts without a recording, or with one that lacks a statement."""

    recordings: list[Recording] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)


class Services:
    """The three services, started once."""

    def __init__(
        self, database: EmbeddedDatabase, broker: EmbeddedKafka, connect: EmbeddedConnect, place: Path
    ) -> None:
        self._database, self._broker, self._connect = database, broker, connect
        self.database, self.place = database, place
        self._numbers = itertools.count(1)
        database.execute(
            f"SET sql_log_bin = 0; CREATE USER '{USER}'@'%' IDENTIFIED BY '{PASSWORD}';"
            f" GRANT {_RIGHTS} ON *.* TO '{USER}'@'%';"
        )

    def record(self, authors: Sequence[Author]) -> Round:
        """Run all scripts, in one round if the connector survives them all.

        A script that ends the connector is left out, and the round is repeated with the others.
        """
        found = Round()
        while authors:
            number, logged = next(self._numbers), self.log_size
            with SqlSession(self._database) as session:
                desks = [Desk(session, f"o{number}_{at:03}") for at, _ in enumerate(authors)]
                try:
                    found.recordings = self._round(number, authors, desks)
                    break
                except ConnectorDiedError as died:
                    guilty = self._guilty(logged, desks)
                    if guilty is None:
                        raise TransientError(str(died), do_next="read the log of Connect") from died
                    scripts = [desk.script(author.name) for author, desk in zip(authors, desks, strict=True)]
                    found.lost.append(Lost(scripts.pop(guilty), cause(str(died))))
                    authors = [Written(script) for script in scripts]
        if found.recordings:
            self._set_unparsed_aside(found, logged)
        return found

    def _round(self, number: int, authors: Sequence[Author], desks: Sequence[Desk]) -> list[Recording]:
        name, marks = f"round{number}", f"mark{number}"
        self._database.execute(f"CREATE DATABASE {marks}; CREATE TABLE {marks}.marks (id INT PRIMARY KEY);")
        self._database.execute(f"INSERT INTO {marks}.marks VALUES (0)")
        for author, desk in zip(authors, desks, strict=True):
            for database in desk.databases:
                desk.session.query(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
            desk.sit_down()
            author.before(desk)
            desk.split = len(desk.done)
        names = [database for desk in desks for database in desk.databases]
        try:
            topic = self.follow(name, 9000 + number, ",".join([marks, *names]))
            for author, desk in zip(authors, desks, strict=True):
                desk.sit_down()
                author.after(desk)
            desks[0].sit_down()
            self._database.execute(f"INSERT INTO {marks}.marks VALUES (99)")
            topic.read_until(lambda payload: payload["source"]["db"] == marks and payload["op"] == "c")
            found = [_recording(author, desk, topic.records) for author, desk in zip(authors, desks, strict=True)]
        finally:
            self.leave(name)
        desks[0].session.drop_databases(names)  # later rounds are quicker then
        return found

    def follow(self, name: str, server_id: int, databases: str) -> OneTopic:
        """Start a connector; its topic, read to the end of the snapshot.

        Args:
            name: of the connector and its topic.
            server_id: of the connector as a replica.
            databases: regular expressions with commas between them. One of their tables has a row.

        Raises ConnectorDiedError.
        """
        self._connect.add(name, self._connector(name, server_id, databases))
        topic = OneTopic(self._broker.bootstrap_servers, name, self._connect)
        topic.read_until(lambda payload: payload["source"]["snapshot"] == "last")
        return topic

    def leave(self, name: str) -> None:
        """Stop a connector, if it is there."""
        with contextlib.suppress(KeyError):
            self._connect.remove(name)

    @property
    def log_size(self) -> int:
        """The size of Connect's log, in bytes."""
        return self._connect.log_file.stat().st_size

    def _guilty(self, logged: int, desks: Sequence[Desk]) -> int | None:
        """The place of the script whose statement the connector was at when it ended."""
        place = re.findall(r"file=([^,]+), pos=(\d+)[^\n]*binlog reader near", self.log_since(logged))
        if not place:
            return None
        events = self._database.execute("SHOW BINLOG EVENTS IN '{}' FROM {} LIMIT 4".format(*place[-1]))
        found = re.search(rf"{desks[0].database.partition('_')[0]}_(\d+)", " ".join(events))
        return int(found[1]) if found else None

    def _set_unparsed_aside(self, found: Round, logged: int) -> None:
        """Recordings that lack a statement, because the connector could not parse it."""
        log = self.log_since(logged)
        for recording in list(found.recordings):
            for statement in recording.script.accepted.after:
                if f"{_UNPARSED} '{statement.at(recording.database)}'" in log:
                    found.recordings.remove(recording)
                    found.lost.append(Lost(recording.script, f"cannot parse: {statement.sql}"))
                    break

    def log_since(self, position: int) -> str:
        """Connect's log after its first bytes."""
        with self._connect.log_file.open("rb") as log:
            log.seek(position)
            return log.read().decode(errors="replace")

    def _connector(self, name: str, server_id: int, databases: str) -> dict[str, str]:
        followed = database_connector(
            self._database, USER, PASSWORD, prefix=PREFIX, server_id=server_id, include=databases, partitions=1
        )
        return followed | {
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(self.place / f"{name}.history"),
            "schema.history.internal.store.only.captured.databases.ddl": "true",
            "schema.history.internal.skip.unparseable.ddl": "true",
            "event.processing.failure.handling.mode": "warn",
            "inconsistent.schema.handling.mode": "warn",
            "poll.interval.ms": "20",
            "key.converter.schemas.enable": "true",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",
            "value.converter.replace.null.with.default": "false",
            "transforms": "one",
            "transforms.one.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.one.regex": ".*",
            "transforms.one.replacement": name,
        }


@contextlib.contextmanager
def start_services(*, event_positions: bool = True, mysql: bool = False) -> Iterator[Services]:
    """Run the services for the length of the block, in a temporary directory. SIGTERM stops them, too.

    Args:
        event_positions: whether the server writes the position of each event of a transaction. MariaDB 11.4 does not by
            default: then Debezium gives all events of a transaction one ``pos`` (measured).
        mysql: whether the server is a MySQL.
    """
    with tempfile.TemporaryDirectory(prefix="or") as directory, contextlib.ExitStack() as stack:
        stack.enter_context(left_on_sigterm())
        place = Path(directory)
        server: EmbeddedDatabase
        server = EmbeddedMySQL(place / "db") if mysql else EmbeddedMariaDB(place / "db")
        stack.enter_context(server)
        broker = stack.enter_context(EmbeddedKafka(place / "kafka"))
        jars = DEBEZIUM_MYSQL if mysql else DEBEZIUM
        connect = stack.enter_context(EmbeddedConnect(place / "connect", broker.bootstrap_servers, {}, jars=jars))
        if event_positions and not mysql:
            server.execute("SET GLOBAL binlog_legacy_event_pos = ON")
        yield Services(server, broker, connect, place)


@contextlib.contextmanager
def left_on_sigterm() -> Iterator[None]:
    """Within, SIGTERM raises SystemExit, so that the blocks around it are left. For the main thread."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def cause(trace: str) -> str:
    """The innermost cause in the words of a failed task."""
    causes: list[str] = re.findall(r"Caused by: [\w.]+: (.*?)(?=\s+\.\.\. \d+ more|; \d|$)", trace)
    return causes[-1] if causes else trace[:300]


def _recording(author: Author, desk: Desk, records: Sequence[tuple[str | None, str | None]]) -> Recording:
    databases = desk.databases
    session = desk.session
    truth, created = [], {}
    for database in databases:
        for table in read_tables(session, database, database):
            truth.append(read_truth(session, database, table))
            created[str(table)] = str(session.query(f"SHOW CREATE TABLE `{database}`.`{table.name}`")[0][1])
    mine = tuple(records_of(set(databases), records))
    return Recording(desk.script(author.name), desk.database, mine, tuple(truth), created)
