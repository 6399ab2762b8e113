"""Mutants of the guards of derived tables."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_RUNS = "tests/binlake/hbase/derive/test_derivation.py"

DERIVATION = (
    Mutant(
        "derived-upon",
        "of two processes that derive one commits",
        "the note that a commit follows is not compared",
        "pipeline/binlake/tables/lake_table.py",
        "        if mine.follows_ms != (newest.derived_ms if newest is not None else None):\n",
        "        if newest is not None and newest.derived_ms < 0:\n",
        (f"{_RUNS}::test_of_two_processes_one_commits_and_the_other_begins_again",),
    ),
    Mutant(
        "derived-last",
        "the position moves with the last portion",
        "it moves with the first one",
        "pipeline/binlake/hbase/derive/derivation.py",
        "run.next(found if last else None)",
        "run.next(found)",
        (f"{_RUNS}::test_a_crash_between_portions_is_made_good",),
    ),
    Mutant(
        "derived-restore",
        "a restore of the table of cells derives every row",
        "restores are not looked at",
        "pipeline/binlake/hbase/derive/touched.py",
        "    if any(_completed(restore) > since.completed for restore in restores):\n",
        '    if any(_completed(restore) > "~" for restore in restores):\n',
        (f"{_RUNS}::test_a_restore_of_the_table_of_cells_takes_rows_back",),
    ),
    Mutant(
        "derived-pending",
        "a commit that was pending at the position is not missed",
        "pending commits are forgotten",
        "pipeline/binlake/hbase/derive/touched.py",
        "    history = timeline.history() if since.pending else None\n",
        "    history = None\n",
        (f"{_RUNS}::test_a_write_that_was_pending_and_is_archived_is_not_missed",),
    ),
    Mutant(
        "derived-stale",
        "rows that the table of cells does not know go",
        "they stay",
        "pipeline/binlake/hbase/derive/derivation.py",
        "            self._commit(run, len(keys), [(nothing, keys)], run.next(None))\n",
        "            self._commit(run, len(keys), [(nothing, keys.slice(0, 0))], run.next(None))\n",
        (f"{_RUNS}::test_stale_rows_go_where_every_row_is_derived",),
    ),
    Mutant(
        "derived-held",
        "a wide table that cannot be derived waits for a person",
        "its error is told, and not noted",
        "pipeline/binlake/stream/batches/stream_policy.py",
        "        self._control.stop_if_final(source, error)\n",
        "        _ = self._control, source, error\n",
        (
            "tests/binlake/hbase/derive/test_derived_stream.py::test_a_wide_table_that_cannot_be_derived_is_stopped_alone",
        ),
    ),
)
