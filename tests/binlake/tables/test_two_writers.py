"""Two streams that feed one table: commits that began side by side, and what the newest one records."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pytest

from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.route import AppliedRecords, route
from binlake.rows.upsert.target import make_target
from binlake.rows.upsert.truncates import Truncates
from binlake.source.offsets import OffsetRange, Ranges
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput, TableOutcome, write_and_commit
from hudilake.commit.commit import OvertakenError
from hudilake.commit.intent import GroupIntent, Intent
from hudilake.errors import LakeError
from hudilake.format.definition.bucket import bucket_ids, file_id
from hudilake.format.files.file_group_write import WriteContext
from hudilake.locking.choose import LockConfig
from hudilake.locking.file_lock import LOCK_PATH
from hudilake.locking.ownership import Locking
from hudilake.policies import Conflicts, TableType
from hudilake.services.fsck import fsck
from tests.binlake.rows.upsert.ingest import (
    MERGE_ON_READ,
    TOPIC,
    Ingest,
    Kind,
    change_batch,
    placed,
    rows_of,
    table_schema,
    value_columns,
)
from tests.binlake.rows.upsert.test_route import row
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate
from tests.logged import events
from tests.model import Change, Delivered, Shape

SHAPE = Shape(("id",))
#: Ids by bucket, of two.
IDS = {bucket: [i for i in range(40) if bucket_ids(pa.array([str(i)]), ("id",), 2)[0] == bucket] for bucket in (0, 1)}


@dataclass
class Lakes:
    """One table, opened by two streams as two processes would."""

    here: Ingest
    one: LakeTable
    two: LakeTable

    @staticmethod
    def under(path: Path, policy: Conflicts, kind: Kind = MERGE_ON_READ) -> Lakes:
        here = Ingest.at(path, SHAPE, kind=kind)
        here.rules = replace(here.rules, conflicts=policy)
        first = _rows(here, "one", IDS[0][:1], 0)
        here.lake.get_or_create(here.rules, first.report.target, first.report.columns)
        storage = here.table.storage
        one, two = (LakeTable.open(storage, here.rules, Locking(LockConfig(), name)) for name in ("one", "two"))
        return Lakes(here, one, two)

    def commit(self, stream: str, work: TableInput) -> TableOutcome:
        """Of a stream's batch."""
        table = self.one if stream == "one" else self.two
        return write_and_commit(table, work, stream, 0, self.here.pool, self.here.services)

    def begin(self, stream: str) -> WriteContext:
        """As before a batch whose tasks write the files."""
        table = self.one if stream == "one" else self.two
        table.refresh(stream)
        return table.begin(table.hudi.schema)

    def positions(self) -> dict[str, int]:
        """What the newest commit records, of partition 0."""
        known = LakeTable.look(self.one.storage, self.here.rules).positions
        return {stream: offsets.at(TOPIC, 0) for stream, offsets in known.items()}


def _rows(here: Ingest, stream: str, ids: list[int], start: int, order: int = 8) -> TableInput:
    changes = [Delivered(Change(order + at, 0, None, row(i)), 0, start + at) for at, i in enumerate(ids)]
    schema = table_schema(SHAPE)
    routed = route(placed(change_batch(SHAPE, changes), here.rules), AppliedRecords(), -1)
    target = make_target(schema, here.rules)
    report = TaskTableReport(schema, target, value_columns(routed.parcels), {TOPIC}, routed.counts)
    return TableInput(report, Ranges([OffsetRange(TOPIC, 0, start, start + len(ids))]), routed.parcels)


@pytest.mark.parametrize("policy", ["queue", "row", "column"])
def test_the_newest_commit_knows_the_positions_of_both(tmp_path: Path, policy: Conflicts) -> None:
    lakes = Lakes.under(tmp_path, policy)
    early = lakes.begin("one")
    lakes.commit("two", _rows(lakes.here, "two", IDS[1][:3], 0))
    mine = replace(_rows(lakes.here, "one", IDS[0][:2], 0), context=early)
    done = lakes.commit("one", mine)
    assert (done.instant == early.instant) is (policy != "queue")
    assert lakes.positions() == {"one": 2, "two": 3}
    lakes.two.refresh("two")
    lakes.commit("two", _rows(lakes.here, "two", IDS[1][3:5], 3))
    assert lakes.positions() == {"one": 2, "two": 5}
    assert sorted(r["id"] for r in rows_of(lakes.here.root)) == sorted(IDS[1][:5] + IDS[0][:2])
    assert [f for f in fsck(lakes.one.storage).findings if f.severity != "info"] == []


