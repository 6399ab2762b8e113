"""Merge engines through whole batches, judged by hudi-rs, with deaths at storage calls."""

from __future__ import annotations

import base64
import contextlib
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.cli.remarks import engine_remarks
from binlake.decode.changes import SourceTable
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import CHANGING, Answer, DyingStore, Fate, Killed
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event, services
from tests.hypothesis_profile import is_nightly, scaled
from tests.judges import hudi_rs

TOPIC = "s.shop.facts"
SUMS = {"engine": "aggregate", "columns": {"balance": "sum", "id": "count", "region": "last_non_null"}}


class Stream:
    """A stream of the table ``shop.facts``: id, owner, balance, region. Its source keeps the rows by id."""

    def __init__(self, path: Path, merge: dict[str, Any], key: str | None = "owner", **rules: Any) -> None:  # noqa: ANN401
        self.path, self.log, self.position, self.batches, self.read = path, TopicLog(), 100, 0, 0
        rules = {"buckets": 2, "merge": merge, **({"key": [key]} if key else {}), **rules}
        self.document: dict[str, Any] = {
            "name": "shop",
            "lake": {"uri": str(path), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": [TOPIC]},
            "source": {"schemas": {"shop.facts": {"columns": COLUMNS, "key": ["id"]}}},
            "tables": {"defaults": rules},
        }
        self.rows: dict[int, dict[str, Any]] = {}

    @property
    def settings(self) -> Settings:
        """The stream's settings as they are now."""
        return Settings.parse(json.dumps(self.document))

    def put(self, op: str, key: int, owner: str = "a", cents: int | None = 100, region: str | None = "eu") -> None:
        """One event at the source."""
        self.position += 10
        balance = None if cents is None else base64.b64encode(cents.to_bytes(4, signed=True)).decode()
        row = {"id": key, "owner": owner, "balance": balance, "region": region}
        before = self.rows.get(key)
        image = before if op == "d" and before is not None else row
        self.log.add(TOPIC, event("facts", op, self.position, image, before), {"id": key}, key % 2)
        if op == "d":
            self.rows.pop(key)
        else:
            self.rows[key] = row

    def again(self, count: int) -> None:
        """The connector delivers the newest records of each partition again."""
        for records in self.log.records.values():
            records += records[-count:]

    def batch(self, root: Storage | None = None) -> Any:  # noqa: ANN401 - progress
        """One batch by a new process."""
        settings = self.settings
        root = root or open_storage(str(self.path), {"fsync": "false"})
        lake, state = Lake(root), root.sub(".binlake/shop")
        ledger = Ledger.load(state, "shop") or recover(settings, root, lake)
        for source in ledger.tables:
            lake.get(settings.table_rules(source))
        runner = BatchRunner(settings, lake, state, ledger, SchemaRegistry(settings), services())
        progress = runner.run(self.batches, self.log.end(), 0, LocalEngine(self.log))
        self.batches += 1
        assert [t.error for t in progress.tables if t.error] == []
        return progress

    def lake(self, *columns: str) -> list[tuple[Any, ...]]:
        """The table through hudi-rs."""
        rows = hudi_rs.snapshot(str(self.path / "shop/facts"))
        return sorted(tuple(row.values()) for row in rows.select(list(columns)).to_pylist()) if len(rows) else []

    def sums(self) -> list[tuple[Any, ...]]:
        """SELECT owner, SUM(balance), COUNT(id) FROM facts GROUP BY owner."""
        found: dict[str, list[int | None]] = {}
        for row in self.rows.values():
            data = row["balance"]
            cents = None if data is None else int.from_bytes(base64.b64decode(data), signed=True)
            found.setdefault(row["owner"], []).append(cents)
        return sorted(
            (owner, sum(given) / Decimal(100) if (given := [c for c in cents if c is not None]) else None, len(cents))
            for owner, cents in found.items()
        )


def randomly(stream: Stream, rng: random.Random, count: int) -> None:
    """Random events of facts: inserts, updates (of the key too), deletes."""
    for _ in range(count):
        op = rng.choice("ccuud") if stream.rows else "c"
        key = len(stream.log.records) * 1000 + stream.position if op == "c" else rng.choice(sorted(stream.rows))
        stream.put(op, key, rng.choice("abc"), rng.choice([None, 150, -225, 99]), rng.choice([None, "eu", "us"]))


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", range(scaled(15)))
def test_sums_are_those_of_the_source(tmp_path: Path, seed: int) -> None:
    """Redelivery after redelivery, a new process for each batch, with compactions."""
    rng = random.Random(seed)
    stream = Stream(tmp_path, SUMS, compaction={"mode": "inline", "after_commits": 2})
    stream.document["batch"] = {"shuffle_above_bytes": 0 if seed % 2 else 1 << 30}  # tasks write, or the driver
    for _ in range(5):
        randomly(stream, rng, rng.randint(1, 12))
        if rng.random() < 0.6:
            stream.again(rng.randint(1, 8))
        stream.batch()
        assert stream.lake("owner", "balance", "id") == stream.sums()


def dying(path: Path, fate: Fate) -> Stream:
    """A stream whose second batch has this fate."""
    stream = Stream(path, SUMS)
    randomly(stream, random.Random(1), 8)
    stream.batch()
    randomly(stream, random.Random(2), 8)
    stream.again(3)
    with contextlib.suppress(Killed):
        stream.batch(DyingStore(open_storage(str(path), {"fsync": "false"}), fate))
    return stream


@pytest.mark.full
def test_a_death_at_any_storage_call_counts_nothing_twice(tmp_path: Path) -> None:
    whole = Fate()
    dying(tmp_path / "whole", whole)
    changing = [at for at, (method, _) in enumerate(whole.calls) if method in CHANGING]
    assert len(changing) > 10
    for at in changing if is_nightly() else changing[::3]:
        for answer in (Answer.DONE, Answer.LOST):
            stream = dying(tmp_path / f"{at}-{answer}", fate := Fate(at, answer))
            assert len(fate.calls) == at + 1
            randomly(stream, random.Random(3), 4)
            stream.again(2)
            stream.batch()
            assert stream.lake("owner", "balance", "id") == stream.sums()


def test_functions(tmp_path: Path) -> None:
    columns = {"balance": "max", "id": "count", "region": "collect"}
    stream = Stream(tmp_path, {"engine": "aggregate", "columns": columns})
    for key, cents, region in ((1, 100, "eu"), (2, 300, None), (3, None, 'a"b')):
        stream.put("c", key, cents=cents, region=region)
    stream.batch()
    stream.put("c", 5, cents=200, region="us")
    stream.batch()
    assert stream.lake("owner", "balance", "id") == [("a", Decimal("3.00"), 4)]
    assert sorted(json.loads(stream.lake("region")[0][0])) == ['a"b', "eu", "us"]
    stream.put("d", 1)
    stream.put("u", 2, cents=900)
    progress = stream.batch()
    assert [t.quarantined for t in progress.tables if t.table == "shop.facts"] == [2]
    assert stream.lake("owner", "balance", "id") == [("a", Decimal("3.00"), 4)]


def test_partial_update(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"engine": "partial_update"}, key=None)
    stream.put("c", 1, "a", 100, None)
    stream.put("c", 2, "b", None, "eu")
    stream.batch()
    stream.put("u", 1, "c", None, "us")
    stream.put("u", 2, "d", 200, None)
    stream.again(4)
    stream.batch()
    assert stream.lake("id", "owner", "balance", "region") == [
        (1, "c", Decimal("1.00"), "us"),
        (2, "d", Decimal("2.00"), "eu"),
    ]
    stream.put("d", 1)
    stream.batch()
    assert stream.lake("id") == [(2,)]
    stream.put("c", 1, "e", None, None)
    stream.again(1)
    stream.batch()
    assert stream.lake("id", "owner", "balance", "region")[0] == (1, "e", None, None)


