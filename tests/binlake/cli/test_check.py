import json
import threading
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from binlake.cli.commands.stream import check
from binlake.cli.commands.stream.check import known_tables, named_tables
from binlake.cli.commands.stream.check_result import Check, CheckOutcome, exit_code
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.client import GROUP
from binlake.tables.unmatched import unmatched_tables
from hudilake.format.definition.config import TableConfig
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import event
from tests.services.kafka import Broker

NOWHERE = "127.0.0.1:9"


def settings(lake: Path, servers: str = NOWHERE, more: str = "", topics: str = "topics: [p.shop.orders]") -> Settings:
    text = f"name: shop\nlake: {{uri: 'file://{lake}'}}\nkafka: {{bootstrap_servers: '{servers}', {topics}}}\n"
    return Settings.parse(text + more)


def run_checks(chosen: Settings) -> list[Check]:
    return check.run_checks(chosen, kafka_timeout_s=0.1 if NOWHERE in chosen.kafka.bootstrap_servers else 10)


def verdicts(checks: list[Check]) -> dict[str, CheckOutcome]:
    return {c.name: c.verdict for c in checks}


def make_table(lake: Path, path: str, buckets: int, partition: tuple[str, ...] = ()) -> None:
    storage = open_storage(str(lake)).sub(path)
    schema = pa.schema([("id", pa.int64()), ("tier", pa.string()), ("_binlake_order", pa.int64())])
    HudiTable.create(storage, TableConfig("t", ("id",), "_binlake_order", buckets, partition), schema)


def test_a_broker_that_is_not_there_does_not_hide_the_rest(tmp_path: Path) -> None:
    checks = run_checks(settings(tmp_path))
    assert verdicts(checks) == {
        "settings": CheckOutcome.OK,
        "Java": CheckOutcome.OK,
        "memory": CheckOutcome.OK,
        "Kafka": CheckOutcome.FAILED,
        "source": CheckOutcome.OK,
        "lake": CheckOutcome.OK,
        "state": CheckOutcome.OK,
        "paths": CheckOutcome.OK,
        "buckets": CheckOutcome.OK,
        "schema changes": CheckOutcome.OK,
    }
    assert exit_code(checks) == 75
    assert list(tmp_path.iterdir()) == []


def test_a_client_property_that_does_not_exist_is_the_settings_fault(tmp_path: Path) -> None:
    checks = run_checks(settings(tmp_path, topics="topics: [a], properties: {no.such.thing: 1}"))
    assert exit_code(checks) == 2
    assert "no.such.thing" in next(c.detail for c in checks if c.verdict is CheckOutcome.FAILED)


def test_a_lake_that_cannot_be_written_fails() -> None:
    checks = run_checks(settings(Path("/proc/binlake")))
    assert verdicts(checks)["lake"] is CheckOutcome.FAILED
    assert verdicts(checks)["state"] is CheckOutcome.FAILED


SCHEMAS = "source: {schemas: {shop.orders: {columns: {id: bigint, tier: text}, key: [id]}}}\n"


@pytest.mark.parametrize(
    ("buckets", "partition", "detail"),
    [
        (8, (), None),
        (8, ("tier",), "partition ('tier',) in the lake, () in the settings"),
    ],
)
def test_a_table_of_the_lake_must_be_as_the_settings_say(
    tmp_path: Path, buckets: int, partition: tuple[str, ...], detail: str | None
) -> None:
    make_table(tmp_path, "shop/orders", buckets, partition)
    found = next(c for c in run_checks(settings(tmp_path, more=SCHEMAS)) if c.name == "table shop.orders")
    assert found.verdict is (CheckOutcome.FAILED if detail else CheckOutcome.OK)
    assert detail is None or found.detail.startswith(detail)
    assert found.error is None or found.error.exit_code == 2


def test_the_buckets_of_a_table_of_the_lake_count(tmp_path: Path) -> None:
    make_table(tmp_path, "shop/orders", 4)
    found = next(c for c in run_checks(settings(tmp_path, more=SCHEMAS)) if c.name == "table shop.orders")
    assert (found.verdict, found.detail) == (CheckOutcome.OK, "4 buckets in the lake, which count; 8 in the settings")


@pytest.mark.parametrize("merge", ["newest", "first_row"])
def test_a_table_of_the_lake_must_merge_as_the_settings_say(tmp_path: Path, merge: str) -> None:
    make_table(tmp_path, "shop/orders", 8)
    more = f"{SCHEMAS}tables: {{defaults: {{merge: {{engine: {merge}}}}}}}\n"
    found = next(c for c in run_checks(settings(tmp_path, more=more)) if c.name == "table shop.orders")
    assert found.verdict is (CheckOutcome.OK if merge == "newest" else CheckOutcome.FAILED)
    assert ("its engine is newest, not first_row" in found.detail) == (merge == "first_row")


