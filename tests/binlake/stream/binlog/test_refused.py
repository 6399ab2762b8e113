"""What a binlog does not determine is refused in one line, before anything of it is applied."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import BadInputError, ConfigError, LakeError
from tests.binlake.stream.binlog.followed import USER_SQL, FollowedDatabase


@pytest.fixture
def own_server() -> Iterator[EmbeddedMariaDB]:
    """A server whose binlog a test may delete."""
    with tempfile.TemporaryDirectory(prefix="db") as place, EmbeddedMariaDB(Path(place)) as started:
        started.execute(USER_SQL)
        yield started


def refusal(followed: FollowedDatabase, kind: type[LakeError]) -> str:
    """The line with which a run ends."""
    with pytest.raises(kind) as raised:
        followed.apply()
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_changes_that_a_session_wrote_as_statements(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "as_statements")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    followed.apply()
    followed.check("t")
    followed.execute("SET SESSION binlog_format = 'STATEMENT'", "INSERT INTO t VALUES (2)")
    assert "wrote its changes as a statement" in refusal(followed, BadInputError)


@pytest.mark.first(1)
@pytest.mark.parametrize(("table", "refused"), [("t", True), ("mysql.kept", False)])
def test_statements_in_the_servers_own_database(
    server: EmbeddedMariaDB, tmp_path: Path, table: str, refused: bool
) -> None:
    database = f"own_{table}".replace(".", "_")
    followed = FollowedDatabase(server, tmp_path, database)
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    followed.execute("CREATE TABLE IF NOT EXISTS mysql.kept (a INT PRIMARY KEY)")
    named = table if "." in table else f"{database}.t"
    session = "SET SESSION binlog_format = 'STATEMENT'"
    followed.execute(session, "USE mysql", f"INSERT INTO {named} VALUES (2)")
    if refused:
        assert "wrote its changes as a statement" in refusal(followed, BadInputError)
    else:
        followed.apply()
        followed.check("t")


def test_rows_without_all_columns(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "minimal")
    followed.execute(
        "CREATE TABLE t (a INT PRIMARY KEY, b INT)",
        "INSERT INTO t VALUES (1, 1)",
        "SET SESSION binlog_row_image = 'MINIMAL'",
        "UPDATE t SET b = 2",
    )
    assert "binlog_row_image was not FULL" in refusal(followed, BadInputError)


@pytest.mark.full
def test_tables_without_names_of_columns(own_server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(own_server, tmp_path, "nameless")
    own_server.execute("SET GLOBAL binlog_row_metadata = 'MINIMAL'")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    assert "binlog_row_metadata was not FULL" in refusal(followed, BadInputError)


@pytest.mark.full
def test_a_binlog_that_was_deleted_or_began_again(own_server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(own_server, tmp_path, "gone")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    followed.apply()
    followed.execute("INSERT INTO t VALUES (2)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (3)", "FLUSH BINARY LOGS")
    for _ in range(40):  # a file that the server has just sent goes a moment later
        *olds, newest = (line.split("\t")[0] for line in own_server.execute("SHOW BINARY LOGS"))
        if not olds:
            break
        own_server.execute(f"PURGE BINARY LOGS TO '{newest}'")
        time.sleep(0.5)
    assert "has deleted that file" in refusal(followed, BadInputError)
    own_server.execute("RESET MASTER")
    followed.execute(*(f"INSERT INTO t VALUES ({number})" for number in range(10, 60)))
    assert "was reset" in refusal(followed, BadInputError)


@pytest.mark.full
def test_a_binlog_of_another_server(own_server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(own_server, tmp_path, "other")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    followed.apply()
    own_server.execute("SET GLOBAL server_id = 99")
    assert "binlog/99 answers now" in refusal(followed, BadInputError)
    own_server.execute("SET GLOBAL server_id = 4711")
    assert followed.apply() == []


@pytest.mark.full
def test_a_user_without_the_rights(own_server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(own_server, tmp_path, "rights")
    own_server.execute("REVOKE BINLOG MONITOR, REPLICATION SLAVE ON *.* FROM 'verifier'@'%'")
    assert "Access denied" in refusal(followed, ConfigError)


def test_the_ledger_names_the_file(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "noted")
    followed.execute("CREATE TABLE t (a INT PRIMARY KEY)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (1)")
    followed.apply()
    ledger = json.loads((tmp_path / "lake" / ".binlake" / "of_noted" / "ledger.json").read_text())
    newest = server.execute("SHOW BINARY LOGS")[-1].split("\t")[0]
    assert ledger["topic_ids"]["binlog/4711"].startswith(f"{newest} ")
