"""What an open table takes in of other writers' work is taken in whole or not at all, whichever call fails.

Another writer does something; the open table looks, or works, and one of its calls fails. Its next look must bring it
to what a table that is opened now shows. Every call is tried in turn, on copies of the table.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.errors import LakeError, LostOwnershipError
from hudilake.format.timeline.instant import DELTA_COMMIT, Instant, State
from hudilake.format.timeline.timeline import Timeline
from hudilake.locking.file_lock import LOCK_PATH
from hudilake.locking.ownership import Locking
from hudilake.metadata.config import MetadataConfig
from hudilake.services.archival import ArchivalConfig, archive
from hudilake.services.compaction import run
from hudilake.services.fsck import fsck
from hudilake.services.restore import restore
from hudilake.table.table import HudiTable
from tests.binlake.stream.dying_store import CHANGING, Answer, DyingStore, Fate
from tests.hudilake import lake
from tests.hudilake.actors.world import COMPACTION, LOCKING
from tests.hudilake.services.compaction.steps import serially
from tests.selection import covered

Doing = Callable[[HudiTable], object]
_MORE = pa.schema([*lake.SCHEMA, pa.field("more", pa.int32())])
#: Kept without upkeep, which would add calls.
INDEX = MetadataConfig(compact_after=100, compact_at_most=100, archive_after=200, archive_keep=100)


def _commits(table: HudiTable) -> None:
    lake.commit(table, lake.upserts([1, 2, 9], 500))


def _adds_a_column(table: HudiTable) -> None:
    instant = table.begin()
    rows = lake.write(table, instant, lake.upserts([3], 500))
    table.commit(instant, rows, schema=_MORE)


def _compacts(table: HudiTable) -> None:
    _commits(table)
    run(table, COMPACTION, serially)


def _archives(table: HudiTable) -> None:
    _compacts(table)
    _commits(table)
    _commits(table)
    assert archive(table, ArchivalConfig(1, 2)) > 0


def _restores(table: HudiTable) -> None:
    _commits(table)
    restore(table, table.timeline.completed()[1].requested_time, _index_of(table))


def _restores_halfway(table: HudiTable) -> None:
    """It dies once it has taken commits back."""
    calls = Fate()
    twin = HudiTable.open(DyingStore(table.storage, calls), locking=Locking(LOCKING, "b"))
    calls.at, calls.answer = len(calls.calls) + 22, Answer.FAILED
    with contextlib.suppress(LakeError):
        restore(twin, table.timeline.completed()[1].requested_time, _index_of(table))
    assert [one.action for one in Timeline.load(table.storage).pending()][-1:] == ["restore"]


def _rolls_back(table: HudiTable) -> None:
    """A commit of its own."""
    instant = table.begin()
    lake.write(table, instant, lake.upserts([4], 500))
    table.abort(instant)
    _commits(table)


def _rolls_back_what_comes_late(table: HudiTable) -> None:
    instant = table.begin()
    lake.write(table, instant, lake.upserts([4], 500))
    table.abort(instant)
    _commits(table)
    late = Instant(instant, DELTA_COMMIT, State.COMPLETED, table.clock.next())
    newest = table.timeline.completed()[-1]
    Path(table.storage.uri.removeprefix("file://"), late.path).write_bytes(table.storage.read(newest.path))


def _changes_the_index(table: HudiTable) -> None:
    table.keep_metadata(None if table.config.metadata_partitions else INDEX)
    _commits(table)


LATE = "rolls back what comes late"
#: What the other writer does.
OTHERS: Mapping[str, Doing] = {
    "commits": _commits,
    "adds a column": _adds_a_column,
    "compacts": _compacts,
    "archives": _archives,
    "restores": _restores,
    "restores halfway": _restores_halfway,
    "rolls back": _rolls_back,
    LATE: _rolls_back_what_comes_late,
    "changes the index": _changes_the_index,
}


def _holds_the_lock(table: HudiTable) -> None:
    with table.exclusively():
        pass


def _looks_before_it_begins(table: HudiTable) -> None:
    table.refresh(begins=True)
    table.state.check_config()


def _begins(table: HudiTable) -> None:
    table.refresh(begins=True)
    table.abort(table.begin())


def _writes(table: HudiTable) -> None:
    table.refresh(begins=True)
    instant = table.begin()
    try:
        table.commit(instant, lake.write(table, instant, lake.upserts([5, 20], 600)))
    except LakeError as error:
        if not isinstance(error, LostOwnershipError):
            with contextlib.suppress(LakeError):
                table.abort(instant)
        raise


#: What the open table does, and whether it changes the table.
MINE: Mapping[str, tuple[Doing, bool]] = {
    "looks": (HudiTable.refresh, False),
    "looks before it begins": (_looks_before_it_begins, False),
    "holds the lock": (_holds_the_lock, False),
    "begins": (_begins, True),
    "writes": (_writes, True),
    "starts again": (HudiTable.rollback_pending, True),
    "archives": (lambda table: archive(table, ArchivalConfig(1, 2)), True),
    "compacts": (lambda table: run(table, COMPACTION, serially), True),
}


def made(path: Path, *, indexed: bool) -> None:
    table = lake.new_table(path, INDEX if indexed else None, buckets=1)
    for number in range(4):
        lake.commit(table, lake.upserts(range(number, number + 3), 100 + number))


#: Of a table with a metadata table nothing is archived before that one is compacted.
CASES = [
    (indexed, others, mine)
    for indexed in (False, True)
    for others in OTHERS
    for mine, (_, changes) in MINE.items()
    if (others != "archives" if indexed else not changes or others == "archives")
]


@pytest.mark.first(2)
@pytest.mark.parametrize(("indexed", "others", "mine"), covered(CASES, 1))
def test_whatever_call_fails_the_next_look_shows_the_table_as_it_is(
    tmp_path: Path, indexed: bool, others: str, mine: str
) -> None:
    made(tmp_path / "made", indexed=indexed)
    doing, changes = MINE[mine]
    failed = 0
    for answer in (Answer.FAILED, Answer.UNANSWERED) if changes else (Answer.FAILED,):
        for one, fate, place in _tables(tmp_path, others, answer):
            with contextlib.suppress(LakeError):
                doing(one)
            if len(fate.calls) <= fate.at:
                break
            if answer is Answer.FAILED or fate.calls[fate.at][0] in CHANGING:
                failed += 1
                where = fate.at, fate.calls[fate.at]
                fate.at = -1
                _look_again(one, _holds_the_lock if changes else doing)
                if others == LATE:
                    _holds_the_lock(one)  # readers believe it until a writer deletes it
                assert shown(one) == shown(HudiTable.open(lake.storage_at(place))), where
                assert lake.ours(place) == lake.rs(place), where
    assert failed > 1


def _tables(tmp_path: Path, others: str, answer: Answer) -> Iterator[tuple[HudiTable, Fate, Path]]:
    """A table that was opened before another writer did something, with a call to fail: the next one each time."""
    for number in range(200):
        place = tmp_path / f"{answer}-{number}"
        shutil.copytree(tmp_path / "made", place, copy_function=os.link)
        fate = Fate(answer=answer, spared=LOCK_PATH)
        one = HudiTable.open(DyingStore(lake.storage_at(place), fate), locking=Locking(LOCKING, "a"))
        shown(one)  # opens its index too
        OTHERS[others](HudiTable.open(lake.storage_at(place), metadata=INDEX, locking=Locking(LOCKING, "b")))
        fate.at = len(fate.calls) + number
        yield one, fate, place
        shutil.rmtree(place)
    pytest.fail("no end of calls")


def _look_again(table: HudiTable, doing: Doing) -> None:
    """A plain refresh takes no other properties in: the next begin does."""
    doing(table)
    table.refresh()
    table.state.check_config()


def _index_of(table: HudiTable) -> MetadataConfig | None:
    return INDEX if table.config.metadata_partitions else None


def shown(table: HudiTable) -> dict[str, object]:
    """All that an open table knows of itself; of the timeline without what others may have archived."""
    timeline, index = table.timeline, table.metadata_table
    first = min((one.requested_time for one in Timeline.load(table.storage).completed()), default="")
    return {
        "completed": [one for one in timeline.completed() if one.requested_time >= first],
        "pending": timeline.pending(),
        "schema": table.schema,
        "config": table.config,
        "slices": [(one.file_id, one.base_file, one.log_files) for one in table.file_slices()],
        "indexed": None if index is None else (index.columns, sorted(index.partition_paths())),
    }


def test_findings_stay_away(tmp_path: Path) -> None:
    """The control: what the other writer leaves is sound, so that a difference is the open table's."""
    made(tmp_path / "made", indexed=False)
    for others in (name for name in OTHERS if name not in ("restores halfway", LATE)):
        tables = _tables(tmp_path, others, Answer.FAILED)
        _, _, place = next(tables)
        assert [f for f in fsck(lake.storage_at(place)).findings if f.severity == "error"] == [], others
        shutil.rmtree(place)
