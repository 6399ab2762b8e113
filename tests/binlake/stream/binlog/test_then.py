"""What the log does not say of a table is asked of the server, which knows the table of now: each answer holds at its
place, or it is said not to be determined."""

from __future__ import annotations

import random
import zlib
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import SecretStr

from bench.planted import PASSWORD, USER
from binlake.decode.changes import SourceTable
from binlake.settings import DatabaseSettings
from binlake.source.binlog.places import offset_at
from binlake.source.binlog.statement_log import StatementLogs
from binlake.source.binlog.table_map import FieldType, LoggedColumn, LoggedTable
from binlake.source.binlog.tables_then import TablesThen
from binlake.source.database.connection import SourceConnection
from embedded.mariadb import EmbeddedMariaDB
from tests.binlake.stream.binlog.followed import FollowedDatabase
from tests.programs.oracle.session import SqlSession

UNLOGGED = "SET sql_log_bin = 0"
LOGGED = "SET sql_log_bin = 1"
UUID = "'00112233-4455-6677-8899-aabbccddeeff'"


def quarantined(followed: FollowedDatabase) -> int:
    return sum(table.quarantined for event in followed.apply() for table in event.tables)


@pytest.mark.parametrize("create", ["CREATE TABLE", pytest.param(f"{UNLOGGED}; CREATE TABLE", marks=pytest.mark.full)])
@pytest.mark.parametrize(
    ("column", "value", "later"),
    [
        ("u UUID", UUID, "ALTER TABLE t MODIFY u BINARY(16)"),
        pytest.param("u INET6", "'::1'", "ALTER TABLE t MODIFY u BINARY(16)", marks=pytest.mark.full),
        pytest.param("u INET4", "'1.2.3.4'", "ALTER TABLE t MODIFY u BINARY(4)", marks=pytest.mark.full),
        pytest.param("v UUID", UUID, "ALTER TABLE t CHANGE v u BINARY(16)", marks=pytest.mark.full),
        pytest.param("v UUID", UUID, "ALTER TABLE t RENAME COLUMN v TO u", marks=pytest.mark.full),
        pytest.param("v UUID", UUID, "ALTER TABLE t DROP v", marks=pytest.mark.full),
    ],
)
def test_rows_of_a_column_that_looks_like_binary_are_not_applied(
    server: EmbeddedMariaDB, tmp_path: Path, create: str, column: str, value: str, later: str
) -> None:
    """The bytes of a UUID look like those of a BINARY(16), and the server's type of now is that of now."""
    followed = FollowedDatabase(server, tmp_path, f"then_{zlib.crc32(f'{create} {column} {later}'.encode())}")
    followed.execute(f"{create} t (id INT PRIMARY KEY, {column})", LOGGED, f"INSERT INTO t VALUES (1, {value})", later)
    assert quarantined(followed) == 1


@pytest.mark.full
@pytest.mark.parametrize("create", ["CREATE TABLE", f"{UNLOGGED}; CREATE TABLE"])
def test_binary_is_applied_where_the_log_says_that_it_was_that(
    server: EmbeddedMariaDB, tmp_path: Path, create: str
) -> None:
    """A column that is defined anew may have been a UUID before, if the log does not have its former definition."""
    followed = FollowedDatabase(server, tmp_path, f"then_binary_{len(create)}")
    bytes_16 = "'0123456789abcdef'"
    followed.execute(
        f"{create} renamed (id INT PRIMARY KEY, v BINARY(16))",
        f"{create} modified (id INT PRIMARY KEY, v BINARY(16))",
        LOGGED,
        f"INSERT INTO renamed VALUES (1, {bytes_16})",
        f"INSERT INTO modified VALUES (1, {bytes_16})",
        "ALTER TABLE renamed RENAME COLUMN v TO u, ADD n INT",
        "ALTER TABLE modified MODIFY v BINARY(16) NOT NULL",
    )
    is_open = UNLOGGED in create
    assert quarantined(followed) == int(is_open)
    if not is_open:
        followed.check("renamed", "modified", notes=["v: the source has it no more"])


@pytest.mark.full
@pytest.mark.parametrize("later", ["ALTER TABLE t DROP SYSTEM VERSIONING", "RENAME TABLE t TO o"])
def test_former_rows_are_not_applied_where_a_table_is_versioned_no_more(
    server: EmbeddedMariaDB, tmp_path: Path, later: str
) -> None:
    followed = FollowedDatabase(server, tmp_path, f"then_versioned_{len(later)}")
    followed.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT) WITH SYSTEM VERSIONING",
        "INSERT INTO t VALUES (1, 1), (2, 2)",
        "UPDATE t SET a = 3 WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        later,
    )
    assert quarantined(followed) == 5


TABLES = ("a", "b", "c")
TYPES = ("uuid", "inet6", "binary(16)", "inet4", "binary(4)")
_STATE = (
    "SELECT table_name, table_type, column_name, column_type FROM information_schema.columns "
    "JOIN information_schema.tables USING (table_schema, table_name) WHERE table_schema = '{}'"
)


