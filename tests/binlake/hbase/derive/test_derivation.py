"""Wide rows are derived once from the rows that commits of the table of cells have touched, and equal the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.hbase.derive import derivation
from binlake.hbase.derive import run as run_module
from binlake.hbase.derive.run import DerivationResult
from binlake.hbase.derive.touched import touched_since
from binlake.position import derived_position
from binlake.position.derived_position import CellsMoment, DerivedPosition
from binlake.position.record_reader import RecordReader
from binlake.tables.table_commit import write_and_commit
from hudilake.errors import BadInputError, TransientError
from hudilake.locking.process_identity import ProcessIdentity
from hudilake.read.slice import read_table
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.cleaning import CleaningConfig, clean
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.restore import restore
from hudilake.table.table import HudiTable
from tests.binlake.hbase.derive.cells_lake import CELLS, WIDE, Cell, CellsLake, delete, number, put
from tests.binlake.stream.dying_store import Killed
from tests.programs.crash_points.works import serially


def status(row: str, timestamp: int = 10, value: str = "new") -> Cell:
    return put(row, "d:status", timestamp, value)


def checked(here: CellsLake) -> list[str]:
    """The keys of the wide rows, which are what the rules make of all cells."""
    assert here.rows() == here.wanted()
    return [row["order_id"] for row in here.rows()]


@pytest.fixture
def here(tmp_path: Path) -> CellsLake:
    """Rows a, b and c, derived."""
    lake = CellsLake.at(str(tmp_path / "lake"))
    lake.write(put("a", "d:user_id", 10, number(7)), put("b", "m:x", 10, "1"), status("b"), status("c"))
    assert lake.deriver.derive(lake.pair).why == "nothing is derived yet"
    assert checked(lake) == ["a", "b", "c"]
    return lake


def test_touched_rows_are_derived(here: CellsLake) -> None:
    assert here.deriver.derive(here.pair).rows == 0  # nothing has completed since
    here.write(status("d", 20), put("a", "d:user_id", 9, number(6)))
    here.write(delete("b", "d:", 30), delete("b", "m:", 30))
    done = here.deriver.derive(here.pair)
    assert (done.rows, done.upserts, done.gone, done.why, len(done.instants)) == (3, 2, 1, "", 1)
    assert checked(here) == ["a", "c", "d"]
    here.write(status("b", 29), status("b", 31, "again"))  # the first one is masked
    assert here.deriver.derive(here.pair).rows == 1
    assert checked(here) == ["a", "b", "c", "d"]


def test_a_new_process_goes_on_where_the_last_one_ended(here: CellsLake) -> None:
    """As after a crash between the two commits."""
    here.write(status("d"))
    here.reopen()
    done = here.deriver.derive(here.pair)
    assert (done.rows, done.why) == (1, "")
    assert checked(here) == ["a", "b", "c", "d"]


def test_the_ordering_values_never_fall(here: CellsLake) -> None:
    orders = []
    for at in range(3):
        here.write(status("a", 20 + at))
        here.deriver.derive(here.pair)
        parts = read_table(here.root.sub(here.pair.wide_rules.path), ["order_id", "_binlake_order"])
        orders.append({r["order_id"]: r["_binlake_order"] for part in parts for r in part.to_pylist()}["a"])
    assert orders == sorted(set(orders))
    cells = here.hudi(CELLS).timeline.newest_first()
    assert orders[-1] == int(cells[0].completion_time or "")


def test_a_change_of_the_declaration_derives_every_row(here: CellsLake) -> None:
    here.change(columns={"order_id": ":key", "user_id": "d:user_id#b long", "number": "d:number#b long"})
    here.write(put("a", "d:number", 20, number(1)))
    done = here.deriver.derive(here.pair)
    assert (done.rows, done.why) == (3, "the declaration of the wide table has changed")
    assert [row["number"] for row in here.rows()] == [1, None, None]
    assert checked(here) == ["a", "b", "c"]
    assert here.deriver.derive(here.pair).rows == 0


def test_portions_move_the_position_with_the_last_one(here: CellsLake) -> None:
    here.write(*(status(f"r{at}") for at in range(5)))
    before = here.lake.get(here.pair.wide_rules)
    assert before is not None
    known = before.recorded.derived
    here.deriver.portion_rows = 2
    done = here.deriver.derive(here.pair)
    assert (done.rows, len(done.instants)) == (5, 3)
    notes = [before.hudi.timeline.commit_metadata(write).extra for write in before.hudi.timeline.completed()][-3:]
    found = [derivation_note(extra) for extra in notes]
    assert known is not None
    assert [note.until == known.until for note in found] == [True, True, False]
    assert [note.under_way for note in found] == [True, True, False]
    assert len(checked(here)) == 8


def derivation_note(extra: Mapping[str, str]) -> DerivedPosition:
    """The note of a commit."""
    note = RecordReader.of_commit(extra).derived
    assert note is not None
    return note


@pytest.mark.parametrize("elsewhere", [False, True], ids=["here", "on another machine"])
def test_a_crash_between_portions_is_made_good(
    here: CellsLake, monkeypatch: pytest.MonkeyPatch, elsewhere: bool
) -> None:
    """The first process dies with one portion of three committed. A process of another machine counts as alive for a
    minute."""
    here.write(*(status(f"r{at}") for at in range(5)))
    here.deriver.portion_rows = 2
    with monkeypatch.context() as dying:
        dying.setattr(derivation, "write_and_commit", dies_after(1))
        if elsewhere:
            dying.setattr(run_module, "this_process", lambda: ProcessIdentity("another", 7, 0, ""))
        with pytest.raises(Killed):
            here.deriver.derive(here.pair)
    here.reopen()
    if elsewhere:
        with pytest.raises(TransientError, match="another process derives this wide table anew"):
            here.deriver.derive(here.pair)
        monkeypatch.setattr(derived_position, "SILENT_MS", 0)
    assert here.deriver.derive(here.pair).rows == 5
    assert len(checked(here)) == 8


def dies_after(commits: int) -> Callable[..., Any]:
    """``write_and_commit`` of a process that dies after so many commits."""
    done = 0

    def committing(*arguments: Any) -> Any:  # noqa: ANN401 - as the function
        nonlocal done
        if done == commits:
            raise Killed
        done += 1
        return write_and_commit(*arguments)

    return committing


def test_of_two_processes_one_commits_and_the_other_begins_again(
    here: CellsLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first one has the wide rows in hand, more cells come and a second one derives them all."""
    other = CellsLake(here.settings, here.root, here.sequence, here.written)
    here.write(status("a", 20, "old"))
    raced: list[DerivationResult] = []

    def racing(*arguments: Any) -> Any:  # noqa: ANN401 - as the function
        if not raced:
            raced.append(DerivationResult(WIDE))
            other.sequence = here.sequence
            other.write(delete("a", "d:", 30), status("d", 30))
            raced.append(other.deriver.derive(other.pair))
        return write_and_commit(*arguments)

    monkeypatch.setattr(derivation, "write_and_commit", racing)
    done = here.deriver.derive(here.pair)
    assert (raced[1].rows, done.rows) == (2, 0)  # nothing is left for the first one
    assert checked(here) == ["b", "c", "d"]