def test_first_row(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"engine": "first_row"})
    stream.put("c", 2, "a", 200)
    stream.put("c", 4, "b", 300)
    first, stream.position = stream.position, 50
    stream.put("c", 1, "a", 100)  # an older event of another partition, which is read later
    late = stream.log.records.pop((TOPIC, 1))
    stream.position = first
    stream.batch()
    assert stream.lake("owner", "id") == [("a", 2), ("b", 4)]
    stream.log.records[(TOPIC, 1)] = late
    stream.put("d", 2, "a")
    stream.put("u", 4, "b", 999)
    stream.again(3)
    stream.batch()
    assert stream.lake("owner", "id", "balance") == [("a", 1, Decimal("1.00")), ("b", 4, Decimal("3.00"))]


def truncate(stream: Stream) -> None:
    """TRUNCATE TABLE at the source."""
    stream.position += 10
    stream.log.add(TOPIC, event("facts", "t", stream.position, {}) | {"before": None, "after": None}, None)
    stream.rows.clear()


@pytest.mark.first(5)
@pytest.mark.parametrize("apart", [True, False], ids=["batch of its own", "in one batch"])
@pytest.mark.parametrize("merge", [SUMS, {"engine": "first_row"}, {"engine": "partial_update"}], ids=str)
def test_a_truncate_begins_anew(tmp_path: Path, merge: dict[str, Any], apart: bool) -> None:
    stream = Stream(tmp_path, merge)
    for key, owner in ((2, "a"), (4, "b"), (6, "a")):
        stream.put("c", key, owner)
    stream.batch()
    stream.put("c", 8, "c")
    truncate(stream)
    if apart:
        stream.batch()
        assert stream.lake("owner") == []
    stream.put("c", 10, "a", 700)
    stream.again(2)
    stream.batch()
    wanted = [("a", Decimal("7.00"))]
    assert stream.lake("owner", "balance") == wanted
    stream.put("c", 12, "b", 100)
    stream.batch()
    assert stream.lake("owner", "balance") == [*wanted, ("b", Decimal("1.00"))]


