"""Mutants of the guards of the stream, its input and its settings."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_ONCE = "tests/binlake/stream/test_exactly_once.py"
_NAMES = "tests/whole/security/test_names.py"
_RUNS = "tests/binlake/stream/test_several_runs.py"

STREAMS = (
    Mutant(
        "dedupe", "records that a table has applied are dropped", "they are applied again",
        "pipeline/binlake/rows/upsert/route.py",
        "            fresh &= (partitions != partition) | (offsets >= until)\n",
        "            fresh &= (partitions != partition) | (offsets >= 0)\n",
        ("tests/binlake/rows/upsert/test_route.py::test_what_the_table_has_applied_is_dropped",),
    ),
    Mutant(
        "newest-wins", "of changes to one key the newest stays", "the last to arrive stays",
        "pipeline/binlake/rows/upsert/collapse.py",
        "    if _in_order(columns):\n",
        "    if columns:\n",
        ("tests/binlake/rows/upsert/test_collapse.py",),
    ),
    Mutant(
        "changed-key", "a changed key takes its old row away", "the old row stays",
        "pipeline/binlake/rows/upsert/route.py",
        "    if not pc.any(changed).as_py():\n        return keyed, paths\n",
        "    if changed is not None:\n        return keyed, paths\n",
        ("tests/binlake/rows/upsert/test_route.py",),
    ),
    Mutant(
        "null-key", "a row without a key is quarantined", "it is written",
        "pipeline/binlake/rows/upsert/place.py",
        "            null |= values.is_null().to_numpy()\n",
        "            null |= False\n",
        ("tests/binlake/rows/upsert/test_route.py::test_rows_with_a_null_key_are_set_apart",),
    ),
    Mutant(
        "record-whole", "a record with a refused row is refused as a whole", "its other rows go on",
        "pipeline/binlake/rows/upsert/prepare.py",
        "            self.left = self.left & ~np.isin(offsets, offsets[mask])\n",
        "            self.left = self.left & ~mask\n",
        ("tests/binlake/rows/upsert/test_prepare.py::test_a_record_is_rejected_whole",),
    ),
    Mutant(
        "position-gap", "a checkpoint ahead of the tables stops the stream", "records in between are passed over",
        "pipeline/binlake/position/ledger.py",
        "            if self._content.positions.knows(topic, partition) and start > known:\n",
        "            if self._content.positions.knows(topic, partition) and start > known + start:\n",
        ("tests/binlake/position/test_ledger.py::test_a_gap_names_both_positions",),
    ),
    Mutant(
        "position-behind", "a table that failed is caught up", "it is not noted as behind",
        "pipeline/binlake/stream/batches/stream_policy.py",
        "        self._note_behind(batch, outcome, failed)\n",
        "",
        (f"{_ONCE}::test_one_bad_table_does_not_stop_the_others",),
    ),
    Mutant(
        "ledger-of-another", "the ledger of another stream is refused", "it is taken",
        "pipeline/binlake/position/ledger.py",
        'or data.get("stream") != stream:\n',
        "or stream is None:\n",
        ("tests/binlake/position/test_ledger.py::test_files_that_are_no_ledger_of_this_stream",),
    ),
    Mutant(
        "height", "a binlog that begins again stops the stream", "its newer changes lose to older ones",
        "pipeline/binlake/position/binlog_height.py",
        "        if stretch.newest[1] < order and stretch.millis > millis:\n",
        "        if stretch.newest[1] < order and stretch.millis > millis + stretch.millis:\n",
        ("tests/binlake/position/test_binlog_height.py",),
    ),
    Mutant(
        "epoch", "a higher epoch beats every older place", "the epoch is not in the order",
        "pipeline/binlake/decode/options.py",
        "        return self.epoch if mapped_epoch is None else mapped_epoch\n",
        "        return 0 if mapped_epoch is None else mapped_epoch\n",
        ("tests/binlake/decode/test_order.py", "tests/binlake/position/test_binlog_height.py"),
    ),
    Mutant(
        "snapshot-loses", "a snapshot row never beats a streamed row", "it is ordered by its place",
        "pipeline/binlake/decode/order.py",
        "np.where(fits, (epochs << _EPOCH_SHIFT) | seconds, OUT_OF_RANGE)",
        "np.where(fits, (epochs << _EPOCH_SHIFT) | seconds << 20, OUT_OF_RANGE)",
        ("tests/binlake/decode/test_order.py",),
    ),
    Mutant(
        "topic-id", "a topic made anew is told", "its id is not compared",
        "pipeline/binlake/source/positions.py",
        "    changed = sorted(topic for topic, was in remembered.items() if now.get(topic, was) != was)\n",
        "    changed = sorted(topic for topic, was in remembered.items() if now.get(topic, was) is None)\n",
        ("tests/binlake/load/replay/test_dump.py::test_a_topic_that_was_made_anew_is_told",),
    ),
    Mutant(
        "quarantine-threshold", "too many bad records stop the stream", "all of them go to the quarantine",
        "pipeline/binlake/stream/batches/sequence.py",
        "        check_threshold(self._settings.quarantine, outcome.report, batch.ranges)\n",
        "",
        (f"{_ONCE}::test_too_many_bad_records_stop_before_anything_is_written",),
    ),
    Mutant(
        "quarantine-before-commit", "bad records go to the quarantine before their batch commits", "they are forgotten",
        "pipeline/binlake/stream/batches/sequence.py",
        "                outcome.report.quarantined,\n                batch.ranges,\n",
        "                [],\n                batch.ranges,\n",
        (f"{_ONCE}::test_a_batch_is_applied_and_accounted_for", f"{_ONCE}::test_a_refused_table_goes_to_quarantine"),
    ),
    Mutant(
        "lease", "a stream runs once at a time", "a living run is not respected",
        "pipeline/binlake/position/lease.py",
        "            if self._beats.is_dead(heartbeat):\n",
        "            if not self._beats.is_dead(heartbeat) or first is None:\n",
        ("tests/binlake/load/replay/test_dump.py::test_two_services_at_once_are_refused",),
    ),
    Mutant(
        "other-run", "a second run's commits are noticed", "they are taken for our own",
        "pipeline/binlake/tables/lake_table.py",
        "        if self.standing(stream) != before:\n",
        "        if self.standing(stream) is None:\n",
        (f"{_RUNS}::test_another_run_of_the_same_stream_is_not_joined",),
    ),
    Mutant(
        "wrong-bucket", "rows in a bucket that the table does not have stop the writer", "they are passed over",
        "pipeline/hudilake/table/group_names.py",
        "        if place[1] >= (count := computed.bucketing.count(place[0])):\n",
        "        if place[1] >= (count := 1 << 30):\n",
        (f"{_RUNS}::test_rows_in_a_bucket_that_the_table_does_not_have_stop_the_writer",),
    ),
    Mutant(
        "shared-path", "two source tables do not share a lake table unasked", "the second one writes into it",
        "pipeline/binlake/tables/lake_table.py",
        "        if self.source is not None and self.source != target.source:\n",
        "        if self.source is not None and self.source == target:\n",
        (f"{_NAMES}::test_two_tables_of_one_path_do_not_mix",),
    ),
    Mutant(
        "other-columns", "a row with the columns of a former definition is quarantined", "it is written, with nulls",
        "pipeline/binlake/schema/rules/definitions.py",
        "            if mask.any():\n",
        "            if mask.any() and why is None:\n",
        (
            "tests/binlake/schema/test_definitions.py"
            "::test_rows_under_the_names_of_a_replaced_definition_are_refused",
        ),
    ),
    Mutant(
        "columns-for-certain", "a row that a later statement may explain goes on", "it is quarantined",
        "pipeline/binlake/schema/rules/definitions.py",
        "        if not (required or unknown) or not (self.until is not None or self._is_missed(lacking, names)):\n",
        "        if not (required or unknown):\n",
        (
            "tests/binlake/schema/test_definitions.py"
            "::test_images_that_a_later_statement_may_explain_are_not_refused",
        ),
    ),
    Mutant(
        "duplicate-member", "a message that names a member twice is quarantined", "the last one counts",
        "pipeline/binlake/decode/messages/envelopes.py",
        "    if doubled := with_duplicate_members(texts, envelopes):\n",
        "    if doubled := with_duplicate_members(texts, envelopes)[:0]:\n",
        ("tests/binlake/decode/messages/test_bad_input.py",),
    ),
    Mutant(
        "nesting", "deeply nested messages are quarantined", "they are parsed",
        "pipeline/binlake/decode/quarantine.py",
        "    if _nesting(decoded, max_nesting) > max_nesting:\n",
        "    if _nesting(decoded, max_nesting) < 0:\n",
        ("tests/binlake/decode/messages/test_bad_input.py",),
    ),
    Mutant(
        "message-size", "a message that is too large is quarantined", "it is decoded",
        "pipeline/binlake/decode/messages/chunk.py",
        "            elif len(value) > self.options.max_message_bytes:\n",
        "            elif len(value) < 0:\n",
        ("tests/binlake/decode/messages/test_bad_input.py::test_too_large_is_not_even_looked_at",),
    ),
    Mutant(
        "year-range", "a time outside of the years 0000 to 9999 is quarantined", "it is written",
        "pipeline/binlake/decode/types/wires.py",
        '    if span["min"] is not None and not',
        '    if span["min"] is None and not',
        ("tests/whole/security/test_values.py",),
    ),
    Mutant(
        "table-names", "a record of a table that MySQL cannot have is quarantined", "its table is made",
        "pipeline/binlake/decode/changes.py",
        '    return 0 < len(name) <= _MAX_IDENTIFIER and "\\0" not in name\n',
        "    return len(name) < 10_000\n",
        (f"{_NAMES}::test_a_topic_that_names_any_table_it_likes",),
    ),
    Mutant(
        "partition-paths", "a partition value that cannot name a directory is quarantined", "its rows are written",
        "pipeline/binlake/rows/upsert/place.py",
        "    usable = rows.target.usable_paths(rows.paths)\n",
        "    usable = rows.target.usable_paths(rows.paths).fill_null(True).is_valid()\n",
        (f"{_NAMES}::test_partition_values_stay_in_their_table",),
    ),
    Mutant(
        "quarantine-path", "no database writes into the quarantine's directory", "its name is spelled as it is",
        "pipeline/binlake/settings/templates.py",
        "    if identifier == QUARANTINE_DIRECTORY:\n",
        "    if not identifier:\n",
        (f"{_NAMES}::test_a_database_named_like_the_quarantine_is_not_the_quarantine",),
    ),
    Mutant(
        "sql-files", "a computed column reads no files", "DuckDB may read files",
        "pipeline/binlake/rows/upsert/computed.py",
        '        "enable_external_access": "false",\n',
        "",
        ("tests/whole/security/test_code.py::test_a_computed_column_has_no_access_outside",),
    ),
    Mutant(
        "query-files", "a query reads its table only", "DuckDB may read files",
        "pipeline/hudilake/query/sql/connection.py",
        '"enable_external_access": False, ',
        "",
        ("tests/whole/security/test_code.py::test_a_query_reads_its_table_and_nothing_else",),
    ),
    Mutant(
        "line-bytes", "a line of a dump has a bounded length", "a few bytes of gzip fill the memory",
        "pipeline/binlake/source/dump_read.py",
        "        if size > _LINE_BYTES:\n",
        "        if size < 0:\n",
        ("tests/whole/security/test_bombs.py::test_a_compressed_dump_fills_no_memory",),
    ),
    Mutant(
        "terminal", "names steer no terminal", "control characters are printed",
        "pipeline/binlake/cli/text.py",
        "Segment(printable(segment.text), segment.style)",
        "Segment(segment.text, segment.style)",
        ("tests/whole/security/test_text.py::test_commands_print_hostile_names_as_escapes",),
    ),
    Mutant(
        "plan-secrets", "a plan that is printed shows no secret", "it shows Kafka's properties",
        "pipeline/binlake/rows/tasks/plan.py",
        "    kafka: Mapping[str, str] = field(repr=False)\n",
        "    kafka: Mapping[str, str]\n",
        ("tests/whole/security/test_secrets.py::test_no_value_of_the_stream_shows_a_secret_when_printed",),
    ),
)  # fmt: skip
