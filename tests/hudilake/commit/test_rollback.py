"""Rolling back what dead writers left: by markers, by names, again after a crash, and in Hudi's own words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hudilake.commit.rollback import RollbackPlan, marked_files
from hudilake.errors import CorruptDataError
from hudilake.format.files.file_group_write import with_markers
from hudilake.format.files.names import marker_directory, marker_list, marker_path
from hudilake.format.timeline.avro_container import decode_container
from hudilake.format.timeline.instant import Instant, State
from hudilake.table.table import HudiTable
from tests.hudilake.lake import Model, check, commit, data_files, new_table, storage_at, tree, upserts, write
from tests.hudilake.services.compaction import request_compaction
from tests.logged import events
from tests.paths import GOLDEN

KEPT = upserts(range(8), 100)
LOST = upserts(range(20), 200) + upserts(range(3), 200, day="d2")


def dead_writer(path: Path, *, files: bool = True, listed: bool = False) -> str:
    """A table with one commit and one that never completed; returns the latter's instant. ``listed``: see ``write``."""
    table = new_table(path)
    commit(table, KEPT)
    instant = table.begin()
    if files:
        write(table, instant, LOST, listed=listed)
        assert len(data_files(path)) == 6
        assert len([f for f in tree(path) if ".hoodie/.temp" in f]) == (2 if listed else 4)
    return instant


def restart(path: Path) -> HudiTable:
    """The next process."""
    return HudiTable.open(storage_at(path))


def verify(path: Path, instant: str) -> None:
    """Nothing of the instant is left but the rollback, and the rows are those from before."""
    model = Model()
    model.apply(KEPT)
    check(path, model)
    left = [f for f in tree(path) if instant in f]
    assert left == []
    assert restart(path).timeline.pending() == []
    (rollback,) = restart(path).timeline.completed_actions({"rollback"})
    record = decode_container((path / rollback.path).read_bytes(), "x")
    assert record["commitsRollback"] == [instant]