def test_damaged_properties_are_reported(tmp_path: Path) -> None:
    make_table(tmp_path, "shop/orders", 8)
    file = tmp_path / "shop" / "orders" / ".hoodie" / "hoodie.properties"
    file.write_bytes(b"")
    found = next(c for c in run_checks(settings(tmp_path, more=SCHEMAS)) if c.name == "table shop.orders")
    assert found.error is not None
    assert found.error.exit_code == 66


def test_many_buckets_are_warned_of(tmp_path: Path) -> None:
    checks = run_checks(settings(tmp_path, more=SCHEMAS + "tables: {defaults: {buckets: 500}}"))
    assert verdicts(checks)["buckets"] is CheckOutcome.WARNING


def test_overrides_that_take_nothing_are_warned_of(tmp_path: Path) -> None:
    overrides = "tables: {overrides: [{match: shop.order}, {match: 'shop.*'}, {match: shop.orders}]}"
    chosen = settings(tmp_path, more=SCHEMAS + overrides)
    found = unmatched_tables(chosen, named_tables(chosen, ["p.shop.orders"]))
    assert [one.where for one in found] == ["tables.overrides[0]", "tables.overrides[2]"]


def test_nothing_is_said_of_overrides_while_the_topics_are_unknown(tmp_path: Path) -> None:
    checks = run_checks(settings(tmp_path, more="tables: {overrides: [{match: shop.orders}]}"))
    assert not [c for c in checks if c.verdict is CheckOutcome.WARNING]


def test_declared_types_are_read_as_the_decoder_reads_them(tmp_path: Path) -> None:
    wrong = SCHEMAS.replace("bigint", "bigintt")
    checks = run_checks(settings(tmp_path, more=wrong))
    assert verdicts(checks)["schemas"] is CheckOutcome.FAILED
    assert exit_code(checks) == 2
    assert verdicts(run_checks(settings(tmp_path, more=SCHEMAS)))["schemas"] is CheckOutcome.OK


def test_two_tables_may_not_share_a_path(tmp_path: Path) -> None:
    schemas = "source: {schemas: {a.t: {columns: {id: int}}, b.t: {columns: {id: int}}}}\n"
    found = next(
        c for c in run_checks(settings(tmp_path, more=schemas + "tables: {path: 'x/{table}'}")) if c.name == "paths"
    )
    assert found.detail == "a.t and b.t would share the path x/t"
    assert found.error is not None
    assert found.error.exit_code == 2


@pytest.mark.parametrize(
    ("shard", "verdict", "detail"),
    [
        ("shard: {column: shard, value: '{1}'}", CheckOutcome.OK, "3 tables as p.items; p.old as p.new"),
        ("shard: null", CheckOutcome.FAILED, "p.items_0, p.items_1, p.items_2 would go to p.items"),
    ],
)
def test_routes_are_told_and_judged(tmp_path: Path, shard: str, verdict: CheckOutcome, detail: str) -> None:
    names = ["p.items_0", "p.items_1", "p.items_2", "p.old", "p.other"]
    schemas = "\n".join(f"    {name}: {{columns: {{id: int}}, key: [id]}}" for name in names)
    routes = f"  - {{match: 'p[.]items_(.)', to: p.items, {shard}}}\n  - {{match: 'p[.]old', to: p.new}}"
    more = f"source:\n  schemas:\n{schemas}\ntables:\n  routes:\n{routes}\n"
    found = {c.name: c for c in run_checks(settings(tmp_path, more=more))}
    assert found["routes"].verdict is verdict
    assert detail in found["routes"].detail
    if verdict is CheckOutcome.OK:
        assert found["buckets"].detail.startswith("3 tables known")


def test_what_readers_cannot_do_with_a_stitched_table_is_said(tmp_path: Path) -> None:
    schemas = "source: {schemas: {a.t: {columns: {id: int, x: int}, key: [id]}}}\n"
    sources = "[{name: main, match: a.t}, {name: clicks, match: b.t, columns: {y: y}}]"
    more = f"{schemas}tables: {{stitched: [{{table: l.wide, key: [id], sources: {sources}}}]}}\n"
    found = {c.name: c for c in run_checks(settings(tmp_path, more=more))}
    assert found["readers of l.wide"].verdict is CheckOutcome.WARNING
    assert "stitched from main, clicks" in found["readers of l.wide"].detail