def test_a_look_that_failed_at_any_call_is_made_again(tmp_path: Path) -> None:
    for number in range(20):
        lakes = Lakes.under(tmp_path / str(number), "row")
        fate = Fate(answer=Answer.FAILED, spared=LOCK_PATH)
        looking = LakeTable.look(DyingStore(lakes.one.storage, fate), lakes.here.rules)
        lakes.commit("two", replace(_rows(lakes.here, "two", IDS[1][:3], 0, 900), truncates=Truncates(800)))
        fate.at = len(fate.calls) + number
        with contextlib.suppress(LakeError):
            looking.refresh("three")
        if len(fate.calls) <= fate.at:
            break
        fate.at = -1
        looking.refresh("three")
        now = LakeTable.look(lakes.one.storage, lakes.here.rules)
        assert (looking.positions, looking.truncates) == (now.positions, now.truncates), number
        assert looking.names == now.names
        assert looking.truncates == Truncates(800)
    assert 1 < number < 19


def test_one_file_group_is_written_one_after_the_other(tmp_path: Path) -> None:
    lakes = Lakes.under(tmp_path, "row")
    early = lakes.begin("one")
    lakes.commit("two", _rows(lakes.here, "two", IDS[0][:3], 0))
    done = lakes.commit("one", replace(_rows(lakes.here, "one", IDS[0][:2], 0, 20), context=early))
    assert done.instant != early.instant
    assert lakes.positions() == {"one": 2, "two": 3}


def test_a_truncate_is_of_the_whole_table(tmp_path: Path) -> None:
    """A batch that began before it, and whose rows are older, does not bring them back."""
    lakes = Lakes.under(tmp_path, "row")
    lakes.commit("one", _rows(lakes.here, "one", IDS[0][:1], 0))
    early = lakes.begin("one")
    lakes.two.refresh("two")
    truncated = replace(_rows(lakes.here, "two", IDS[1][:1], 0, 900), truncates=Truncates(800))
    lakes.commit("two", truncated)
    lakes.commit("one", replace(_rows(lakes.here, "one", IDS[0][1:2], 1, 20), context=early))
    assert LakeTable.look(lakes.one.storage, lakes.here.rules).truncates == Truncates(800)
    assert lakes.positions() == {"one": 2, "two": 1}


def test_a_conflict_is_found_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against what has completed since this stream looked, and against what another stream has under way."""
    monkeypatch.setattr("hudilake.table.overtaking.PATIENCE_S", 0)
    lakes = Lakes.under(tmp_path, "row")
    lakes.commit("two", _rows(lakes.here, "two", IDS[0][:1], 0))
    intent = Intent.of_groups([GroupIntent("", file_id(lakes.one.hudi.config.name, "", 0))])
    with pytest.raises(OvertakenError, match="both write file group 00000000"):
        lakes.one.begin(lakes.one.hudi.schema, intent)
    lakes.one.refresh("one")
    context = lakes.two.begin(lakes.two.hudi.schema, intent)
    with pytest.raises(OvertakenError, match=rf"is pending for 0 s.*{context.instant}"):
        lakes.one.begin(lakes.one.hudi.schema, intent)
    pending = LakeTable.look(lakes.one.storage, lakes.here.rules).hudi.timeline.pending()
    assert [i.requested_time for i in pending] == [context.instant]


@pytest.mark.parametrize("table_type", ["merge_on_read", "copy_on_write"])
def test_rows_are_looked_up_again_after_another_commit(
    tmp_path: Path, table_type: TableType, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "binlake")
    lakes = Lakes.under(tmp_path, "queue", Kind(table_type, "simple"))
    lakes.commit("two", _rows(lakes.here, "two", [1, 2, 3], 0))
    early = lakes.commit("one", _rows(lakes.here, "one", [3, 4], 0, order=20))  # not refreshed: 3 is new to it
    assert early.counts.applied == 2
    assert "overtaken" in events(caplog)
    lakes.two.refresh("two")
    lakes.commit("two", _rows(lakes.here, "two", [3, 5], 3))
    found = sorted((r["id"], r["_binlake_order"]) for r in rows_of(lakes.here.root))
    assert found == [(1, 8), (2, 9), (3, 20), (4, 21), (5, 9)]
    assert lakes.positions() == {"one": 2, "two": 5}
    assert [f for f in fsck(lakes.one.storage).findings if f.severity != "info"] == []