@dataclass(frozen=True)
class TableState:
    """A table as the server has it at a place: types of the columns that look like BINARY, and whether it is
    versioned."""

    types: dict[str, str]
    versioned: bool

    def logged(self, source: SourceTable) -> LoggedTable:
        """With the columns of a period, too, as far as the log shows them."""
        opaque = [LoggedColumn(name, FieldType.STRING, 16 if "6" in kind else 4) for name, kind in self.types.items()]
        period = [LoggedColumn(name, FieldType.LONGLONG, unsigned=True) for name in ("row_start", "row_end")]
        return LoggedTable(source, (*opaque, *period), ())


@dataclass
class History:
    """Drawn statements about three tables, of which the log has seen some being made.

    Args:
        session: at the server.
        name: of the database.
        chance: draws.
    """

    session: SqlSession
    name: str
    chance: random.Random

    def begin(self) -> None:
        self.session.query(f"CREATE DATABASE {self.name}")
        self.session.query(f"USE {self.name}")
        self.session.query("SET sql_mode = '', system_versioning_alter_history = KEEP")
        for table in TABLES:
            self.session.query(f"SET sql_log_bin = {self.chance.randrange(2)}")
            kinds = ", ".join(f"{name} {self.chance.choice(TYPES)}" for name in "xyz")
            self.session.query(f"CREATE TABLE {table} (id INT PRIMARY KEY, {kinds})")
        self.session.query("SET sql_log_bin = 1")

    def states(self) -> dict[str, TableState]:
        states = {table: TableState({}, versioned=False) for table in TABLES}
        for table, of, column, kind in self.session.query(_STATE.format(self.name)):
            states[str(table)] = TableState(states[str(table)].types, of == "SYSTEM VERSIONED")
            if kind in TYPES:
                states[str(table)].types[str(column)] = str(kind)
        return states

    def place(self) -> int:
        file, position, *_ = self.session.query("SHOW MASTER STATUS")[0]
        return offset_at(f"{file}:{position}")

    def step(self, states: dict[str, TableState]) -> None:
        """A statement that the server may refuse."""
        table, other = self.chance.sample(TABLES, 2)
        kind, new = self.chance.choice(TYPES), f"c{self.chance.randrange(10**6)}"
        column, second = (self.chance.choice([*states[table].types, "none"]) for _ in range(2))
        versioned = self.chance.choice(("", "WITH SYSTEM VERSIONING"))
        made = f"{table} (id INT PRIMARY KEY, {new} {kind}, {new}2 {kind}) {versioned}"
        drawn = (
            f"ALTER TABLE {table} MODIFY {column} {kind}",
            f"ALTER TABLE {table} MODIFY COLUMN IF EXISTS {column} {kind}, ADD COLUMN IF NOT EXISTS {second} {kind}",
            f"ALTER TABLE {table} RENAME COLUMN {column} TO {new}, ADD COLUMN {column} INT",
            f"ALTER TABLE {table} CHANGE {column} {new} {kind}",
            f"ALTER TABLE {table} ADD COLUMN ({new} {kind})",
            f"ALTER TABLE {table} DROP COLUMN {column.upper()}",
            f"ALTER TABLE {table} DROP COLUMN {column}, ADD COLUMN {column} {kind}",
            f"ALTER TABLE {table} RENAME COLUMN {column} TO {second}, RENAME COLUMN {second} TO {column}",
            f"RENAME TABLE {table} TO aside, {other} TO {table}, aside TO {other}",
            f"ALTER TABLE {table} RENAME TO aside; ALTER TABLE {other} RENAME {table}; RENAME TABLE aside TO {other}",
            f"ALTER TABLE {table} ADD SYSTEM VERSIONING",
            f"ALTER TABLE {table} DROP SYSTEM VERSIONING",
            f"DROP TABLE {table}; CREATE TABLE {table} LIKE {other}",
            f"CREATE OR REPLACE TABLE {made}",
            f"CREATE TABLE IF NOT EXISTS {made}",
            f"DROP TABLE {table}; CREATE TABLE IF NOT EXISTS {made}",
        )
        for statement in self.chance.choice(drawn).split("; "):
            self.session.run(statement)


def answers_of_history(server: EmbeddedMariaDB, seed: int, steps: int) -> Counter[str]:
    """How many answers are right, wrong, and not determined, of all states in a history."""
    with SqlSession(server) as session:
        history = History(session, f"history_{seed}", random.Random(seed))
        history.begin()
        states, places = [history.states()], [history.place()]
        for _ in range(steps):
            history.step(states[-1])
            states.append(history.states())
            places.append(history.place())
    database = DatabaseSettings(host=server.host, port=server.port, user=USER, password=SecretStr(PASSWORD))
    then = TablesThen(lambda: closing(SourceConnection(database, server.host, server.port)), StatementLogs({}))
    found: Counter[str] = Counter()
    for place, tables in zip(places, states, strict=True):
        for table, state in tables.items():
            answer = then.at(state.logged(SourceTable(history.name, table)), place)
            pairs = [(answer.types.get(column), kind) for column, kind in state.types.items()]
            for said, true in [*pairs, (answer.versioned, state.versioned)]:
                word = "open" if said is None else "right" if str(said).lower() == str(true).lower() else "wrong"
                found[word] += 1
    return found


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_each_answer_is_what_the_server_had_at_its_place(server: EmbeddedMariaDB, seed: int) -> None:
    found = answers_of_history(server, seed, steps=20)
    assert found["wrong"] == 0, found
    assert found["right"] > 50, found
