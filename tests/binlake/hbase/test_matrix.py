"""Every operation on a table of cells and on its wide table: done right, or refused with what to do instead."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from binlake.decode.cells import CELL_KEY
from binlake.decode.changes import SourceTable
from binlake.stream.spark.dataframe import read_dataframe
from hudilake.errors import LakeError, UnsupportedError
from hudilake.query.samples import Samples
from hudilake.read.slice import read_file_slice
from hudilake.read.table_reader import TableReader
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.hbase.recordings import raw_truth
from tests.binlake.hbase.scans import write
from tests.binlake.hbase.stores import CELLS, STORE, WIDE, Store
from tests.binlake.hbase.test_wide_tables import wanted_rows, wide_rows
from tests.binlake.load.replay.test_dump import dump_once
from tests.binlake.stream.dying_store import Answer, Fate, Killed, answers_of
from tests.hypothesis_profile import scaled

BOTH = (CELLS, WIDE)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Half of the entries are applied."""
    found = Store(tmp_path_factory.mktemp("half"))
    found.deliver()
    found.deliver()
    return found


@pytest.fixture
def store(tmp_path: Path, half: Store) -> Store:
    return Store(tmp_path, like=half)


def restart(store: Store, table: SourceTable) -> None:
    store.restart()


def compact(store: Store, table: SourceTable) -> None:
    store.run("compact", str(table), "--now")
    assert not any(piece.log_files for piece in store.opened(table).hudi.file_slices())


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
    assert store.opened(table).hudi.config.bucket_count == 5


def cluster(store: Store, table: SourceTable) -> None:
    assert "rows may not leave their bucket" in store.run("cluster", str(table), "--now").output


def look(store: Store, table: SourceTable) -> None:
    """What only reads."""
    for command in ("audit", "status --no-kafka", "quarantine list"):
        name, *options = command.split(" --")
        store.run(name, *([] if "quarantine" in name else [str(table)]), *(f"--{option}" for option in options))


def pause_and_resume(store: Store, table: SourceTable) -> None:
    said = store.run("table pause", str(table)).stdout
    assert ("Kafka" in said) == (table != WIDE)
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


@pytest.mark.first(1)
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.__name__)
def test_done_right(store: Store, operation: Callable[[Store, SourceTable], None]) -> None:
    for table in BOTH:
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


def test_why_names_sequences_scans_and_derivations(store: Store, tmp_path: Path) -> None:
    (cell, *_) = (c for c in raw_truth(STORE) if c.place.row == b"c00" and c.kind == "Put")
    store.load_scan(tmp_path / "scan", [cell])
    key = f"row=c00,family=n,qualifier={cell.place.qualifier.decode()},timestamp={cell.place.timestamp_ms},kind=Put"
    told = {line["by"]: line["source_position"] for line in store.json("why", str(CELLS), key) if "by" in line}
    assert told["scan"] == "a scan"
    assert told.get("stream", "sequence id ").startswith("sequence id ")
    derived = [line for line in store.json("why", str(WIDE), "c00") if "by" in line]
    assert {line["by"] for line in derived} == {"derivation"}
    assert all(line["source_position"].startswith("cells as of 2") for line in derived)


# -- loads, dumps, deaths ---------------------------------------------------------------------------------------------


def test_a_scan_is_derived(tmp_path: Path) -> None:
    """Into nothing: the wide table is the scan."""
    store = Store(tmp_path / "store")
    store.load_scan(tmp_path / "scan", raw_truth(STORE))
    assert wide_rows(store.world, STORE) == wanted_rows(STORE)
    assert store.wrong() == []


@pytest.mark.full
def test_dump_and_replay(store: Store, tmp_path: Path) -> None:
    """The whole topic is dumped; its replay makes both tables, and beside the stream it changes nothing."""
    dump: dict[str, Any] = {
        "uri": str(tmp_path / "dumps"),
        "path": "{topic}/dt={date}/*.jsonl.gz",
        "options": {"fsync": "false"},
    }
    lakes = (store, Store(tmp_path / "other"))
    for each in lakes:
        each.world.start(dump=dump)
    dump_once(store.world.settings, store.records(), open_storage(dump["uri"], dump["options"]))
    for each in lakes:
        each.run("replay", "--in-process", "--no-display")
    assert wide_rows(lakes[1].world, STORE) == wanted_rows(STORE)
    assert [each.wrong() for each in lakes] == [[], []]


@pytest.mark.first(1)
@pytest.mark.parametrize("answer", [Answer.DONE, Answer.LOST, Answer.FAILED])
def test_a_load_that_dies_is_finished_by_the_next(store: Store, tmp_path: Path, answer: Answer) -> None:
    """At some storage calls each: what was begun is repeated, and nothing is taken twice. The stream has half."""
    write(tmp_path / "scan", raw_truth(STORE))
    calls = Fate()
    _own(store, tmp_path / "count").replay_scan(tmp_path / "scan", calls)
    points = [at for at, (method, _) in enumerate(calls.calls) if answer in answers_of(method)]
    assert len(points) > 10
    for at in points[:: len(points) // scaled(24, 1, divisor=24)]:
        lake = _own(store, tmp_path / f"{at}")
        with contextlib.suppress(Killed, LakeError):
            lake.replay_scan(tmp_path / "scan", Fate(at, answer))
        lake.replay_scan(tmp_path / "scan", Fate())
        assert lake.replay_scan(tmp_path / "scan", Fate()).taken == []
        assert (at, lake.trouble()) == (at, [])


def _own(store: Store, path: Path) -> Store:
    """A copy that no other process writes to: a dead process leaves no locks."""
    found = Store(path, like=store)
    found.world.start(locking={"lock": "process"})
    return found


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
def test_a_key_is_looked_up_in_one_bucket(half: Store, table: SourceTable, condition: str) -> None:
    steps = half.steps(table, condition)
    assert steps["table"] > steps["bucket"] == 1


def test_timestamps_skip_files(half: Store) -> None:
    """By the column statistics of the metadata table."""
    steps = half.steps(CELLS, "timestamp < 1000")
    assert steps["table"] > steps["column stats"] == 0


# -- readers ----------------------------------------------------------------------------------------------------------


def test_samples_are_all_rows(half: Store) -> None:
    """Markers and rows with nulls, too."""
    for table, key in ((CELLS, list(CELL_KEY)), (WIDE, ["id"])):
        given = [row for batch in Samples(half.storage(table), key, complete=False) for row in batch.to_pylist()]
        stored = TableReader.open(half.storage(table)).read(columns=key).read_all().to_pylist()
        assert sorted(map(str, given)) == sorted(map(str, stored))
        assert len(given) > 10


@pytest.mark.full
@pytest.mark.spark
def test_data_frames(half: Store, spark: SparkSession) -> None:
    """A family's map is a column of type map."""
    wide = read_dataframe(spark, str(half.lake / "shop" / WIDE.table), columns=["id", "in_n"]).collect()
    want = wide_rows(half.world, STORE)
    assert {row["id"].encode(): {(b"n", k.encode()): bytes(v) for k, v in row["in_n"].items()} for row in wide} == want
    cells = read_dataframe(spark, str(half.lake / "shop" / CELLS.table), condition="row = 'c07'")
    assert 0 < cells.count() < 479
