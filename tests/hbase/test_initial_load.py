"""Exported scans loaded into tables of cells: every form of file, each file once, beside the stream."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hbase.recordings import RawCell, raw_truth, truth
from tests.hbase.scans import FORMS, cells_in, load, rows_of, settings


def visible_cells(table: str) -> list[RawCell]:
    return [RawCell(place, "Put", value) for place, value in truth(table).items()]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("raw", [False, True])
def test_every_form_gives_the_cells_of_the_scan(tmp_path: Path, form: str, raw: bool) -> None:
    table = "shop:orders"
    cells = raw_truth(table) if raw else visible_cells(table)
    (tmp_path / "scan").mkdir()
    (tmp_path / "scan" / form).write_bytes(FORMS[form](rows_of(cells, raw=raw)))
    config = settings(tmp_path / "lake", {"source": "shop.orders"})
    report = load(config, tmp_path / "scan", table)
    assert [file.path for file in report.taken] == [form]
    assert cells_in(tmp_path / "lake", "shop.orders_cells") == set(cells)
