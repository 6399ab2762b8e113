"""A lost ledger is worked out from the tables' newest commits."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable, TableSchema
from binlake.position.commit_record import CommitRecord
from binlake.position.ledger import Ledger
from binlake.position.record_reader import VERSION, RecordKey
from binlake.position.recovery import newest_start
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.parcel import pack
from binlake.rows.upsert.route import Counts
from binlake.rows.upsert.target import Target
from binlake.settings import Settings
from binlake.source.offsets import OffsetRange, Ranges
from binlake.stream.recovery import recover
from binlake.tables.audit import audit
from binlake.tables.lake import Lake
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.errors import UnsupportedError
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.topic_log import services, settings
from tests.logged import events

COLUMNS = pa.schema([("id", pa.int64())])


def storage(path: Path) -> Storage:
    """A lake on local disk."""
    return open_storage(path.as_uri(), {"fsync": "false"})


def commit(
    lake: Lake, config: Settings, name: str, *ranges: tuple[str, int, int, int], stream: str = "shop"
) -> LakeTable:
    """One commit of one row for a table, covering offset ranges."""
    source = SourceTable("shop", name)
    rules = config.table_rules(source)
    target = Target.new(source, rules.path, ("id",), SimpleBuckets(rules.buckets))
    rows: dict[str, Any] = {"_hoodie_record_key": ["1"], "id": pa.array([1], pa.int64())}
    rows |= {"__op": pa.array([0], pa.int8()), "__order": pa.array([7], pa.int64())}
    rows |= {"__row": pa.array([0], pa.int32()), "__offset": pa.array([ranges[0][3] - 1], pa.int64())}
    rows |= {"__partition": pa.array([ranges[0][1]], pa.int32())}
    report = TaskTableReport(TableSchema(source, (), ("id",)), target, COLUMNS, {r[0] for r in ranges}, Counts(read=1))
    work = TableInput(report, Ranges(OffsetRange(*r) for r in ranges), list(pack(rules.path, "", 0, pa.table(rows))))
    table = lake.get_or_create(rules, target, COLUMNS)
    with ThreadPoolExecutor(1) as pool:
        assert write_and_commit(table, work, stream, 0, pool, services()).instant is not None
    return table


def with_path(config: Settings, template: str) -> Settings:
    """The settings with another path template for tables."""
    return config.model_copy(update={"tables": config.tables.model_copy(update={"path": template})})


def recovered(path: Path, config: Settings) -> Ledger:
    """As a new process does."""
    root = storage(path)
    return recover(config, root, Lake(root))


def test_an_empty_lake(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = settings(str(tmp_path), ["a"])
    assert recovered(tmp_path, config) == Ledger("shop")
    storage(tmp_path).write("shop/notes/readme.txt", b"no table")
    assert recovered(tmp_path, config) == Ledger("shop")
    assert events(caplog) == {}  # a first start is no loss


def test_the_beginning_of_each_tables_newest_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Batches 0..5, 5..9 and 9..12 of a topic: table b took no part in the last one."""
    config, lake = settings(str(tmp_path), ["a", "b"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 0, 5), ("t", 1, 0, 2))
    commit(lake, config, "b", ("t", 0, 0, 5))
    commit(lake, config, "b", ("t", 0, 5, 9))
    commit(lake, config, "a", ("t", 0, 9, 12))
    found = recovered(tmp_path, config)
    assert found.tables == {SourceTable("shop", "a"): "shop/a", SourceTable("shop", "b"): "shop/b"}
    # b may lack what lies between 5 and 9 for all a knows; in partition 1 a has everything up to 2
    assert found.positions == {"t": {0: 5, 1: 2}}
    assert (found.batch, found.behind) == (0, {})
    told = events(caplog)["ledger_recovered"]
    assert (told["levelname"], told["stream"], told["positions"]) == ("WARNING", "shop", found.positions)


def test_topics_of_different_tables(tmp_path: Path) -> None:
    config, lake = settings(str(tmp_path), ["a", "b"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 3, 5))
    commit(lake, config, "b", ("u", 0, 70, 90))
    assert recovered(tmp_path, config).positions == {"t": {0: 3}, "u": {0: 70}}


