"""Dumps replayed: each file once, in any order, beside the stream, and told in the commits."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hudi import HudiTableBuilder

from binlake.load.replay.coverage import DumpCoverage
from binlake.load.replay.quarantine import replay as replay_quarantine
from binlake.load.replay.quarantine_records import QuarantineSelection
from binlake.position.record_reader import RecordKey
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from binlake.tables.audit import audit
from hudilake.errors import BadInputError, ConfigError, CorruptDataError
from hudilake.services.restore import restore
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.load.replay.dumped import FORMS, HOUR, Record, as_json, lines_of, replay, settings, write
from tests.binlake.stream.soundness import errors_in
from tests.binlake.stream.test_exactly_once import (
    EXPECTED,
    commits,
    first_events,
    quarantined,
    row,
    rows_of,
    runner,
    second_events,
)
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event


def records(log: TopicLog, table: str) -> list[Record]:
    """The records of a table, with the coordinates they have in the log."""
    found = []
    for (topic, partition), held in sorted(log.records.items()):
        if topic.endswith(f".{table}"):
            found += [(topic, partition, at, 1_760_000_000_000, key, value) for at, (key, value) in enumerate(held)]
    return found


def both() -> tuple[TopicLog, dict[str, int]]:
    """All events, and how many of each table's first partition are of the first hour."""
    log = first_events()
    second_events(log)
    return log, {"accounts": 10, "orders": 20}


def dumped(place: Path, name: str = "a.jsonl.gz") -> TopicLog:
    """Both tables' events, the older in one hour, the newer in the next."""
    log, cut = both()
    for table, first in cut.items():
        whole = records(log, table)
        write(place, table, HOUR, name, FORMS[name]([r for r in whole if r[2] < first]))
        write(place, table, HOUR + 1, name, FORMS[name]([r for r in whole if r[2] >= first]))
    return log


def check(lake: Path) -> None:
    assert {t: rows_of(lake, t) for t in EXPECTED} == EXPECTED
    assert [(*q[:1], *q[2:]) for q in quarantined(lake)] == [("s.shop.orders", b"{broken", "malformed_json")]


def sound(lake: Path) -> None:
    for table in EXPECTED:
        assert errors_in(lake / "shop" / table) == []
        assert audit(open_storage(str(lake / "shop" / table))).errors == []


@pytest.fixture
def place(tmp_path: Path) -> tuple[Path, Path, Settings]:
    lake, dumps = tmp_path / "lake", tmp_path / "dumps"
    return lake, dumps, settings(lake, dumps, dump={"path": "{database}.{table}/dt={date}/hour={hour}/*"})


Place = tuple[Path, Path, Settings]


@pytest.mark.first(3)
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.jsonl.bz2", "a.jsonl.zst", "a.parquet", "a.avro"])
def test_a_dump_gives_the_tables(place: Place, name: str) -> None:
    lake, dumps, config = place
    dumped(dumps, name)
    report = replay(config)
    check(lake)
    sound(lake)
    assert (len(report.found), len(report.taken), report.covered) == (4, 4, 0)
    parts = {t.table: t for e in report.events for t in e.tables}
    orders = parts["shop.orders"]
    assert orders.events_read == orders.applied + orders.superseded + orders.filtered == 23
    assert sum(e.quarantined for e in report.events) == 1
    assert parts["shop.accounts"].events_read == 31


