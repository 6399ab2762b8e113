"""Tables whose rows the settings change, or whose key is unusual: compared, left out and said, repaired."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.proof.verify.repair import Repairer
from binlake.proof.verify.resync import resync_from_source
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.proof.verify.table_check import TableCheck
from binlake.settings import Settings
from binlake.source.database.connection import TextRow
from binlake.source.database.snapshot import _begin_after, snapshot
from binlake.tables.catalog import CatalogTable, catalog_table
from embedded.mariadb import EmbeddedMariaDB
from hudilake.clock import new_uuid
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.read import TableReader
from hudilake.storage import open_storage
from tests.binlake.proof.verify.source import SentTable, verified

pytestmark = pytest.mark.database

COLUMNS = {"id": "int", "name": "varchar(20)", "region": "varchar(10)", "at": "datetime"}
SCHEMA = "id INT PRIMARY KEY, name VARCHAR(20), region VARCHAR(10), at DATETIME"
DAY = 86_400_000


@pytest.fixture
def database(server: EmbeddedMariaDB) -> Iterator[str]:
    name = f"v_{new_uuid()[:8]}"
    server.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    yield name
    server.execute(f"DROP DATABASE {name}")


def row(number: int, **values: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"id": number, "name": f"n{number}", "region": "eu", "at": number * DAY, **values}


def filled(server: EmbeddedMariaDB, place: Path, database: str, count: int = 20, **fields: Any) -> SentTable:  # noqa: ANN401
    """Table ``t`` with ``count`` rows at the source and in the lake."""
    sent = SentTable(server, place, database, {"t": COLUMNS}, {"t": ["id"]}, **fields)
    server.execute(f"CREATE TABLE {database}.t ({SCHEMA})")
    server.execute(
        f"USE {database}; INSERT INTO t SELECT seq, CONCAT('n', seq), 'eu', '1970-01-01' + INTERVAL seq DAY"
        f" FROM seq_0_to_{count - 1}"
    )
    sent.stands = sent.place_now()
    for number in range(count):
        sent.send("t", "c", row(number))
    sent.stands = None
    sent.apply()
    return sent


def insert(sent: SentTable, number: int, name: str | None = None) -> None:
    sent.server.execute(
        f"INSERT INTO {sent.database}.t VALUES ({number}, '{name or f'n{number}'}', 'eu',"
        f" '1970-01-01' + INTERVAL {number} DAY)"
    )


def test_columns_that_the_settings_change_are_left_out_and_said(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    rules = {
        "exclude": ["region"],
        "mask": {"name": {"how": "hash", "salt": "s"}},
        "computed": {"twice": "id * 2"},
    }
    more = {"quarantine": {"seal": "x" * 32}}
    sent = filled(server, tmp_path, database, rules={"defaults": {"buckets": 2, "columns": rules}}, more=more)
    server.execute(f"UPDATE {database}.t SET name = 'other', region = 'us' WHERE id = 1")
    [result] = sent.verify().values()
    assert not result.different
    assert sorted(result.notes) == [
        "name: masked by the settings",
        "region: left out by the settings",
        "twice: computed by the settings",
    ]
    server.execute(f"UPDATE {database}.t SET at = '2001-01-01' WHERE id = 1; DELETE FROM {database}.t WHERE id = 2")
    [result] = sent.verify(repair=True).values()
    assert (result.total, result.repaired) == (2, 2)
    stored = {r["id"]: r for r in lake_rows(sent.settings(), f"{database}.t")}
    assert (len(stored), stored[1]["twice"]) == (19, 2)
    assert "region" not in stored[1]
    assert len(stored[1]["name"]) == 64  # the hash of the new name


def lake_rows(settings: Settings, name: str) -> list[dict[str, Any]]:
    root = open_storage(settings.lake.uri)
    return list(TableReader.open(catalog_table(settings, root, name).storage).read().read_all().to_pylist())


def test_a_column_that_only_one_side_has_is_said(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    sent = filled(server, tmp_path, database)
    server.execute(f"ALTER TABLE {database}.t DROP COLUMN region")
    [result] = sent.verify().values()
    assert (result.different, result.notes) == (False, ["region: the source has it no more"])
    server.execute(f"ALTER TABLE {database}.t ADD COLUMN extra INT, MODIFY name BLOB")
    [result] = sent.verify().values()
    assert result.different
    assert sorted(result.wrong) == [
        "extra: the lake table does not have it",
        "name: its types have nothing in common: blob at the source, string in the lake",
    ]


@pytest.mark.full
def test_a_table_without_a_key_is_compared_by_its_content(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    sent = SentTable(server, tmp_path, database, {"t": COLUMNS}, {})
    server.execute(f"CREATE TABLE {database}.t ({SCHEMA.replace(' PRIMARY KEY', '')})")
    for number in (1, 1, 1, 2, 3):
        insert(sent, number)
        sent.send("t", "c", row(number))
    sent.apply()
    assert not sent.verify()[f"{database}.t"].different
    server.execute(f"DELETE FROM {database}.t WHERE id = 1 LIMIT 1")
    insert(sent, 4)
    result = sent.verify()[f"{database}.t"]
    assert result.differing == {"missing": 1, "extra": 1}
    assert {(d.kind.value, d.key["id"]) for d in result.differences} == {("missing", "4"), ("extra", "1")}
    with pytest.raises(UnsupportedError, match="without a key cannot be repaired"):
        sent.verify(repair=True)


@pytest.mark.full
def test_keys_that_the_servers_collation_holds_for_equal_are_told_apart(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    columns = {"code": "varchar(9)", "day": "date", "v": "int"}
    sent = SentTable(server, tmp_path, database, {"t": columns}, {"t": ["code", "day"]})
    server.execute(f"CREATE TABLE {database}.t (code VARCHAR(9), day DATE, v INT, PRIMARY KEY (code, day))")
    for code in ("a", "b:,", "é", "o'x\\"):
        quoted = code.replace("\\", "\\\\").replace("'", "''")
        server.execute(f"INSERT INTO {database}.t VALUES ('{quoted}', '1970-01-03', 1)")
        sent.send("t", "c", {"code": code, "day": 2, "v": 1})
    sent.apply()
    assert not sent.verify()[f"{database}.t"].different
    server.execute(f"UPDATE {database}.t SET code = 'A' WHERE code = 'a'; UPDATE {database}.t SET v = 2 WHERE v = 1")
    result = sent.verify(repair=True)[f"{database}.t"]
    assert result.differing == {"missing": 1, "extra": 1, "differs": 3}
    assert result.repaired == 5
    assert {r["code"] for r in lake_rows(sent.settings(), f"{database}.t")} == {"A", "b:,", "é", "o'x\\"}


def test_a_row_in_another_partition_is_moved_by_the_repair(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    rules = {"defaults": {"buckets": 1, "partition": {"column": "region"}}}
    sent = filled(server, tmp_path, database, rules=rules)
    server.execute(f"UPDATE {database}.t SET region = 'us' WHERE id IN (3, 4); DELETE FROM {database}.t WHERE id = 5")
    [result] = sent.verify(repair=True).values()
    assert (result.total, result.repaired) == (3, 3)
    stored = [(r["id"], r["region"]) for r in lake_rows(sent.settings(), f"{database}.t")]
    assert sorted(stored) == [(n, "us" if n in (3, 4) else "eu") for n in range(20) if n != 5]


@pytest.mark.full
def test_tables_that_go_to_one_are_compared_each_with_its_rows(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    routes = [{"match": rf"{database}\.t_\d", "to": f"{database}.t", "shard": {"column": "origin"}}]
    names = ("t_1", "t_2")
    sent = SentTable(
        server, tmp_path, database, dict.fromkeys(names, COLUMNS), {name: ["id"] for name in names}, {"routes": routes}
    )
    for name in names:
        server.execute(f"CREATE TABLE {database}.{name} ({SCHEMA})")
        for number in range(5):
            server.execute(f"INSERT INTO {database}.{name} VALUES ({number}, '{name}', 'eu', '1970-01-01')")
            sent.send(name, "c", row(number, name=name, at=0))
    sent.apply()
    assert [(n, r.source_rows, r.different) for n, r in sorted(sent.verify().items())] == [
        (f"{database}.{name}", 5, False) for name in names
    ]
    server.execute(f"DELETE FROM {database}.t_1 WHERE id = 1; UPDATE {database}.t_2 SET name = 'x' WHERE id = 1")
    results = sent.verify(repair=True)
    assert [r.differing for _, r in sorted(results.items())] == [{"extra": 1}, {"differs": 1}]
    assert not any(r.different for r in sent.verify().values())
    assert len(lake_rows(sent.settings(), f"{database}.t")) == 9


def test_a_server_whose_binlog_is_behind_the_lake_is_refused(
    server: EmbeddedMariaDB, tmp_path: Path, database: str
) -> None:
    """After a failover all rows of the lake look newer than the server's position, and none would be compared."""
    sent = filled(server, tmp_path, database)
    sent.stands = ("mariadb-bin.000900", 4)  # the old primary's
    server.execute(f"UPDATE {database}.t SET name = 'x' WHERE id = 1")
    sent.send("t", "u", row(1, name="x"))
    sent.apply()
    with pytest.raises(ConfigError, match=r"binlog stands at .*, and the lake holds rows from file 900"):
        sent.verify()
    document = json.loads(sent.conf.read_text())  # the settings for after it: the new server's events are later
    document["source"]["epoch_of_server"] = {"4711": 1}
    assert not verified(Settings.parse(json.dumps(document)))[f"{database}.t"].different


