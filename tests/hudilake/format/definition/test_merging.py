"""The property that says how a table's writer merges."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.definition.config import TableConfig
from hudilake.format.definition.merging import MERGING_PROPERTY, ColumnGroup, Merging

CONFIG = TableConfig("t", ("id",), "_binlake_order", 4)
STITCHED = Merging("stitched", (ColumnGroup("orders"), ColumnGroup("tracking", ("seen", "place"), "row")))


def test_a_table_without_the_property_is_merged_by_its_readers() -> None:
    assert CONFIG.merging == Merging()
    assert not CONFIG.merging.by_writer
    assert CONFIG.with_merging(STITCHED).with_merging(Merging()) == CONFIG


@pytest.mark.parametrize("merging", [STITCHED, Merging("aggregate", (), (("amount", "sum"), ("n", "count")))])
def test_the_property_survives_the_file(merging: Merging) -> None:
    stored = TableConfig.from_properties(CONFIG.with_merging(merging).to_properties())
    assert stored.merging == merging


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"engine":"best","groups":[],"functions":{}}'])
def test_a_property_that_cannot_be_read(text: str) -> None:
    with pytest.raises(CorruptDataError, match=r"binlake\.merging cannot be read"):
        _ = replace(CONFIG, extra={MERGING_PROPERTY: text}).merging


def test_a_group_without_columns_has_those_that_no_other_group_names() -> None:
    columns = ("place", "total", "seen", "note")
    orders, tracking = STITCHED.groups
    assert STITCHED.columns_of(orders, columns) == ("total", "note")
    assert STITCHED.columns_of(tracking, columns) == ("place", "seen")
    assert tracking.order_field == "_binlake_order_tracking"