def test_a_file_that_nothing_opens_is_refused_before_anything_is_read(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    write(dumps, "orders", HOUR + 1, "b.jsonl.snappy", b"\x00\x00\x01\x00")
    with pytest.raises(CorruptDataError, match="its name says Snappy"):
        replay(config)
    assert not (lake / "shop").exists()


def test_a_second_replay_does_nothing(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    before = commits(lake)
    again = replay(config)
    assert (again.covered, again.taken, again.events) == (4, [], [])
    assert commits(lake) == before


def test_control_without_what_commits_say_it_is_all_done_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    before = commits(lake)
    monkeypatch.setattr("binlake.load.replay.replay_dumps.DumpCoverage.load", lambda *_: DumpCoverage())
    assert len(replay(config).taken) == 4
    assert commits(lake) > before
    check(lake)


@pytest.mark.parametrize("hours", [[0, 1], [1, 0]])
def test_hours_in_either_order(place: Place, hours: Sequence[int]) -> None:
    """The newer hour first: the older one changes nothing that is newer, and deleted rows stay out."""
    lake, dumps, config = place
    dumped(dumps)
    for hour in hours:
        report = replay(config, Window(HOUR + hour, HOUR + hour + 1))
        assert len(report.taken) == 2
    check(lake)
    sound(lake)


@pytest.mark.first(2)
@pytest.mark.parametrize("order", ["stream first", "dump first", "interleaved"])
def test_stream_and_replay_write_the_same_tables(place: Place, order: str) -> None:
    lake, dumps, config = place
    log = dumped(dumps)
    store = open_storage(str(lake))
    middle = {t: {p: len(r) // 2 for (u, p), r in log.records.items() if u == t} for t, _ in log.records}
    if order == "stream first":
        runner(config, store).run(0, log.end(), 0, LocalEngine(log))
        replay(config)
    elif order == "dump first":
        replay(config)
        runner(config, store).run(0, log.end(), 0, LocalEngine(log))
    else:
        stream = runner(config, store)
        replay(config, Window(HOUR + 1))
        stream.run(0, middle, 0, LocalEngine(log))
        replay(config, Window(None, HOUR + 1))
        stream.run(1, log.end(), 0, LocalEngine(log))
        assert stream.ledger.positions == log.end()
    check(lake)
    sound(lake)
    assert len(quarantined(lake)) == 1  # the same record by both ways


def test_raw_events_without_coordinates(place: Place) -> None:
    lake, dumps, config = place
    log, _ = both()
    for table in EXPECTED:
        events = [r[5] for r in records(log, table) if r[5] is not None]
        write(dumps, table, HOUR, "half.jsonl", lines_of(events[1::2]))
        write(dumps, table, HOUR + 1, "half.jsonl.gz", gzip.compress(lines_of(events[::2])))
    replay(config)
    assert {t: rows_of(lake, t) for t in EXPECTED} == EXPECTED
    (bad,) = quarantined(lake)
    assert bad[0].startswith("shop.orders/dt=")
    assert bad[2:] == (b"{broken", "malformed_json")


def test_a_late_file_of_a_covered_hour_is_taken(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    late = event("orders", "c", 3000, row(99, "late"))
    write(
        dumps,
        "orders",
        HOUR,
        "late.jsonl",
        as_json([("s.shop.orders", 0, 99, 1, b'{"id": 99}', json.dumps(late).encode())]),
    )
    report = replay(config)
    assert (len(report.taken), report.covered, report.late) == (1, 4, 1)
    assert (99, "late", "5.00", "eu") in rows_of(lake, "orders")


def test_a_file_that_was_written_again_is_refused_or_taken(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config)
    newer = event("orders", "u", 4000, row(1, "again"))
    path = write(dumps, "orders", HOUR, "a.jsonl.gz", lines_of([newer]))
    with pytest.raises(BadInputError, match="written again") as caught:
        replay(config)
    assert path in str(caught.value)
    skipped = replay(config, rewritten="skip")
    assert (skipped.taken, [f.path for f in skipped.rewritten]) == ([], [path])
    assert (1, "order", "5.00", "eu") in rows_of(lake, "orders")
    taken = replay(config, rewritten="take")
    assert [f.path for f in taken.taken] == [path]
    assert (1, "again", "5.00", "eu") in rows_of(lake, "orders")
    assert replay(config).taken == []


def test_large_hours_are_several_commits(place: Place) -> None:
    lake, dumps, _ = place
    config = settings(lake, dumps, dump={"path": "{database}.{table}/dt={date}/hour={hour}/*", "commit_bytes": 1})
    dumped(dumps)
    report = replay(config)
    check(lake)
    assert len(report.events) == 4
    assert commits(lake) == 4


def test_what_commits_say_does_not_grow(place: Place) -> None:
    lake, dumps, config = place
    for n in range(30):
        write(dumps, "orders", HOUR + n, "f.jsonl", lines_of([event("orders", "u", 100 + n, row(1, f"v{n}"))]))
        replay(config, Window(HOUR + n, HOUR + n + 1))
    table = HudiTable.open(open_storage(str(lake / "shop" / "orders")))
    last = table.timeline.commit_metadata(table.timeline.completed()[-1])
    (ranges,) = json.loads(last.extra[RecordKey.HOURS]).values()
    assert ranges == [[HOUR, HOUR + 30]]
    assert len(json.loads(last.extra[RecordKey.PORTION])["files"]) == 1
    assert len(replay(config).taken) == 0


@pytest.mark.full
def test_archived_commits_count(place: Place) -> None:
    """What a table took long ago it does not take again, though the timeline has forgotten the commit."""
    lake, dumps, _ = place
    tables = {
        "defaults": {"buckets": 1, "compaction": {"mode": "inline", "after_commits": 2}, "retention": {"commits": 1}}
    }
    config = settings(lake, dumps, dump={"path": "{database}.{table}/dt={date}/hour={hour}/*"}, tables=tables)
    for n in range(90):
        write(dumps, "orders", HOUR + n, "f.jsonl", lines_of([event("orders", "u", 100 + n, row(n % 5, f"v{n}"))]))
    small = config.model_copy(update={"dump": config.dump.model_copy(update={"commit_bytes": 1})})
    replay(small)
    history = HudiTable.open(open_storage(str(lake / "shop" / "orders"))).timeline.history()
    assert history.files
    before = commits(lake)
    assert (replay(config).covered, commits(lake)) == (90, before)
    assert replay(config, Window(HOUR, HOUR + 1)).covered == 1
    write(dumps, "orders", HOUR, "late.jsonl", lines_of([event("orders", "u", 1, row(0, "older"))]))
    assert len(replay(config, Window(HOUR, HOUR + 1)).taken) == 1
    assert [r[1] for r in rows_of(lake, "orders")] == [f"v{n}" for n in range(85, 90)]


def test_a_restored_table_is_given_its_files_again(place: Place) -> None:
    lake, dumps, config = place
    dumped(dumps)
    replay(config, Window(HOUR, HOUR + 1))
    table = HudiTable.open(open_storage(str(lake / "shop" / "orders")))
    then = table.timeline.completed()[-1].requested_time
    replay(config)
    table = HudiTable.open(open_storage(str(lake / "shop" / "orders")))
    restore(table, then)
    assert rows_of(lake, "orders") != EXPECTED["orders"]
    report = replay(config)
    assert (report.repeated, len(report.events)) == (1, 1)
    check(lake)
    assert rows_of(lake, "accounts") == EXPECTED["accounts"]


def test_too_much_bad_input_stops_before_anything_is_written(place: Place) -> None:
    lake, dumps, config = place
    config = config.model_copy(update={"quarantine": config.quarantine.model_copy(update={"max_records_per_batch": 2})})
    write(dumps, "orders", HOUR, "f.jsonl", lines_of([event("orders", "c", 1, row(1)), b"{a", b"{b", b"{c"]))
    with pytest.raises(BadInputError, match="3 of 4 records"):
        replay(config)
    assert not (lake / "shop").exists()


def test_a_damaged_file_stops_with_its_path(place: Place) -> None:
    lake, dumps, config = place
    path = write(dumps, "orders", HOUR, "f.jsonl.gz", gzip.compress(lines_of([event("orders", "c", 1, row(1))]))[:-9])
    with pytest.raises(CorruptDataError, match="cannot be read") as caught:
        replay(config)
    assert path in str(caught.value)
    assert not (lake / "shop" / "orders").exists()


def test_a_refused_table_goes_to_quarantine_once(place: Place) -> None:
    """A type that cannot become what is stored: its records are kept raw, and its files are not taken again."""
    lake, dumps, config = place
    write(dumps, "orders", HOUR, "f.jsonl", lines_of([event("orders", "c", 1, row(1))]))
    write(dumps, "accounts", HOUR, "f.jsonl", lines_of([event("accounts", "c", 1, row(1))]))
    replay(config)
    columns = {"orders": {"id": "bigint", "owner": "int"}, "accounts": {"id": "bigint"}}
    schemas = {f"shop.{t}": {"columns": known, "key": ["id"]} for t, known in columns.items()}
    path = "{database}.{table}/dt={date}/hour={hour}/*"
    changed = settings(lake, dumps, dump={"path": path}, source={"schemas": schemas})
    write(dumps, "orders", HOUR + 1, "f.jsonl", lines_of([event("orders", "c", 2, {"id": 2, "owner": 5})]))
    write(dumps, "accounts", HOUR + 1, "f.jsonl", lines_of([event("accounts", "c", 2, {"id": 2})]))
    replay(changed)
    assert [q[3] for q in quarantined(lake)] == ["table_refused"]
    assert [r[0] for r in rows_of(lake, "orders")] == [1]
    assert [r[0] for r in rows_of(lake, "accounts")] == [1, 2]
    assert replay(changed).taken == []


def test_bad_records_alone_are_taken_once(place: Place) -> None:
    lake, dumps, config = place
    write(dumps, "orders", HOUR, "f.jsonl", lines_of([b"{broken"]))
    replay(config)
    assert len(quarantined(lake)) == 1
    assert replay(config).taken == []


def test_a_truncate_in_the_dump(place: Place) -> None:
    lake, dumps, config = place
    gone: dict[str, Any] = event("orders", "t", 150, {})
    gone["after"] = None
    write(
        dumps,
        "orders",
        HOUR,
        "a.jsonl",
        lines_of([event("orders", "c", 100, row(1)), event("orders", "c", 101, row(2))]),
    )
    write(dumps, "orders", HOUR + 1, "a.jsonl", lines_of([gone, event("orders", "c", 200, row(3))]))
    write(dumps, "orders", HOUR + 2, "late.jsonl", lines_of([event("orders", "c", 120, row(4))]))
    for n in (0, 1, 2):
        replay(config, Window(HOUR + n, HOUR + n + 1))
    assert [r[0] for r in rows_of(lake, "orders")] == [3]
    assert replay(config).taken == []


@pytest.mark.parametrize("at_once", [True, False])
def test_a_truncate_that_comes_before_its_table(place: Place, at_once: bool) -> None:
    """Its hour is replayed first; rows from before it come later, and go."""
    lake, dumps, config = place
    gone: dict[str, Any] = {**event("orders", "t", 150, {}), "after": None}
    write(dumps, "orders", HOUR, "a.jsonl", lines_of([gone]))
    write(dumps, "orders", HOUR + 1, "a.jsonl", lines_of([event("orders", "c", 100, row(1))]))
    write(
        dumps,
        "orders",
        HOUR + 2,
        "a.jsonl",
        lines_of([event("orders", "c", 120, row(2)), event("orders", "c", 160, row(3))]),
    )
    if at_once:
        replay(config.model_copy(update={"dump": config.dump.model_copy(update={"commit_bytes": 1})}))
    else:
        for n in range(3):
            replay(config, Window(HOUR + n, HOUR + n + 1))
    assert [r[0] for r in rows_of(lake, "orders")] == [3]
    sound_orders = open_storage(str(lake / "shop" / "orders"))
    assert audit(sound_orders).errors == []


def test_events_older_than_forgotten_deletes_are_refused(place: Place) -> None:
    """The control: taken all the same, a row comes back whose delete the table has forgotten."""
    lake, dumps, _ = place
    compaction = {"mode": "inline", "after_commits": 1, "tombstone_retention_hours": 0}
    tables = {"defaults": {"compaction": compaction}}
    config = settings(lake, dumps, dump={"path": "{database}.{table}/dt={date}/hour={hour}/*"}, tables=tables)
    log = TopicLog()
    log.add("s.shop.orders", event("orders", "c", 100, row(1)), {"id": 1})
    log.add("s.shop.orders", event("orders", "d", 200, row(1)), {"id": 1})
    for end in (1, 2):
        runner(config, open_storage(str(lake))).run(end, {"s.shop.orders": {0: end}}, 0, LocalEngine(log))
    write(dumps, "orders", HOUR, "a.jsonl", lines_of([event("orders", "c", 100, row(1))]))
    with pytest.raises(BadInputError, match="would come back"):
        replay(config)
    assert rows_of(lake, "orders") == []
    replay(config, even_too_old=True)
    assert [r[0] for r in rows_of(lake, "orders")] == [1]
    write(dumps, "orders", HOUR + 1, "a.jsonl", lines_of([event("orders", "c", 300, row(2))]))
    replay(config)  # newer than all it knew when it forgot


def test_what_a_replay_quarantined_has_a_way_back(place: Place) -> None:
    """Lines without coordinates are known by file and line; no stream will deliver them."""
    lake, dumps, config = place
    log = first_events()
    runner(config, open_storage(str(lake))).run(0, log.end(), 0, LocalEngine(log))
    odd = event("orders", "u", 5000, {**row(1), "colour": "red"})
    write(dumps, "orders", HOUR, "a.jsonl", lines_of([odd]))
    replay(config)
    assert [q[3] for q in quarantined(lake)] == ["unknown_column"]
    columns = {**COLUMNS, "colour": "varchar(9)"}
    schemas = {"shop.orders": {"columns": columns, "key": ["id"]}}
    done = replay_quarantine(settings(lake, dumps, source={"schemas": schemas}), QuarantineSelection())
    assert (done.applied, done.left_to_stream) == (1, 0)
    found = [
        r
        for batch in HudiTableBuilder.from_base_uri(str(lake / "shop" / "orders")).build().read()
        for r in batch.to_pylist()
    ]
    assert [r["colour"] for r in found if r["id"] == 1] == ["red"]


def test_nobody_says_where_the_dump_is(tmp_path: Path) -> None:
    config = settings(tmp_path, tmp_path, dump={"uri": None})
    with pytest.raises(ConfigError, match="the place of the dump is not known"):
        replay(config)
