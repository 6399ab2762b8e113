"""A commit that dies before and after every storage call; recovery; the index is the truth, and the rows are a model's.

The control runs the same points over a commit that publishes before the index knows, and must see it fail.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi import HudiTableBuilder

from hudilake.errors import CorruptDataError
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.services.upkeep import maintain
from hudilake.storage.local import LocalStorage
from hudilake.table.table import HudiTable
from tests.hudilake.failing_storage import Killed
from tests.hudilake.metadata.below import Dying
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.selection import first

SCHEMA = arrow_schema({"n": pa.int32(), "day": pa.string()})
CONFIG = MetadataConfig(compact_after=3, compact_at_most=3, archive_after=4, archive_keep=2)
Step = Callable[[IndexedTable], None]


def _row(number: int, order: int) -> dict[str, Any]:
    return {"id": number, ORDER: order, "n": order, "day": f"d{number % 2}"}


BATCH, GONE = [_row(n, 9) for n in (1, 2, 50)], [_row(3, 9)]


def right_order(table: IndexedTable) -> None:
    """The index first; then its upkeep, which is due."""
    instant, results, delta = table.begin_write(BATCH, GONE)
    table.metadata.apply(instant, delta)
    table.table.commit(instant, results)
    maintain(table.metadata)


def publish_before_index(table: IndexedTable) -> None:
    """The wrong order."""
    instant, results, delta = table.begin_write(BATCH, GONE)
    table.table.commit(instant, results)
    table.metadata.apply(instant, delta)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> IndexedTable:
    """A table before the step; to be copied, not changed."""
    path = tmp_path_factory.mktemp("made") / "t"
    table = IndexedTable(path, SCHEMA, part="day", config=MetadataConfig(compact_after=99, compact_at_most=99))
    for order in range(5):
        table.write([_row(n, order) for n in range(6)])
    table.config = table.metadata.config = CONFIG
    return table


def _rows(table: IndexedTable) -> dict[int, int]:
    return {number: row["n"] for number, row in table.rows().items()}


def _by_hudi_rs(path: Path) -> dict[int, int]:
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return {row["id"]: row["n"] for batch in batches for row in pa.table(batch).to_pylist()}


def _dies_well(made: IndexedTable, path: Path, step: Step, at: int, before: bool) -> bool:
    """Run the step until it dies at a call, recover, and check what is there; False if it makes fewer calls."""
    table = made.copied(path)
    old = _rows(table)
    table.storage = Dying(LocalStorage(path, fsync=False), at=-1)
    table.reopen()
    table.storage.calls.clear()
    table.storage.at, table.storage.before = at, before
    try:
        step(table)
    except Killed:
        pass
    else:
        return False
    table.storage = LocalStorage(path, fsync=False)
    table.recover()
    rows = _rows(table)
    new = {**old, 1: 9, 2: 9, 50: 9}
    del new[3]
    assert rows in (old, new)
    assert _by_hudi_rs(path) == rows
    opened = HudiTable.open(table.storage)
    reader = MetadataReader.open(table.storage, opened.config.metadata_partitions, opened.timeline)
    files = reader.files(reader.partition_paths())
    assert {(p, n): s for p, names in files.items() for n, s in names.items()} == table.listed()
    assert not table.metadata.timeline.pending()
    table.write([_row(60, 10)])
    assert _by_hudi_rs(path) == _rows(table) == {**rows, 60: 10}
    return True


@pytest.mark.parametrize("first_call", first(1, [0, 2, 4]))
def test_every_point(made: IndexedTable, tmp_path: Path, first_call: int) -> None:
    """How many calls there are differs a little between runs: file names decide which file groups are touched."""
    for before in (True, False):
        at = first_call
        while _dies_well(made, tmp_path / f"{before}{at}", right_order, at, before):
            at += 6
        assert at > 60


def test_the_wrong_order_fails(made: IndexedTable, tmp_path: Path) -> None:
    at, failures, alive = 0, 0, True
    while alive:
        try:
            alive = _dies_well(made, tmp_path / f"{at}", publish_before_index, at, before=False)
        except (AssertionError, CorruptDataError):
            failures += 1
        at += 6
    assert failures > 0
