"""Recorded binlogs, cut into files at random and replayed in any order, give what the source's own SELECT says."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from binlake.settings import Settings
from binlake.source.dump_layout import Window, hour_text
from demo.messages import Message
from hudilake.errors import BadInputError
from hudilake.storage import open_storage
from tests.binlake.decode.formats import format_recordings
from tests.binlake.load.replay.dumped import FORMS, HOUR, Record, replay
from tests.binlake.stream.played import Play, Recording, _renamed
from tests.binlake.stream.soundness import errors_in
from tests.judges import hudi_rs
from tests.selection import first
from tests.services.kafka import Broker

HOURS = 6
LAYOUT = "{topic}/{date}/{hour}/*"


def cut(dumps: Path, recording: Recording, chance: random.Random) -> None:
    """Every topic's messages in files of hours that have nothing to do with their order; the DDL where it belongs."""
    store = open_storage(str(dumps), {"fsync": "false"})
    for topic, messages in recording.recorded.topics.items():
        records = [record(m, at) for at, m in enumerate(messages)]
        if topic == recording.prefix:
            store.write(f"_ddl/{topic}.jsonl", FORMS["a.jsonl"](records))
            continue
        pieces: dict[tuple[int, str], list[Record]] = {}
        for one in records:
            place = chance.randrange(HOURS), chance.choice(["a.jsonl", "a.jsonl.gz", "a.parquet", "a.avro"])
            pieces.setdefault(place, []).append(one)
        for (hour, name), held in pieces.items():
            date, _, clock = hour_text(HOUR + hour).partition("T")
            store.write(f"{topic}/{date}/{clock}/{name}", FORMS[name](held))


def record(message: Message, at: int) -> Record:
    return message.topic, message.partition, at, message.timestamp_ms, message.key, message.value


def played(tmp_path: Path, recording: Recording, sections: dict[str, Any]) -> Play:
    """The recording's settings and verdict; nothing of it is ever in a broker."""
    nobody: Any = None
    return Play(nobody, Broker("127.0.0.1:1", "jars"), recording, tmp_path / "lake", sections)


def windows(chance: random.Random) -> Sequence[Window]:
    hours = list(range(HOURS))
    chance.shuffle(hours)
    return [Window(HOUR + hour, HOUR + hour + 1) for hour in hours]


@pytest.mark.full
@pytest.mark.parametrize(("database", "variant"), first(1, [("bank", "plain"), ("shop", "schema")]))
def test_in_any_order(tmp_path: Path, database: str, variant: str) -> None:
    chance = random.Random(11)
    recording = _renamed(database, variant, f"{database}_{variant}")
    dump = {"uri": str(tmp_path / "dumps"), "path": LAYOUT, "base_files_from_rows": 20, "commit_bytes": 200_000}
    rules = played(tmp_path, recording, {"dump": dump})
    cut(tmp_path / "dumps", recording, chance)
    config: Settings = rules.settings()
    for window in windows(chance):
        replay(config, window)
    assert rules.unequal() == {}
    assert replay(config).taken == []
    for path in (tmp_path / "lake" / database).iterdir():
        assert errors_in(path) == []


TOPIC = "shop_canal"


def canal(tmp_path: Path, name: str) -> Settings:
    document = {
        "name": "shop",
        "lake": {"uri": str(tmp_path / name), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
        "tables": {"defaults": {"buckets": 2}},
        "dump": {"uri": str(tmp_path / "dumps"), "path": LAYOUT},
    }
    return Settings.parse(json.dumps(document))


def rows_of(lake: Path) -> dict[str, list[str]]:
    """Every table's rows through hudi-rs, as text."""
    found = {}
    for path in sorted((lake / "shop").iterdir()):
        rows = hudi_rs.snapshot(path)
        names = sorted(name for name in rows.column_names if not name.startswith(("_hoodie_", "_binlake_")))
        found[path.name] = sorted(map(repr, rows.select(names).to_pylist()))
    return found


@pytest.mark.full
def test_events_without_a_position_go_by_their_offsets(tmp_path: Path) -> None:
    """Canal: files in any order give what files in order give, since they say the offsets."""
    chance = random.Random(7)
    values = [v for v in format_recordings.messages("shop", "canal").values if v is not None]
    held: list[Record] = [(TOPIC, 0, at, 0, None, value) for at, value in enumerate(values)]
    store = open_storage(str(tmp_path / "dumps"), {"fsync": "false"})
    pieces: dict[int, list[Record]] = {}
    for one in held:
        pieces.setdefault(chance.randrange(HOURS), []).append(one)
    for hour, some in pieces.items():
        date, _, clock = hour_text(HOUR + hour).partition("T")
        store.write(f"{TOPIC}/{date}/{clock}/a.jsonl.gz", FORMS["a.jsonl.gz"](some))
    replay(canal(tmp_path, "whole"))
    shuffled = canal(tmp_path, "shuffled")
    for window in windows(chance):
        replay(shuffled, window)
    expected = rows_of(tmp_path / "whole")
    assert len(expected) > 5
    assert rows_of(tmp_path / "shuffled") == expected


def test_events_without_a_position_need_coordinates(tmp_path: Path) -> None:
    first = next(v for v in format_recordings.messages("shop", "canal").values if v is not None)
    store = open_storage(str(tmp_path / "dumps"), {"fsync": "false"})
    date, _, clock = hour_text(HOUR).partition("T")
    store.write(f"{TOPIC}/{date}/{clock}/a.jsonl", first + b"\n")
    with pytest.raises(BadInputError, match="ordered by their Kafka offsets"):
        replay(canal(tmp_path, "lake"))
