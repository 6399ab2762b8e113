"""Deletes outlive compactions for as long as the settings say, and no longer."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.clock import format_instant, parse_instant
from hudilake.errors import UnsupportedError
from hudilake.format.files.delete_block import decode_deletes
from hudilake.format.files.log_file import BlockType, iter_blocks
from hudilake.format.files.names import parse_log_name
from hudilake.services.compaction import CompactionConfig, prepare, run, schedule
from hudilake.table.table import HudiTable
from tests.hudilake.lake import ORDER, SCHEMA, Change, commit, config, deletes, ours, storage_at, tree, upserts
from tests.hudilake.services.compaction.made import Slice, instant, row
from tests.hudilake.services.compaction.steps import add, indexed, new, serially, sound

KEPT = CompactionConfig(after_commits=1, tombstone_retention_hours=1)
HOUR_MS = 3_600_000


@pytest.mark.first(1)
@indexed
def test_late_events_stay_out_after_several_compactions(tmp_path: Path, indexed: bool) -> None:
    table, model = new(tmp_path, indexed)
    for late in (101, 102, 103):
        run(table, KEPT, serially)
        sound(tmp_path, model)
        add(table, model, upserts([3], late, "late"))
        sound(tmp_path, model)
    run(table, KEPT, serially)
    add(table, model, upserts([3], 111, "back"))
    sound(tmp_path, model)
    run(table, KEPT, serially)
    sound(tmp_path, model)
    assert run(table, KEPT, serially) == []


def test_control_without_a_retention_the_row_comes_back(tmp_path: Path) -> None:
    table, model = new(tmp_path, False)
    run(table, KEPT.model_copy(update={"tombstone_retention_hours": 0}), serially)
    add(table, model, upserts([3], 101, "late"))
    assert ("d1", 3) in {(r["day"], r["id"]) for r in ours(tmp_path)}
    assert ("d1", 3) not in {(r["day"], r["id"]) for r in model.rows()}


def test_a_group_with_nothing_but_tombstones_is_left_alone(tmp_path: Path) -> None:
    table, _ = new(tmp_path, True)
    run(table, KEPT, serially)
    assert any(s.log_files for s in table.file_slices())
    assert schedule(table, KEPT) is None
    assert schedule(HudiTable.open(table.storage), KEPT) is None


def test_what_is_stated_again(tmp_path: Path) -> None:
    """Deletes that won, not those that a row overruled, lost to the base file, or know no ordering value."""
    made = Slice.at(tmp_path)
    made.write_base([row("kept", 9, 0), row("gone", 1, 0), row("wiped", 1, 0)])
    made.write_log(1, [row("back", 4, 1)], [("gone", 3), ("kept", 5), ("back", 2), ("never", 7), ("wiped", None)])
    stated = made.compact(KEPT).tombstones
    assert stated is not None
    (block,) = list(iter_blocks(made.storage.read(stated.name)))
    assert block.block_type is BlockType.DELETE
    assert block.instant == instant(1)
    found = decode_deletes(block.content).to_pylist()
    assert [(r["_hoodie_record_key"], r["ordering"]) for r in found] == [("gone", 3), ("never", 7)]


def test_age_is_counted_from_the_delete_and_carried_over(tmp_path: Path) -> None:
    """Three compactions, 25 minutes apart: after an hour the delete is let go, however often it was stated again."""
    made = Slice.at(tmp_path)
    made.write_log(1, (), [("a", 1)])
    born = parse_instant(instant(1))
    for minutes, stays in ((25, True), (50, True), (75, False)):
        time = format_instant(born + minutes * HOUR_MS // 60)
        done = made.compact_at(time, KEPT)
        assert (done.tombstones is not None) is stays
        if done.tombstones is not None:
            assert parse_log_name(done.tombstones.name) is not None
            blocks = list(iter_blocks(made.storage.read(done.tombstones.name)))
            assert [b.instant for b in blocks] == [instant(1)]
            made.go_on_from(done, time)


def test_many_commits_share_few_blocks_and_do_not_grow_younger(tmp_path: Path) -> None:
    made = Slice.at(tmp_path)
    for number in range(1, 200):
        made.write_log(number, (), [(f"{number}", number)])
    done = made.compact(KEPT)
    assert done.tombstones is not None
    assert done.tombstone_stat is not None
    assert done.tombstone_stat.num_deletes == 199
    blocks = list(iter_blocks(made.storage.read(done.tombstones.name)))
    assert [b.instant for b in blocks] == [instant(199)]  # 199 ms lie in one window of 112.5 s
    assert len(blocks) == 1


@pytest.mark.parametrize("hours", [0.0001, 24 * 365])
def test_short_and_long_retentions(tmp_path: Path, hours: float) -> None:
    table, model = new(tmp_path, False, [upserts([1], 5), deletes([1], 6)])
    run(table, KEPT.model_copy(update={"tombstone_retention_hours": hours}), serially)
    add(table, model, [Change(1, 7, "newer")])
    sound(tmp_path, model)
    assert any(name.endswith(".parquet") for name in tree(tmp_path))


def test_a_table_that_is_not_ordered_by_a_long_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    schema = SCHEMA.set(SCHEMA.get_field_index(ORDER), pa.field(ORDER, pa.int32()))
    table = HudiTable.create(storage_at(tmp_path), config(), schema)
    commit(table, upserts([1], 5))
    requested = schedule(table, KEPT)
    assert requested is not None
    with pytest.raises(UnsupportedError, match="need an ordering column of type long"):
        prepare(table, requested, KEPT)
    assert len(run(table, KEPT.model_copy(update={"tombstone_retention_hours": 0}), serially)) == 1
