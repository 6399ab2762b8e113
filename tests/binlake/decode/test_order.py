"""Ordering values: numbers, not texts; epochs; limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from binlake.decode import order
from binlake.decode.changes import ordering_value
from binlake.decode.options import DecodeOptions
from tests.binlake.decode.events import cells, declared, decoded, envelope, reasons

SCHEMA = declared({"id": "int"}, ("id",))


def test_files_compare_by_number() -> None:
    names = ["mysql-bin.000999", "mysql-bin.001000", "mysql-bin.1000000"]
    found = decoded([envelope({"id": 1}, file=name, pos=4) for name in names], SCHEMA)
    orders = cells(found, "__order")
    assert orders == sorted(orders)
    assert len(set(orders)) == 3


@pytest.mark.parametrize(
    "name", ["", "binlog", "bin.", "bin.12a", "bin.-1", "bin.1048576", "bin.١", "bin.99999999999999999999"]
)
def test_names_without_a_usable_number(name: str) -> None:
    assert order.file_number(name) == order.OUT_OF_RANGE


def test_the_columns_agree_with_the_rule() -> None:
    corners = list(itertools.product((0, 2047), (0, 1, 2**20 - 1), (0, 4, 2**32 - 1)))
    epochs = np.array([epoch for epoch, _, _ in corners])
    found = order.streamed_orders(epochs, [f"x.{n}" for _, n, _ in corners], np.array([p for _, _, p in corners]))
    assert found.tolist() == [ordering_value(*corner) for corner in corners]


def test_snapshot_rows_lose_to_any_streamed_row_of_their_epoch() -> None:
    values: list[bytes | None] = [envelope({"id": 1}, op="r", pos=2**31), envelope({"id": 1}, pos=4, file="bin.000001")]
    snapshot, streamed = cells(decoded(values, SCHEMA), "__order")
    assert snapshot < streamed
    next_epoch = cells(decoded(values, SCHEMA, epoch=1), "__order")[0]
    assert streamed < next_epoch


def test_op_tells_not_snapshot() -> None:
    values: list[bytes | None] = [envelope({"id": 1}, snapshot="incremental"), envelope({"id": 1}, snapshot=None)]
    assert cells(decoded(values, SCHEMA), "__order") == [7 << 32 | 100] * 2


def test_an_epoch_that_does_not_fit() -> None:
    found = decoded([envelope({"id": 1}), envelope({"id": 1}, op="r")], SCHEMA, epoch=2048)
    assert reasons(found) == {0: "order_out_of_range", 1: "order_out_of_range"}


def test_epochs_by_server_and_gtid_domain() -> None:
    options = DecodeOptions(
        epoch=1, epoch_of_server=((7, 5),), epoch_of_gtid_domain=(("3", 2), ("3e11fa47-71ca-11e1-9e33-c80aa9429562", 9))
    )
    assert options.epoch_for(None, None) == 1
    assert options.epoch_for(0, None) == 1
    assert options.epoch_for(7, None) == 5
    assert options.epoch_for(7, "3-4711-224") == 2
    assert options.epoch_for(7, "4-4711-224") == 5
    assert options.epoch_for(1, "3e11fa47-71ca-11e1-9e33-c80aa9429562:23") == 9
    values: list[bytes | None] = [envelope({"id": 1}, server_id=7), envelope({"id": 1}, server_id=8, gtid=None)]
    found = decoded(values, SCHEMA, epoch_of_server=((7, 5),))
    assert [value >> 52 for value in cells(found, "__order")] == [5, 0]
