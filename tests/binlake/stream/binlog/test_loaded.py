"""A first load, then the stream of the binlog: it goes on at the load's position, whatever the settings say."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

import binlake.stream.binlog.run as stream
from binlake.cli.app import app
from binlake.cli.commands.stream.check_binlog import binlog_behind_topics, binlog_steps
from binlake.cli.commands.stream.check_load import unread_rows
from binlake.cli.commands.stream.check_result import CheckOutcome
from binlake.decode.changes import SourceTable
from binlake.load.first.run import FirstLoad
from binlake.position.ledger import Ledger
from binlake.schema.apply.schema_states import SchemaStates
from binlake.source.binlog.reading import BinlogSource
from binlake.source.database.snapshot import SourcePosition
from binlake.stream.binlog.beginning import begin
from binlake.stream.definitions.schemas import SchemaRegistry
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import BadInputError, TableStoppedError
from hudilake.storage import open_storage
from tests.binlake.stream.binlog.followed import FollowedDatabase, random_statements
from tests.judges import hudi_rs


def loaded(server: EmbeddedMariaDB, place: Path, name: str) -> tuple[FollowedDatabase, list[str]]:
    """A database with rows that are loaded, and statements that are still to come."""
    followed = FollowedDatabase(server, place, name, start="now")
    statements = list(random_statements(11, 24))
    followed.execute(*statements[:12])
    results = list(FirstLoad(followed.settings()).run())
    assert sorted((one.table, one.state) for one in results) == [
        (f"{name}.bare", "loaded"),
        (f"{name}.keyed", "loaded"),
    ]
    return followed, statements[12:]


def test_check_names_the_tables_that_are_to_be_loaded(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed = FollowedDatabase(server, tmp_path, "unloaded", start="now")
    followed.execute(*list(random_statements(11, 24))[:12])
    followed.execute("CREATE TABLE old (id INT PRIMARY KEY) ENGINE=MyISAM", "INSERT INTO old VALUES (1)")
    config = followed.settings()
    lake = open_storage(config.lake.uri)
    refused, finding = unread_rows(config, lake)
    assert refused.name == "first load of unloaded.old"
    assert refused.detail.startswith(
        "binlake load will refuse it: the engine MyISAM has no consistent snapshot. Next: "
    )
    assert finding.detail.startswith("tables with rows that the lake does not have: unloaded.")
    assert [one.table for one in FirstLoad(config).run() if one.error is not None] == ["unloaded.old"]
    assert list(unread_rows(config, lake)) == [refused]


def test_check_and_load_name_tables_whose_changes_the_binlog_does_not_tell(
    server: EmbeddedMariaDB, tmp_path: Path
) -> None:
    followed = FollowedDatabase(server, tmp_path, "opaque", start="now")
    for kind in ("uuid", "inet4", "inet6", "binary(16)"):
        followed.execute(f"CREATE TABLE of_{kind[:6]} (id INT PRIMARY KEY, v {kind})")
    config = followed.settings()
    findings = list(unread_rows(config, open_storage(config.lake.uri)))
    refused = ["opaque.of_inet4", "opaque.of_inet6", "opaque.of_uuid"]
    assert [one.name for one in findings] == [f"changes of {name}" for name in refused]
    assert findings[2].detail.startswith("the binlog does not tell the types of v uuid from BINARY: ")
    results = list(FirstLoad(config).run())
    assert [one.table for one in results if one.error is not None] == refused
    assert [one.table for one in results if one.error is None] == ["opaque.of_binary"]


@pytest.mark.first(1)
@pytest.mark.parametrize("policy", ["null", "text", "epoch"])
def test_zero_dates_are_loaded_as_they_are_streamed(server: EmbeddedMariaDB, tmp_path: Path, policy: str) -> None:
    """And a column that a statement adds has the type of the rows: none of them goes to quarantine."""
    zeros = FollowedDatabase(server, tmp_path, f"zeros_{policy}", start="now", more={"source": {"zero_dates": policy}})
    zeros.execute(
        "CREATE TABLE z (id INT PRIMARY KEY, d DATE NOT NULL, m DATETIME)",
        "INSERT INTO z VALUES (1, '0000-00-00', '2024-00-10 11:12:13'), (2, '2024-02-29', NULL)",
    )
    assert [one.rows for one in FirstLoad(zeros.settings()).run()] == [2]
    zeros.execute(
        "INSERT INTO z VALUES (3, '0000-00-00', '2024-00-10 11:12:13'), (4, '2024-02-29', NULL)",
        "ALTER TABLE z ADD COLUMN a DATE NOT NULL DEFAULT '2024-01-01', ADD COLUMN n DATETIME",
        "INSERT INTO z VALUES (5, '2024-02-29', NULL, '0000-00-00', NULL)",
        "UPDATE z SET n = '2024-02-29 12:30:00' WHERE id = 2",
        "ALTER TABLE z MODIFY n DATE",
        "UPDATE z SET m = NULL WHERE id = 3",
    )
    assert sum(event.quarantined for event in zeros.apply()) == 0
    zeros.check("z")


def test_check_passes_for_a_user_who_may_not_list_replicas(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """Neither by the statement's new name, which MariaDB does not know, nor by its old one."""
    rights = "SELECT, REPLICATION SLAVE, BINLOG MONITOR"
    server.execute(f"CREATE USER only_reads@'%' IDENTIFIED BY 'r'; GRANT {rights} ON *.* TO only_reads@'%'")
    config = FollowedDatabase(server, tmp_path, "unlisted").settings()
    user = config.source.database.model_copy(update={"user": "only_reads", "password": SecretStr("r")})
    config = config.model_copy(update={"source": config.source.model_copy(update={"database": user})})
    assert config.source.mysql is not None
    steps = dict(binlog_steps(config, config.source.mysql))
    assert "whether a replica has it is not known" in steps["server id"]()
    steps["server"]()


