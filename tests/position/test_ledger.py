"""The ledger: what it keeps, what it refuses, and a gap told from idleness."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.decode.changes import SourceTable
from pipeline.errors import BadInputError, CorruptDataError
from pipeline.position.ledger import LEDGER, Ledger
from pipeline.storage import Storage, open_storage

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


def test_a_ledger_survives_its_file(state: Storage) -> None:
    full().save(state)
    assert Ledger.load(state, "shop") == full()


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
