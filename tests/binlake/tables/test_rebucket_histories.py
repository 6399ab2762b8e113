"""Random histories with changes of bucket counts between the batches: few keys, many buckets, events that come late.

Many buckets hold deleted rows alone, or had a file group once and have none now.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from binlake.tables.lake_table import LakeTable
from binlake.tables.rebucket import rebucket
from hudilake.format.definition.bucketing import SimpleBuckets
from hudilake.format.definition.merging import OnDelete
from hudilake.services.compaction import CompactionConfig, run
from hudilake.services.fsck import fsck
from tests.binlake.rows.merging.stitched import TYPES, Event, Model, merging
from tests.binlake.rows.merging.stitched_table import StitchedTable
from tests.binlake.rows.merging.test_stitched_table import Source
from tests.binlake.rows.upsert.ingest import STREAM, Ingest, Kind
from tests.binlake.rows.upsert.test_route import row
from tests.binlake.tables.test_rebucket import KEEP, in_turn, moved
from tests.hypothesis_profile import scaled
from tests.judges import hudi_rs
from tests.judges.agreement import assert_same, read_ourselves
from tests.model import Change, Delivered, Shape, TableModel
from tests.selection import first

COUNTS = (1, 2, 3, 4, 6, 16)


def wrong_of(table: LakeTable) -> list[str]:
    return [finding.what for finding in fsck(table.storage).findings if finding.severity.name == "ERROR"]


def moved_stitched(here: StitchedTable, count: int) -> StitchedTable:
    """Moved by a process of its own; the stream starts again."""
    table = LakeTable.open(here.root.sub(here.rules.path), here.rules)
    rebucket(table, SimpleBuckets(count), STREAM, KEEP, in_turn)
    return replace(here, buckets=count)


def test_a_bucket_of_hidden_rows_alone_keeps_them(tmp_path: Path) -> None:
    """The deleted row keeps its place in the order, and the columns of its other group."""
    shape = merging(("row", "columns", "columns"))
    here, model = StitchedTable.at(tmp_path, shape), Model(shape)
    batches: list[list[Event]] = [
        [Event(0, 5, 10, {"a": 1, "b": "x"}), Event(1, 5, 10, {"c": 5}), Event(0, 2, 10, {"a": 2, "b": "y"})],
        [Event(0, 5, 20, None)],
        [Event(0, 5, 15, {"a": 9, "b": "late"})],
        [Event(0, 5, 30, {"a": 3, "b": "again"})],
    ]
    for number, batch in enumerate(batches):
        here.run(batch)
        model.take(batch)
        if number == 1:
            here = moved_stitched(here, 16)
        assert_same("binlake", read_ourselves(here.uri), model.rows(), list(TYPES))


def test_rows_that_come_to_a_bucket_that_was_emptied_and_moved_twice_are_seen(tmp_path: Path) -> None:
    """Its file group was replaced, and that one's successor too: a third one begins."""
    here = Ingest.at(tmp_path, Shape(("id",)))
    here.run([Delivered(Change(at + 1, 0, None, row(at)), 0, at) for at in range(6)])
    moved(here, SimpleBuckets(3))
    here.restart()
    here.run([Delivered(Change(at + 11, 0, row(at), None), 0, at + 6) for at in range(6)])
    for count in (2, 3):
        table = LakeTable.open(here.root.sub(here.rules.path), here.rules)
        forgetful = CompactionConfig(tombstone_retention_hours=0)
        run(table.hudi, forgetful, in_turn, now=True)
        rebucket(table, SimpleBuckets(count), STREAM, forgetful, in_turn)
    here.restart()
    here.run([Delivered(Change(at + 21, 0, None, row(at)), 0, at + 12) for at in range(6)])
    assert sorted(read_ourselves(here.uri).column("id").to_pylist()) == list(range(6))
    assert sorted(hudi_rs.snapshot(here.uri).column("id").to_pylist()) == list(range(6))


def play_stitched(path: Path, seed: int, policies: Sequence[OnDelete]) -> None:
    shape, chance, source = merging(policies), random.Random(seed), Source(seed)
    here, model = StitchedTable.at(path, shape), Model(shape)
    for _ in range(14):
        batch = source.batch()
        here.run(batch)
        model.take(batch)
        match chance.randrange(4):
            case 0:
                here = moved_stitched(here, chance.choice(COUNTS))
            case 1:
                run(here.table.hudi, CompactionConfig(), in_turn, now=True)
        assert_same("binlake", read_ourselves(here.uri), model.rows(), list(TYPES))
    assert_same("hudi-rs", hudi_rs.snapshot(here.uri), model.rows(), list(TYPES))
    assert wrong_of(here.table) == []


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", first(2, range(scaled(40, least=3, divisor=10))))
@pytest.mark.parametrize("policies", [("columns",) * 3, ("row", "columns", "columns")], ids="-".join)
def test_stitched_tables_are_their_model(tmp_path: Path, policies: tuple[OnDelete, ...], seed: int) -> None:
    play_stitched(tmp_path, seed, policies)


def changes_of(chance: random.Random, count: int) -> list[Delivered]:
    """Changes of few keys, more than half of them deletes; some come long after later ones."""
    changes: list[tuple[float, Change]] = []
    for order in range(1, count + 1):
        image = row(chance.randrange(6), chance.choice(("eu", "us")))
        gone = chance.random() < 0.55
        change = Change(order, 0, image, None) if gone else Change(order, 0, None, image)
        changes.append((order + chance.choice((0, 0, 0, 12)), change))
    changes.sort(key=lambda one: one[0])
    return [Delivered(change, 0, offset) for offset, (_, change) in enumerate(changes)]


def play_plain(path: Path, seed: int, kind: Kind, shape: Shape) -> None:
    chance, model = random.Random(seed), TableModel(shape)
    here = Ingest.at(path, shape, kind=kind)
    records, at = changes_of(chance, 40), 0
    while at < len(records):
        batch = records[at : at + chance.randint(1, 5)]
        at += len(batch)
        here.run(batch)
        model.commit(batch)
        if chance.random() < 0.4:
            moved(here, SimpleBuckets(chance.choice(COUNTS)))
            here.restart()
        expected = sorted((one["id"], one["_binlake_order"]) for one in model.rows())
        stored = read_ourselves(here.uri).select(["id", "_binlake_order"]).to_pylist()
        assert sorted((one["id"], one["_binlake_order"]) for one in stored) == expected
    judged = hudi_rs.snapshot(here.uri).select(["id", "_binlake_order"]).to_pylist()
    assert sorted((one["id"], one["_binlake_order"]) for one in judged) == expected
    assert wrong_of(here.table) == []


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", first(2, range(scaled(40, least=3, divisor=10))))
@pytest.mark.parametrize(
    "shape", [Shape(("id",)), Shape(("id",), "region", "identity", "region")], ids=["flat", "parts"]
)
@pytest.mark.parametrize("kind", [Kind(), Kind("copy_on_write")], ids=lambda kind: kind.type)
def test_plain_tables_are_their_model(tmp_path: Path, kind: Kind, shape: Shape, seed: int) -> None:
    play_plain(tmp_path, seed, kind, shape)
