"""The controls: tables that nobody damaged."""

from __future__ import annotations

from pathlib import Path

from hudilake.services.fsck import Severity
from tests.hudilake import lake
from tests.hudilake.services.fsck.tables import report, rows, rs_rows, told
from tests.paths import GOLDEN

HUDI = GOLDEN / "tbl_hudi120"


def test_a_plain_table_is_clean(plain: Path) -> None:
    found = report(plain)
    assert [f.what for f in found.findings] == ["the table has no metadata table"]
    assert found.errors == 0
    assert found.files == len(lake.data_files(plain)) > 0
    assert rows(plain)


def test_an_indexed_table_is_clean(indexed: Path) -> None:
    found = report(indexed)
    assert found.findings == ()
    assert found.files == len(lake.data_files(indexed))
    assert found.bytes_read == sum((indexed / p).stat().st_size for p in lake.data_files(indexed))
    assert len(rs_rows(indexed)) == len(rows(indexed)) > 0


def test_without_data_nothing_is_read(indexed: Path) -> None:
    found = report(indexed, with_data=False)
    assert (found.findings, found.files, found.bytes_read) == ((), 0, 0)


def test_a_table_that_hudi_wrote_has_no_errors() -> None:
    (only,) = told(HUDI)
    assert only.severity is Severity.WARNING
    assert "as Hudi leaves it" in only.what


def test_an_empty_table_is_clean(tmp_path: Path) -> None:
    lake.new_table(tmp_path)
    assert told(tmp_path) == []
