"""What else is done to append tables: time travel, restore, a metadata table that comes later, quarantined records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay.quarantine import replay
from binlake.load.replay.quarantine_records import QuarantineSelection
from hudilake.read import Incremental, Snapshot, TableReader
from hudilake.services.restore import restore
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, settings
from tests.whole.append.test_append_histories import COMPACTED, faults, shown
from tests.whole.append.test_append_stream import TOPIC, append_settings, insert

KINDS = pytest.mark.parametrize("kind", ["merge_on_read", "copy_on_write"])


def fed(place: Path, batches: int, **rules: Any) -> TopicLog:  # noqa: ANN401 - any YAML value
    """A lake whose append table has had so many batches of five rows."""
    log, stream = TopicLog(), runner(append_settings(place, **rules), open_storage(str(place)))
    for batch in range(batches):
        for n in range(batch * 5, batch * 5 + 5):
            insert(log, n)
        stream.run(batch, log.end(), 0, LocalEngine(log))
    stream.close()
    return log


def rows(count: int) -> list[list[tuple[int, str]]]:
    """What both readers show after so many rows."""
    return [[(n, "eu") for n in range(count)]] * 2


@pytest.mark.first(1)
@KINDS
def test_the_past_is_read_and_restored_and_delivered_again(tmp_path: Path, kind: str) -> None:
    log, place = fed(tmp_path, 4, type=kind), tmp_path / "shop" / "logs"
    table = HudiTable.open(open_storage(str(place)))
    times = [instant.requested_time for instant in table.timeline.completed()]
    reader = TableReader.open(str(place))
    assert [reader.count(Snapshot(time)) for time in times] == [5, 10, 15, 20]
    later = reader.read(Incremental(table.timeline.completed()[2].completion_time or ""), columns=["id"])
    assert sorted(later.read_all().column("id").to_pylist()) == list(range(15, 20))
    restore(table, times[1])
    assert shown(place) == rows(10)
    stream = runner(append_settings(tmp_path, type=kind), open_storage(str(tmp_path)))
    stream.run(4, log.end(), 0, LocalEngine(log))
    for source in list(stream.ledger.behind):
        stream.catch_up(source, LocalEngine(log))
    assert shown(place) == rows(20)
    assert faults(place) == []


@KINDS
def test_a_metadata_table_may_come_later(tmp_path: Path, kind: str) -> None:
    log = fed(tmp_path, 3, type=kind, metadata={"enabled": False})
    stream = runner(append_settings(tmp_path, type=kind, **COMPACTED), open_storage(str(tmp_path)))
    insert(log, 15)
    stream.run(3, log.end(), 0, LocalEngine(log))
    place = tmp_path / "shop" / "logs"
    assert shown(place) == rows(16)
    assert faults(place) == []
    assert HudiTable.open(open_storage(str(place))).config.metadata_partitions == ("column_stats", "files")
    assert TableReader.open(str(place)).count() == 16


def test_quarantined_inserts_come_back_once_and_changes_do_not(tmp_path: Path) -> None:
    config = append_settings(tmp_path)
    log, stream = TopicLog(), runner(config, open_storage(str(tmp_path)))
    log.add(TOPIC, event("logs", "c", 100, row(0)), {"id": 0})
    log.add(TOPIC, event("logs", "c", 101, row(1) | {"tier": "gold"}), {"id": 1})
    log.add(TOPIC, event("logs", "u", 102, row(0, "x"), row(0)), {"id": 0})
    done = stream.run(0, log.end(), 0, LocalEngine(log))
    assert [(t.applied, t.quarantined) for t in done.tables] == [(1, 2)]
    stream.close()
    schemas = {"shop.logs": {"columns": COLUMNS | {"tier": "varchar(9)"}, "key": ["id"]}}
    mended = settings(str(tmp_path), ["logs"], tables={"defaults": {"kind": "append"}}, source={"schemas": schemas})
    again = replay(mended, QuarantineSelection())
    assert (again.applied, again.failed) == (1, 1)
    again = replay(mended, QuarantineSelection())
    assert (again.applied, again.failed) == (0, 1)
    assert shown(tmp_path / "shop" / "logs") == rows(2)
