"""Mutants of the guards of history tables."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_VERSIONS = "pipeline/binlake/rows/merging/engines/versions.py"
_DELIVERY = "tests/binlake/stream/test_history.py::test_any_delivery_gives_the_versions_of_the_log"
_TRACKED = "pipeline/binlake/rows/merging/engines/tracked.py"
_TRACKING = "tests/binlake/rows/merging/engines/test_tracked.py"
_LASTING = "tests/binlake/stream/test_history.py::test_a_delete_is_known_as_long_as_the_table"

HISTORY = (
    Mutant(
        "history-truncates", "a late version ends at a TRUNCATE of an earlier batch", "those of the batch alone count",
        "pipeline/binlake/tables/truncation.py",
        "table.truncates.merged(truncates).ends",
        "truncates.ends",
        ("tests/binlake/stream/test_history.py::test_a_truncate_from_before_the_first_row_of_the_tables_is_kept",),
    ),
    Mutant(
        "history-forgotten", "an event from before all known TRUNCATEs is quarantined", "it is taken",
        "pipeline/binlake/rows/upsert/prepare.py",
        "starts < facts.truncates.forgotten",
        "starts < -1",
        ("tests/binlake/stream/test_history.py::test_commits_name_the_newest_truncates_alone",),
    ),
    Mutant(
        "history-deletes", "a delete ends a version that comes after it", "deletes that are kept are not read",
        _VERSIONS,
        "(dead, START_AT, VALID_FROM)",
        "(dead.slice(0, 0), START_AT, VALID_FROM)",
        (_DELIVERY,),
    ),
    Mutant(
        "history-kept-deletes", "a delete of a history table is kept", "it is forgotten",
        _VERSIONS,
        "made.tombstones if len(made.tombstones) else None)",
        "None)",
        (_LASTING,),
    ),
    Mutant(
        "history-lasting-deletes", "a delete of a history table is kept for ever", "for the retention of tombstones",
        "pipeline/binlake/tables/services/policy.py",
        "None if table.config.merging.keeps_versions else hours",
        "hours",
        (_LASTING,),
    ),
    Mutant(
        "history-late-changes", "a late event mends the change after it", "that change stays",
        "pipeline/binlake/rows/merging/engines/change_rows.py",
        "return event | places.follow(event)",
        "return event",
        ("tests/binlake/stream/test_change_rows.py::test_a_late_event_mends_the_change_after_it",),
    ),
    Mutant(
        "history-known-again", "what the lake knows already makes no row of a bitemporal table", "it makes one",
        "pipeline/binlake/rows/merging/engines/bitemporal.py",
        "same[stored_at] = (",
        "same[stored_at] = False & (",
        ("tests/binlake/stream/test_bitemporal.py::test_an_event_that_comes_again_tells_nothing_new",),
    ),
    Mutant(
        "history-known-taken-back", "a version that a late delete takes back is closed", "it stays open",
        "pipeline/binlake/rows/merging/engines/bitemporal.py",
        "made.overruled | mended",
        "mended",
        ("tests/binlake/stream/test_bitemporal.py::test_a_version_that_is_taken_back_is_closed",),
    ),
    Mutant(
        "history-late-deletes", "a delete is kept whose version a late event ends earlier", "those of the batch alone",
        "pipeline/binlake/rows/merging/engines/row_moments.py",
        "& ~self.at(named)",
        "& (self.rank == EVENT)",
        (_LASTING,),
    ),
    Mutant(
        "history-within", "the events within a version are kept", "none is",
        _TRACKED,
        "(runs.of_several() | again) &",
        "again &",
        (_TRACKING,),
    ),
    Mutant(
        "history-within-again", "an event in the place of one within a version counts", "the former does",
        _TRACKED,
        "(runs.of_several() | again) &",
        "runs.of_several() &",
        (
            "tests/binlake/stream/test_tracked.py"
            "::test_a_batch_ends_within_a_transaction_whose_last_event_begins_a_version",
            _TRACKING,
        ),
    ),
    Mutant(
        "history-within-deleted", "a delete in the place of an event within a version counts", "the event comes back",
        "pipeline/binlake/rows/merging/engines/row_moments.py",
        "lost |= ~self.lives &",
        "lost |= self.lives & ~self.lives &",
        (
            "tests/binlake/stream/test_tracked.py::test_a_delete_in_the_place_of_an_event_within_a_version",
            _TRACKING,
        ),
    ),
    Mutant(
        "history-joined", "a stored version that a late event joins to another is none any more", "it stays",
        _TRACKED,
        "pc.is_in(versions_of(stored), value_set=heads)",
        "pc.is_in(versions_of(stored), value_set=versions_of(stored))",
        (_TRACKING,),
    ),
)  # fmt: skip
