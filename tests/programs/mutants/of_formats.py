"""Mutants of the guards against taking for nothing what a format does not say."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_TOMBSTONES = "tests/binlake/stream/test_tombstones.py"
_NULLS = "tests/binlake/stream/test_nulls_left_out.py"
_IMAGES = "tests/binlake/stream/test_missing_images.py"
_COUNTED = "tests/binlake/load/replay/test_counted_once.py"
_FILES = "tests/binlake/load/replay/test_files.py"

FORMATS = (
    Mutant(
        "before-unsaid", "an update that has no before image is quarantined where that decides",
        "its row counts as one that stays in its partition",
        "pipeline/binlake/decode/options.py",
        "        return self.before_of != \"all\" and source in self.before_of\n",
        "        return False\n",
        (f"{_IMAGES}::test_a_row_that_may_have_left_its_partition",),
    ),
    Mutant(
        "deletes-unsaid", "a topic whose messages do not say deletes is known to later batches", "it is forgotten",
        "pipeline/binlake/stream/batches/planning.py",
        "deletes_unsaid_in=unsaid.intersection(starts) if batch.end else unsaid,",
        "deletes_unsaid_in=frozenset(),",
        (f"{_TOMBSTONES}::test_a_lone_tombstone_of_the_flat_form_is_no_nothing",),
    ),
    Mutant(
        "tombstone-again", "a batch that counted tombstones runs again once its messages say no deletes",
        "what was counted stays counted",
        "pipeline/binlake/stream/batches/learning.py",
        "        lone = not ledger.deletes_unsaid_in.isdisjoint(report.lone_tombstones)\n",
        "        lone = False\n",
        (f"{_TOMBSTONES}::test_messages_elsewhere_in_the_batch_tell_that_deletes_are_not_said",),
    ),
    Mutant(
        "nulls-unsaid", "a table whose messages leave nulls out is known to later batches", "it is forgotten",
        "pipeline/binlake/stream/batches/planning.py",
        "                nulls_unsaid_in=self._policy.ledger.nulls_unsaid_in,\n",
        "",
        (f"{_NULLS}::test_a_message_before_shows_it",),
    ),
    Mutant(
        "nulls-again", "a batch that took values for unchanged runs again once its messages leave nulls out",
        "what was taken stays taken",
        "pipeline/binlake/stream/batches/learning.py",
        "        return lone or not ledger.nulls_unsaid_in.isdisjoint(report.nulls.trusted)\n",
        "        return lone\n",
        (f"{_NULLS}::test_a_message_of_the_same_batch_shows_it",),
    ),
    Mutant(
        "nulls-replayed", "a doubted update stays in the quarantine until the settings say what it left out",
        "newer messages decide",
        "pipeline/binlake/load/replay/quarantine_write.py",
        "            nulls = False\n",
        "            nulls = None\n",
        (f"{_NULLS}::test_newer_messages_that_have_nulls_count",),
    ),
    Mutant(
        "tombstone-replayed", "a doubted tombstone stays in the quarantine until the settings say what it is",
        "it counts as one that changes nothing",
        "pipeline/binlake/load/replay/quarantine.py",
        "self._registry.options(frozenset())), doubts_tombstones=True)",
        "self._registry.options(frozenset())), doubts_tombstones=False)",
        (f"{_TOMBSTONES}::test_a_doubted_tombstone_stays_until_the_settings_say_what_it_is",),
    ),
    Mutant(
        "out-of-turn", "facts of an hour that is replayed after a later one wait in the quarantine",
        "they count as delivered",
        "pipeline/binlake/load/replay/dump_policy.py",
        "            refuse_out_of_turn(table, brought, table_input.left_out)\n",
        "            assert table\n",
        (f"{_COUNTED}::test_an_hour_after_a_later_one_waits_in_the_quarantine",),
    ),
    Mutant(
        "refused-known", "records that a refused table has already do not wait in the quarantine", "all of them do",
        "pipeline/binlake/rows/upsert/prepare.py",
        "        out.reject(batch.rows, fresh, TABLE_REFUSED,",
        "        out.reject(batch.rows, _all(batch), TABLE_REFUSED,",
        (f"{_COUNTED}::test_hours_below_those_of_a_stream",),
    ),
    Mutant(
        "dump-closed", "a dump of a form that is not read is refused as a whole", "its bytes are read as lines",
        "pipeline/binlake/source/dump_packing.py",
        "    if not _is_text(head) and not any(",
        "    if not head and not any(",
        (f"{_FILES}::test_a_file_of_another_form_is_refused_whole",),
    ),
    Mutant(
        "dump-damaged", "a damaged line at the begin of a dump is quarantined alone", "its file is refused",
        "pipeline/binlake/source/dump_packing.py",
        "line.startswith(b\"{\") and _is_text(line[:HEAD_BYTES]) for line in first",
        "not line for line in first",
        (f"{_FILES}::test_a_damaged_line_at_the_begin_is_a_line",),
    ),
)  # fmt: skip
