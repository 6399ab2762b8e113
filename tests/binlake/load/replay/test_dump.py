"""The dump service: every record in one file and none in two, wherever it dies; and what it dumps gives the tables."""

from __future__ import annotations

import contextlib
import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from binlake.decode.changes import RawRecords
from binlake.load.replay.dump import STATE, DumpService, RollReport
from binlake.settings import Settings
from binlake.source.dump_layout import DumpFile, DumpLayout, Window
from binlake.source.dump_read import read_dump
from binlake.source.offsets import OffsetRange, Offsets
from hudilake.errors import BadInputError, ConfigError, CorruptDataError, LostOwnershipError
from hudilake.storage import Storage, open_storage
from tests.binlake.load.replay.dumped import HOUR, Record, replay, settings
from tests.binlake.stream.dying_store import DyingStore, Fate, Killed
from tests.binlake.stream.test_exactly_once import EXPECTED, first_events, rows_of, second_events
from tests.conftest import BUCKET
from tests.services.s3 import S3Server

HOURS_MS = 3_600_000
PATHS = ["*.jsonl", "*.jsonl.gz", "part-*.jsonl.zst", "*.parquet"]
LAYOUT = "{database}.{table}/dt={date}/hour={hour}/*.jsonl"


@dataclass
class Records:
    """Topic partitions held in memory. ``stop_at``: what their ends are said to be, call by call; the last stays."""

    held: list[Record]
    limits: list[int] = field(default_factory=list)
    reads: list[list[OffsetRange]] = field(default_factory=list)
    made: str = "1"

    def ids(self, topics: Sequence[str]) -> dict[str, str]:
        return dict.fromkeys(topics, self.made)

    def start(self, known: Offsets) -> Offsets:
        return Offsets.of_places((topic, partition, known.at(topic, partition)) for topic, partition, *_ in self.held)

    def ends(self, places: Offsets) -> Offsets:
        limit = self.limits.pop(0) if self.limits else 1 << 40
        ends: dict[str, dict[int, int]] = {}
        for topic, partition, offset, *_ in self.held:
            parts = ends.setdefault(topic, {})
            parts[partition] = max(parts.get(partition, 0), min(offset + 1, limit))
        return Offsets(ends)

    def read(self, ranges: Sequence[OffsetRange]) -> Iterator[RawRecords]:
        self.reads.append(list(ranges))
        for r in ranges:
            mine = [h for h in self.held if h[:2] == (r.topic, r.partition) and r.start <= h[2] < r.end]
            for start in range(0, len(mine), 3):
                part = mine[start : start + 3]
                yield RawRecords(
                    r.topic,
                    r.partition,
                    np.array([h[2] for h in part]),
                    np.array([h[3] for h in part]),
                    [h[4] for h in part],
                    [h[5] for h in part],
                )


