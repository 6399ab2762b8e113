"""History tables through whole batches, against a model in plain Python, judged by hudi-rs, with deaths at storage
calls. Events come late, several times and out of order; batches are cut anywhere."""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import SourceTable
from binlake.proof.history.keys import row_key, version_keys
from binlake.rows.upsert import truncates
from binlake.tables.lake import Lake
from hudilake.errors import ConfigError
from hudilake.storage import Storage, open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.binlake.stream.test_engines import TOPIC, Stream, quarantined
from tests.binlake.stream.topic_log import COLUMNS, event
from tests.hypothesis_profile import is_nightly
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves

HISTORY = [{"table": "shop.facts", "to": "shop.facts_history"}]
#: What a place in the binlog is as an ordering value: all events of the tests are in the third file of epoch 0.
FILE = 3 << 32
#: Deletes are kept as long as the table, whatever the retention of tombstones.
FORGETFUL = {"mode": "inline", "after_commits": 3, "tombstone_retention_hours": 0}
START_MS = 1_760_000_000_000
Version = tuple[Any, ...]


@dataclass
class Model:
    """What the source's log says. ``events``: place -> key -> the row after the last event there, None for a delete."""

    events: dict[int, dict[int, dict[str, Any] | None]] = field(default_factory=dict)
    truncates: set[int] = field(default_factory=set)

    def put(self, place: int, key: int, row: dict[str, Any] | None) -> None:
        self.events.setdefault(place, {})[key] = row

    def versions(self, *more: str, tracked: Sequence[str] | None = None) -> list[Version]:
        """id, owner, start_at, end_at, is_current of each version, one after the other through the whole log.

        ``more``: further columns. ``tracked``: those whose changes make versions; None for every event.
        """
        found: list[Version] = []
        alive: dict[int, tuple[int, dict[str, Any]]] = {}

        def end(key: int, place: int) -> None:
            since, row = alive.pop(key)
            found.append((key, row["owner"], FILE + since, FILE + place, False, *(row[name] for name in more)))

        def goes_on(key: int, row: dict[str, Any] | None) -> bool:
            if tracked is None or row is None or key not in alive:
                return False
            return all(alive[key][1][name] == row[name] for name in tracked)

        for place in sorted({*self.events, *self.truncates}):
            if place in self.truncates:
                for key in list(alive):
                    end(key, place)
            for key, row in self.events.get(place, {}).items():
                if row is not None and goes_on(key, row):
                    alive[key] = alive[key][0], row
                    continue
                if key in alive:
                    end(key, place)
                if row is not None:
                    alive[key] = place, row
        for key, (since, row) in alive.items():
            found.append((key, row["owner"], FILE + since, None, True, *(row[name] for name in more)))
        return sorted(found, key=lambda version: (version[0], version[2]))


@dataclass
class Feed:
    """A stream with a history table whose source writes its log first, and whose records come in any sequence."""

    stream: Stream
    model: Model = field(default_factory=Model)
    records: list[tuple[dict[str, Any], dict[str, Any] | None]] = field(default_factory=list)
    rows: dict[int, dict[str, Any]] = field(default_factory=dict)
    place: int = 100

    @classmethod
    def at(cls, path: Path, **rules: Any) -> Feed:  # noqa: ANN401 - any setting
        stream = Stream(path, {}, key=None, **rules)
        stream.document["tables"]["history"] = HISTORY
        return cls(stream)

    def put(self, op: str, key: int, owner: str = "a", region: str | None = None, *, same_place: bool = False) -> None:
        """One event of a row at the source."""
        self.place += 0 if same_place else 10
        row = {"id": key, "owner": owner, "balance": None, "region": region}
        before = self.rows.pop(key, None)
        if op != "d":
            self.rows[key] = row
        self._record(op, key, before if op == "d" and before else row, None if op == "d" else row, before)

    def rekey(self, old: int, new: int) -> None:
        """An update that changes the key of a row: a delete and an insert of one place, as Debezium writes it."""
        row = {**self.rows[old], "id": new}
        self.put("d", old)
        self.rows[new] = row
        self._record("c", new, row, row, None)

    def truncate(self) -> None:
        self.place += 10
        self.rows.clear()
        self.model.truncates.add(self.place)
        envelope = event("facts", "t", self.place, {}) | {"before": None, "after": None}
        self.records.append((self._timed(envelope), None))

    def _record(
        self, op: str, key: int, image: dict[str, Any], row: dict[str, Any] | None, before: dict[str, Any] | None
    ) -> None:
        self.model.put(self.place, key, row)
        self.records.append((self._timed(event("facts", op, self.place, image, before)), {"id": key}))

    def _timed(self, envelope: dict[str, Any]) -> dict[str, Any]:
        envelope["source"] |= {"ts_ms": START_MS + self.place, "gtid": f"0-1-{self.place}"}
        return envelope

    def deliver(self, *numbers: int) -> None:
        """Records of the log, by their numbers, in this sequence; a row's go to one of two partitions."""
        for number in numbers:
            envelope, key = self.records[number]
            self.stream.log.add(TOPIC, envelope, key, key["id"] % 2 if key else 0)

    def versions(self) -> list[Version]:
        """The history table through hudi-rs."""
        return versions(self.stream.path / "shop/facts_history")


