"""Tables that were renamed, swapped, moved and dropped at a real server: compared with what they are called now."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.proof.verify.repair import Repairer
from binlake.proof.verify.resync import resync_from_source
from binlake.proof.verify.rows import EVERYTHING
from binlake.proof.verify.run import Verifier, VerifyOptions
from binlake.tables.catalog import CatalogTable, catalog_table
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import LakeError, TransientError
from hudilake.storage import open_storage
from tests.binlake.proof.verify.source import database_section, verified
from tests.binlake.schema.ddl_source import Follower
from tests.binlake.schema.moves import ALL, DATABASES, Moves, followed, name, step
from tests.binlake.schema.test_moves import check, rows
from tests.selection import first
from tests.services.kafka import Broker

pytestmark = pytest.mark.database
KEY_ONE = pa.table({"id": pa.array([1], pa.int64())})


@dataclass
class AtServer(Moves):
    """The same statements and rows at a server, told with its positions."""

    server: EmbeddedMariaDB | None = None

    def carry_out(self, sql: str) -> None:
        """See Moves."""
        assert self.server is not None
        self.server.execute(sql)
        file, position = self.server.execute("SHOW MASTER STATUS")[0].split("\t")[:2]
        self.file, self.pos = file, int(position)


@pytest.fixture
def moves(server: EmbeddedMariaDB) -> Iterator[AtServer]:
    for database in DATABASES:
        server.execute(f"CREATE DATABASE {database}")
    yield AtServer(server=server)
    for database in DATABASES:
        server.execute(f"DROP DATABASE {database}")


def stream(source: AtServer, place: Path) -> Follower:
    assert source.server is not None
    follower = followed(source, place)
    follower.more = ALL | {"source": {"database": database_section(source.server)}}
    return follower


def swapped(source: AtServer, place: Path) -> Follower:
    """``n`` was filled beside ``t`` and took its place; ``t`` is ``old`` now."""
    source.create(name("db1.t"))
    source.create(name("db1.n"))
    for key in range(4):
        source.put(name("db1.t"), key, key)
        source.put(name("db1.n"), key, 10 + key)
    follower = stream(source, place)
    follower.run()
    source.rename("db1", (name("db1.t"), name("db1.old")), (name("db1.n"), name("db1.t")), written=False)
    source.put(name("db1.t"), 7, 100)
    source.put(name("db1.old"), 8, 200)
    follower.run()
    check(source, follower)
    return follower


def run(follower: Follower, *arguments: str) -> tuple[int, str]:
    conf = follower.place / "conf.yaml"
    conf.write_text(follower.document())
    done = CliRunner().invoke(app, [one.replace("CONF", str(conf)) for one in arguments])
    if isinstance(done.exception, LakeError):
        return done.exception.exit_code, f"{done.output}{done.exception}"
    return done.exit_code, done.output


@pytest.mark.full
def test_a_repair_writes_the_rows_of_a_table_into_its_own_lake_table(moves: AtServer, tmp_path: Path) -> None:
    follower = swapped(moves, tmp_path)
    found = verified(follower.settings())
    assert {table: result.skipped or result.total for table, result in found.items()} == {"db1.t": 0, "db1.old": 0}
    moves.carry_out("UPDATE db1.t SET v = -1 WHERE id = 1; DELETE FROM db1.old WHERE id = 2")  # nobody tells the lake
    found = verified(follower.settings(), repair=True)
    assert {table: (r.total, r.repaired) for table, r in found.items()} == {"db1.t": (1, 1), "db1.old": (1, 1)}
    moves.tables[name("db1.t")].rows[1]["v"] = -1
    del moves.tables[name("db1.old")].rows[2]
    check(moves, follower)
    moves.put(name("db1.t"), 1, 300)
    follower.run()
    check(moves, follower)


@pytest.mark.full
def test_a_resync_brings_the_rows_of_the_table_that_has_the_name_now(moves: AtServer, tmp_path: Path) -> None:
    follower = swapped(moves, tmp_path)
    for table in ("db1.t", "db1.old"):
        code, said = run(follower, "table", "resync", "CONF", table, "--from-source")
        assert (code, "5 rows written, 0 old rows deleted" in said) == (0, True), said
    check(moves, follower)
    assert all(not result.different for result in verified(follower.settings()).values())


@pytest.mark.full
def test_what_could_not_be_compared_is_said_by_an_exit_code_of_its_own(moves: AtServer, tmp_path: Path) -> None:
    follower = swapped(moves, tmp_path)
    assert run(follower, "verify", "CONF", "--no-wait")[0] == 0
    moves.drop(name("db1.old"))
    follower.idle()
    code, said = run(follower, "verify", "CONF", "--no-wait")
    assert code == 81, said
    assert "db1.old: not compared: dropped at the source at " in said
    assert "db1.t: equal" in said
    assert "db1.old: dropped at the source at " in run(follower, "status", "CONF", "--no-kafka")[1]
    code, said = run(follower, "table", "resync", "CONF", "db1.old", "--from-source")
    assert (code, "dropped at the source" in said) == (69, True)
    moves.carry_out("DELETE FROM db1.t WHERE id = 1")
    assert run(follower, "verify", "CONF", "--no-wait")[0] == 66
    (tmp_path / ".binlake/shop/names.json").unlink()  # before the stream writes it again
    code, said = run(follower, "verify", "CONF", "--no-wait", "--repair")
    assert code == 81, said
    assert said.count("the names that it has at the source are not known: start the stream") == 2


def left_open(follower: Follower) -> int:
    """In how many lines status says that something is not determined."""
    return run(follower, "status", "CONF", "--no-kafka")[1].count("not determined: rows: ALTER IGNORE")


@pytest.mark.full
@pytest.mark.parametrize("ends", first(1, [["verify", "--repair", "--no-wait"], ["table", "resync", "--from-source"]]))
def test_what_is_not_determined_ends_when_all_rows_were_found_equal_or_were_read_anew(
    moves: AtServer, tmp_path: Path, ends: tuple[str, ...]
) -> None:
    follower = swapped(moves, tmp_path)
    for value, what in ((-1, "v"), (-2, "v, id")):
        statement = f"ALTER IGNORE TABLE db1.t ADD UNIQUE ({what})"
        moves.carry_out(statement)
        moves.record([(statement, name("db1.t"), "ALTER")])
        follower.idle()
        follower.run()
        assert left_open(follower) == 1
        moves.carry_out(f"UPDATE db1.t SET v = {value} WHERE id = 1")  # nobody tells the lake
        assert run(follower, "verify", "CONF", "--no-wait")[0] == 66
        assert left_open(follower) == 1
        words = [word for word in ends if not word.startswith("--")]
        code, said = run(follower, *words, "CONF", "db1.t", *(word for word in ends if word.startswith("--")))
        assert (code, left_open(follower)) == (0, 0), said


@pytest.mark.full
def test_a_table_that_is_renamed_while_it_is_read_is_not_written(moves: AtServer, tmp_path: Path) -> None:
    follower = swapped(moves, tmp_path)
    settings = follower.settings()
    table = catalog_table(settings, open_storage(str(tmp_path)), "db1.t")
    with Verifier(settings, VerifyOptions(wait_s=None, repair=True)) as verifier:
        asked = verifier.check(table, verifier.origins(table)[0])
        pairs = (("db1.t", "db1.x"), ("db1.old", "db1.t"), ("db1.x", "db1.old"))
        moves.rename("db1", *((name(old), name(new)) for old, new in pairs), written=False)
        follower.idle()
        with pytest.raises(TransientError, match="renamed at the source while it was read"):
            asked.run(EVERYTHING, Repairer(settings))
        with pytest.raises(TransientError, match="renamed at the source while it was read"):
            resync_from_source(asked, Repairer(settings))
    check(moves, follower)


@pytest.mark.first(1)
@pytest.mark.kafka
@pytest.mark.parametrize("wait_s", [None, 0.5], ids=["no wait", "wait"])
def test_nothing_is_written_while_the_stream_may_not_know_the_name(
    moves: AtServer, tmp_path: Path, kafka_broker: Broker, wait_s: float | None
) -> None:
    """The statement is in its topic, and the stream has not read it."""
    topic = f"statements-{tmp_path.name}"
    kafka = {"bootstrap_servers": kafka_broker.bootstrap_servers, "topic_pattern": r"s(\.db\d\..*)?"}
    for number, table in enumerate(("db1.t", "db1.n")):
        moves.create(name(table))
        moves.put(name(table), 1, number)
    tell(kafka_broker, topic, moves.ddl)
    follower = stream(moves, tmp_path)
    follower.more |= {"kafka": kafka | {"ddl_topics": [topic]}}
    follower.run()
    settings, told = follower.settings(), len(moves.ddl)
    lake_table = catalog_table(settings, open_storage(str(tmp_path)), "db1.t")

    def resync(place: CatalogTable) -> int:
        with Verifier(settings, VerifyOptions(wait_s=wait_s, quiet_s=0)) as verifier:
            return sum(done.rows for done in verifier.resync(place))

    assert resync(lake_table) == 1
    moves.rename("db1", (name("db1.t"), name("db1.old")), (name("db1.n"), name("db1.t")), written=False)
    tell(kafka_broker, topic, moves.ddl[told:])
    with pytest.raises(TransientError, match="does not know all statements of the source up to"):
        resync(lake_table)
    with Verifier(settings, VerifyOptions(wait_s=None, repair=True)) as verifier:
        asked = verifier.check(lake_table, verifier.origins(lake_table)[0])
        with pytest.raises(TransientError, match="does not know all statements of the source up to"):
            Repairer(settings)(asked, asked.look(KEY_ONE))
    follower.idle()
    check(moves, follower)
    assert resync(catalog_table(settings, open_storage(str(tmp_path)), "db1.t")) == 1
    check(moves, follower)


def tell(broker: Broker, topic: str, records: Sequence[bytes]) -> None:
    """The connector's records of statements."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for record in records:
        producer.produce(topic, record, partition=0)
    assert producer.flush(30) == 0


@pytest.mark.full
@pytest.mark.parametrize("seed", first(1, range(3)))
def test_random_moves_are_compared_under_the_names_of_now(moves: AtServer, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for table in ("db1.t", "db1.u", "db2.t", "db3.u"):
        moves.create(name(table), chance.choice("vxy"))
        moves.put(name(table), 0, moves.pos)
    follower = stream(moves, tmp_path)
    while len(moves.statements) < 16:
        step(chance, moves)
        if chance.random() < 0.2:
            follower.run(fails=True)
    follower.run(fails=True)
    told = "\n".join(moves.statements)
    for result in verified(follower.settings(), repair=True).values():
        known = name(result.table) in moves.tables and not result.skipped
        assert known or "at the source at " in result.skipped or moves.open, (result, told)
        assert (result.total, result.wrong) == (0, []), (result, told)
    for now, held in moves.tables.items():
        if held.rows and not moves.open:
            code, said = run(follower, "table", "resync", "CONF", str(now), "--from-source")
            assert (code, "0 old rows deleted" in said) == (0, True), (said, told)
            assert rows(follower, now, held.column) == held.rows, told