def some(seed: int = 1, count: int = 40) -> list[Record]:
    """Records of three topics with holes in the offsets, timestamps that go back, keys and values of all kinds."""
    chance = random.Random(seed)
    found: list[Record] = []
    for topic, partitions in (("s.shop.orders", 2), ("s.shop.accounts", 1), ("ddl", 1)):
        for partition in range(partitions):
            offset = chance.randint(0, 3)
            for n in range(count):
                stamp = (HOUR + n * 3 // count) * HOURS_MS + chance.randint(-HOURS_MS // 4, HOURS_MS - 1)
                value = chance.choice([None, b"\xff\x00", f'{{"n": {n}}}'.encode()])
                found.append((topic, partition, offset, stamp, chance.choice([None, b'{"id": 1}', b"\x80"]), value))
                offset += chance.choice([1, 1, 1, 4])
    return found


def config(dumps: Path, path: str = LAYOUT, **dump: object) -> Settings:
    kafka = {"bootstrap_servers": "127.0.0.1:1", "topics": ["s.shop.orders", "s.shop.accounts"], "ddl_topics": ["ddl"]}
    return settings(dumps.parent / "lake", dumps, dump={"path": path, **dump}, kafka=kafka)


def store(dumps: Path) -> Storage:
    return open_storage(str(dumps), {"fsync": "false"})


def dump_once(rules: Settings, source: Records, storage: Storage | None = None) -> list[RollReport]:
    rolls: list[RollReport] = []
    DumpService(rules, source, storage or store(Path(str(rules.dump.uri)))).run(once=True, on_roll=rolls.append)
    return rolls


def bury(place: Path) -> None:
    """Take away the lease of a process that is dead by now: this one, which played it, lives."""
    (place / STATE / "shop" / "run").unlink(missing_ok=True)


def in_files(dumps: Path) -> Counter[Record]:
    """Every record in a file whose name a reader takes, however often it is there; each is where its time says."""
    found: Counter[Record] = Counter()
    storage = store(dumps)
    for info in storage.walk(""):
        if not info.path.startswith(STATE):
            for r in read_dump(storage, DumpFile(0, info.path, info.size, 0), 100):
                rows = zip(r.offsets.tolist(), r.timestamps_ms.tolist(), r.keys, r.values, strict=True)
                found.update((r.topic, r.partition, *row) for row in rows)
    return found


@pytest.mark.parametrize("name", PATHS)
def test_each_record_is_in_one_file(tmp_path: Path, name: str) -> None:
    source = Records(some())
    rules = config(tmp_path / "d", f"{{topic}}/{{date}}/{{hour}}/{name}", roll_bytes=100)
    rolls = dump_once(rules, source)
    assert len(rolls) > 3
    assert in_files(tmp_path / "d") == Counter(source.held)
    assert sum(roll.records for roll in rolls) == len(source.held)
    assert dump_once(rules, source) == []


def test_files_are_where_their_records_times_say(tmp_path: Path) -> None:
    source = Records(some())
    dump_once(config(tmp_path / "d"), source)
    storage, layout = store(tmp_path / "d"), DumpLayout(LAYOUT)
    data = [r for r in source.held if r[0] != "ddl"]
    for hour in {r[3] // HOURS_MS for r in data}:
        files = layout.find(storage, Window(hour, hour + 1), ("_ddl",))
        found = [row for f in files for r in read_dump(storage, f, 9) for row in r.timestamps_ms.tolist()]
        assert Counter(found) == Counter(r[3] for r in data if r[3] // HOURS_MS == hour)
    assert [i.path.split("/")[:2] for i in storage.walk("_ddl")] == [["_ddl", "ddl"]] * len(list(storage.walk("_ddl")))


def test_control_a_service_that_forgets_its_roll_writes_twice(tmp_path: Path) -> None:
    """What the test above would see if a roll that died were not done again as it was."""
    source = Records(some(count=12))
    for at in range(40):
        place = tmp_path / f"{at}"
        fate = Fate(at)
        with contextlib.suppress(Killed):
            dump_once(
                config(place, roll_bytes=400), Records(some(count=12), limits=[9]), DyingStore(store(place), fate)
            )
        fate.settle()
        bury(place)
        position = place / STATE / "shop" / "position.json"
        if position.exists():
            position.write_text(json.dumps({**json.loads(position.read_text()), "roll": []}))
        dump_once(config(place, roll_bytes=900), source)
        if in_files(place) != Counter(source.held):
            return
    pytest.fail("nothing was there twice")


def test_a_damaged_position_is_told(tmp_path: Path) -> None:
    source = Records(some())
    dump_once(config(tmp_path / "d"), source)
    position = tmp_path / "d" / STATE / "shop" / "position.json"
    position.write_text("{")
    with pytest.raises(CorruptDataError, match="position"):
        dump_once(config(tmp_path / "d"), source)
    position.unlink()
    (repeated,) = dump_once(config(tmp_path / "d"), source)
    assert (repeated.repeated, repeated.size) == (True, 0)
    assert in_files(tmp_path / "d") == Counter(source.held)


def test_a_topic_that_was_made_anew_is_told(tmp_path: Path) -> None:
    """Its offsets mean other records now: going on would leave out the first of them."""
    dump_once(config(tmp_path / "d"), Records(some()))
    with pytest.raises(BadInputError, match="created again"):
        dump_once(config(tmp_path / "d"), Records(some(count=60), made="2"))


def test_it_goes_on_by_size_and_by_time(tmp_path: Path) -> None:
    """Without ``once`` it waits for a roll's size or time, and stops between two rolls."""
    source = Records(some(), limits=[5] * 4 + [30] * 3)
    rules = config(tmp_path / "d", roll_bytes=1 << 20, roll_seconds=0.2)
    stop, rolls = threading.Event(), list[RollReport]()

    def tell(roll: RollReport) -> None:
        rolls.append(roll)
        if not roll.lag and len(rolls) > 2:
            stop.set()

    DumpService(rules, source, store(tmp_path / "d")).run(once=False, on_roll=tell, stop=stop)
    assert [max(r.end for r in roll.ranges) for roll in rolls[:2]] == [5, 30]
    assert in_files(tmp_path / "d") == Counter(source.held)


def test_two_services_at_once_are_refused(tmp_path: Path) -> None:
    source = Records(some())
    rules = config(tmp_path / "d")

    def second(_: RollReport) -> None:
        with pytest.raises(LostOwnershipError, match="another run"):
            dump_once(rules, source)
        raise Killed

    with pytest.raises(Killed):
        DumpService(rules, source, store(tmp_path / "d")).run(once=True, on_roll=second)


@pytest.mark.parametrize("path", ["{topic}/{date}/*", "{topic}/{date}/*.avro", "{topic}/{date}/a.jsonl"])
def test_a_template_by_which_nothing_can_be_written(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written by this template"):
        DumpService(config(tmp_path, path), Records([]))


@pytest.mark.parametrize("path", [LAYOUT, "{database}.{table}/dt={date}/*.parquet"])
def test_what_is_dumped_gives_the_tables(tmp_path: Path, path: str) -> None:
    check_tables(tmp_path / "lake", str(tmp_path / "d"), {"fsync": "false"}, path)


def test_dumps_in_an_object_store(tmp_path: Path, s3_server: S3Server) -> None:
    check_tables(tmp_path / "lake", f"s3://{BUCKET}/dumps", s3_server.options(), LAYOUT)


def check_tables(lake: Path, uri: str, options: dict[str, str], path: str) -> None:
    log = first_events()
    second_events(log)
    held: list[Record] = [
        (topic, partition, at, (HOUR + at // 8) * HOURS_MS, key, value)
        for (topic, partition), records in log.records.items()
        for at, (key, value) in enumerate(records)
    ]
    rules = settings(lake, uri, dump={"path": path, "roll_bytes": 2_000, "options": options})
    for limit in (7, 11, 1 << 40):
        dump_once(rules, Records(held, limits=[limit]), open_storage(uri, options))
        replay(rules)
    assert {t: rows_of(lake, t) for t in EXPECTED} == EXPECTED
    assert replay(rules).taken == []