def test_check_asks_the_server_behind_the_topics_how_it_writes_its_binlog(
    server: EmbeddedMariaDB, tmp_path: Path
) -> None:
    follows = FollowedDatabase(server, tmp_path, "behind").settings()
    config = follows.model_copy(update={"source": follows.source.model_copy(update={"mysql": None})})
    [good] = binlog_behind_topics(config)
    assert (good.verdict, good.error) == (CheckOutcome.OK, None)
    assert "binlog_format is ROW" in good.detail
    for name, usual, bad, verdict in (
        ("binlog_format", "ROW", "MIXED", CheckOutcome.FAILED),
        ("binlog_row_image", "FULL", "MINIMAL", CheckOutcome.WARNING),
    ):
        server.execute(f"SET GLOBAL {name} = '{bad}'")
        try:
            [found] = binlog_behind_topics(config)
        finally:
            server.execute(f"SET GLOBAL {name} = '{usual}'")
        assert found.verdict is verdict
        assert f"{name} is {bad}: " in found.detail
        assert found.error is None or f"SET GLOBAL {name} = " in found.error.do_next
    away = config.source.database.model_copy(update={"port": 1})
    [unasked] = binlog_behind_topics(
        config.model_copy(update={"source": config.source.model_copy(update={"database": away})})
    )
    assert unasked.verdict is CheckOutcome.WARNING
    assert "binlog_format is not compared: " in unasked.detail