def test_a_restore_of_the_table_of_cells_takes_rows_back(here: CellsLake) -> None:
    before = here.hudi(CELLS).timeline.completed()[-1].requested_time
    held = dict(here.written)
    here.write(status("d"), delete("a", "d:", 90))
    here.deriver.derive(here.pair)
    assert checked(here) == ["b", "c", "d"]
    here.reopen()
    restore(here.hudi(CELLS), before)
    here.written = held
    done = here.deriver.derive(here.pair)
    assert done.why == "the table of cells was restored"
    assert checked(here) == ["a", "b", "c"]
    assert here.deriver.derive(here.pair).rows == 0
    here.write(status("d", 40))
    assert here.deriver.derive(here.pair).rows == 1
    assert checked(here) == ["a", "b", "c", "d"]


def test_a_restore_of_the_wide_table_takes_its_position_back(here: CellsLake) -> None:
    before = here.hudi(WIDE).timeline.completed()[-1].requested_time
    here.write(status("d"), delete("a", "d:", 90))
    here.deriver.derive(here.pair)
    here.reopen()
    restore(here.hudi(WIDE), before)
    done = here.deriver.derive(here.pair)
    assert (done.rows, done.why) == (2, "")
    assert checked(here) == ["b", "c", "d"]


def test_a_restore_beside_an_open_deriver(here: CellsLake) -> None:
    """Its next commit finds another note than the one it follows, and it begins again."""
    before = here.hudi(WIDE).timeline.completed()[-1].requested_time
    here.write(status("d"), delete("a", "d:", 90))
    here.deriver.derive(here.pair)
    restore(here.hudi(WIDE), before)
    here.write(status("e"))
    here.deriver.derive(here.pair)
    assert checked(here) == ["b", "c", "d", "e"]


def _twelve_commits(here: CellsLake) -> HudiTable:
    """The table of cells after six commits, a compaction and six more."""
    for at in range(6):
        here.write(status(f"r{at}"))
    compact(here.hudi(CELLS))
    for at in range(6, 12):
        here.write(status(f"r{at}"))
    return here.hudi(CELLS)


def test_archived_commits_do_not_tell_which_rows_they_touched(here: CellsLake) -> None:
    table = _twelve_commits(here)
    compact(table)
    assert archive(table, ArchivalConfig(2, 3)) > 6
    here.reopen()
    done = here.deriver.derive(here.pair)
    assert done.why == "the commits since the last derivation are archived or taken back"
    assert len(checked(here)) == 15