@pytest.mark.parametrize(("files", "listed"), [(False, False), (True, False), (True, True)])
def test_a_dead_batch_is_rolled_back_and_replayed(
    tmp_path: Path, files: bool, listed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Cases 2 and 3."""
    instant = dead_writer(tmp_path, files=files, listed=listed)
    table = restart(tmp_path)
    caplog.set_level("INFO", "hudilake")
    assert table.rollback_pending() == [instant]
    told = events(caplog)["rolled_back"]
    assert (told["levelname"], told["instant"], told["files"]) == ("INFO", instant, 4 if files else 0)
    verify(tmp_path, instant)
    assert table.rollback_pending() == []
    assert commit(table, LOST) > instant
    model = Model()
    model.apply(KEPT)
    model.apply(LOST)
    check(tmp_path, model)


def test_only_requested(tmp_path: Path) -> None:
    """Killed between the two instant files."""
    instant = dead_writer(tmp_path, files=False)
    (tmp_path / f".hoodie/timeline/{instant}.deltacommit.inflight").unlink()
    assert restart(tmp_path).rollback_pending() == [instant]
    verify(tmp_path, instant)


def test_without_markers_files_are_found_by_name(tmp_path: Path) -> None:
    instant = dead_writer(tmp_path)
    storage_at(tmp_path).delete_tree(marker_directory(instant))
    restart(tmp_path).rollback_pending()
    verify(tmp_path, instant)


def test_a_file_beside_a_marked_one_is_found_by_name(tmp_path: Path) -> None:
    instant = dead_writer(tmp_path)
    unmarked = next(f for f in data_files(tmp_path) if instant in f)
    (tmp_path / marker_path(instant, *_split(unmarked))).unlink()
    restart(tmp_path).rollback_pending()
    verify(tmp_path, instant)


def test_markers_kept_by_hudis_timeline_server(tmp_path: Path) -> None:
    instant = dead_writer(tmp_path)
    directory = tmp_path / marker_directory(instant)
    markers = sorted(str(p.relative_to(directory)) for p in directory.rglob("*.marker.CREATE"))
    assert len(markers) == 4
    storage_at(tmp_path).delete_tree(marker_directory(instant))
    directory.mkdir()
    (directory / "MARKERS.type").write_text("TIMELINE_SERVER_BASED")
    (directory / "MARKERS0").write_text("\n".join(markers[:1]) + "\n")
    (directory / "MARKERS7").write_text("\n".join(markers[1:]) + "\n")
    restart(tmp_path).rollback_pending()
    verify(tmp_path, instant)


def test_a_list_of_markers_names_files_of_partitions_with_any_letters(tmp_path: Path) -> None:
    """Java ends a line at other letters than Python."""
    storage, odd = storage_at(tmp_path), "day=a\u2028b\x85c"
    for path, data in marker_list("20240101000000000", [f"{odd}/.f_20240101000000000.log.1_0-0-0", "g"]).items():
        storage.write(path, data)
    assert marked_files(storage, "20240101000000000") == {f"{odd}/.f_20240101000000000.log.1_0-0-0", "g"}


def test_what_no_line_holds_has_markers_of_its_own(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    context, names = table.write_context(table.begin()), [("day=d1", str(n)) for n in range(4)]
    assert with_markers(table.storage, context, names[:3]) is context
    assert with_markers(table.storage, context, [*names, ("day=d\n1", "4")]) is context
    assert with_markers(table.storage, replace(context, base_from_rows=1), names).has_markers is False
    assert [f for f in tree(tmp_path) if ".hoodie/.temp" in f] == []
    assert with_markers(table.storage, context, names).has_markers
    assert len(marked_files(table.storage, context.instant)) == 4


def test_torn_and_empty_files_go_too(tmp_path: Path) -> None:
    """Cases 8 and 10: the writer died in the middle of a file."""
    instant = dead_writer(tmp_path)
    mine = [tmp_path / f for f in data_files(tmp_path) if instant in f]
    mine[0].write_bytes(mine[0].read_bytes()[:100])
    mine[1].write_bytes(b"")
    restart(tmp_path).rollback_pending()
    verify(tmp_path, instant)


def test_several_dead_writers_and_a_pending_compaction(tmp_path: Path) -> None:
    """Case 21: the compaction stays pending."""
    instant = dead_writer(tmp_path)
    table = restart(tmp_path)
    compaction, _ = request_compaction(table)
    second = table.begin()
    foreign = Instant("29990101000000000", "commit", State.INFLIGHT)
    table.storage.create(foreign.path, b"")
    assert restart(tmp_path).rollback_pending() == [instant, second, foreign.requested_time]
    assert restart(tmp_path).timeline.pending() == [compaction]
    model = Model()
    model.apply(KEPT)
    check(tmp_path, model)


def test_a_rollback_that_died_is_finished(tmp_path: Path) -> None:
    instant = dead_writer(tmp_path)
    table = restart(tmp_path)
    plan = RollbackPlan(instant, "deltacommit", tuple(_split(f) for f in data_files(tmp_path) if instant in f))
    rollback = Instant(table.clock.next(), "rollback", State.REQUESTED)
    table.storage.create(rollback.path, plan.to_bytes(table.storage.uri))
    table.storage.delete(f".hoodie/timeline/{instant}.deltacommit.inflight")
    assert table.rollback_pending() == [instant]
    verify(tmp_path, instant)


def _split(path: str) -> tuple[str, str]:
    partition, _, name = path.rpartition("/")
    return partition, name


def test_a_rollback_whose_plan_was_cut_off_is_planned_anew(tmp_path: Path) -> None:
    instant = dead_writer(tmp_path)
    (tmp_path / ".hoodie/timeline/20990101000000000.rollback.requested").write_bytes(b"")
    assert restart(tmp_path).rollback_pending() == [instant]
    verify(tmp_path, instant)


def test_in_hudis_words(tmp_path: Path) -> None:
    """The same fields, filled the same way, as a rollback that Hudi 1.2.0 wrote."""
    instant = dead_writer(tmp_path)
    restart(tmp_path).rollback_pending()
    for pattern in ("*.rollback.requested", "*_*.rollback"):
        ours, theirs = (
            decode_container(next((root / ".hoodie/timeline").glob(pattern)).read_bytes(), pattern)
            for root in (tmp_path, GOLDEN / "tbl_hudi120")
        )
        assert _shape(ours) == _shape(theirs)
    assert ours["totalFilesDeleted"] == 4
    assert ours["instantsRollback"] == [{"commitTime": instant, "action": "deltacommit"}]
    assert all(p.startswith(tmp_path.as_uri()) for p in ours["partitionMetadata"]["day=d1"]["successDeleteFiles"])


def _shape(value: object) -> object:
    """Keys and types, lists by their first element, maps with paths as keys by their values."""
    if isinstance(value, dict):
        return {k if k.isidentifier() else "*": _shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_shape(v) for v in value[:1]]
    return type(value)


def test_hudis_plan_is_understood() -> None:
    path = next((GOLDEN / "tbl_hudi120/.hoodie/timeline").glob("*.rollback.requested"))
    plan = RollbackPlan.from_bytes(path.read_bytes(), str(path))
    assert (plan.target_time, plan.target_action) == ("20261121061531511", "deltacommit")
    assert len(plan.files) == 4
    assert plan.files[0] == (
        "region=us/dt=2024-01-02",
        ".00000001-5b0f-4a44-829f-9e582042faf3-0_20261121061531511.log.1_3-2632-6286",
    )
    assert RollbackPlan.from_bytes(plan.to_bytes("s3://bucket/lake"), "x") == plan
    with pytest.raises(CorruptDataError):
        RollbackPlan.from_bytes(b"", "x")