def versions(path: Path, *more: str) -> list[Version]:
    """The rows of a history table, which agree in what they say of times and places. ``more``: further columns."""
    rows = hudi_rs.snapshot(path).to_pylist()
    for row in rows:
        assert row["valid_from"].timestamp() * 1000 == START_MS + row["start_at"] - FILE
        assert (row["end_at"] is None) == (row["valid_to"] is None) == row["is_current"]
        if row["end_at"] is not None:
            assert row["valid_to"].timestamp() * 1000 == START_MS + row["end_at"] - FILE
    names = ("id", "owner", "start_at", "end_at", "is_current", *more)
    return sorted((tuple(row[n] for n in names) for row in rows), key=lambda version: (version[0], version[2]))


def log_randomly(feed: Feed, rng: random.Random, count: int, *, regions: bool = False) -> None:
    """Random events: inserts, updates, deletes, re-inserts, key changes, several at one place, TRUNCATE. With
    ``regions`` they have regions, and few owners."""
    for _ in range(count):
        chance = rng.random()
        key = rng.randint(1, 6)
        if feed.rows and chance < 0.05:
            feed.truncate()
        elif feed.rows and chance < 0.15:
            old, free = rng.choice(sorted(feed.rows)), [k for k in range(1, 8) if k not in feed.rows]
            if free:
                feed.rekey(old, rng.choice(free))
        elif key in feed.rows and chance < 0.4:
            feed.put("d", key)
        else:
            same = bool(feed.records) and chance > 0.85 and feed.place not in feed.model.truncates
            op, region = "u" if key in feed.rows else "c", rng.choice(["eu", "us", None]) if regions else None
            feed.put(op, key, rng.choice("ab" if regions else "abcd"), region, same_place=same)


def sequences(feed: Feed, rng: random.Random) -> Iterator[list[int]]:
    """The numbers of the log's records in batches: late, doubled, out of order. Events of one place keep their order:
    a log that tells several by one position delivers them so, also when it begins again."""
    places = [envelope["source"]["pos"] for envelope, _ in feed.records]
    groups = [[n for n, at in enumerate(places) if at == place] for place in sorted(set(places))]
    order = [*groups, *rng.choices(groups, k=len(groups) // 3)]
    order.sort(key=lambda group: group[0] + rng.choice([0, 0, 3, len(places)]) * rng.random())
    while order:
        cut = rng.randint(1, 6)
        yield [number for group in order[:cut] for number in group]
        order = order[cut:]


def delivered(feed: Feed, rng: random.Random) -> Iterator[None]:
    """Deliver the log, batch by batch, a new process for each; some die first. Yields after each batch from that with
    the first row on: TRUNCATEs alone make no table."""
    rows_came = False
    for numbers in sequences(feed, rng):
        feed.deliver(*numbers)
        if rng.random() < 0.3:
            fate = Fate(rng.randint(0, 60), rng.choice([Answer.DONE, Answer.LOST]))
            with contextlib.suppress(Killed):
                feed.stream.batch(DyingStore(_opened(feed.stream.path), fate))
        feed.stream.batch()
        rows_came = rows_came or any(feed.records[number][1] is not None for number in numbers)
        assert rows_came == (feed.stream.path / "shop").exists()
        if rows_came:
            yield


def drawn(feed: Feed, seed: int, *tables: str, regions: bool = False) -> Iterator[None]:
    """Log and deliver what a seed draws, with compactions of these history tables that forget; after each batch."""
    rng = random.Random(seed)
    overrides = [{"match": f"shop.{name}", "compaction": FORGETFUL} for name in tables]
    feed.stream.document["tables"]["overrides"] = overrides
    feed.stream.document["batch"] = {"shuffle_above_bytes": 0 if seed % 2 else 1 << 30}  # tasks write, or the driver
    feed.put("c", 1)
    log_randomly(feed, rng, rng.randint(5, 30), regions=regions)
    yield from delivered(feed, rng)


@pytest.mark.first(1)
@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=pytest.mark.full if seed >= 4 else ()) for seed in range(1000 if is_nightly() else 30)],
)
def test_any_delivery_gives_the_versions_of_the_log(tmp_path: Path, seed: int) -> None:
    """Late, doubled and disordered events, a new process for each batch, deaths, and compactions."""
    feed = Feed.at(tmp_path, compaction={"mode": "inline", "after_commits": 3})
    for _ in drawn(feed, seed, "facts_history"):
        pass
    assert feed.versions() == feed.model.versions()
    assert feed.stream.lake("id", "owner") == [(key, owner) for key, owner, *_, current in feed.versions() if current]
    path = tmp_path / "shop/facts_history"
    assert_same("ours", read_ourselves(path), hudi_rs.snapshot(path))