def test_a_write_that_was_pending_and_is_archived_is_not_missed(here: CellsLake) -> None:
    """A slow writer: its commit is requested before the position's, completes after it, and is archived first."""
    table = _twelve_commits(here)
    slow = table.timeline.completed()[0].requested_time
    compact(table)
    assert archive(table, ArchivalConfig(2, 3)) > 6
    table = here.hudi(CELLS)
    kept = next(write for write in table.timeline.completed() if write.action == "deltacommit")
    since = CellsMoment(kept.requested_time, kept.completion_time or "")
    here.write(status("a", 90))
    table = here.hudi(CELLS)
    plain = touched_since(table, since, here.pool)
    assert plain is not None
    assert plain.rows is not None
    missed = touched_since(table, replace(since, pending=(slow,)), here.pool)
    assert missed is not None
    assert (missed.rows, missed.why) == (None, "a commit that completed since the last derivation is archived")
    rolled_back = touched_since(table, replace(since, pending=("20200101000000000",)), here.pool)
    assert rolled_back is not None
    assert rolled_back.rows == plain.rows


def compact(table: HudiTable) -> None:
    """All log files."""
    run(table, CompactionConfig(after_commits=1), serially)


def test_cleaned_files_do_not_tell_which_rows_they_held(here: CellsLake) -> None:
    for at in range(3):
        here.write(status(f"r{at}"), status("a", 20 + at))
    table = here.hudi(CELLS)
    compact(table)
    here.write(status("a", 40), status("b", 40), status("c", 40))
    table = here.hudi(CELLS)
    compact(table)
    assert clean(table, CleaningConfig(commits=1)) is not None
    here.reopen()
    assert here.deriver.derive(here.pair).why == "files of its commits are cleaned"
    assert len(checked(here)) == 6


def test_compactions_touch_no_row(here: CellsLake) -> None:
    here.write(status("d"))
    compact(here.hudi(CELLS))
    here.reopen()
    assert here.deriver.derive(here.pair).rows == 1
    compact(here.hudi(CELLS))
    compact(here.hudi(WIDE))
    here.reopen()
    assert here.deriver.derive(here.pair).rows == 0
    here.write(delete("d", "d:", 30), status("e"))
    assert here.deriver.derive(here.pair).rows == 2
    assert checked(here) == ["a", "b", "c", "e"]


def test_rows_whose_cells_a_foreign_writer_deletes(here: CellsLake) -> None:
    """Keys in delete blocks name rows, too."""
    here.write(status(r"a\x2Cb", 10))
    here.deriver.derive(here.pair)
    assert len(here.rows()) == 4
    here.remove((r"a\x2Cb", "d", "status", 10, "Put"), ("b", "d", "status", 10, "Put"))
    assert here.deriver.derive(here.pair).rows == 2
    assert checked(here) == ["a", "b", "c"]


def test_a_cell_that_does_not_decode_has_one_entry_in_the_quarantine(here: CellsLake) -> None:
    here.write(put("a", "d:user_id", 20, b"bad"), put("b", "z:odd", 20, b"x"))
    assert here.deriver.derive(here.pair).faults == 2
    here.write(status("a", 30), status("b", 30))
    assert here.deriver.derive(here.pair).faults == 2
    assert here.quarantined() == [
        ("cells:shop.orders_cells", "a", b"bad", "bad_value"),
        ("cells:shop.orders_cells", "b", b"x", "unknown_column"),
    ]
    assert checked(here) == ["a", "b", "c"]
    assert here.rows()[0]["user_id"] is None


def test_rows_can_be_derived_again(here: CellsLake) -> None:
    table = here.lake.get(here.pair.wide_rules)
    assert table is not None
    first = table.recorded.derived
    done = here.deriver.derive_rows(here.pair, iter([pa.array(["a"]), pa.array(["b", "none"])]), swept_ms=7)
    assert (done.rows, done.upserts, done.gone) == (3, 2, 1)
    then = table.recorded.derived
    assert first is not None
    assert then is not None
    assert (then.until, then.swept_ms, then.under_way) == (first.until, 7, False)
    assert then.follows_ms is not None
    assert checked(here) == ["a", "b", "c"]


def test_stale_rows_go_where_every_row_is_derived(here: CellsLake) -> None:
    """Rows of the wide table that the table of cells does not know."""
    here.remove(*(key for key in here.written if key[0] == "a"))
    done = here.deriver.derive(here.pair, anew="asked for")
    assert (done.upserts, done.gone) == (2, 1)
    assert checked(here) == ["b", "c"]


def test_too_many_faults_end_a_run_before_anything_is_written(here: CellsLake) -> None:
    here.deriver.max_faults = 1
    here.write(put("a", "z:one", 20, "x"), put("b", "z:two", 20, "x"), status("d"))
    with pytest.raises(BadInputError, match="2 cells have no place in the wide table; the first, z:"):
        here.deriver.derive(here.pair)
    assert [row["order_id"] for row in here.rows()] == ["a", "b", "c"]
    here.deriver.max_faults = 2
    assert here.deriver.derive(here.pair).faults == 2
    assert checked(here) == ["a", "b", "c", "d"]