def test_other_streams_tables_are_left_alone(tmp_path: Path) -> None:
    config, lake = settings(str(tmp_path), ["a", "b"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 3, 5))
    commit(lake, config, "b", ("t", 0, 1, 2), stream="other")
    found = recovered(tmp_path, config)
    assert found.positions == {"t": {0: 3}}
    assert list(found.tables) == [SourceTable("shop", "a")]


def test_a_newer_commit_of_another_stream_moves_nothing_forward(tmp_path: Path) -> None:
    config, lake = settings(str(tmp_path), ["a"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 3, 5))
    commit(lake, config, "a", ("t", 0, 80, 90), stream="other")
    assert recovered(tmp_path, config).positions == {"t": {0: 5}}


def test_a_table_at_another_path_than_the_settings_say_is_left_alone(tmp_path: Path) -> None:
    commit(Lake(storage(tmp_path)), settings(str(tmp_path), ["a"]), "a", ("t", 0, 3, 5))
    moved = with_path(settings(str(tmp_path), ["a"]), "lake/{table}")
    assert recovered(tmp_path, moved) == Ledger("shop")


def test_deep_paths_are_found(tmp_path: Path) -> None:
    config = with_path(settings(str(tmp_path), ["a"]), "raw/mysql/{database}/{table}")
    commit(Lake(storage(tmp_path)), config, "a", ("t", 0, 3, 5))
    assert recovered(tmp_path, config).tables == {SourceTable("shop", "a"): "raw/mysql/shop/a"}


def test_what_a_table_has_applied_is_known_again(tmp_path: Path) -> None:
    config, lake = settings(str(tmp_path), ["a"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 0, 5))
    commit(lake, config, "a", ("t", 0, 5, 9), ("t", 1, 0, 4))
    table = Lake(storage(tmp_path)).get(config.table_rules(SourceTable("shop", "a")))
    assert table is not None
    assert table.positions == {"shop": {"t": {0: 9, 1: 4}}}
    assert table.ahead_of("shop", {"t": {0: 7, 1: 4, 2: 0}, "u": {0: 0}}) == {"t": {0: 9}}
    assert table.ahead_of("other", {"t": {0: 0}}) == {}
    assert table.topics("shop") == {"t"}
    assert newest_start(table.recorded, "shop") == {"t": {0: 5, 1: 0}}


def test_a_record_of_a_later_version_is_refused_by_all_who_open_the_table(tmp_path: Path) -> None:
    config, lake = settings(str(tmp_path), ["a"]), Lake(storage(tmp_path))
    table = commit(lake, config, "a", ("t", 0, 0, 5))
    later = CommitRecord("shop", 1, Counts(), SourceTable("shop", "a"), ranges=Ranges([OffsetRange("t", 0, 5, 9)]))
    extra = later.upon(table.positions, table.truncates).to_extra() | {RecordKey.VERSION: str(VERSION + 1)}
    table.hudi.commit(table.begin(COLUMNS).instant, [], extra)
    with pytest.raises(UnsupportedError, match="version 2") as raised:
        Lake(storage(tmp_path)).get(table.rules)
    assert raised.value.where["table"] == table.storage.uri
    with pytest.raises(UnsupportedError, match="version 2"):
        recovered(tmp_path, config)
    with pytest.raises(UnsupportedError, match="version 2"):
        audit(table.storage)


def test_a_batch_cut_anew_takes_no_position_back(tmp_path: Path) -> None:
    """After a crash Spark may cut the batch earlier; what the table has beyond that stays applied."""
    config, lake = settings(str(tmp_path), ["a"]), Lake(storage(tmp_path))
    commit(lake, config, "a", ("t", 0, 0, 9), ("t", 1, 0, 9))
    table = commit(lake, config, "a", ("t", 0, 0, 5), ("t", 1, 0, 20))
    assert table.positions == {"shop": {"t": {0: 9, 1: 20}}}