def test_a_table_that_the_source_has_no_more_is_said(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    sent = filled(server, tmp_path, database)
    server.execute(f"DROP TABLE {database}.t")
    [result] = sent.verify().values()
    assert "no such table" in result.skipped


def test_versions_are_not_compared(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    """A history table beside the table of its rows changes no exit code: the rows are compared."""
    history = [{"table": f"{database}.t", "to": f"{database}.h"}]
    sent = filled(server, tmp_path, database, rules={"history": history})
    done = CliRunner().invoke(app, ["verify", str(sent.conf), "--no-wait"])
    assert done.exit_code == 0, done.output
    assert f"{database}.t: equal" in done.output
    assert f"{database}.h: not compared: the source has no versions to compare with" in done.output
    server.execute(f"DELETE FROM {database}.t WHERE id = 1")
    assert CliRunner().invoke(app, ["verify", str(sent.conf), "--no-wait"]).exit_code == 66


def check_of(verifier: Verifier, settings: Settings, name: str) -> TableCheck:
    table = catalog_table(settings, open_storage(settings.lake.uri), name)
    assert isinstance(table, CatalogTable)
    return verifier.check(table, verifier.origins(table)[0])


@pytest.mark.full
def test_a_resync_brings_the_table_anew(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    sent = filled(server, tmp_path, database, count=50)
    server.execute(
        f"UPDATE {database}.t SET name = CONCAT(name, '!'); DELETE FROM {database}.t WHERE id % 5 = 0;"
        f"INSERT INTO {database}.t VALUES (99, 'new', 'eu', '1970-01-01')"
    )
    settings = sent.settings()
    with Verifier(settings, VerifyOptions(wait_s=None)) as verifier:
        done = resync_from_source(check_of(verifier, settings, f"{database}.t"), Repairer(settings), rows_a_commit=7)
    assert (done.rows, done.deletes) == (41, 10)
    assert not sent.verify()[f"{database}.t"].different
    sent.send("t", "u", row(1, name="later"))  # an event from behind the position wins
    sent.apply()
    assert sent.verify()[f"{database}.t"].differing == {"differs": 1}
    insert(sent, 98)
    result = CliRunner().invoke(app, ["table", "resync", str(sent.conf), f"{database}.t", "--from-source"])
    assert (result.exit_code, "42 rows written, 0 old rows deleted" in result.output) == (0, True), result.output
    assert not sent.verify()[f"{database}.t"].different


def test_a_position_is_noted_with_and_without_a_lock(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    """MySQL does not tell the position with the snapshot; the ways for it give the position that MariaDB tells."""
    sent = filled(server, tmp_path, database, count=1)
    settings = sent.settings()
    with Verifier(settings, VerifyOptions(wait_s=None)) as verifier:
        connection = check_of(verifier, settings, f"{database}.t").connection
        with snapshot(connection, replica=False) as told:
            pass
        before = _begin_after(connection, replica=False)
        insert(sent, 7)
        assert connection.rows(f"SELECT COUNT(*) FROM {database}.t") == [("1",)]  # the snapshot does not see it
        connection.rows("ROLLBACK")
        assert (told.file, told.position) == (before.file, before.position)
        shown = connection.rows

        def hidden(sql: str, values: Sequence[object] = ()) -> list[TextRow]:
            return [] if "binlog_snapshot" in sql else shown(sql, values)

        connection.rows = hidden  # type: ignore[method-assign] # a server that does not tell
        with snapshot(connection, replica=False) as locked:
            insert(sent, 8)  # the lock is gone
            assert connection.rows(f"SELECT COUNT(*) FROM {database}.t") == [("2",)]
        assert locked.position > told.position
