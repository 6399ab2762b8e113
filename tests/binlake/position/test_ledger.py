"""The ledger: what it keeps, what it refuses, and a gap told from idleness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.position.ledger import LEDGER, Ledger
from binlake.position.recorded import PassedTransactions, RecordedTransactions
from binlake.source.offsets import NO_RANGES, OffsetRange, Ranges
from hudilake.errors import BadInputError, CorruptDataError
from hudilake.storage import Storage, open_storage

ORDERS = SourceTable("shop", "orders")
ODD = SourceTable("shöp.de", 'a "b", c')


@pytest.fixture
def state(tmp_path: Path) -> Storage:
    return open_storage(tmp_path.as_uri(), {"fsync": "false"})


def full() -> Ledger:
    """A ledger with everything in it."""
    return Ledger(
        stream="shop",
        batch=7,
        positions={"s.shop.orders": {0: 5, 11: 2**40}, "s.shop.new": {}},
        behind={ODD: {"s.shop.odd": {0: 3}}},
        tables={ORDERS: "shop/orders", ODD: "sh@00f6p@002ede/a"},
    )


#: What the code of before wrote, with every key.
WRITTEN_BEFORE = (
    b'{"version":1,"stream":"shop","batch":7,"positions":{"s.shop.orders":{"0":5,"11":1099511627776},"s.shop.new":{}},'
    b'"behind":{"[\\"sh\\u00f6p.de\\", \\"a \\\\\\"b\\\\\\", c\\"]":{"s.shop.odd":{"0":3}}},'
    b'"applied":{"[\\"shop\\", \\"orders\\"]":{"s.shop.orders":{"0":4}}},'
    b'"tables":{"[\\"shop\\", \\"orders\\"]":"shop/orders"},"topic_ids":{"s.shop.orders":"0a"},'
    b'"skipped":{"s.shop.orders":{"0":[[1,2],[3,4]]}},"heights":[["shop","orders","s.shop.orders",0,12,13]],'
    b'"planned":{"s.shop.orders":{"0":6}},"transactions_ms":5,"transactions_ended":["t-1"],"torn":["t-0"]}'
)


def test_a_ledger_survives_its_file(state: Storage) -> None:
    full().save(state)
    assert Ledger.load(state, "shop") == full()


def test_a_ledger_of_before_is_read_and_written_as_it_was(state: Storage) -> None:
    state.write(LEDGER, WRITTEN_BEFORE)
    ledger = Ledger.load(state, "shop")
    assert ledger is not None
    assert (ledger.stream, ledger.batch) == ("shop", 7)
    assert ledger.positions == {"s.shop.orders": {0: 5, 11: 2**40}, "s.shop.new": {}}
    assert ledger.behind == {ODD: {"s.shop.odd": {0: 3}}}
    assert ledger.tables == {ORDERS: "shop/orders"}
    assert (ledger.topic_ids, ledger.heights) == ({"s.shop.orders": "0a"}, {ORDERS: {"s.shop.orders": {0: (12, 13)}}})
    assert ledger.skipped == Ranges([OffsetRange("s.shop.orders", 0, 1, 2), OffsetRange("s.shop.orders", 0, 3, 4)])
    assert ledger.transactions == PassedTransactions(5, ("t-1",), ("t-0",))
    ledger.save(state)
    assert state.read(LEDGER) == WRITTEN_BEFORE


def test_the_same_ledger_is_made_by_its_methods(state: Storage) -> None:
    ledger = Ledger("shop", positions={"s.shop.orders": {0: 5, 11: 2**40}, "s.shop.new": {}})
    ledger.number(6)
    ledger.advance({})
    ledger.note_behind(ODD, {"s.shop.odd": {0: 8}})
    ledger.note_behind(ODD, {"s.shop.odd": {0: 3}})
    ledger.note_behind(ODD, {"s.shop.odd": {0: 4}})
    ledger.table_committed(ORDERS, "shop/orders", {"s.shop.orders": {0: 4}})
    ledger.note_topic_ids({"s.shop.orders": "0a"})
    for first in (1, 3, 1):
        ledger.note_skipped(OffsetRange("s.shop.orders", 0, first, first + 1))
    ledger.climb({ORDERS: {"s.shop.orders": {0: (12, 13)}}})
    ledger.note_planned({"s.shop.orders": {0: 6}})
    ledger.note_transactions(PassedTransactions(5, ("t-1",), ("t-0",)))
    ledger.save(state)
    assert state.read(LEDGER) == WRITTEN_BEFORE


def test_truncates_ahead_of_their_transactions_are_kept(state: Storage) -> None:
    passed = PassedTransactions(5, ("t-1",), (), (("t-2", 6),))
    ledger = Ledger("shop")
    ledger.note_transactions(passed)
    ledger.save(state)
    loaded = Ledger.load(state, "shop")
    assert loaded is not None
    assert loaded.transactions == passed
    recorded = RecordedTransactions("t-1", True, passed, {0: 3})
    assert RecordedTransactions.from_text(recorded.to_text()) == recorded


@pytest.mark.parametrize(
    "name", ["stream", "batch", "positions", "behind", "tables", "topic_ids", "skipped", "heights", "transactions"]
)
def test_a_ledger_is_not_changed_from_outside(name: str) -> None:
    ledger = full()
    with pytest.raises(AttributeError):
        setattr(ledger, name, None)
    for given in (ledger.behind, ledger.tables, ledger.topic_ids, ledger.positions, ledger.behind[ODD]):
        with pytest.raises(TypeError):
            given["x"] = 1  # type: ignore[index]
    assert ledger == full()


def test_a_table_that_is_behind_is_given_what_it_lacks() -> None:
    ledger = Ledger("shop", positions={"t": {0: 10, 1: 5}, "u": {0: 7}}, behind={ODD: {"t": {0: 4, 1: 5}}})
    assert ledger.waiting(ODD) == Ranges([OffsetRange("t", 0, 4, 10)])
    ledger.caught_up(ODD, Ranges([OffsetRange("t", 0, 4, 6)]))
    assert ledger.behind == {ODD: {"t": {0: 6, 1: 5}}}
    ledger.skip_behind(ODD, OffsetRange("t", 0, 6, 8))
    ledger.advance({"t": {0: 12}})
    assert ledger.waiting(ODD) == Ranges([OffsetRange("t", 0, 8, 12)])
    ledger.caught_up(ODD, ledger.waiting(ODD))
    assert (ledger.behind, ledger.batch) == ({}, 1)


def test_a_table_without_anything_to_be_given_is_not_behind_any_more() -> None:
    ledger = Ledger("shop", behind={ODD: {}})
    assert ledger.waiting(ODD) == NO_RANGES
    ledger.caught_up(ODD, NO_RANGES)
    assert ledger.behind == {}


def test_a_commit_records_what_was_passed_over_on_its_way() -> None:
    ledger = Ledger("shop")
    for first, end in ((1, 3), (6, 8), (20, 30)):
        ledger.note_skipped(OffsetRange("t", 0, first, end))
    batch = Ranges([OffsetRange("t", 0, 4, 20), OffsetRange("t", 1, 0, 9)])
    assert ledger.skipped_before(batch, {"t": {0: 4}}) == Ranges([OffsetRange("t", 0, 6, 8)])
    assert ledger.skipped_before(batch, {}) == Ranges([OffsetRange("t", 0, 1, 3), OffsetRange("t", 0, 6, 8)])
    assert ledger.skipped_before(batch, {"t": {0: 8}}) == NO_RANGES


def test_a_restored_table_is_noticed_once() -> None:
    ledger = Ledger("shop", positions={"t": {0: 9, 1: 9}})
    ledger.table_committed(ORDERS, "shop/orders", {"t": {0: 9, 1: 9}})
    assert not ledger.notice_restore(ORDERS, {"t": {0: 9, 1: 9}})
    assert ledger.notice_restore(ORDERS, {"t": {0: 5}})
    assert ledger.behind == {ORDERS: {"t": {0: 5, 1: 0}}}
    assert not ledger.notice_restore(ORDERS, {"t": {0: 5}})


def test_saving_again_replaces_it(state: Storage) -> None:
    full().save(state)
    Ledger("shop", batch=8).save(state)
    assert Ledger.load(state, "shop") == Ledger("shop", batch=8)
    assert [info.path for info in state.list("")] == [LEDGER]


def test_no_ledger_yet(state: Storage) -> None:
    assert Ledger.load(state, "shop") is None


@pytest.mark.parametrize(
    ("stored", "complaint"),
    [
        (b"", "is not JSON"),
        (b'{"version": 1, "str', "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (json.dumps({"version": 1, "stream": "other"}).encode(), "'other'"),
        (json.dumps({"version": 2, "stream": "shop"}).encode(), "version 2"),
        (b"{}", "None"),
    ],
    ids=["empty", "cut short", "not text", "another stream's", "another version's", "nothing in it"],
)
def test_files_that_are_no_ledger_of_this_stream(state: Storage, stored: bytes, complaint: str) -> None:
    state.write(LEDGER, stored)
    with pytest.raises(CorruptDataError, match=complaint) as raised:
        Ledger.load(state, "shop")
    assert raised.value.where["path"] == f"{state.uri}/{LEDGER}"


@pytest.mark.parametrize(
    "start",
    [{}, {"t": {}}, {"t": {0: 5}}, {"t": {0: 4, 1: 0}}, {"t": {2: 100}}, {"u": {0: 100}}],
    ids=["nothing", "no partitions", "the same", "further back", "a new partition", "a new topic"],
)
def test_no_gap(start: dict[str, dict[int, int]]) -> None:
    Ledger("shop", positions={"t": {0: 5, 1: 0}}).check_no_gap(start)


def test_a_gap_names_both_positions() -> None:
    with pytest.raises(BadInputError, match="2 offsets would be lost") as raised:
        Ledger("shop", positions={"t": {0: 5, 1: 0}}).check_no_gap({"t": {1: 0, 0: 7}})
    assert raised.value.where == {"topic": "t", "partition": 0, "spark": 7, "ledger": 5}
    assert raised.value.exit_code == 65
