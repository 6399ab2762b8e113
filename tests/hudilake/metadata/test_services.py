"""TableServices: compaction, cleaning and archival change no answer, stay bounded, and survive a writer's death."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake.errors import CorruptDataError
from hudilake.format.definition.metadata_partition import MetadataPartition
from hudilake.format.files.hfile.reader import HFileReader
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.format.timeline.history import History
from hudilake.format.timeline.history_writer import move_to_history
from hudilake.format.timeline.instant import CLEAN, COMMIT, DELTA_COMMIT, SAVEPOINT, Instant, State, parse_name
from hudilake.format.timeline.timeline import Timeline
from hudilake.metadata.config import MetadataConfig
from hudilake.metadata.records.layout import METADATA_PATH, initial_instant
from hudilake.metadata.records.reader import MetadataReader
from hudilake.metadata.services import compaction, upkeep
from hudilake.metadata.services.rollback import roll_back
from hudilake.metadata.services.upkeep import archive, recover
from hudilake.table.table import HudiTable
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema

SCHEMA = arrow_schema({"n": pa.int32(), "day": pa.string()})
NEVER = MetadataConfig(compact_after=10_000, compact_at_most=10_000)


def _row(number: int, order: int) -> dict[str, Any]:
    return {"id": number, ORDER: order, "n": number, "day": f"d{number % 3}"}


def _table(tmp_path: Path, commits: int, config: MetadataConfig = NEVER) -> IndexedTable:
    table = IndexedTable(tmp_path / "t", SCHEMA, part="day", config=config)
    for order in range(commits):
        table.write([_row(order % 7 + i, order) for i in range(4)], [_row(order % 5 + 20, order)])
    return table


def _answers(reader: MetadataReader) -> list[Any]:
    """Everything the index says."""
    paths = reader.partition_paths()
    files = reader.files(paths)
    keys = [(path, name) for path, names in files.items() for name in names]
    columns = ["n", "id", "_hoodie_record_key"]
    filters = {key: found.to_base64() for key, found in reader.bloom_filters(keys).items()}
    return [paths, files, reader.column_ranges(columns, keys), reader.partition_ranges(columns, paths), filters]


def _fresh(table: IndexedTable) -> MetadataReader:
    opened = HudiTable.open(table.storage)
    return MetadataReader.open(table.storage, opened.config.metadata_partitions, opened.timeline)


def test_compaction_changes_no_answer(tmp_path: Path) -> None:
    table = _table(tmp_path, 8)
    table.compact()
    table.clean()
    before = _answers(table.metadata.reader)
    instant = compaction.compact(table.metadata)
    assert instant is not None
    groups = [group for groups in table.metadata.reader.groups.values() for group in groups]
    assert all(group.base is not None and not group.logs for group in groups)
    assert _answers(table.metadata.reader) == before == _answers(_fresh(table))
    for group in groups:
        assert group.base is not None
        reader = group.base_reader()
        assert isinstance(reader, HFileReader)
        keys = [key for key, _ in reader.scan()]
        assert keys == sorted(keys)
        if keys:
            assert (reader.file_info["minRecordKey"], reader.file_info["maxRecordKey"]) == (keys[0], keys[-1])
    table.write([_row(1, 99)])
    assert _answers(table.metadata.reader) == _answers(_fresh(table)) != before


def test_compaction_writes_hudi_instants(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    instant = compaction.compact(table.metadata)
    root = tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline"
    plan = decode_container((root / f"{instant}.compaction.requested").read_bytes(), "plan")
    assert {op["partitionPath"] for op in plan["operations"]} == {p.value for p in table.metadata.partitions}
    assert all(op["deltaFilePaths"] for op in plan["operations"])
    (completed,) = root.glob(f"{instant}_*.commit")
    body = CommitMetadata.from_bytes(completed.read_bytes(), "commit")
    assert (body.compacted, body.operation) == (True, "COMPACT")
    for stat in body.stats:
        assert (tmp_path / "t" / METADATA_PATH / stat.path).stat().st_size == stat.file_size


def test_tombstones_do_not_outlive_compaction(tmp_path: Path) -> None:
    table = _table(tmp_path, 4)
    table.compact()
    table.clean()
    compaction.compact(table.metadata)
    compaction.compact(table.metadata)
    (group,) = table.metadata.reader.groups[table.metadata.partitions[0]]
    size = group.base_bytes
    for order in range(4):
        table.write([_row(1, 100 + order)])
        table.compact()
        table.clean()
        compaction.compact(table.metadata)
    assert group.base_bytes < 2 * size


def test_when_compaction_is_due(tmp_path: Path) -> None:
    config = MetadataConfig(compact_after=3, compact_at_most=6, compact_ratio=1000.0)
    table = IndexedTable(tmp_path / "t", SCHEMA, part="day", config=config)
    done = []
    for order in range(14):
        table.write([_row(i, order) for i in range(4)])
        done.append(sum(i.action == COMMIT for i in table.metadata.timeline.completed()))
    # The four instants that made the table count; then every six delta commits, for the ratio is out of reach.
    assert done == [0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 3]


def test_nothing_is_compacted_that_may_be_rolled_back(tmp_path: Path) -> None:
    config = MetadataConfig(compact_after=2, compact_at_most=2)
    table = _table(tmp_path, 3, config)
    for _ in range(3):
        table.write([_row(1, 50)])
    instant, _, delta = table.begin_write([_row(2, 60)])
    table.metadata.apply(instant, delta)
    assert not compaction.compaction_due(table.metadata)
    table.abort(instant)
    assert _answers(table.metadata.reader) == _answers(_fresh(table))


def test_what_is_left_of_a_savepoint_holds_no_compaction_up(tmp_path: Path) -> None:
    """It has the time of a write that is completed."""
    config = MetadataConfig(compact_after=3, compact_at_most=3)
    table = IndexedTable(tmp_path / "t", SCHEMA, part="day", config=config)
    held = table.write([_row(1, 1)])
    table.storage.create(Instant(held, SAVEPOINT, State.REQUESTED).path, b"")
    table.reopen()
    assert [i.requested_time for i in table.table.timeline.pending()] == [held]
    compactions = []
    for order in range(2, 6):
        table.write([_row(1, order)])
        compactions.append(sum(i.action == COMMIT for i in table.metadata.timeline.completed()))
    assert compactions == [1, 1, 2, 2]


def test_rolling_back_what_is_compacted_is_refused(tmp_path: Path) -> None:
    table = _table(tmp_path, 2)
    instant, _, delta = table.begin_write([_row(2, 60)])
    table.metadata.apply(instant, delta)
    compaction.compact(table.metadata)
    with pytest.raises(CorruptDataError, match="base file"):
        roll_back(table.metadata, instant, table.clock.next())


def test_cleaning_keeps_two_versions(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    assert upkeep.clean(table.metadata) is None
    readers = []
    for order in range(4):
        readers.append(_fresh(table))
        table.write([_row(i, 100 + order) for i in range(6)])
        compaction.compact(table.metadata)
        upkeep.clean(table.metadata)
    files = tmp_path / "t" / METADATA_PATH / "files"
    assert len(list(files.glob("*.hfile"))) == 2
    assert len(list(files.glob(".*.log.*"))) == 1  # of the slice before the newest
    _answers(readers[-1])  # a reader that listed before the last compaction still finds its files
    assert _answers(table.metadata.reader) == _answers(_fresh(table))
    timeline = tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline"
    (last,) = sorted(timeline.glob("*_*.clean"))[-1:]
    said = decode_container(last.read_bytes(), "clean")
    assert said["totalFilesDeleted"] > 0
    assert not any(said["partitionMetadata"][p]["failedDeleteFiles"] for p in said["partitionMetadata"])


@pytest.mark.full
def test_the_table_stays_bounded(tmp_path: Path) -> None:
    """Files: two slices of every file group. Instants: what archival may keep, and what comes between two compactions.

    One file group a partition, for with several the random part of a key decides which of them a commit touches.
    """
    config = MetadataConfig(
        column_stats_file_groups=1,
        bloom_file_groups=1,
        compact_after=4,
        compact_at_most=4,
        archive_after=10,
        archive_keep=5,
    )
    table = _table(tmp_path, 3, config)
    files, active = [], []
    for order in range(48):
        table.write([_row(i, 100 + order) for i in range(6)])
        if order % 8 == 7:
            table.compact()
            table.clean()
        root = tmp_path / "t" / METADATA_PATH
        files.append(sum(1 for p in root.rglob("*") if p.is_file() and ".hoodie" not in p.relative_to(root).parts))
        active.append(
            [i.action for name in (root / ".hoodie" / "timeline").glob("*_*.*") if (i := parse_name(name.name))]
        )
    groups = len(table.metadata.partitions)
    slice_files = 1 + config.compact_at_most
    assert max(files) <= groups * (2 * slice_files + 1)  # and each partition's .hoodie_partition_metadata
    assert max(files[24:]) <= max(files[:24])
    writes = [sum(action != CLEAN for action in actions) for actions in active]
    unarchived = max(config.archive_after, groups + 2 + config.compact_at_most)
    assert max(writes) <= unarchived + config.compact_at_most
    assert max(actions.count(CLEAN) for actions in active) <= max(actions.count(COMMIT) for actions in active) + 1
    assert len({*table.metadata.timeline.completed()}) == writes[-1]
    assert _answers(table.metadata.reader) == _answers(_fresh(table))


def test_archived_instants_are_in_the_history(tmp_path: Path) -> None:
    config = MetadataConfig(compact_after=4, compact_at_most=4, archive_after=8, archive_keep=4)
    table = _table(tmp_path, 30, config)
    root = table.metadata.storage
    history = History.load(root)
    assert history.files
    active = {i.requested_time for i in Timeline.load(root).completed_actions((COMMIT, DELTA_COMMIT, "clean"))}
    rows: list[dict[str, Any]] = []
    for name in history.files:
        found = pq.read_table(tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline" / "history" / name)
        assert found.schema.names == ["instantTime", "completionTime", "action", "metadata", "plan", "version"]
        rows += found.to_pylist()
    times = [row["instantTime"] for row in rows]
    assert len(times) == len(set(times))
    assert not active & set(times)
    for row in rows:
        decode_container(row["metadata"], "history")
        assert history.completion_time(row["instantTime"]) == row["completionTime"]
        if row["action"] == COMMIT:
            decode_container(row["plan"], "plan")
    assert {row["action"] for row in rows} >= {DELTA_COMMIT, "clean"}
    assert _answers(table.metadata.reader) == _answers(_fresh(table))
    table.reopen()
    table.write([_row(1, 999)])


def test_an_archival_that_died_is_not_done_twice(tmp_path: Path) -> None:
    table = _table(tmp_path, 6)
    root = table.metadata.storage
    old = table.metadata.timeline.completed()[:4]
    kept = {instant.path: root.read(instant.path) for instant in old}
    move_to_history(root, old)
    for path, body in kept.items():
        root.write(path, body)  # as if the deletions had not happened
    move_to_history(root, table.metadata.timeline.completed()[:6])
    rows = [History.load(root).completion_time(i.requested_time) for i in table.metadata.timeline.completed()[:6]]
    assert None not in rows
    files = History.load(root).files
    assert len(files) == 2
    assert not any(root.stat(path) for path in kept)


def test_full_levels_are_merged(tmp_path: Path) -> None:
    table = _table(tmp_path, 30)
    root = table.metadata.storage
    instants = table.metadata.timeline.completed()[:25]
    for instant in instants:
        move_to_history(root, [instant])
    history = History.load(root)
    assert sorted(name.rpartition("_")[2] for name in history.files) == ["0.parquet"] * 5 + ["1.parquet"] * 2
    assert all(history.completion_time(i.requested_time) == i.completion_time for i in instants)
    directory = tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline" / "history"
    manifest = directory / f"manifest_{(directory / '_version_').read_text()}"
    for entry in json.loads(manifest.read_text())["files"]:
        assert (directory / entry["fileName"]).stat().st_size == entry["fileLen"]
    names = [path.name for path in directory.iterdir()]
    assert "manifest_1" not in names
    first = instants[0].requested_time
    assert [name for name in names if name.startswith(first)] == [f"{first}_{instants[9].requested_time}_1.parquet"]


def test_archival_needs_compactions(tmp_path: Path) -> None:
    table = _table(tmp_path, 60)
    assert archive(table.metadata) == 0


def test_a_dead_compaction_is_done_again(tmp_path: Path) -> None:
    table = _table(tmp_path, 5)
    before = _answers(table.metadata.reader)
    instant = _plan_compaction(table)
    table.reopen()
    recover(table.metadata)
    assert not table.metadata.timeline.pending()
    assert any(i.requested_time == instant for i in table.metadata.timeline.completed())
    assert _answers(table.metadata.reader) == before == _answers(_fresh(table))


def test_a_compaction_that_was_overtaken_is_given_up(tmp_path: Path) -> None:
    table = _table(tmp_path, 5)
    instant = _plan_compaction(table)
    assert instant is not None
    table.metadata.timeline.refresh()
    instant_of_commit, results, delta = table.begin_write([_row(3, 70)])
    table.metadata.apply(instant_of_commit, delta)
    table.table.commit(instant_of_commit, results)
    table.reopen()
    recover(table.metadata)
    assert not table.metadata.timeline.pending()
    assert _answers(table.metadata.reader) == _answers(_fresh(table))
    assert not list((tmp_path / "t" / METADATA_PATH).rglob(f"*{instant}*"))


@pytest.mark.parametrize("state", [State.REQUESTED, State.INFLIGHT])
def test_a_call_of_a_dead_initialisation_that_lands_late_stops_nobody(tmp_path: Path, state: State) -> None:
    """The next initialisation has begun anew, with a number of its own; found by crash points on a slow machine."""
    table = _table(tmp_path, 3)
    late = Instant(initial_instant(MetadataPartition.BLOOM_FILTERS, 1), DELTA_COMMIT, state)
    table.metadata.storage.create(late.path, b"")
    table.reopen()
    before = _answers(table.metadata.reader)
    recover(table.metadata)
    assert not table.metadata.timeline.pending()
    assert table.metadata.storage.stat(late.path) is None
    assert _answers(table.metadata.reader) == before == _answers(_fresh(table))


def _plan_compaction(table: IndexedTable) -> str:
    """A compaction whose writer died after one of its base files."""
    instant = compaction.compact(table.metadata)
    assert instant is not None
    root = table.path / METADATA_PATH
    (completed,) = (root / ".hoodie" / "timeline").glob(f"{instant}_*.commit")
    completed.unlink()
    for base in sorted(root.rglob(f"*_{instant}.hfile"))[1:]:
        base.unlink()
    return instant


def test_a_dead_clean_is_finished(tmp_path: Path) -> None:
    table = _table(tmp_path, 4)
    for order in range(3):
        table.write([_row(1, 100 + order)])
        compaction.compact(table.metadata)
    instant = upkeep.clean(table.metadata)
    timeline = tmp_path / "t" / METADATA_PATH / ".hoodie" / "timeline"
    (completed,) = timeline.glob(f"{instant}_*.clean")
    completed.unlink()
    table.reopen()
    recover(table.metadata)
    assert not table.metadata.timeline.pending()
    assert list(timeline.glob(f"{instant}_*.clean"))


def test_recovery_tells_what_is_lost(tmp_path: Path) -> None:
    """An action that completed on the data table and not here: its rows would be missing, so it is an error."""
    table = _table(tmp_path, 3)
    last = table.metadata.timeline.completed()[-1]
    (tmp_path / "t" / METADATA_PATH / last.path).unlink()
    table.reopen()
    with pytest.raises(CorruptDataError, match="not in its metadata table"):
        recover(table.metadata)


def test_instants_of_actions_that_never_were_are_undone(tmp_path: Path) -> None:
    """Noted here, rolled back on the data table by somebody who does not keep this one."""
    table = _table(tmp_path, 3)
    before = _answers(table.metadata.reader)
    instant, _, delta = table.begin_write([_row(2, 60)])
    table.metadata.apply(instant, delta)
    completed = table.metadata.timeline.find(instant)
    assert completed is not None
    (tmp_path / "t" / METADATA_PATH / completed.path).unlink()
    table.table.abort(instant)
    table.reopen()
    recover(table.metadata)
    assert not list((tmp_path / "t" / METADATA_PATH).rglob(f"*{instant}*.log*"))
    assert not table.metadata.timeline.pending()
    assert _answers(table.metadata.reader) == before == _answers(_fresh(table))


def test_rollbacks_can_be_repeated(tmp_path: Path) -> None:
    table = _table(tmp_path, 3)
    before = _answers(table.metadata.reader)
    instant, _, delta = table.begin_write([_row(2, 60)])
    table.metadata.apply(instant, delta)
    rollback = table.clock.next()
    roll_back(table.metadata, instant, rollback)
    completed = table.metadata.timeline.find(rollback)
    assert completed is not None
    assert completed.completed
    roll_back(table.metadata, instant, rollback)
    assert table.metadata.timeline.find(rollback) == completed
    (tmp_path / "t" / METADATA_PATH / completed.path).unlink()  # died before it completed
    table.reopen()
    roll_back(table.metadata, instant, rollback)
    table.table.abort(instant)
    assert _answers(table.metadata.reader) == before == _answers(_fresh(table))
    assert table.metadata.timeline.find(instant) is None
    assert Instant(instant, DELTA_COMMIT, State.REQUESTED) not in table.metadata.timeline.pending()