@pytest.mark.parametrize("table", ["facts", "facts_history"])
def test_a_truncate_is_kept_if_the_process_dies_before_the_first_commit_of_a_table(tmp_path: Path, table: str) -> None:
    """The tables are made then, and have no commit that could name it."""

    def before_its_rows(path: Path) -> Feed:
        feed = Feed.at(path)
        feed.put("c", 1)
        feed.truncate()
        feed.put("c", 2)
        feed.deliver(1)
        feed.stream.batch()
        feed.deliver(2)
        return feed

    watched = Fate(1 << 20, Answer.DONE)
    before_its_rows(tmp_path / "calls").stream.batch(DyingStore(_opened(tmp_path / "calls"), watched))
    first = next(
        n for n, (_, path) in enumerate(watched.calls) if f"{table}/.hoodie/timeline/" in path and "requested" in path
    )
    feed = before_its_rows(tmp_path / "lake")
    with pytest.raises(Killed):
        feed.stream.batch(DyingStore(_opened(tmp_path / "lake"), Fate(first, Answer.LOST)))
    assert (tmp_path / "lake/shop" / table / ".hoodie/hoodie.properties").exists()
    feed.stream.batch()
    feed.deliver(0)
    feed.stream.batch()
    assert feed.versions() == feed.model.versions()
    assert feed.stream.lake("id") == [(2,)]


def _opened(path: Path) -> Storage:
    return open_storage(str(path), {"fsync": "false"})


def test_a_truncate_from_before_the_first_row_of_the_tables_is_kept(tmp_path: Path) -> None:
    """It comes alone; the rows from before it come later, and another process applies them."""
    feed = Feed.at(tmp_path)
    feed.put("c", 1)
    feed.put("c", 2)
    feed.truncate()
    feed.put("c", 2, "b")
    feed.deliver(2)
    feed.stream.batch()
    assert not (tmp_path / "shop").exists()
    feed.deliver(3)
    feed.stream.batch()
    feed.deliver(0, 1)
    feed.stream.batch()
    assert feed.versions() == feed.model.versions()
    assert feed.stream.lake("id", "owner") == [(2, "b")]


