"""A declaration that changes: the wide table follows it, or says what it cannot follow."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hudilake.errors import ConfigError, UnsupportedError
from tests.binlake.hbase.derive.cells_lake import CellsLake, put
from tests.binlake.hbase.rules.slow import encode
from tests.judges import hudi_rs

KEY = {"id": ":key"}
FIRST = {**KEY, "qty": "d:qty#b int", "amount": "d:amount#b decimal(10,2)", "rest": "m: utf8"}


@pytest.fixture
def here(tmp_path: Path) -> CellsLake:
    """Two rows, derived by ``FIRST``."""
    lake = CellsLake.at(str(tmp_path), columns=FIRST)
    for row, qty in (("a", 1), ("b", 2)):
        amount = encode("decimal", Decimal(qty).scaleb(-1))
        lake.write(put(row, "d:qty", 1, encode("int", qty)), put(row, "d:amount", 1, amount), put(row, "m:x", 1, row))
    lake.deriver.derive(lake.pair)
    return lake


def shown(here: CellsLake) -> list[dict[str, Any]]:
    """The rows as hudi-rs shows them."""
    table = hudi_rs.snapshot(str(Path(here.settings.lake.uri) / "shop/orders"))
    names = [name for name in table.column_names if not name.startswith(("_hoodie_", "_binlake_"))]
    return sorted(table.select(names).to_pylist(), key=lambda row: str(row["id"]))


def test_columns_that_are_added(here: CellsLake) -> None:
    here.change(columns={**FIRST, "x": "m:x", "at": ":timestamp", "bytes": "d:.* bytes"})
    here.deriver.derive(here.pair)
    assert [(row["qty"], row["x"], row["at"], row["rest"], row["bytes"]) for row in shown(here)] == [
        (1, "a", 1, None, None),
        (2, "b", 1, None, None),
    ]


@pytest.mark.first(2)
@pytest.mark.parametrize(
    ("columns", "amounts"),
    [
        ({"amount": "d:amount#b decimal(12,2)"}, ["0.10", "0.20"]),
        ({"amount": "d:amount#b decimal(10,3)"}, ["0.100", "0.200"]),
        ({"amount": "d:amount#b decimal(5,1)"}, ["0.10", "0.20"]),  # the table's column holds more
    ],
)
def test_types_that_are_widened(here: CellsLake, columns: dict[str, str], amounts: list[str]) -> None:
    here.change(columns={**FIRST, **columns})
    here.deriver.derive(here.pair)
    assert [str(row["amount"]) for row in shown(here)] == amounts


@pytest.mark.first(2)
@pytest.mark.parametrize(
    "columns",
    [
        {**FIRST, "qty": "d:qty utf8"},
        {**FIRST, "qty": "d:qty bytes"},
        {**FIRST, "rest": "m: bytes"},
        {**FIRST, "rest": "m:x"},
        {**FIRST, "id": ":key bytes"},
    ],
)
def test_other_types_are_refused(here: CellsLake, columns: dict[str, str]) -> None:
    before = shown(here)
    here.change(columns=columns)
    with pytest.raises(UnsupportedError, match=r"column '\w+' was .* and now comes as .* needs another name"):
        here.deriver.derive(here.pair)
    assert shown(here) == before


def test_a_column_that_is_left_out_stays_and_is_null(here: CellsLake) -> None:
    here.change(columns={**KEY, "qty": "d:qty#b int"}, wide={"undeclared": "drop"})
    here.deriver.derive(here.pair)
    assert shown(here) == [
        {"id": "a", "qty": 1, "amount": None, "rest": None},
        {"id": "b", "qty": 2, "amount": None, "rest": None},
    ]


def test_another_name_of_the_key_is_another_table(here: CellsLake) -> None:
    here.change(columns={**FIRST, "id": "d:id", "other": ":key"})
    with pytest.raises(ConfigError, match="record_key_fields is"):
        here.deriver.derive(here.pair)
