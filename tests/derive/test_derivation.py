"""Wide rows are derived once from the rows that commits of the table of cells have touched, and equal the rules."""

from __future__ import annotations

from pathlib import Path

from tests.derive.cells_lake import CellsLake, delete, number, put


def test_touched_rows_are_derived(tmp_path: Path) -> None:
    here = CellsLake.at(str(tmp_path))
    here.write(put("a", "d:user_id", 10, number(7)), put("b", "d:status", 10, "new"), put("b", "m:x", 10, "1"))
    first = here.deriver.derive(here.pair)
    assert (first.rows, first.upserts, first.gone) == (2, 2, 0)
    assert here.rows() == here.wanted() != []
    assert here.deriver.derive(here.pair).rows == 0  # nothing has completed since
    here.write(put("c", "d:status", 20, "new"), put("a", "d:user_id", 9, number(6)))
    here.write(delete("b", "d:", 30), delete("b", "m:", 30))
    second = here.deriver.derive(here.pair)
    assert (second.rows, second.upserts, second.gone, second.why) == (3, 2, 1, "")
    assert here.rows() == here.wanted()
    assert [row["order_id"] for row in here.rows()] == ["a", "c"]


def test_a_new_process_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    """Also after a crash between the two commits."""
    here = CellsLake.at(str(tmp_path))
    here.write(put("a", "d:status", 10, "new"))
    here.deriver.derive(here.pair)
    here.write(put("b", "d:status", 10, "new"))
    here.reopen()
    done = here.deriver.derive(here.pair)
    assert (done.rows, done.why) == (1, "")
    assert here.rows() == here.wanted()
