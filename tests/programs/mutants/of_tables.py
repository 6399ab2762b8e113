"""Mutants of the guards of the table format and the stores."""

from __future__ import annotations

from tests.programs.mutants.mutant import Mutant

_CRASH = "tests/hudilake/table/test_crash_points.py"
_CLUSTERING = "tests/binlake/tables/test_clustering.py"
_LATE = "tests/hudilake/commit/test_late_files.py"
_WRITERS = "tests/hudilake/table/test_several_writers.py"
_TWO_WRITERS = "tests/binlake/tables/test_two_writers.py"
_SIDE_BY_SIDE = "tests/hudilake/actors/test_side_by_side.py"
_TABLE = "tests/hudilake/table/test_table.py"
_ORDERED = "tests/hudilake/services/compaction/test_ordered.py"
_COMPACTION = "tests/hudilake/services/compaction/test_service.py"
_LATE_BEGIN = (
    "tests/hudilake/metadata/test_services.py::test_a_call_of_a_dead_initialisation_that_lands_late_stops_nobody"
)

TABLES = (
    Mutant(
        "lock", "commits of one table are made under its lock", "the file lock is taken though another holds it",
        "pipeline/hudilake/locking/file_lock.py",
        "        except AlreadyExistsError:\n            return self._refused()\n",
        "        except AlreadyExistsError:\n            self._storage.write(LOCK_PATH, body)\n",
        ("tests/hudilake/locking/test_file_lock.py",),
    ),
    Mutant(
        "lock-lost", "a lock that somebody took away is noticed", "the lock's file is not looked at again",
        "pipeline/hudilake/locking/file_lock.py",
        'return "" if self._holds(lease.body) else "its file was deleted or replaced by somebody else"',
        'return ""',
        ("tests/hudilake/locking/test_file_lock.py",),
    ),
    Mutant(
        "lock-takeover", "of several that replace a dead lock, one gets it", "a dead lock is deleted without a claim",
        "pipeline/hudilake/locking/file_lock.py",
        "            still = find_lock(self._storage) == dead and began.age_s() < self._validity_s / 2\n",
        "            still = True\n",
        ("tests/hudilake/locking/test_takeover.py", "tests/hudilake/locking/test_file_lock.py"),
    ),
    Mutant(
        "storage-lock", "the lock of object stores is respected while it is valid", "it counts as expired",
        "pipeline/hudilake/locking/storage_lock.py",
        "if current and self._is_held(current[0]):\n                return self._held(*current)\n            data",
        "if current and not current:\n                return self._held(*current)\n            data",
        ("tests/hudilake/locking/test_storage_lock.py",),
    ),
    Mutant(
        "storage-lock-version", "the lock's file is replaced only in the version that was read",
        "a renewal that meets another owner's version writes over it",
        "pipeline/hudilake/locking/storage_lock.py",
        "            if not current or not self._is_ours(current[0]):\n"
        '                return "another process has replaced its file"\n            lease.version',
        "            assert current\n            lease.version",
        ("tests/hudilake/locking/test_storage_lock.py",),
    ),
    Mutant(
        "fence", "an instant completes only while its lock is held", "the lock is not checked at the completing write",
        "pipeline/hudilake/locking/fenced.py",
        "            self.lock.check()\n",
        "            pass\n",
        ("tests/hudilake/locking/test_fenced.py", _WRITERS),
    ),
    Mutant(
        "heartbeat-check", "a writer whose heartbeat expired does not commit", "the heartbeat is not checked",
        "pipeline/hudilake/table/publisher.py",
        "        state.ownership.check(instant)\n",
        "",
        ("tests/hudilake/commit/test_commit.py",),
    ),
    Mutant(
        "heartbeat-respect", "a living writer's instant is not rolled back", "every one counts as abandoned",
        "pipeline/hudilake/locking/ownership.py",
        "        if self._beats.beats(instant):\n            return False\n        heartbeat",
        "        if instant:\n            return True\n        heartbeat",
        (_WRITERS,),
    ),
    Mutant(
        "heartbeat-foreign", "a heartbeat that somebody else took is not kept alive", "its content is not compared",
        "pipeline/hudilake/locking/heartbeat.py",
        "            if self._storage.read(path) != body:\n",
        "            if self._storage.read(path) is None:\n",
        ("tests/hudilake/locking/test_heartbeat.py",),
    ),
    Mutant(
        "completion-check", "an instant is completed once", "files of the instant in the timeline are not looked at",
        "pipeline/hudilake/commit/commit.py",
        "    if completed:\n        raise LostOwnershipError(",
        "    if completed and not completed:\n        raise LostOwnershipError(",
        (_TABLE, _WRITERS),
    ),
    Mutant(
        "inflight-check", "an instant that another writer rolled back is not published", "it is not looked for",
        "pipeline/hudilake/commit/commit.py",
        "    if not {inflight.file_name, inflight.in_state(State.REQUESTED).file_name} <= names:\n",
        "    if not names and inflight is None:\n",
        ("tests/hudilake/commit/test_commit.py",),
    ),
    Mutant(
        "read-back", "a completing write whose answer was lost is read back", "it counts as failed",
        "pipeline/hudilake/commit/commit.py",
        "        if not landed:\n            raise\n",
        "        raise\n",
        (_TABLE,),
    ),
    Mutant(
        "unknown-outcome", "a completing write without an answer ends as unknown", "it counts as done",
        "pipeline/hudilake/commit/commit.py",
        "        if not landed and isinstance(error, OutcomeUnknownError):\n",
        "        if isinstance(error, OutcomeUnknownError):\n            return\n        if not landed and landed:\n",
        (_TABLE, "tests/binlake/stream/test_exactly_once.py"),
    ),
    Mutant(
        "overtaken", "a commit on an old state of the table is written again", "commits since the begin are not seen",
        "pipeline/hudilake/table/publisher.py",
        "        self._check_not_overtaken(mine, begun)\n",
        "",
        (_WRITERS, "tests/hudilake/actors/test_orders.py"),
    ),
    Mutant(
        "check-completed", "a commit on an old state of the table is refused before it is written",
        "what has completed is looked at under the lock alone",
        "pipeline/hudilake/table/overtaking.py",
        "        table.refresh()\n        check_completed(table, mine, begun)\n",
        "        table.refresh()\n",
        (_TWO_WRITERS,),
    ),
    Mutant(
        "check-pending", "a commit waits for a living writer's older instant on its file groups",
        "pending instants are not looked at",
        "pipeline/hudilake/table/overtaking.py",
        "next(_in_the_way(table, requested, mine), None) if waits else None",
        "None",
        (_TWO_WRITERS,),
    ),
    Mutant(
        "positions-of-all", "the newest commit records the positions of all streams",
        "what others recorded since the begin is forgotten",
        "pipeline/binlake/tables/lake_table.py",
        "            self._take_over(record.stream, context.instant)\n",
        "",
        (_TWO_WRITERS,),
    ),
    Mutant(
        "columns-out-of-turn", "a commit that changes the columns was requested last",
        "requested times are not compared",
        "pipeline/hudilake/table/overtaking.py",
        "    if columns != theirs and last is not None and last.requested_time > instant:\n",
        "    if False:\n",
        (_SIDE_BY_SIDE,),
    ),
    Mutant(
        "ranges-out-of-turn", "ranges of a partition stay wide when a commit ends out of turn",
        "they are recorded under the commit's own instant",
        "pipeline/hudilake/metadata/table.py",
        "        if self._is_overruled(instant):\n",
        "        if False:\n",
        (_SIDE_BY_SIDE,),
    ),
    Mutant(
        "foreign-action", "nothing is written beside a pending clustering or restore", "pending actions are not seen",
        "pipeline/hudilake/table/table.py",
        "        self.state.refuse_foreign()\n",
        "",
        (_WRITERS,),
    ),
    Mutant(
        "planned-by-hudi", "no commit writes a file group that Hudi plans to replace", "its plan is not looked at",
        "pipeline/hudilake/table/publisher.py",
        "        refuse_planned(mine, state.planned(), state.config.name)\n",
        "",
        (f"{_CLUSTERING}::test_a_plan_of_hudi_keeps_changes_away_from_its_file_groups",),
    ),
    Mutant(
        "give-way", "a clustering leaves out what commits have changed since its plan", "it publishes all units",
        "pipeline/hudilake/services/clustering/completion.py",
        "    sound = {unit.groups for unit in holding(table, job.units, job.time)}\n",
        "    sound = {unit.groups for unit in job.units}\n",
        (f"{_CLUSTERING}::test_a_clustering_gives_way_to_changes",),
    ),
    Mutant(
        "dead-clustering", "the clustering of a dead process is rolled back", "it stays inflight",
        "pipeline/hudilake/commit/planned.py",
        "        return self.takes_in or (self.ours and self.instant.state is State.INFLIGHT)\n",
        "        return self.takes_in\n",
        (f"{_CLUSTERING}::test_an_execution_that_dies_is_rolled_back",),
    ),
    Mutant(
        "clock", "a timeline far ahead of the clock is refused", "the clock is not compared",
        "pipeline/hudilake/table/table.py",
        "        check_clock(self.timeline, self.config.name)\n",
        "",
        (f"{_TABLE}::test_the_clock_jumps_back_an_hour",),
    ),
    Mutant(
        "times-apart", "a replacecommit and a commit have different times", "it takes its time as commits do",
        "pipeline/hudilake/table/table.py",
        "            times, owner = self.clock.next, self.ownership\n",
        "            times, owner = self.clock.next_begin, self.ownership\n",
        (f"{_WRITERS}::test_a_replacecommit_and_a_commit_have_different_times",),
    ),
    Mutant(
        "monotonic-instants", "instants only grow", "the wall clock alone gives them",
        "pipeline/hudilake/clock.py",
        "            earliest = max(now_ms(), self._last_ms + 1)\n",
        "            earliest = now_ms()\n",
        (f"{_TABLE}::test_the_clock_jumps_back_an_hour", f"{_TABLE}::test_times_only_grow"),
    ),
    Mutant(
        "config-check", "a table whose configuration was changed is refused", "hoodie.properties is not compared",
        "pipeline/hudilake/format/definition/config.py",
        "            if item.name not in free and expected != actual:\n",
        "            if item.name in free and item.name not in free:\n",
        (
            f"{_TABLE}::test_a_configuration_changed_under_us_is_refused",
            "tests/hudilake/format/definition/test_config.py",
        ),
    ),
    Mutant(
        "marker", "a marker is written before its data file", "no marker is written",
        "pipeline/hudilake/format/files/file_group_write.py",
        "    if not context.has_markers:\n"
        '        storage.write(marker_path(context.instant, group.partition_path, name), b"")\n',
        "",
        (f"{_CRASH}::test_no_data_file_before_its_marker",),
    ),
    Mutant(
        "marker-list", "the list of markers is written before the data files", "it is not written",
        "pipeline/hudilake/format/files/file_group_write.py",
        "    at_once([partial(storage.write, path, data) for path, data in files.items()])\n",
        "    partial(at_once, files)\n",
        (f"{_CRASH}::test_no_data_file_before_the_list_of_markers",),
    ),
    Mutant(
        "rollback-files", "a rollback deletes the files of the dead commit", "they stay",
        "pipeline/hudilake/commit/rollback.py",
        "        storage.delete(in_partition(partition, name))\n",
        "        in_partition(partition, name)\n",
        ("tests/hudilake/commit/test_rollback.py",),
    ),
    Mutant(
        "rollback-completed", "a commit that completed is not rolled back", "the timeline is not looked at again",
        "pipeline/hudilake/commit/rollback.py",
        "    check_not_completed(storage, target.requested_time)\n    plan",
        "    plan",
        ("tests/hudilake/commit/test_commit.py",),
    ),
    Mutant(
        "rollback-inflight", "a commit that a dead process was rolling back is not completed",
        "its pending rollback is not looked at",
        "pipeline/hudilake/table/publisher.py",
        "        if instant in rolled_back_since(state.storage, state.timeline, [inflight]):",
        "        if instant in rolled_back_since(state.storage, state.timeline, []):",
        (
            "tests/hudilake/commit/test_late_completion.py"
            "::test_a_living_writer_does_not_complete_what_a_dead_process_was_rolling_back",
        ),
    ),
    Mutant(
        "first-commit", "the active timeline begins before every commit that is rolled back", "it may begin after it",
        "pipeline/hudilake/commit/late_files.py",
        "    if not is_first(timeline, requested_time):\n",
        "    if requested_time:\n",
        (f"{_LATE}::test_of_a_tables_first_commit",),
    ),
    Mutant(
        "dead-first", "what dead writers have begun is rolled back before a commit completes", "it stays pending",
        "pipeline/hudilake/table/table.py",
        "                self._publisher.roll_back_dead(instant)\n",
        "",
        ("tests/hudilake/commit/test_late_completion.py",),
    ),
    Mutant(
        "late-completion", "a running writer looks for the late completed file of a rollback",
        "it lists what is near its own commits alone",
        "pipeline/hudilake/format/timeline/timeline.py",
        "LOOKBACK_MS), *self._undone, *(",
        "LOOKBACK_MS), *(",
        ("tests/hudilake/commit/test_late_completion.py::test_a_running_writer_deletes_it_however_far_its_own_commits_are",),
    ),
    Mutant(
        "late-files", "files of rolled back commits are gone before archival passes these", "they stay",
        "pipeline/hudilake/services/archival.py",
        "            delete_late_files(table.storage, table.timeline, instants)\n",
        "",
        (f"{_LATE}::test_of_a_commit_that_archival_passes",),
    ),
    Mutant(
        "replaced-files", "a replacecommit stays active while files of what it replaced are there", "it is archived",
        "pipeline/hudilake/services/archival.py",
        "    if any(write.action == REPLACE_COMMIT for write in old):\n",
        "    if any(write.action == REPLACE_COMMIT for write in old[:0]):\n",
        ("tests/binlake/tables/test_rebucket.py::test_the_counts_outlive_the_archival_of_the_move",),
    ),
    Mutant(
        "index-before-commit", "the metadata table is told before the commit completes", "it is told afterwards",
        "pipeline/hudilake/table/publisher.py",
        "        self.upkeep.note(instant, files, columns)\n"
        "        partitions = dict.fromkeys(stat.partition_path for stat in stats)\n"
        "        new_partitions = tuple(p for p in partitions if p not in self._known_partitions)\n"
        "        state.begin_partitions(new_partitions)\n"
        "        avro = avro_schema(columns, state.config.name, with_meta=False)\n"
        "        plan = CommitPlan(\n            inflight=inflight,\n            completion_time=state.clock.next(),\n"
        "            metadata=_body(inflight, stats, {**keys, **said, SCHEMA_KEY: avro}, replaced),\n"
        "            new_partitions=new_partitions,\n        )\n"
        "        completed = apply_commit(state.storage, plan)\n",
        "        partitions = dict.fromkeys(stat.partition_path for stat in stats)\n"
        "        new_partitions = tuple(p for p in partitions if p not in self._known_partitions)\n"
        "        state.begin_partitions(new_partitions)\n"
        "        avro = avro_schema(columns, state.config.name, with_meta=False)\n"
        "        plan = CommitPlan(\n            inflight=inflight,\n            completion_time=state.clock.next(),\n"
        "            metadata=_body(inflight, stats, {**keys, **said, SCHEMA_KEY: avro}, replaced),\n"
        "            new_partitions=new_partitions,\n        )\n"
        "        completed = apply_commit(state.storage, plan)\n        self.upkeep.note(instant, files, columns)\n",
        ("tests/hudilake/table/test_metadata_commits.py::test_the_order_of_calls",),
    ),
    Mutant(
        "stale-plan", "a compaction whose plan lacks a commit's file is given up", "its plan is not checked",
        "pipeline/hudilake/services/compaction/completion.py",
        "        if missing := sorted(logs - names):\n",
        "        if missing := sorted(logs - logs):\n",
        (f"{_COMPACTION}::test_a_commit_that_slipped_in_before_the_plan_is_noticed",),
    ),
    Mutant(
        "older-writer", "a compaction waits for writers that began before it", "they are not looked for",
        "pipeline/hudilake/services/compaction/completion.py",
        "    if older := _older_writers(table, time):\n",
        "    if older := _older_writers(table, time)[:0]:\n",
        (f"{_WRITERS}::test_a_compaction_does_not_overtake", _COMPACTION),
    ),
    Mutant(
        "index-late-begin", "what a dead initialisation of the metadata table has begun late goes",
        "it is taken for a commit that has completed on the table alone",
        "pipeline/hudilake/metadata/services/upkeep.py",
        "        if pending.action == DELTA_COMMIT and pending.requested_time <= LAST_INITIAL_INSTANT:\n",
        "        if pending.action == DELTA_COMMIT and pending.requested_time < \"0\":\n",
        (_LATE_BEGIN,),
    ),
    Mutant(
        "index-late-inflight", "of it the inflight file goes, too", "the requested one alone",
        "pipeline/hudilake/metadata/services/upkeep.py",
        "    for state in (State.INFLIGHT, State.REQUESTED):\n",
        "    for state in (State.REQUESTED,):\n",
        (_LATE_BEGIN,),
    ),
    Mutant(
        "index-late-requested", "of it the requested file goes, too", "the inflight one alone",
        "pipeline/hudilake/metadata/services/upkeep.py",
        "    for state in (State.INFLIGHT, State.REQUESTED):\n",
        "    for state in (State.INFLIGHT,):\n",
        (_LATE_BEGIN,),
    ),
    Mutant(
        "index-late-timeline", "what has gone is not pending any more", "the timeline is as it was read",
        "pipeline/hudilake/metadata/services/upkeep.py",
        "        table.storage.delete(initial.in_state(state).path)\n"
        "    table.timeline = Timeline.load(table.storage)\n",
        "        table.storage.delete(initial.in_state(state).path)\n",
        (_LATE_BEGIN,),
    ),
    Mutant(
        "page-checksum", "damaged pages of Parquet are told", "page checksums are not verified",
        "pipeline/hudilake/format/files/parquet_file.py",
        "page_checksum_verification=True",
        "page_checksum_verification=False",
        ("tests/hudilake/read/test_slice.py::test_a_flipped_bit_is_an_error_that_names_the_place_or_changes_nothing",),
    ),
    Mutant(
        "block-length", "a log block that is cut short is passed over", "its two lengths are not compared",
        "pipeline/hudilake/format/files/log_file.py",
        "    if pointer - len(MAGIC) != length:\n        return None\n",
        "    if pointer is None:\n        return None\n",
        ("tests/hudilake/format/files/test_log_file.py", "tests/hudilake/services/fsck/test_content.py"),
    ),
    Mutant(
        "uncommitted-files", "files of commits that did not complete are no rows", "they count",
        "pipeline/hudilake/format/files/view.py",
        "    return (as_of is None or instant <= as_of) and timeline.is_completed(instant)\n",
        "    return as_of is None or instant <= as_of\n",
        ("tests/hudilake/format/files/test_view.py",),
    ),
    Mutant(
        "uncommitted-blocks", "log blocks of commits that did not complete are no rows", "they count",
        "pipeline/hudilake/read/slice.py",
        "        return self.timeline.is_completed(instant)\n",
        "        return True\n",
        ("tests/hudilake/read/test_slice.py::test_blocks_of_instants_that_are_not_completed_are_passed_over",),
    ),
    Mutant(
        "create-if-absent", "a file is created once", "an exclusive create replaces",
        "pipeline/hudilake/storage/local.py",
        "self._put(self._absolute(path), data, os.link)",
        "self._put(self._absolute(path), data, os.replace)",
        ("tests/hudilake/storage/test_behaviour.py", "tests/hudilake/storage/test_local.py"),
    ),
    Mutant(
        "fsync-data", "data is on the disk before its name is", "data is not synced",
        "pipeline/hudilake/storage/local_calls.py",
        "        if sync and data:\n            os.fsync(descriptor)\n",
        "        if not sync:\n            os.fsync(descriptor)\n",
        ("tests/hudilake/storage/test_local.py",),
    ),
    Mutant(
        "fsync-directory", "a name is on the disk before the call returns", "the directory is not synced",
        "pipeline/hudilake/storage/local.py",
        "        try:\n            self._sync(directory)\n        except OSError as error:\n",
        "        try:\n            target.isascii()\n        except OSError as error:\n",
        ("tests/hudilake/storage/test_local.py",),
    ),
    Mutant(
        "paths", "no path leads out of the storage's root", "`..` is a name like others",
        "pipeline/hudilake/storage/paths.py",
        "    if _REFUSED.search(path):\n",
        "    if not path:\n",
        ("tests/whole/security/test_names.py::test_control_such_paths_are_refused",),  # nothing is deleted
    ),
    Mutant(
        "exclusive-probe", "a store that lets a file be created twice is refused", "the probe is not looked at",
        "pipeline/hudilake/storage/exclusive.py",
        "    if not sound:\n",
        "    if not sound and sound:\n",
        ("tests/hudilake/storage/test_objects.py::test_check_finds_a_store_that_ignores_the_condition",),
    ),
    Mutant(
        "base-order", "base files are written in the wanted order", "those that are sorted by key stay so",
        "pipeline/hudilake/write/base_write.py",
        "        if outline.order is None:\n            try:\n",
        "        if log is not None:\n            try:\n",
        (_ORDERED,),
    ),
    Mutant(
        "nan-statistics", "a column with NaN has no statistics", "they are written without NaN",
        "pipeline/hudilake/write/base_sink.py",
        "        if self._pages is not None and self._with_nan:\n",
        "        if self._pages is not None and not self._rows:\n",
        (f"{_ORDERED}::test_a_column_with_nan_has_no_statistics",),
    ),
    Mutant(
        "split-keys", "keys that went to another file of a split are told for that file alone",
        "they are told for both files",
        "pipeline/hudilake/write/group_writer.py",
        "        if other.keys is not None:\n",
        "        if other.keys is not None and not files:\n",
        ("tests/hudilake/write/test_base_writer.py::test_a_file_that_grows_too_large_is_split",),
    ),
    Mutant(
        "taken-in-whole", "what a refresh takes in is taken in whole or not at all",
        "after an error the timeline keeps what the table has not followed",
        "pipeline/hudilake/format/timeline/timeline.py",
        "            self._pending, self._completed, self._writes, self._latest, self._listed_to = before\n",
        "            del before\n",
        ("tests/hudilake/table/test_torn_refresh.py",),
    ),
    Mutant(
        "definitions-kept", "table definitions among the rows are stored before their rows",
        "those that the store did not take are taken for stored",
        "pipeline/binlake/stream/definitions/schemas.py",
        "            self._definitions.keep(self._unkept)\n            self._unkept = []\n",
        "            kept, self._unkept = self._unkept, []\n            self._definitions.keep(kept)\n",
        ("tests/binlake/stream/test_format_streams.py",),
    ),
)  # fmt: skip
