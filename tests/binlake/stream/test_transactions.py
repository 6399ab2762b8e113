"""The recorded bank: at every moment, by every reader, its accounts hold a million."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from binlake.decode.changes import RawRecords, SourceTable
from binlake.decode.messages.transactions import Mark
from binlake.position.ledger import Ledger
from binlake.rows.tasks.boundary import Survey
from binlake.rows.tasks.decode_and_route import decode_records
from binlake.rows.tasks.plan import BatchPlan, Item
from binlake.rows.tasks.write_parcels import write_parcels
from binlake.source.offsets import OffsetRange, Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import recover
from binlake.stream.transactions import Transactions, survey_records
from binlake.tables.lake import Lake
from hudilake.errors import BadInputError
from hudilake.read import TableReader
from hudilake.storage import open_storage
from tests.binlake.decode.recordings import topics
from tests.binlake.stream.topic_log import services, settings
from tests.hypothesis_profile import usually
from tests.judges import hudi_rs

PREFIX = "bank_plain"
TRANSACTIONS = f"{PREFIX}.transaction"
ACCOUNTS = SourceTable("bank", "accounts")
COLUMNS = {
    "accounts": {
        "id": "int",
        "owner": "varchar(40)",
        "balance": "decimal(15,2)",
        "version": "int",
        "updated": "timestamp(6)",
    },
    "transfers": {
        "id": "bigint",
        "src": "int",
        "dst": "int",
        "amount": "decimal(15,2)",
        "at": "datetime(6)",
    },
}
MILLION = Decimal("1000000.00")


@lru_cache(maxsize=1)
def recorded() -> dict[tuple[str, int], RawRecords]:
    """The topics of accounts, transfers and transactions."""
    names = [TRANSACTIONS, *(f"{PREFIX}.bank.{t}" for t in COLUMNS)]
    found = topics("bank", "plain")
    return {(name, partition): records for name in names for partition, records in found[name].items()}


def cut_out(of: OffsetRange) -> RawRecords:
    """The records of a range."""
    whole = recorded()[of.topic, of.partition]
    first, end = np.searchsorted(whole.offsets, [of.start, of.end]).tolist()
    return RawRecords(
        of.topic,
        of.partition,
        whole.offsets[first:end],
        whole.timestamps_ms[first:end],
        whole.keys[first:end],
        whole.values[first:end],
    )


def offset_at(topic: str, partition: int, time_ms: int) -> int:
    """The first offset of that time or later."""
    records = recorded()[topic, partition]
    return int(np.searchsorted(records.timestamps_ms, time_ms)) + int(records.offsets[0])


class Engine:
    """Batches in this process."""

    def run(self, plan: BatchPlan, ranges: Sequence[OffsetRange], *, shuffle: bool) -> list[Item]:
        items = decode_records(plan, (cut_out(r) for r in ranges))
        return list(write_parcels(plan, items) if shuffle else items)


def survey(topic: str, ranges: Sequence[OffsetRange]) -> Survey:
    return survey_records(topic, (cut_out(r) for r in ranges))


class Bank:
    """A stream over the recording into a lake; ``whole``: with whole transactions only."""

    def __init__(self, path: Path, whole: bool, tables: dict[str, Any] | None = None, **batch: Any) -> None:  # noqa: ANN401
        self.kafka_ends: list[Offsets] = []
        schemas = {f"bank.{t}": {"columns": columns, "key": ["id"]} for t, columns in COLUMNS.items()}
        self.path = path
        self.settings = settings(
            str(path),
            [],
            kafka={
                "bootstrap_servers": "127.0.0.1:1",
                "topics": [f"{PREFIX}.bank.{t}" for t in COLUMNS],
                "transaction_topic": TRANSACTIONS,
            },
            source={"schemas": schemas},
            tables=(tables or {}) | {"defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 20}}},
            batch={"transaction_consistent": whole, **batch},
        )
        self.batches = 0
        self.start()

    def start(self) -> None:
        """A new process."""
        root = open_storage(str(self.path), {"fsync": "false"})
        self.state = root.sub(".binlake/shop")
        lake = Lake(root)
        ledger = Ledger.load(self.state, "shop") or recover(self.settings, root, lake)
        for source in ledger.tables:
            lake.get(self.settings.table_rules(source))
        self.cutter = Transactions(self.settings, ledger, survey, offset_at) if self.whole else None
        registry = SchemaRegistry(self.settings)
        self.runner = BatchRunner(
            self.settings, lake, self.state, ledger, registry, services(), self.cutter, ends=self._ends
        )

    def _ends(self, places: Offsets) -> Offsets:
        """What Kafka says: the next of ``kafka_ends``."""
        return self.kafka_ends.pop(0)

    @property
    def whole(self) -> bool:
        return self.settings.batch.transaction_consistent

    def batch(self, end: Offsets) -> ProgressEvent:
        self.batches += 1
        event = self.runner.run(self.batches, end, 0, Engine())
        assert [t.error for t in event.tables if t.error] == []
        return event

    def sums(self) -> Decimal:
        """What the accounts hold together."""
        rows = TableReader.open(f"{self.path}/bank/accounts").read(columns=["balance"]).read_all()
        return Decimal(sum(rows.column("balance").to_pylist()))


def ends(random: Random, steps: int) -> list[Offsets]:
    """Where Kafka stood at busy moments of the recording, after the snapshot; no two partitions at quite the same
    moment, for that is how a consumer sees them."""
    records = recorded()
    changed = sorted(int(ms) for (t, _), r in records.items() if t.endswith(".transfers") for ms in r.timestamps_ms)
    moments = sorted(random.choices(changed, k=steps))
    found: list[Offsets] = []
    for moment in moments:
        reached = ((t, p, offset_at(t, p, moment - random.randint(0, 300))) for t, p in records)
        found.append(Offsets.of_places(reached).furthest(found[-1] if found else {}))
    whole = Offsets.of_places((t, p, int(held.offsets[-1]) + 1) for (t, p), held in records.items())
    return [*found, whole]


@pytest.mark.full
@pytest.mark.parametrize("seed", usually([1], [1, 2, 3]))
def test_the_sum_holds_at_every_instant(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    bank = Bank(tmp_path, whole=True)
    for step, end in enumerate(ends(random, 12)):
        event = bank.batch(end)
        assert bank.sums() == MILLION, f"after batch {step}: {event.notices}"
        if step == 6:
            bank.start()
        if step == 9:
            bank.state.delete("ledger.json")
            bank.start()
    assert event.notices == ()
    accounts = hudi_rs.snapshot(tmp_path / "bank/accounts")
    assert sum(accounts.column("balance").to_pylist()) == MILLION
    assert len(hudi_rs.snapshot(tmp_path / "bank/transfers")) == len(_transfers())
    timeline = TableReader.open(f"{tmp_path}/bank/accounts").table.timeline
    commits = [i.requested_time for i in timeline.completed() if i.action == "deltacommit"]
    for instant in commits[:: max(1, len(commits) // 4)]:
        assert sum(hudi_rs.as_of(tmp_path / "bank/accounts", instant).column("balance").to_pylist()) == MILLION


def _transfers() -> set[str]:
    return {str(key) for (topic, _), r in recorded().items() if topic.endswith(".transfers") for key in r.keys}


@pytest.mark.full
def test_a_batch_says_where_all_tables_stood_unless_the_ledger_was_lost(tmp_path: Path) -> None:
    bank, said = Bank(tmp_path, whole=True), []
    for step, end in enumerate(ends(Random(1), 4)):
        if step == 3:
            bank.state.delete("ledger.json")
            bank.start()
        began = dict(bank.runner.ledger.positions.get(TRANSACTIONS, {}))
        bank.batch(end)
        assert bank.cutter is not None
        assert bank.cutter.recorded is not None
        said.append(bank.cutter.recorded.after)
        assert said[-1] in (began, None)
    assert [after is None for after in said] == [True, False, False, True, False]


@pytest.mark.full
def test_without_it_the_sum_breaks(tmp_path: Path) -> None:
    """The control."""
    bank = Bank(tmp_path, whole=False)
    sums = []
    for end in ends(Random(1), 12):
        bank.batch(end)
        sums.append(bank.sums())
    assert sums[-1] == MILLION
    assert len([s for s in sums if s != MILLION]) >= 6


def test_a_transaction_that_takes_too_long_stops_the_stream_or_is_split(tmp_path: Path) -> None:
    end = ends(Random(5), 3)[0]
    end = end.merge({TRANSACTIONS: {p: offset - 200 for p, offset in end[TRANSACTIONS].items()}})
    bank = Bank(tmp_path / "stop", whole=True, transaction_max_events=20)
    with pytest.raises(BadInputError, match="is not complete") as caught:
        bank.batch(end)
    assert "transaction_overdue" in str(caught.value)
    bank = Bank(tmp_path / "split", whole=True, transaction_max_events=20, transaction_overdue="split")
    event = bank.batch(end)
    assert "overdue" in event.notices[0]
    bank.batch(ends(Random(5), 3)[-1])
    assert bank.sums() == MILLION


def test_a_stream_begins_at_the_oldest_record_of_the_transaction_topic(tmp_path: Path) -> None:
    """Its partitions are looked through by several tasks, which answer in no order."""
    late, early = Mark("t-2", 1, 0, 2_000), Mark("t-1", 0, 0, 1_000)
    ledger = Ledger("shop")
    cutter = Transactions(Bank(tmp_path, whole=True).settings, ledger, lambda *_: Survey([late, early]), lambda *_: 99)
    planned = [OffsetRange(TRANSACTIONS, 0, 0, 1), OffsetRange(TRANSACTIONS, 1, 0, 1)]
    assert cutter.cut(planned).ranges == []
    assert ledger.transactions.ms == 1_000


#: It began and ended in this millisecond, in which no other one did.
_LAST, _ITS_MS = "3-4711-7117", 1795242747315


def _until_the_last(bank: Bank) -> Offsets:
    """A batch up to that transaction, after which the source falls silent."""
    end = Offsets.of_places((t, p, offset_at(t, p, _ITS_MS + 1)) for t, p in recorded())
    assert bank.batch(end).notices == (f"3 records wait for the end of transaction {_LAST}",)
    return end


def _behind_the_last(bank: Bank) -> bool:
    return bank.cutter is not None and bank.cutter.recorded is not None and bank.cutter.recorded.last == _LAST


def test_the_last_transaction_of_a_silent_source_is_applied(tmp_path: Path) -> None:
    """Of a transaction topic with several partitions, a record of its millisecond could still have come."""
    bank = Bank(tmp_path, whole=True)
    end = _until_the_last(bank)
    bank.kafka_ends = [end, end]
    assert bank.runner.look_again(Engine()) is None
    event = bank.runner.look_again(Engine())
    assert event is not None
    assert event.notices == ()
    assert _behind_the_last(bank)
    assert bank.sums() == MILLION
    assert not bank.runner.has_waiting
    bank.start()  # what it has noted holds for the next process
    assert bank.batch(ends(Random(1), 1)[-1]).notices == ()
    assert bank.sums() == MILLION


@pytest.mark.full
def test_it_waits_while_kafka_has_more(tmp_path: Path) -> None:
    bank = Bank(tmp_path, whole=True)
    end = _until_the_last(bank)
    more = end.merge({TRANSACTIONS: {p: offset + 1 for p, offset in end[TRANSACTIONS].items()}})
    bank.kafka_ends = [end, more, more, end]
    assert [bank.runner.look_again(Engine()) for _ in range(4)] == [None] * 4
    assert bank.runner.has_waiting


def test_a_transaction_without_its_end_is_overdue_on_a_silent_source_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = Bank(tmp_path, whole=True)
    end = ends(Random(5), 3)[0]
    end = end.merge({TRANSACTIONS: {p: offset - 1 for p, offset in end[TRANSACTIONS].items()}})
    bank.batch(end)
    bank.kafka_ends = [end] * 4
    monkeypatch.setattr("binlake.stream.transactions.monotonic_s", count(1e9, 300.5).__next__)
    with pytest.raises(BadInputError, match="is not complete"):
        assert [bank.runner.look_again(Engine()) for _ in range(4)] == []


def test_messages_without_metadata_stop_the_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = {
        place: RawRecords(
            r.topic,
            r.partition,
            r.offsets,
            r.timestamps_ms,
            r.keys,
            [v if v is None else v.replace(b'"transaction":{', b'"other":{') for v in r.values],
        )
        for place, r in recorded().items()
    }
    monkeypatch.setattr("tests.binlake.stream.test_transactions.recorded", lambda: bare)
    with pytest.raises(BadInputError, match="names no transaction"):
        Bank(tmp_path, whole=True).batch(ends(Random(1), 1)[0])
