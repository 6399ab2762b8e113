"""The character set that a table has by default at a place of the binlog, as a server had it there."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import closing

import pytest
from pydantic import SecretStr

from bench.planted import PASSWORD, USER
from binlake.decode.changes import SourceTable
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET
from binlake.settings import DatabaseSettings
from binlake.source.binlog.charsets import charsets_of
from binlake.source.binlog.default_charsets import DefaultCharsets
from binlake.source.binlog.places import charsets, offset_of
from binlake.source.binlog.statement_log import StatementLogs
from binlake.source.binlog.statements import LoggedStatement
from binlake.source.database.connection import SourceConnection
from embedded.mariadb import EmbeddedMariaDB
from tests.programs.oracle.session import SqlSession

pytestmark = pytest.mark.database
_CHARSETS = ("latin1", "latin2", "utf8mb4", "ascii")
_DEFAULTS = "SELECT table_name, table_collation FROM information_schema.tables WHERE table_schema = '{}'"


def _statements(database: str, charset: str, tables: list[str], chance: random.Random) -> list[str]:
    """Statements that may change a default, or need not."""
    table, other = chance.choice(tables), f"t{chance.randrange(9)}"
    option = chance.choice([f"CHARACTER SET {charset}", f"DEFAULT COLLATE = {charset}_bin", "CHARSET DEFAULT"])
    changes = [
        f"CREATE TABLE IF NOT EXISTS {other} (id INT PRIMARY KEY, a VARCHAR(9)) {option}",
        f"CREATE OR REPLACE TABLE {other} (id INT PRIMARY KEY, a VARCHAR(9))",
        f"ALTER TABLE {table} {option}",
        f"ALTER TABLE {table} CONVERT TO CHARACTER SET {charset}, COMMENT = 'CHARSET latin5'",
        f"ALTER TABLE {table} MODIFY a VARCHAR({chance.randint(9, 20)}) CHARACTER SET {charset}",
        f"ALTER DATABASE {database} CHARACTER SET {charset}",
        f"ALTER DATABASE COLLATE {charset}_bin",
    ]
    if other not in tables:
        changes += [f"CREATE TABLE {other} LIKE {table}", f"RENAME TABLE {table} TO {other}"]
        changes += [f"ALTER TABLE {table} {option}, RENAME TO {other}"]
    if len(tables) > 1 and table != "t":
        changes.append(f"DROP TABLE {table}")
    return changes


@pytest.mark.parametrize("seed", range(3))
def test_each_answer_is_what_the_server_had_at_its_place(server: EmbeddedMariaDB, seed: int) -> None:
    chance, database = random.Random(seed), f"defaults_{seed}"
    states: list[tuple[int, dict[str, str]]] = []
    with SqlSession(server) as session:
        named = f" CHARACTER SET {chance.choice(_CHARSETS)}" if seed else ""
        for statement in (f"CREATE DATABASE {database}{named}", f"USE {database}", "CREATE TABLE t (a VARCHAR(9))"):
            session.query(statement)
        for _ in range(25):
            rows = session.query(_DEFAULTS.format(database))
            truth = {str(name): str(collation).split("_")[0] for name, collation in rows}
            file, position = session.query("SHOW MASTER STATUS")[0][:2]
            states.append((offset_of(str(file), int(str(position))), truth))
            session.run(chance.choice(_statements(database, chance.choice(_CHARSETS), sorted(truth), chance)))
    settings = DatabaseSettings(host=server.host, port=server.port, user=USER, password=SecretStr(PASSWORD))
    with SourceConnection(settings, server.host, server.port) as connection:
        logs = StatementLogs(charsets_of(charsets(connection)))
    defaults = DefaultCharsets(lambda: closing(SourceConnection(settings, server.host, server.port)), logs)
    found: Counter[str] = Counter()
    for offset, truth in states:
        for table, charset in truth.items():
            asking = LoggedStatement(database, f"ALTER TABLE {table} ADD COLUMN b INT")
            said = defaults.after(SourceTable(database, table), asking, offset)
            found["open" if said == UNDETERMINED_CHARSET else "right" if said == charset else "wrong"] += 1
    assert found["wrong"] == 0, found
    assert found["right"] > max(20, 2 * found["open"]), found