@pytest.mark.full
def test_what_came_between_the_load_and_the_stream_is_there(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed, later = loaded(server, tmp_path, "loaded")
    followed.execute(*later[:6])  # nobody reads the binlog now
    events = followed.apply()
    assert sum(event.events_read for event in events) > 0
    followed.check("bare", "keyed")
    followed.execute(*later[6:])
    followed.apply()
    followed.check("bare", "keyed")


@pytest.mark.full
def test_a_loaded_table_that_is_gone_stops_alone(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """Though no commit of the stream says which topic feeds it; and it is forgotten on demand."""
    followed, _ = loaded(server, tmp_path, "lost")
    followed.apply()
    shutil.rmtree(tmp_path / "lake/lost/bare")
    followed.execute("INSERT INTO keyed (n) VALUES (77)", "INSERT INTO bare VALUES (77, 'b')")
    with pytest.raises(TableStoppedError, match=r"1 table cannot go on.* lost\.bare: the table is gone"):
        followed.apply()
    assert 77 in hudi_rs.snapshot(tmp_path / "lake/lost/keyed").column("n").to_pylist()
    done = CliRunner().invoke(app, ["table", "forget", str(followed.conf), "lost.bare"])
    assert done.exit_code == 0, done.output
    followed.apply()
    assert hudi_rs.snapshot(tmp_path / "lake/lost/bare").column("a").to_pylist() == [77]


@pytest.mark.full
def test_a_loaded_table_that_is_paused_loses_nothing(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    followed, later = loaded(server, tmp_path, "rested")
    followed.apply()
    for word in ("pause", "resume"):
        done = CliRunner().invoke(app, ["table", word, str(followed.conf), "rested.bare"])
        assert done.exit_code == 0, done.output
        written = -sum(BinlogSource.open(followed.settings()).server.files.values())
        followed.execute(*later[:3], "INSERT INTO bare VALUES (78, 'p')")
        written += sum(BinlogSource.open(followed.settings()).server.files.values())
        followed.apply()
        later = later[3:]
        if word == "pause":
            waiting, *more = _paused(followed, "--kafka")
            assert waiting is not None
            assert written <= waiting < written + 100  # an event without rows stands before
            assert more == ["bytes", None]
            assert _paused(followed, "--no-kafka") == (None, "bytes", None)
    followed.check("bare", "keyed")


def _paused(followed: FollowedDatabase, *options: str) -> tuple[int | None, str, int | None]:
    """What the status says of the table that is paused: how much waits, its unit, how much is lost."""
    printed = CliRunner().invoke(app, ["status", str(followed.conf), "--json", *options]).stdout
    [held] = json.loads(printed.splitlines()[0])["held"]
    return held["waiting"], held["unit"], held["deleted"]


def test_without_the_position_of_the_load_changes_are_missing(
    server: EmbeddedMariaDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a stream that begins now."""
    followed, later = loaded(server, tmp_path, "unled")
    followed.execute(*later[:6])
    monkeypatch.setattr(stream, "loaded_position", lambda *_: None)
    followed.apply()
    with pytest.raises(AssertionError):
        followed.check("bare", "keyed")


def test_another_server_and_a_purged_file_are_refused(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    settings = FollowedDatabase(server, tmp_path, "elsewhere").settings()
    source = BinlogSource.open(settings)
    here = SourcePosition(next(reversed(source.server.files)), 4, int(source.topic.rpartition("/")[2]))
    assert begin(source, Ledger("s"), "now", lambda: here) > 0
    for position, why in (
        (replace(here, server_id=here.server_id + 1), "loaded from server"),
        (replace(here, file="mariadb-bin.999999"), "mariadb-bin.999999|999999"),
    ):
        with pytest.raises(BadInputError, match=why):
            begin(source, Ledger("s"), "now", lambda position=position: position)  # type: ignore[misc]


@pytest.mark.full
@pytest.mark.parametrize("keeps_copy", [True, False])
def test_a_statement_that_waits_outlives_the_state(
    server: EmbeddedMariaDB, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps_copy: bool
) -> None:
    """A statement about a table that the stream has not met waits; the state is lost. The control lacks the copy."""
    followed = FollowedDatabase(server, tmp_path, f"waits_{keeps_copy}".lower(), start="now")
    followed.execute("CREATE TABLE quiet (id INT PRIMARY KEY)", "CREATE TABLE busy (id INT PRIMARY KEY)")
    followed.execute("INSERT INTO quiet VALUES (1)", "INSERT INTO busy VALUES (1)")
    assert [one.state for one in FirstLoad(followed.settings()).run()] == ["loaded", "loaded"]
    with monkeypatch.context() as early:
        early.setattr(stream.BinlogStream, "_settle", lambda self: None)
        early.setattr(stream, "note_loaded", lambda *_: None)
        followed.execute("ALTER TABLE quiet ADD COLUMN c INT DEFAULT 7", "INSERT INTO busy VALUES (2)")
        followed.apply()
        followed.execute("INSERT INTO busy VALUES (3)")
        followed.apply()
    shutil.rmtree(tmp_path / "lake/.binlake" / f"of_{followed.name}")
    if not keeps_copy:
        (tmp_path / "lake/.binlake" / f"of_{followed.name}.definitions.json").unlink()
    followed.execute("INSERT INTO busy VALUES (4)")
    followed.apply()
    followed.execute("INSERT INTO quiet VALUES (2, 8)")
    followed.apply()
    rows = hudi_rs.snapshot(tmp_path / "lake" / followed.name / "quiet").select(["id", "c"]).to_pylist()
    assert sorted((row["id"], row["c"]) for row in rows) == [(1, 7 if keeps_copy else None), (2, 8)]


def test_foreign_keys_of_loaded_tables_are_known(server: EmbeddedMariaDB, tmp_path: Path) -> None:
    """InnoDB writes no event for the rows that it deletes: the load asks for the tables' definitions."""
    followed = FollowedDatabase(server, tmp_path, "cascading", start="now")
    followed.execute(
        "CREATE TABLE p (id INT PRIMARY KEY)",
        "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)",
        "INSERT INTO p VALUES (1)",
        "INSERT INTO c VALUES (1, 1)",
    )
    assert [one.state for one in FirstLoad(followed.settings()).run()] == ["loaded", "loaded"]
    followed.execute("DELETE FROM p")
    followed.apply()
    registry = SchemaRegistry(followed.settings())
    registry.refresh()
    cascades = SchemaStates(followed.settings(), registry).cascades(SourceTable("cascading", "c"))
    assert ["foreign key" in one.why for one in cascades] == [True]
