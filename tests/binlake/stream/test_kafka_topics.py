"""What may happen to a topic: records age out, it is made anew, it gets partitions, its producers abort."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import SparkSession

from binlake.decode.changes import SourceTable
from binlake.position.ledger import LEDGER, Ledger
from binlake.position.topics import Topics
from binlake.source.fetch import fetch
from binlake.source.offsets import OffsetRange, Offsets, Ranges
from binlake.source.positions import end_offsets, topic_ids
from binlake.stream.run import Stream
from binlake.tables.audit import audit
from hudilake.clock import new_uuid
from hudilake.errors import BadInputError
from hudilake.services.fsck import Severity
from hudilake.storage import open_storage
from tests.binlake.stream.kafka_bank import Bank, account, admin_of, make_topic, send
from tests.selection import first
from tests.services.kafka import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BankAt = Callable[..., Bank]


@pytest.fixture
def bank_at(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> BankAt:
    """Makes a stream over a topic of its own, of so many partitions."""

    def make(partitions: int = 1, **kafka: object) -> Bank:
        topic = f"t{new_uuid()[:8]}.shop.accounts"
        make_topic(kafka_broker.bootstrap_servers, topic, partitions)
        return Bank(spark, kafka_broker.bootstrap_servers, topic, tmp_path, **kafka)

    return make


def delete_before(bank: Bank, *ends: int) -> None:
    """Delete the records below these offsets, as retention does."""
    admin = admin_of(bank.servers)
    wanted = [TopicPartition(bank.topic, partition, end) for partition, end in enumerate(ends)]
    for deleted in admin.delete_records(wanted).values():
        deleted.result()


def make_anew(bank: Bank) -> None:
    admin = admin_of(bank.servers)
    config = {"bootstrap.servers": bank.servers}
    admin.delete_topics([bank.topic])[bank.topic].result()
    while topic_ids(config, [bank.topic]):
        pass
    make_topic(bank.servers, bank.topic)


def notices(bank: Bank) -> list[str]:
    return [notice for event in bank.events for notice in event.notices]


# -- case 28 --------------------------------------------------------------------------------------------------------


def test_aged_out_offsets_stop_the_stream_and_are_passed_over_on_demand_only(bank_at: BankAt) -> None:
    bank = bank_at(2)
    for partition in (0, 1):
        send(bank.servers, bank.topic, range(partition * 10, partition * 10 + 10), 100, partition)
    bank.run()
    for partition in (0, 1):
        send(bank.servers, bank.topic, range(partition * 10, partition * 10 + 10), 200, partition)
    delete_before(bank, 15, 12)
    before = bank.owners()
    with pytest.raises(BadInputError) as caught:
        bank.run()
    told = f"7 offsets were deleted .*: {bank.topic}/0: 10..14, {bank.topic}/1: 10..11"
    assert caught.match(told)
    assert "--skip-missing" in caught.value.do_next
    assert (bank.owners(), notices(bank)) == (before, [])
    bank.run(skip_missing=True)
    old, new = {n: f"o{100 + n % 10}" for n in range(20)}, {n: f"o{200 + n % 10}" for n in range(20)}
    lost = {*range(5), 10, 11}
    assert bank.owners() == {n: (old if n in lost else new)[n] for n in range(20)}
    assert [n for n in notices(bank) if f"{bank.topic}/0: 10..14" in n]
    found = audit(open_storage(str(bank.lake_table)))
    warned = [f.what for f in found.findings if f.severity is Severity.WARNING]
    assert [f"{bank.topic}/0: offsets 10 to 14" in warned[0], f"{bank.topic}/1: offsets 10 to 11" in warned[1]] == [
        True
    ] * 2
    assert found.errors == []
    send(bank.servers, bank.topic, [0], 300)
    assert len(bank.run()) == 1, "it goes on as usual"
    assert len([f for f in audit(open_storage(str(bank.lake_table))).findings if f.severity is Severity.WARNING]) == 2


@pytest.mark.parametrize("way", first(1, ["direct", "spark"]))
def test_offsets_that_age_out_under_a_running_stream_are_told_as_exactly(bank_at: BankAt, way: str) -> None:
    bank = bank_at(1, fetch=way)
    send(bank.servers, bank.topic, range(10), 100)
    stream = Stream(bank.settings(), bank.spark, bank.events.append, threading.Event())
    delete_before(bank, 4)
    with pytest.raises(BadInputError, match=f"{bank.topic}/0: 0..3"):
        stream.run(once=True)
    assert not bank.lake_table.exists()
    bank.run(skip_missing=True)
    assert set(bank.owners()) == set(range(4, 10))


def test_a_task_tells_exactly_what_is_gone(bank_at: BankAt) -> None:
    bank = bank_at()
    send(bank.servers, bank.topic, range(10), 100)
    delete_before(bank, 6)
    config = {"bootstrap.servers": bank.servers}
    with pytest.raises(BadInputError, match=r"2\.\.5"):
        list(fetch(config, [OffsetRange(bank.topic, 0, 2, 10)], timeout_s=20, chunk_records=100))
    read = fetch(config, [OffsetRange(bank.topic, 0, 6, 10)], timeout_s=20, chunk_records=100)
    assert sum(len(records) for records in read) == 4


def test_what_tables_that_are_behind_lack_is_told_too(bank_at: BankAt) -> None:
    bank = bank_at()
    send(bank.servers, bank.topic, range(10), 100)
    delete_before(bank, 6)
    source = SourceTable("shop", "accounts")
    behind = {source: {bank.topic: {0: 2}}}
    ledger = Ledger("bank", positions={bank.topic: {0: 10}}, behind=behind)
    topics = Topics(bank.settings().kafka, ledger)
    with pytest.raises(BadInputError, match=r"/0: 2\.\.5"):
        topics.start(whole=True, skip_missing=False)
    assert ledger.behind[source] == {bank.topic: {0: 2}}
    start = topics.start(whole=True, skip_missing=True)
    assert (start.positions, start.missing) == (Offsets({bank.topic: {0: 10}}), [OffsetRange(bank.topic, 0, 2, 6)])
    assert ledger.behind[source] == {bank.topic: {0: 6}}
    assert ledger.skipped == Ranges([OffsetRange(bank.topic, 0, 2, 6)])


# -- case 29 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("records", first(1, [30, 5]), ids=["longer", "shorter"])
def test_a_topic_that_was_made_anew_stops_the_stream(bank_at: BankAt, records: int) -> None:
    bank = bank_at()
    send(bank.servers, bank.topic, range(10), 100)
    bank.run()
    make_anew(bank)
    send(bank.servers, bank.topic, range(records), 200)
    before = bank.owners()
    with pytest.raises(BadInputError, match="created again") as caught:
        bank.run()
    assert bank.topic in str(caught.value)
    with pytest.raises(BadInputError, match="created again"):
        bank.run(skip_missing=True)
    assert bank.owners() == before


@pytest.mark.full
def test_a_topic_made_anew_under_a_running_stream_stops_it(bank_at: BankAt, monkeypatch: pytest.MonkeyPatch) -> None:
    bank = bank_at()
    send(bank.servers, bank.topic, range(10), 100)
    bank.run()
    before = bank.owners()
    monkeypatch.setattr("binlake.position.topics._CHECK_EVERY_S", 0.0)
    stream = Stream(bank.settings(), bank.spark, bank.events.append, threading.Event())
    make_anew(bank)
    send(bank.servers, bank.topic, range(30), 200)
    with pytest.raises(BadInputError, match="created again"):
        stream.run(once=True)
    assert bank.owners() == before


def test_a_ledger_from_before_topic_ids_still_sees_a_shorter_topic(bank_at: BankAt) -> None:
    bank = bank_at()
    send(bank.servers, bank.topic, range(10), 100)
    bank.run()
    state = open_storage(str(bank.place / "lake" / ".binlake" / "bank"))
    stored = json.loads(state.read(LEDGER))
    assert set(stored["topic_ids"]) == {bank.topic}
    state.write(LEDGER, json.dumps(stored | {"topic_ids": {}}).encode())
    make_anew(bank)
    with pytest.raises(BadInputError, match="ends at 0"):
        bank.run()


@pytest.mark.parametrize("start", first(1, ["earliest", "latest"]))
def test_added_partitions_are_read_from_their_beginning_and_told_once(bank_at: BankAt, start: str) -> None:
    bank = bank_at(1, start=start)
    bank.run()
    send(bank.servers, bank.topic, range(5), 100)
    bank.run()
    assert notices(bank) == []
    admin = admin_of(bank.servers)
    admin.create_partitions([NewPartitions(bank.topic, 3)])[bank.topic].result()
    send(bank.servers, bank.topic, range(5, 8), 200, partition=1)
    send(bank.servers, bank.topic, range(3), 300, partition=2)  # keys that lay in another partition before
    bank.run()
    expected = {n: f"o{100 + n}" for n in range(3, 5)} | {n: f"o{195 + n}" for n in range(5, 8)}
    assert bank.owners() == expected | {n: f"o{300 + n}" for n in range(3)}
    assert [n.split(",")[0] for n in notices(bank)] == [f"{bank.topic} has a new partition {p}" for p in (1, 2)]
    send(bank.servers, bank.topic, [1], 250, partition=2)  # older than what it finds: the binlog decides
    bank.run()
    assert bank.owners()[1] == "o301"
    assert len(notices(bank)) == 2


def transact(producer: Producer, bank: Bank, accounts: range, first_pos: int, *, commit: bool) -> None:
    producer.begin_transaction()
    for i, number in enumerate(accounts):
        key, value = account(bank.topic, number, first_pos + i)
        producer.produce(bank.topic, key=key, value=value, partition=0)
    producer.flush(30)
    if commit:
        producer.commit_transaction(30)
    else:
        producer.abort_transaction(30)


@pytest.mark.full
@pytest.mark.parametrize("way", first(1, ["direct", "spark"]))
def test_aborted_records_are_not_read_and_their_gaps_upset_nothing(bank_at: BankAt, way: str) -> None:
    bank = bank_at(1, fetch=way)
    producer = Producer({"bootstrap.servers": bank.servers, "transactional.id": bank.topic})
    producer.init_transactions(30)
    transact(producer, bank, range(5), 100, commit=True)
    transact(producer, bank, range(20), 200, commit=False)
    transact(producer, bank, range(3, 6), 300, commit=True)
    transact(producer, bank, range(20), 400, commit=False)
    document = bank.document

    def small() -> dict[str, object]:
        return {**document(), "batch": {"trigger_interval_ms": 0, "max_events": 7}}

    bank.document = small  # type: ignore[method-assign]
    bank.run()
    expected = {n: f"o{100 + n}" for n in range(3)} | {n: f"o{297 + n}" for n in range(3, 6)}
    assert bank.owners() == expected
    assert sum(e.events_read for e in bank.events) == 8
    assert len(bank.events) > 3
    assert bank.events[-1].lag == 0
    ends = end_offsets({"bootstrap.servers": bank.servers}, Offsets({bank.topic: {0: 0}}), 10)
    assert ends[bank.topic][0] == bank.events[-1].partitions[0].position > 48
    found = audit(open_storage(str(bank.lake_table)))
    assert found.errors == []
    assert sum(c.read for c in found.sums().values()) == 8
    producer.begin_transaction()  # and one that is open: nobody may read it yet, nor what comes behind it
    key, value = account(bank.topic, 1, 500)
    producer.produce(bank.topic, key=key, value=value, partition=0)
    producer.flush(30)
    send(bank.servers, bank.topic, [2], 600)
    assert bank.run() == []
    assert bank.owners() == expected
    producer.commit_transaction(30)
    bank.run()
    assert bank.owners() == expected | {1: "o500", 2: "o600"}
