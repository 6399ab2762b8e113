"""Every operation on a table of cells and on its wide table: done right, or refused with what to do instead."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.decode.changes import SourceTable
from pipeline.errors import UnsupportedError
from pipeline.hudi.read.slice import read_file_slice
from pipeline.hudi.table.table import HudiTable
from tests.hbase.stores import CELLS, WIDE, Store

BOTH = (CELLS, WIDE)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Half of the entries are applied."""
    found = Store(tmp_path)
    found.deliver()
    found.deliver()
    return found


def restart(store: Store, table: SourceTable) -> None:
    store.restart()


def compact(store: Store, table: SourceTable) -> None:
    (done,) = store.json("compact", str(table), "--now")
    assert done["compacted"] if "compacted" in done else done


def clean_and_archive(store: Store, table: SourceTable) -> None:
    store.deliver()
    store.run("compact", str(table), "--now")
    store.run("clean", str(table))
    store.run("archive", str(table))


def savepoint_and_restore(store: Store, table: SourceTable) -> None:
    """The table goes back by a commit; the stream makes good what was taken back."""
    store.run("savepoint create", str(table), "--comment", "half")
    store.deliver()
    store.run("restore", str(table), "half", "--yes")
    store.restart()


def rebucket(store: Store, table: SourceTable) -> None:
    store.run("rebucket", str(table), "--buckets", "5")
    store.restart()
    assert store.opened(table).table.config.bucket_count == 5


def cluster(store: Store, table: SourceTable) -> None:
    assert "rows may not leave their bucket" in store.run("cluster", str(table), "--now").output


def look(store: Store, table: SourceTable) -> None:
    """What only reads."""
    for command in ("audit", "status --no-kafka", "quarantine list"):
        name, *options = command.split(" --")
        store.run(name, *([] if "quarantine" in name else [str(table)]), *(f"--{option}" for option in options))


def pause_and_resume(store: Store, table: SourceTable) -> None:
    store.run("table pause", str(table))
    store.run("table resume", str(table))


OPERATIONS: tuple[Callable[[Store, SourceTable], None], ...] = (
    restart,
    compact,
    clean_and_archive,
    savepoint_and_restore,
    rebucket,
    cluster,
    look,
    pause_and_resume,
)


@pytest.mark.parametrize("table", BOTH, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_done_right(store: Store, operation: Callable[[Store, SourceTable], None], table: SourceTable) -> None:
    operation(store, table)
    assert store.wrong() == []


REFUSED = {
    "backfill": ["--from", "SELECT 1 AS id", "--columns", "value"],
    "revert --table": ["--since", "2026-01-01T00:00", "--yes"],
    "verify": [],
    "table resync": [],
    "table resync ": ["--from-source"],
}


@pytest.mark.parametrize("table", BOTH, ids=str)
@pytest.mark.parametrize("command", REFUSED)
def test_refused(store: Store, command: str, table: SourceTable) -> None:
    name, *option = command.strip().split(" --")
    with pytest.raises(UnsupportedError) as refused:
        store.run(name, *(f"--{one}" for one in option), str(table), *REFUSED[command])
    assert refused.value.where["table"] == str(table)
    assert refused.value.do_next


# -- buckets and skipping -------------------------------------------------------------------------------------------


def test_cells_of_a_row_stay_in_one_bucket(store: Store) -> None:
    """Also when the buckets become others."""
    for buckets in (None, 7):
        if buckets is not None:
            store.run("rebucket", str(CELLS), "--buckets", str(buckets))
        table, groups = HudiTable.open(store.storage(CELLS)), dict[str, set[str]]()
        for piece in table.file_slices():
            for row in read_file_slice(table, piece, columns=["row"]).column("row").to_pylist():
                groups.setdefault(row, set()).add(piece.file_id)
        assert {len(found) for found in groups.values()} == {1}
        assert len(set.union(*groups.values())) > 1


@pytest.mark.parametrize(("table", "condition"), [(CELLS, "row = 'c07'"), (WIDE, "id = 'c07'")], ids=str)
def test_a_key_is_looked_up_in_one_bucket(store: Store, table: SourceTable, condition: str) -> None:
    said = store.explained(f"SELECT * FROM {table} WHERE {condition}")
    assert [step for step in said["steps"] if step["step"] == "bucket"][0]["slices"] == 1


def test_timestamps_skip_files(store: Store) -> None:
    """Of a table whose cells came in the order of their timestamps."""
    said = store.explained(f"SELECT * FROM {CELLS} WHERE timestamp < 1000")
    assert said["slices"] == 0