def test_commits_name_the_newest_truncates_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event from before one that is forgotten goes to quarantine: nobody can say any more where its version ends."""
    monkeypatch.setattr(truncates, "MOST_ENDS", 3)
    feed = Feed.at(tmp_path)
    feed.put("c", 1)  # from before all TRUNCATEs: late
    for _ in range(3):
        feed.truncate()
    feed.put("c", 2, "b")  # from before the newest two: late, but not too late
    for _ in range(2):
        feed.truncate()
    feed.put("c", 4, "c")
    feed.deliver(1, 2, 3, 5, 6, 7)
    feed.stream.batch()
    settings = feed.stream.settings
    table = Lake(open_storage(str(tmp_path), {})).get(settings.table_rules(SourceTable("shop", "facts_history")))
    assert table is not None
    assert sorted(table.truncates.ends) == [FILE + 140, FILE + 160, FILE + 170]
    assert table.truncates.forgotten == FILE + 130
    feed.deliver(0, 4, 1, 2)  # two of the TRUNCATEs come again
    feed.stream.batch()
    assert quarantined(tmp_path) == ["late_row"]
    assert feed.versions() == [version for version in feed.model.versions() if version[0] != 1]


def test_two_history_tables_of_one_source_table(tmp_path: Path) -> None:
    feed = Feed.at(tmp_path)
    feed.stream.document["tables"]["history"] = [*HISTORY, {"table": "shop.facts", "to": "past.facts"}]
    feed.put("c", 1)
    feed.put("u", 1, "b")
    feed.truncate()
    feed.deliver(0, 1, 2)
    feed.stream.batch()
    assert feed.versions() == versions(tmp_path / "past/facts") == feed.model.versions()


def test_a_name_that_a_table_of_the_source_has_is_refused(tmp_path: Path) -> None:
    """The rows of that table do not come among the versions."""
    feed = Feed.at(tmp_path)
    feed.put("c", 1)
    feed.deliver(0)
    feed.stream.batch()
    topic = "s.shop.facts_history"
    feed.stream.document["kafka"]["topics"].append(topic)
    feed.stream.document["source"]["schemas"]["shop.facts_history"] = {"columns": COLUMNS, "key": ["id"]}
    foreign = event("facts_history", "c", 500, {"id": 1, "owner": "x", "balance": None, "region": None})
    feed.stream.log.add(topic, foreign, {"id": 1})
    with pytest.raises(AssertionError, match="go to one lake table, and no column distinguishes their rows"):
        feed.stream.batch()
    assert feed.versions() == feed.model.versions()


def test_a_quarantined_record_comes_into_both_tables(tmp_path: Path) -> None:
    feed = Feed.at(tmp_path)
    feed.put("c", 2)
    feed.put("u", 2, "b")
    feed.put("u", 2, "c")
    envelope = feed.records[1][0]
    envelope["after"] = {**envelope["after"], "bonus": 5}
    feed.deliver(0, 1, 2)
    feed.stream.batch()
    assert quarantined(tmp_path) == ["unknown_column"]
    assert feed.versions() != feed.model.versions()
    feed.stream.document["source"]["schemas"]["shop.facts"]["columns"] = {**COLUMNS, "bonus": "int"}
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(feed.stream.document))
    for _ in range(2):
        done = CliRunner().invoke(app, ["quarantine", "replay", str(conf)])
        assert done.exit_code == 0, done.output
        assert feed.versions() == feed.model.versions()
    assert feed.stream.lake("id", "owner") == [(2, "c")]
    bonus = hudi_rs.snapshot(tmp_path / "shop/facts_history").select(["start_at", "bonus"]).to_pylist()
    assert sorted((row["start_at"] - FILE, row["bonus"]) for row in bonus) == [(110, None), (120, 5), (130, None)]


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        ({"defaults": {"kind": "append"}}, "of shop.facts: kind append has no merge engine"),
        ({"defaults": {"index": {"type": "consistent_bucket"}}}, "all versions of a row are in one bucket"),
        ({"defaults": {"conflicts": "column"}}, "conflicts may not be column"),
        ({"routes": [{"match": "shop[.]facts", "to": None}]}, "a route leaves shop.facts out"),
        ({"history": [*HISTORY, {"table": "shop.x", "to": "shop.FACTS_history"}]}, "another table has the name"),
        ({"history": [{"table": "shop.facts", "to": "shop.facts"}]}, "another table has the name"),
        ({"history": [{"table": "facts", "to": "shop.h"}]}, "must be database.table"),
        ({"defaults": {"merge": {"engine": "scd2"}, "partition": {"column": "region"}}}, "leave partition out"),
    ],
)
def test_what_a_history_table_cannot_have(tmp_path: Path, tables: dict[str, Any], why: str) -> None:
    feed = Feed.at(tmp_path)
    feed.stream.document["tables"] |= tables
    with pytest.raises(ConfigError, match=re.escape(why)):
        _ = feed.stream.settings


@pytest.mark.parametrize("column", ["valid_from", "START_AT"])
def test_a_source_with_a_column_of_its_own_of_that_name_is_refused(tmp_path: Path, column: str) -> None:
    """Its rows go on into their own table."""
    feed = Feed.at(tmp_path)
    feed.stream.document["source"]["schemas"]["shop.facts"]["columns"] = {**COLUMNS, column: "int"}
    feed.put("c", 2)
    feed.deliver(0)
    with pytest.raises(AssertionError, match=f"the source has the column {column}"):
        feed.stream.batch()
    assert feed.stream.lake("id") == [(2,)]


def test_a_delete_is_known_as_long_as_the_table(tmp_path: Path) -> None:
    """Events come long after deletes that ended no version by then, or whose version a late event has ended earlier."""
    feed = Feed.at(tmp_path, compaction={**FORGETFUL, "after_commits": 1})
    for key, op in ((1, "c"), (1, "d"), (2, "c"), (2, "u"), (2, "d"), (2, "c"), (2, "u"), (2, "d"), (3, "c")):
        feed.put(op, key)
    feed.truncate()
    feed.put("d", 2)
    for numbers in ((1, 8), (2, 7), (9, 4), (10,), (0,), (5,), (6,), (3,)):
        feed.deliver(*numbers)
        feed.stream.batch()
    assert feed.versions() == feed.model.versions()


def test_an_erasure_finds_a_delete_that_ended_no_version(tmp_path: Path) -> None:
    """Also where its file group has no file."""
    feed = Feed.at(tmp_path, buckets=8)
    for key, op in ((1, "c"), (1, "d"), (2, "c")):
        feed.put(op, key)
    feed.deliver(1, 2)
    feed.stream.batch()
    table = HudiTable.open(open_storage(str(tmp_path / "shop/facts_history")))
    assert version_keys(row_key("1", table), table) == {f"id:1,start_at:{FILE + 120}"}