def test_tables_are_known_by_topics_and_schemas(tmp_path: Path) -> None:
    chosen = settings(tmp_path, more=SCHEMAS + "tables: {exclude: ['*.tmp']}")
    topics = ["p.shop.stock", "p.shop.tmp", "p", "p.transaction", "a.b.bank.accounts"]
    expected = [("bank", "accounts"), ("shop", "orders"), ("shop", "stock")]
    assert known_tables(chosen, topics) == [SourceTable(*t) for t in expected]


def create(broker: Broker, topic: str, partitions: int, records: int = 0) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for i in range(records):
        value = json.dumps(event("orders", "c", i, {"id": i, "tier": "x" * 500}))
        producer.produce(topic, key=json.dumps({"id": i}), value=value, partition=i % partitions)
    producer.flush(30)


@pytest.mark.kafka
def test_topics_are_counted_and_read(kafka_broker: Broker, tmp_path: Path) -> None:
    create(kafka_broker, "check1.shop.orders", 3, 5000)
    create(kafka_broker, "check1.shop.empty", 1)
    topics = "topic_pattern: 'check1\\.shop\\..+'"
    checks = run_checks(settings(tmp_path, kafka_broker.bootstrap_servers, SCHEMAS, topics))
    assert exit_code(checks) == 0
    details = {c.name: c.detail for c in checks}
    assert details["topics"] == "2 topics, 4 partitions"
    assert details["read rights"] == "5,000 records can be read"
    assert details["buckets"] == "2 tables known, 2 not in the lake yet"
    assert details["position"] == "a new stream; it begins at the earliest records"
    assert "schema from source.schemas; key id; to shop/orders" in details["records of shop.orders"]


@pytest.mark.kafka
def test_offsets_that_kafka_has_deleted_fail(kafka_broker: Broker, tmp_path: Path) -> None:
    create(kafka_broker, "check6.shop.orders", 1, 10)
    chosen = settings(tmp_path, kafka_broker.bootstrap_servers, SCHEMAS, "topics: [check6.shop.orders]")
    state = open_storage(chosen.state_uri)
    for position, verdict in ((5, CheckOutcome.OK), (2, CheckOutcome.FAILED), (11, CheckOutcome.FAILED)):
        Ledger(chosen.name, batch=1, positions={"check6.shop.orders": {0: position}}).save(state)
        if position == 2:
            admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
            gone = TopicPartition("check6.shop.orders", 0, 4)
            for deleted in admin.delete_records([gone]).values():
                deleted.result()
        checks = run_checks(chosen)
        assert (position, verdicts(checks)["position"]) == (position, verdict)
        assert exit_code(checks) == (0 if verdict is CheckOutcome.OK else 65)


@pytest.mark.kafka
def test_a_record_tells_what_its_format_does_not_carry(kafka_broker: Broker, tmp_path: Path) -> None:
    create(kafka_broker, "check5.shop.orders", 1)
    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    producer.produce("check5.shop.orders", value=b'{"id": 1, "__op": "c", "__deleted": "false"}')
    producer.flush(30)
    checks = run_checks(settings(tmp_path, kafka_broker.bootstrap_servers, topics="topics: [check5.shop.orders]"))
    (said,) = [check for check in checks if check.name == "changes of shop.orders"]
    assert said.verdict is CheckOutcome.WARNING
    assert said.detail.startswith("TRUNCATE and DDL (kafka.ddl_topics is empty) does not come in the flat form")


@pytest.mark.kafka
@pytest.mark.parametrize(
    "topics",
    ["topics: [check2.none.there]", "topic_pattern: 'check2\\..*'", "topics: [check3.a.b], ddl_topics: [check2]"],
)
def test_topics_that_are_not_there_are_the_settings_fault(kafka_broker: Broker, tmp_path: Path, topics: str) -> None:
    if "check3" in topics:
        create(kafka_broker, "check3.a.b", 1)
    checks = run_checks(settings(tmp_path, kafka_broker.bootstrap_servers, topics=topics))
    assert verdicts(checks)["topics"] is CheckOutcome.FAILED
    assert exit_code(checks) == 2


@pytest.mark.kafka
def test_a_check_leaves_no_group_and_no_thread_behind(kafka_broker: Broker, tmp_path: Path) -> None:
    create(kafka_broker, "check4.shop.orders", 1, 1)
    before = threading.active_count()
    run_checks(settings(tmp_path, kafka_broker.bootstrap_servers, topics="topics: [check4.shop.orders]"))
    admin = AdminClient({"bootstrap.servers": kafka_broker.bootstrap_servers})
    groups = admin.list_consumer_groups().result()
    assert GROUP not in {g.group_id for g in groups.valid}
    assert threading.active_count() == before
