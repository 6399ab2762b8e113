"""``binlake init``: the settings that it writes are taken by ``check`` and by a stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.cli.commands.setup.proposal import Proposal, connector_text, settings_text
from binlake.cli.commands.setup.server import Provider, SourceColumns, findings, tables
from binlake.cli.commands.setup.topics import TopicGroup, choose, groups_of
from binlake.decode.changes import RawRecords
from binlake.decode.options import EventFormat
from binlake.settings import DatabaseSettings, Settings
from binlake.source.database.connection import SourceConnection
from hudilake.errors import ConfigError
from tests.binlake.decode.recordings import records
from tests.binlake.stream.topic_log import event
from tests.services.databases import SqlServer
from tests.services.kafka import Broker

ROW = event("orders", "c", 5, {"id": 1, "tier": "a"})
STATEMENT = {"source": ROW["source"], "databaseName": "shop", "ddl": "CREATE TABLE orders (id INT)", "tableChanges": []}


def sample(topic: str, *values: object, key: bytes | None = b'{"id":1}') -> RawRecords:
    return records([key for _ in values], [json.dumps(value).encode() for value in values], topic)


def test_topics_of_connectors_are_told_apart_and_what_has_no_rows_is_left_out() -> None:
    topics = {
        "one.shop.orders": 3,
        "one.shop.notes": 1,
        "one.crm.people": 1,
        "one": 1,
        "one.transaction": 1,
        "one_history": 1,
        "connect_configs": 1,
        "connect-offsets": 25,
        "two.bank.accounts": 2,
    }
    framed = {"schema": {"type": "struct"}, "payload": ROW}
    samples = {
        "one.shop.orders": sample("one.shop.orders", ROW, ROW),
        "one.shop.notes": sample("one.shop.notes", ROW, key=None),
        "one": sample("one", STATEMENT),
        "one_history": sample("one_history", STATEMENT),
        "two.bank.accounts": sample("two.bank.accounts", framed),
    }
    one, two = groups_of(topics, samples)
    assert (one.prefix, sorted(one.tables), one.schemas) == (
        "one",
        ["one.crm.people", "one.shop.notes", "one.shop.orders"],
        False,
    )
    assert (one.schema_changes, one.transactions, one.empty, one.keyless) == (
        "one",
        "one.transaction",
        ["one.crm.people"],
        ["one.shop.notes"],
    )
    assert one.pattern == r"one\.(crm|shop)\..+"
    assert (two.prefix, two.schemas, two.schema_changes, two.pattern) == ("two", True, None, r"two\.bank\..+")
    with pytest.raises(ConfigError, match="several connectors"):
        choose([one, two], None)
    assert choose([one, two], "two") is two
    with pytest.raises(ConfigError, match="no topics of tables with the prefix three"):
        choose([one, two], "three")


def test_messages_that_name_their_table_are_topics_by_name() -> None:
    message = {"database": "shop", "table": "orders", "type": "insert", "ts": 1, "data": {"id": 1}}
    [group] = groups_of({"maxwell": 3}, {"maxwell": sample("maxwell", message)})
    assert (group.prefix, group.pattern, group.format) == ("", None, EventFormat.MAXWELL)
    chosen = Settings.parse(settings_text(Proposal("m", "file:///lake", "k:9092", group=group)))
    assert (chosen.kafka.topics, chosen.source.format) == (("maxwell",), "maxwell")


GROUP = TopicGroup("one", {"one.shop.orders": 1}, schemas=False, schema_changes="one")


@pytest.mark.parametrize(
    "proposal",
    [
        Proposal("shop", "file:///lake", "k:9092", group=GROUP),
        Proposal("shop", "s3://b/a: #1", "k:9092,l:9092", {"sasl.password": "${env:PATH}"}, group=GROUP),
        Proposal("shop", "/a'b", "k:9092", prefix="a.b", database="odd$name", host="db", user="o'r"),
        Proposal("shop", "/a", "k:9092", prefix="p", host="db", tables=(SourceColumns("d", "t", False, 10**12),)),
    ],
)
def test_the_settings_are_read_and_say_what_was_proposed(proposal: Proposal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BINLAKE_MYSQL_PASSWORD", "x")
    text = settings_text(proposal)
    chosen = Settings.parse(text)
    assert (chosen.name, chosen.lake.uri, chosen.kafka.bootstrap_servers) == ("shop", proposal.lake, proposal.servers)
    assert chosen.source.database.host == proposal.host
    assert chosen.tables.defaults.buckets == proposal.buckets
    assert max(map(len, text.splitlines())) <= 120
    config = json.loads(connector_text(proposal, mariadb=True))
    assert config["topic.prefix"] == (proposal.prefix or "one")
    assert config["schema.history.internal.kafka.topic"] != config["topic.prefix"]


def init(path: Path, *words: str) -> Result:
    return CliRunner().invoke(app, ["init", str(path / "s.yaml"), *words])


def test_what_is_missing_is_named_where_nobody_can_be_asked(tmp_path: Path) -> None:
    done = init(tmp_path)
    assert isinstance(done.exception, ConfigError)
    assert done.exception.what == "--kafka is missing"
    (tmp_path / "s.yaml").write_text("mine")
    done = init(tmp_path, "--kafka", "127.0.0.1:9")
    assert "there already" in str(done.exception)
    assert (tmp_path / "s.yaml").read_text() == "mine"


@pytest.mark.kafka
def test_from_topics_to_settings_that_check_passes(kafka_broker: Broker, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    framed = {"schema": {"type": "struct", "fields": []}, "payload": ROW}
    for topic, value in (("inita.shop.orders", framed), ("initb.shop.orders", ROW)):
        producer.produce(topic, key=b'{"id":1}', value=json.dumps(value).encode())
    producer.flush(30)
    done = init(
        tmp_path, "--kafka", kafka_broker.bootstrap_servers, "--lake", str(tmp_path / "lake"), "--prefix", "initb"
    )
    assert "1 topic of initb: debezium, no schemas in the messages" in done.stdout
    assert done.exit_code == 2  # and says the ways out
    assert "kafka.ddl_topics" in done.stdout
    written = Settings.load(tmp_path / "s.yaml")
    assert (written.name, written.kafka.topic_pattern) == ("initb", r"initb\.shop\..+")
    assert written.lake.uri == (tmp_path / "lake").as_uri()


@pytest.mark.full
@pytest.mark.database
def test_a_server_says_what_it_lacks(log_mariadb: SqlServer) -> None:
    service = log_mariadb.service
    service.execute(
        "CREATE DATABASE initdb; CREATE TABLE initdb.a (id INT PRIMARY KEY); CREATE TABLE initdb.b (x INT); "
        "CREATE USER poor@'%' IDENTIFIED BY 'p'; GRANT SELECT ON initdb.* TO poor@'%'; "
        "CREATE USER rich@'%' IDENTIFIED BY 'p'; "
        "GRANT SELECT, RELOAD, REPLICATION SLAVE, BINLOG MONITOR ON *.* TO rich@'%'"
    )
    said = {}
    for user in ("poor", "rich"):
        database = DatabaseSettings.model_validate({"user": user, "password": "p"})
        with SourceConnection(database, service.host, service.port) as connection:
            said[user] = {one.name: one for one in findings(connection, Provider.SELF)}
            assert tables(connection, "initdb") == [
                SourceColumns("initdb", "a", True, said_bytes(connection, "a")),
                SourceColumns("initdb", "b", False, said_bytes(connection, "b")),
            ]
    assert [name for name, one in said["rich"].items() if name.startswith("right ") and not one.ok] == []
    lacking = {name: one.mend for name, one in said["poor"].items() if name.startswith("right ") and not one.ok}
    assert lacking == {
        f"right {r}": f"GRANT {r} ON *.* TO 'poor'@'%'" for r in ("REPLICATION SLAVE", "REPLICATION CLIENT", "RELOAD")
    }
    assert said["poor"]["binlog_format"].value == "ROW"
    service.execute("SET GLOBAL binlog_row_image = MINIMAL")
    try:
        with SourceConnection(database, service.host, service.port) as connection:
            for provider, word in (
                (Provider.SELF, "SET GLOBAL"),
                (Provider.RDS, "parameter group"),
                (Provider.CLOUD_SQL, "gcloud"),
            ):
                image = {one.name: one for one in findings(connection, provider)}["binlog_row_image"]
                assert (image.ok, image.value) == (False, "MINIMAL")
                assert word in image.mend
    finally:
        service.execute("SET GLOBAL binlog_row_image = FULL")


@pytest.mark.database
@pytest.mark.parametrize("given", ["nordb", "Northdb"])
def test_a_database_that_is_not_there_makes_no_settings(
    log_mariadb: SqlServer, tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Letter by letter: no topic and no row would have the name that was given."""
    service = log_mariadb.service
    service.execute("CREATE DATABASE IF NOT EXISTS northdb; CREATE OR REPLACE USER there@'%' IDENTIFIED BY 'p'; "
                    "GRANT ALL ON *.* TO there@'%'")  # fmt: skip
    monkeypatch.setenv("BINLAKE_MYSQL_PASSWORD", "p")
    place = f"there@{service.host}:{service.port}/{given}"
    done = init(tmp_path, "--lake", str(tmp_path / "lake"), "--mysql", place)
    assert isinstance(done.exception, ConfigError)
    assert done.exception.where == {"database": given}
    assert done.exception.do_next.startswith("did you mean northdb")
    assert not (tmp_path / "s.yaml").exists()


def said_bytes(connection: SourceConnection, table: str) -> int:
    where = f"table_schema = 'initdb' AND table_name = '{table}'"
    return int(str(connection.rows(f"SELECT data_length FROM information_schema.tables WHERE {where}")[0][0]))
