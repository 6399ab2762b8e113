"""conf/minimal.yaml behind a real Debezium with its defaults, with schemas in the messages and without. No Spark."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from binlake.settings import Settings
from binlake.stream.definitions.ddl_topics import with_ddl_topics
from embedded.connect import EmbeddedConnect, database_connector, history_in_kafka
from embedded.mariadb import EmbeddedMariaDB
from tests.paths import ROOT
from tests.services.kafka import Broker
from tests.whole.live.followed import ACCOUNT, Followed, passed, truth
from tests.whole.live.workload import PASSWORD, USER

pytestmark = [pytest.mark.kafka, pytest.mark.database, pytest.mark.full]

#: Only the topic of schema changes tells that ``big`` is unsigned.
SETUP = f"""{ACCOUNT}
CREATE TABLE orders (id INT PRIMARY KEY, big BIGINT UNSIGNED, total DECIMAL(12,2), status VARCHAR(20), at DATETIME(6));
INSERT INTO orders VALUES (1, 18446744073709551615, 12.5, 'paid', '2026-01-02 03:04:05.678901'), (2, 7, -1, NULL, NULL);
"""
CHANGES = """USE shop; UPDATE orders SET status = 'open' WHERE id = 2; DELETE FROM orders WHERE id = 1;
ALTER TABLE orders ADD COLUMN note VARCHAR(9) DEFAULT 'none';
INSERT INTO orders VALUES (3, 9223372036854775808, 1, 'new', NULL, 'x');
"""
COLUMNS = ("id", "status", "note")


def minimal(place: Path, broker: str, prefix: str) -> Settings:
    document = yaml.safe_load((ROOT / "conf/minimal.yaml").read_text(encoding="utf-8"))
    document["kafka"]["bootstrap_servers"] = broker
    document["kafka"]["topic_pattern"] = document["kafka"]["topic_pattern"].replace("dbserver1", prefix)
    document["lake"]["uri"] = str(place / "lake")
    return Settings.parse(yaml.safe_dump(document))


@pytest.mark.parametrize("schemas", ["true", "false"])
def test_the_minimal_settings_follow_a_real_connector(
    kafka_broker: Broker, database: EmbeddedMariaDB, tmp_path: Path, schemas: str
) -> None:
    broker, prefix = kafka_broker.bootstrap_servers, f"minimal_{schemas}"
    database.execute(SETUP)
    connector = database_connector(
        database, USER, PASSWORD, prefix=prefix, server_id=9210, include="shop", partitions=1
    ) | history_in_kafka(prefix, broker)
    converters = {"key.converter.schemas.enable": schemas, "value.converter.schemas.enable": schemas}
    with EmbeddedConnect(tmp_path / "connect", broker, {"shop": connector}, properties=converters) as connect:
        passed(database, broker, prefix, 1)
        settings = with_ddl_topics(minimal(tmp_path, broker, prefix), new=True)
        assert settings.kafka.ddl_topics == (prefix,)
        stream = Followed(settings)
        stream.run()
        database.execute(CHANGES)
        passed(database, broker, prefix, 2)
        stream.run()
        connect.check()
    assert stream.rows("shop.orders", COLUMNS) == truth(database, "orders", COLUMNS)
    numbers = {(row["id"], row["big"], row["total"]) for row in stream.whole("shop.orders")}
    assert numbers == {(2, Decimal(7), Decimal("-1.00")), (3, Decimal(2**63), Decimal("1.00"))}
    assert not (tmp_path / "lake/_quarantine").exists()