def test_a_truncate_that_comes_after_later_facts_stops_the_table(tmp_path: Path) -> None:
    stream = Stream(tmp_path, SUMS)
    stream.put("c", 2)
    stream.batch()
    stream.position += 100
    stream.put("c", 1)
    stream.batch()
    stream.position -= 60
    truncate(stream)
    with pytest.raises(AssertionError, match="later events of the table"):
        stream.batch()


def test_an_update_without_its_before_image_is_no_new_fact(tmp_path: Path) -> None:
    stream = Stream(tmp_path, SUMS)
    stream.put("c", 2, cents=100)
    stream.batch()
    changed = {**stream.rows[2], "balance": "AfQ="}
    stream.log.add(TOPIC, event("facts", "u", 500, changed, None), {"id": 2})
    progress = stream.batch()
    assert [t.quarantined for t in progress.tables if t.table == "shop.facts"] == [1]
    assert stream.lake("owner", "balance", "id") == [("a", Decimal("1.00"), 1)]


def test_check_says_what_an_aggregate_cannot_know(tmp_path: Path) -> None:
    stream = Stream(tmp_path, {"engine": "aggregate", "columns": {"balance": "max", "bonus": "sum"}})
    stream.put("c", 1)
    stream.batch()
    lake = open_storage(str(tmp_path))
    rules = stream.settings.table_rules(SourceTable("shop", "facts"))
    told = list(engine_remarks(stream.settings, lake, "shop.facts", rules))
    assert [part in line for part, line in zip(("Canal", "max cannot take", "bonus"), told, strict=True)] == [True] * 3


@pytest.mark.parametrize(
    ("engine", "left", "reasons"),
    [("first_row", [("a", "eu")], []), ("partial_update", [("a", "eu")], ["irrevocable"])],
)
def test_a_row_does_not_move_to_another_partition(
    tmp_path: Path, engine: str, left: list[tuple[str, str]], reasons: list[str]
) -> None:
    stream = Stream(tmp_path, {"engine": engine}, key=None, partition={"column": "region"})
    stream.put("c", 2, "a", region="eu")
    stream.batch()
    stream.put("u", 2, "b", region="us")
    stream.batch()
    assert stream.lake("owner", "region") == left
    assert quarantined(tmp_path) == reasons


def quarantined(path: Path) -> list[str]:
    """The reasons of what is in the quarantine."""
    place = path / "_quarantine/shop"
    return sorted(hudi_rs.snapshot(str(place)).column("reason").to_pylist()) if place.exists() else []


def test_a_quarantined_fact_that_comes_back_counts_once(tmp_path: Path) -> None:
    stream = Stream(tmp_path, SUMS)
    stream.put("c", 2)
    stream.put("c", 4)
    records = stream.log.records[(TOPIC, 0)]
    key, value = records.pop()
    assert value is not None
    odd = json.loads(value)
    odd["after"]["bonus"] = 5
    records.append((key, json.dumps(odd).encode()))
    stream.put("c", 6)
    stream.batch()
    assert stream.lake("owner", "balance", "id") == [("a", Decimal("2.00"), 2)]
    assert quarantined(tmp_path) == ["unknown_column"]
    stream.document["source"]["schemas"]["shop.facts"]["columns"] = {**COLUMNS, "bonus": "int"}
    conf = tmp_path / "conf.yaml"
    conf.write_text(json.dumps(stream.document))
    for _ in range(2):
        done = CliRunner().invoke(app, ["quarantine", "replay", str(conf)])
        assert done.exit_code == 0, done.output
        assert stream.lake("owner", "balance", "id") == stream.sums() == [("a", Decimal("3.00"), 3)]
    stream.again(1)
    stream.put("c", 8)
    stream.batch()
    assert stream.lake("owner", "balance", "id") == stream.sums()


@pytest.mark.first(2)
@pytest.mark.parametrize("seed", range(scaled(10)))
@pytest.mark.parametrize("engine", ["partial_update", "first_row"])
def test_rows_of_several_partitions_come_together(tmp_path: Path, engine: str, seed: int) -> None:
    """Facts of one owner are in two partitions; one of them is read late. With deliveries again and compactions."""
    rng = random.Random(seed)
    stream = Stream(tmp_path, {"engine": engine}, compaction={"mode": "inline", "after_commits": 2})
    for _ in range(5):
        for _ in range(rng.randint(1, 8)):
            stream.put("c", stream.position, rng.choice("abc"), rng.choice([None, 1, 2]), rng.choice([None, "eu"]))
            stream.position += rng.choice([0, 1])  # ids of both partitions
        stream.again(rng.randint(0, 3))
        late = stream.log.records.get((TOPIC, 1), [])
        cut = rng.randint(stream.read, len(late))
        stream.log.records[(TOPIC, 1)], stream.read = late[:cut], cut
        stream.batch()
        stream.log.records[(TOPIC, 1)] = late
    stream.batch()
    expected: dict[str, dict[str, Any]] = {}
    for row in stream.rows.values():  # by their order at the source
        known = expected.setdefault(row["owner"], dict(row))
        if engine == "partial_update":
            known.update({name: value for name, value in row.items() if value is not None})
    assert stream.lake("owner", "id", "region") == sorted((o, r["id"], r["region"]) for o, r in expected.items())
