"""Change batches cut into parcels: places, moves, and what is not applied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from binlake.decode.changes import META_FIELDS, ChangeBatch, Column, Op, SourceTable, TableSchema
from binlake.rows.upsert.parcel import KEYLESS_BUCKET, Parcel, unpack
from binlake.rows.upsert.place import ambiguous_keys, null_keys
from binlake.rows.upsert.route import KEY, MOVED_AWAY, AppliedRecords, Counts, RoutedRows, route
from binlake.rows.upsert.target import Target, make_target
from binlake.settings import PartitionSettings, TableRules
from hudilake.format.definition.bucket import bucket_ids
from tests.binlake.rows.upsert.history import values
from tests.binlake.rows.upsert.ingest import change_batch, placed, table_rules, table_schema
from tests.model import Change, Delivered, Shape

PLAIN = Shape(("id",))
BY_REGION = Shape(("id",), "region", "identity", "region")
BY_DAY = Shape(("code", "id"), "at", "day", "at_day")


def row(number: int, region: str | None = "eu", code: str = "a") -> dict[str, Any]:
    """A row of the test table."""
    return {"id": number, "code": code, "region": region, **values(number)}


def target_of(shape: Shape, buckets: int = 4) -> Target:
    """Its target."""
    return make_target(table_schema(shape), table_rules(shape, buckets))


def routed(
    shape: Shape,
    changes: Sequence[Change],
    applied: Mapping[int, int] | None = None,
    truncated: int = -1,
    buckets: int = 4,
) -> RoutedRows:
    """The changes routed, as records of partition 0 at offsets 0, 1..."""
    records = [Delivered(change, 0, at) for at, change in enumerate(changes)]
    return route(
        placed(change_batch(shape, records), table_rules(shape, buckets)), AppliedRecords(applied or {}), truncated
    )


def effects(parcels: Sequence[Parcel]) -> list[tuple[str, str, int, int]]:
    """(partition path, record key, op, order) of every row, sorted."""
    found = []
    for parcel in parcels:
        rows = unpack([parcel])
        names = (KEY, "__op", "__order")
        found += [
            (parcel.partition_path, *cells) for cells in zip(*(rows.column(n).to_pylist() for n in names), strict=True)
        ]
    return sorted(found)


def test_every_row_lands_in_its_bucket() -> None:
    made = routed(PLAIN, [Change(n, 0, None, row(n)) for n in range(200)], buckets=7)
    assert [p.bucket for p in made.parcels] == list(range(7))
    for parcel in made.parcels:
        rows = unpack([parcel])
        assert set(bucket_ids(rows.column(KEY), ("id",), 7).tolist()) == {parcel.bucket}
        assert (parcel.table, parcel.partition_path, parcel.rows) == ("shop/items", "", len(rows))
    assert sum(p.rows for p in made.parcels) == 200
    assert made.counts == Counts(read=200)


def test_the_newest_change_of_a_key_goes_on() -> None:
    first, second = row(1), {**row(1), "code": "b"}
    made = routed(
        PLAIN,
        [
            Change(5, 0, None, first),
            Change(7, 0, first, second),
            Change(6, 0, None, row(2)),
            Change(7, 1, second, None),
        ],
    )
    assert effects(made.parcels) == [("", "1", Op.DELETE, 7), ("", "2", Op.UPSERT, 6)]
    assert made.counts == Counts(read=4, superseded=2)


def test_what_the_table_has_applied_is_dropped() -> None:
    changes = [Change(n, 0, None, row(n)) for n in range(6)]
    made = routed(PLAIN, changes, {0: 4, 1: 99})
    assert [key for _, key, _, _ in effects(made.parcels)] == ["4", "5"]
    assert made.counts == Counts(read=2, already_applied=4)
    assert routed(PLAIN, changes, {0: 6}) == RoutedRows([], Counts(already_applied=6))
    assert routed(PLAIN, changes, {1: 6}).counts == Counts(read=6)


def test_what_a_truncate_has_taken_is_superseded() -> None:
    changes = [Change(n, 0, None, row(n)) for n in range(6)]
    made = routed(PLAIN, changes, truncated=3)
    assert [order for _, _, _, order in effects(made.parcels)] == [4, 5]
    assert made.counts == Counts(read=6, superseded=4)
    assert routed(PLAIN, changes, truncated=5) == RoutedRows([], Counts(read=6, superseded=6))


def test_already_applied_and_truncated_with_moves() -> None:
    changes = [Change(n, 0, row(n, "eu"), row(n, "us")) for n in range(6)]
    made = routed(BY_REGION, changes, {0: 2}, truncated=3)
    assert effects(made.parcels) == [
        ("region=eu", "4", MOVED_AWAY, 4),
        ("region=eu", "5", MOVED_AWAY, 5),
        ("region=us", "4", Op.UPSERT, 4),
        ("region=us", "5", Op.UPSERT, 5),
    ]
    assert made.counts == Counts(read=4, superseded=2, already_applied=2)


def test_an_update_that_stays_in_its_partition_is_no_move() -> None:
    old, new = row(1), {**row(1), "code": "b"}
    assert effects(routed(BY_REGION, [Change(9, 0, old, new)]).parcels) == [("region=eu", "1", Op.UPSERT, 9)]


def test_a_row_that_moves_leaves_a_delete_behind() -> None:
    made = routed(BY_REGION, [Change(9, 0, row(1, "eu"), row(1, None))])
    assert effects(made.parcels) == [
        ("region=__HIVE_DEFAULT_PARTITION__", "1", Op.UPSERT, 9),
        ("region=eu", "1", MOVED_AWAY, 9),
    ]
    assert made.counts == Counts(read=1)


def test_a_row_that_moves_there_and_back_in_one_batch() -> None:
    eu, us = row(1, "eu"), row(1, "us")
    made = routed(BY_REGION, [Change(9, 0, eu, us), Change(10, 0, us, eu)])
    assert effects(made.parcels) == [("region=eu", "1", Op.UPSERT, 10), ("region=us", "1", MOVED_AWAY, 10)]
    assert made.counts == Counts(read=2, superseded=1)


def test_an_update_that_changes_the_key_in_a_partitioned_table() -> None:
    made = routed(BY_DAY, [Change(9, 0, row(1, code="a,b:c"), row(2, code="x"))])
    assert sorted(e[1:3] for e in effects(made.parcels)) == [
        ("code:a,b:c,id:1", MOVED_AWAY),
        ("code:x,id:2", Op.UPSERT),
    ]


def test_a_key_passed_on_inside_one_event() -> None:
    """``id = id + 1`` from the top: key 2 is deleted by row 0 and made again by row 1, at one position."""
    made = routed(
        PLAIN,
        [
            Change(9, 0, row(2), None),
            Change(9, 0, None, {**row(2), "id": 3}),
            Change(9, 1, row(1), None),
            Change(9, 1, None, {**row(1), "id": 2}),
        ],
    )
    assert effects(made.parcels) == [("", "1", Op.DELETE, 9), ("", "2", Op.UPSERT, 9), ("", "3", Op.UPSERT, 9)]


def test_offsets_overrule_record_numbers() -> None:
    """MariaDB 11.4 gives all events of a transaction one position, and rows count from 0 in each of them."""
    made = routed(PLAIN, [Change(9, 1, None, row(1)), Change(9, 0, row(1), None)])
    assert effects(made.parcels) == [("", "1", Op.DELETE, 9)]


@pytest.mark.parametrize("code", ["a,b:c", "", ",", ":", "a,id:2", "é😀", "__null__"])
def test_special_characters_in_keys(code: str) -> None:
    (parcel,) = routed(BY_DAY, [Change(9, 0, None, row(1, code=code))], buckets=16).parcels
    assert unpack([parcel]).column(KEY).to_pylist() == [f"code:{code or '__empty__'},id:1"]
    assert unpack([parcel]).column("code").to_pylist() == [code]
    assert parcel.bucket == bucket_ids(pa.array([f"code:{code or '__empty__'},id:1"]), ("code", "id"), 16)[0]


def test_columns_are_named_as_the_lake_does() -> None:
    schema = TableSchema(
        SourceTable("shop", "t"), (Column("no.", "", pa.int64()), Column("größe", "", pa.string())), ("no.",)
    )
    rules = TableRules("shop/t", 2, None, PartitionSettings(column="größe"), "zstd", 1, False, True)
    rows = pa.table({"no.": [1], "größe": ["XL"]})
    for meta in META_FIELDS:
        rows = rows.append_column(meta, pa.array([1 if meta.name == "__order" else 0], meta.type))
    made = route(placed(ChangeBatch(schema, "shop.t", rows), rules), AppliedRecords(), -1)
    (parcel,) = made.parcels
    assert parcel.partition_path == "gr_u00f6_u00dfe=XL"
    assert unpack([parcel]).select(["no_", "gr_u00f6_u00dfe"]).to_pylist() == [{"no_": 1, "gr_u00f6_u00dfe": "XL"}]


def test_events_of_a_table_without_a_key_travel_whole() -> None:
    old, new = row(1), {**row(1), "code": "b"}
    made = routed(Shape(()), [Change(9, 0, None, old), Change(10, 0, old, new), Change(11, 0, new, None)])
    (parcel,) = made.parcels
    assert (parcel.partition_path, parcel.bucket) == ("", KEYLESS_BUCKET)
    halves = unpack([parcel]).select(["__op", "__order", "__part", "code"]).to_pylist()
    assert [tuple(h.values()) for h in halves] == [
        (Op.UPSERT, 9, 1, "a"),
        (Op.UPSERT, 10, 1, "b"),
        (Op.DELETE, 11, 1, "b"),
        (MOVED_AWAY, 10, 0, "a"),
    ]
    assert made.counts == Counts(read=3)


@pytest.mark.parametrize(
    "shape", [Shape(("code",)), Shape(("code", "id"), "region", "identity", "region")], ids=["one", "two"]
)
def test_rows_with_a_null_key_are_set_apart(shape: Shape) -> None:
    """A key that the settings name may be null."""
    whole, null = row(1), {**row(2), "code": None}
    moved = {**whole, "region": "us"}
    changes = [
        Change(8, 0, None, null),
        Change(9, 0, null, None),
        Change(10, 0, null, null),
        Change(11, 0, whole, moved),
    ]
    batch = change_batch(shape, [Delivered(change, 0, at) for at, change in enumerate(changes)])
    rows = placed(batch, table_rules(shape, 4))
    null_key = null_keys(batch, rows.target, rows.names)
    assert null_key.tolist() == [True, True, True, False]
    kept = rows.where(~null_key)
    assert kept.rows.column("__offset").to_pylist() == [3]
    assert len(kept.moments.orders) == len(kept.keys) == len(kept.paths) == len(kept.removed) == 1
    if shape.partition:
        assert kept.before is not None
        assert kept.before.rows.column("region").to_pylist() == ["eu"]
        assert kept.before.paths.to_pylist() == ["region=eu"]
        assert kept.before_at.tolist() == [0]
    made = route(kept, AppliedRecords(), -1)
    assert len(effects(made.parcels)) == (2 if shape.partition else 1)


def test_rows_that_name_the_key_of_others_are_set_apart() -> None:
    """Also an update of a key that others have: it would take their row away."""
    word, plain, empty = row(1, code="__empty__"), row(1, code="x"), row(1, code="")
    changes = [
        Change(8, 0, None, word),
        Change(9, 0, word, None),
        Change(10, 0, word, plain),
        Change(11, 0, plain, empty),
        Change(12, 0, None, row(1, code="a,id:1")),
    ]
    batch = change_batch(BY_DAY, [Delivered(change, 0, at) for at, change in enumerate(changes)])
    assert ambiguous_keys(placed(batch, table_rules(BY_DAY, 4))).tolist() == [True, True, True, False, False]
    alone = change_batch(Shape(("code",)), [Delivered(Change(8, 0, None, word), 0, 0)])
    assert ambiguous_keys(placed(alone, table_rules(Shape(("code",)), 4))).tolist() == [False]


def test_whole_keys_leave_a_batch_as_it_is() -> None:
    for shape in (PLAIN, Shape(())):
        batch = change_batch(shape, [Delivered(Change(8, 0, None, row(1)), 0, 0)])
        rows = placed(batch, table_rules(shape, 4))
        assert null_keys(batch, rows.target, rows.names).tolist() == [False]
        assert rows.where(np.ones(1, dtype=bool)) is rows


def test_fates_add_up() -> None:
    counts = Counts(read=10, superseded=2, filtered=1, quarantined=3)
    counts.settle()
    assert counts.applied == 4
    counts.add(Counts(read=1, applied=1, already_applied=5))
    assert counts == Counts(read=11, applied=5, superseded=2, filtered=1, quarantined=3, already_applied=5)


def test_a_batch_of_many_rows_and_places() -> None:
    changes = [Change(n, 0, None, row(n, f"r{n % 30}")) for n in range(3000)]
    made = routed(BY_REGION, changes, buckets=8)
    assert len({(p.partition_path, p.bucket) for p in made.parcels}) == len(made.parcels) == 240
    assert np.sum([p.rows for p in made.parcels]) == 3000
