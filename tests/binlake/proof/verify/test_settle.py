"""What remains of a candidate: equal once is equal, different twice is a difference, and nothing else is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from binlake.decode.types.mysql_types import parse_type
from binlake.proof.verify.columns import ColumnPlan, ComparedColumn
from binlake.proof.verify.rows import KnownRows
from binlake.proof.verify.settle import Look, Settlement, settle
from binlake.settings import SourceSettings
from binlake.source.database.snapshot import SourcePosition
from binlake.source.database.source_table import SourceColumn
from binlake.source.database.values import ValueReader

#: Key -> value and, in the lake, ordering value.
Source = dict[int, str]
Lake = dict[int, tuple[str, int]]


def column(name: str, text: str) -> ComparedColumn:
    kind = parse_type(text)
    reader = ValueReader.of(name, kind, SourceSettings(), nullable=True, in_key=False)
    return ComparedColumn(SourceColumn(name, text, kind, True), reader, name, kind.lake_type)


PLAN = ColumnPlan((column("id", "bigint"), column("v", "varchar(9)")), 1, ())


def look(at: int, source: Source, lake: Lake, *, covered: bool = True) -> Look:
    rows = pa.table({"id": pa.array(list(source), pa.int64()), "v": pa.array(list(source.values()), pa.string())})
    held = pa.table(
        {"id": pa.array(list(lake), pa.int64()), "v": pa.array([value for value, _ in lake.values()], pa.string())}
    )
    orders = np.array([order for _, order in lake.values()], dtype=np.int64)
    position = SourcePosition("bin.000001", at, 1)
    return Look(position, at, KnownRows.of(rows, PLAN), KnownRows.of(held, PLAN, orders), covered)


def settled(*looks: Look, changed: Sequence[int] = (), most: int = 5) -> tuple[Settlement, list[set[int]]]:
    """Play looks one after the other, the last one again and again; also the keys that each was asked for."""
    asked: list[set[int]] = []
    rest = list(looks[1:])

    def again(keys: pa.Table) -> Look:
        asked.append(set(keys.column("id").to_pylist()))
        found = rest.pop(0) if len(rest) > 1 else rest[0]
        wanted = np.sort(KnownRows.of(keys, PLAN).keys)
        return found.of(wanted)

    return settle(looks[0], pa.table({"id": pa.array(changed, pa.int64())}), again, ["id"], most), asked


def keys_of(done: Settlement) -> set[int]:
    return {k for d in done.differences for rows in (d.source, d.lake) for k in rows.rows.column("id").to_pylist()}


def test_the_same_difference_twice_is_one() -> None:
    source, lake = {1: "a", 2: "b"}, {1: ("x", 5), 3: ("c", 5)}
    done, asked = settled(look(10, source, lake), look(20, source, lake))
    assert asked == [{1, 2, 3}]
    assert keys_of(done) == {1, 2, 3}
    assert (done.unsettled, done.changing) == (0, 0)
    assert [str(d.position) for d in done.differences] == ["bin.000001:20"]


def test_a_row_that_the_lake_gets_later_is_equal() -> None:
    done, _ = settled(look(10, {1: "a"}, {}), look(20, {1: "a"}, {1: ("a", 8)}))
    assert (keys_of(done), done.unsettled) == (set(), 0)


def test_a_row_that_changes_at_the_source_meanwhile_takes_another_look() -> None:
    first, second = look(10, {1: "a"}, {1: ("x", 5)}), look(20, {1: "b"}, {1: ("x", 5)})
    done, asked = settled(first, second, look(30, {1: "b"}, {1: ("b", 25)}))
    assert (keys_of(done), len(asked)) == (set(), 2)
    done, asked = settled(first, second, look(30, {1: "b"}, {1: ("x", 5)}))
    assert (keys_of(done), len(asked)) == ({1}, 2)


def test_a_row_that_is_newer_than_every_look_is_changing_and_no_difference() -> None:
    newer = look(20, {1: "a", 2: "b"}, {1: ("z", 99), 2: ("b", 15)})
    done, asked = settled(look(10, {}, {}), newer, changed=[1, 2])
    assert asked == [{1, 2}, {1}, {1}]
    assert (keys_of(done), done.changing, done.unsettled) == (set(), 1, 0)


def test_nothing_is_a_difference_while_the_lake_is_behind() -> None:
    source, lake = {1: "a"}, {1: ("x", 5)}
    behind = look(20, source, lake, covered=False)
    done, asked = settled(look(10, source, lake), behind)
    assert (keys_of(done), done.unsettled, done.behind, len(asked)) == (set(), 1, True, 3)
    done, asked = settled(look(10, source, lake, covered=False), behind, look(30, source, lake))
    assert (keys_of(done), len(asked)) == ({1}, 3)  # twice after it has caught up


def test_a_row_deleted_on_both_sides_is_equal() -> None:
    done, _ = settled(look(10, {1: "a"}, {1: ("x", 5)}), look(20, {}, {}))
    assert (keys_of(done), done.unsettled, done.looks) == (set(), 0, 1)


def test_a_key_with_two_rows_is_a_difference_however_often_they_change() -> None:
    def twice(at: int, value: str, order: int) -> Look:
        one = look(at, {1: value}, {1: (value, order)})
        return replace(one, lake=KnownRows.joined([one.lake, one.lake], PLAN))

    done, _ = settled(look(10, {}, {}), twice(20, "a", 99), twice(30, "b", 99), changed=[1])
    assert (keys_of(done), done.changing, done.unsettled) == ({1}, 0, 0)
    done, _ = settled(twice(10, "a", 5), look(20, {1: "a"}, {1: ("a", 5)}))
    assert (keys_of(done), done.unsettled) == (set(), 0)
    keyless = [replace(twice(at, "a", 5), keyless=True) for at in (10, 20)]
    one = replace(keyless[1], source=KnownRows.joined([keyless[1].source] * 2, PLAN))
    done, _ = settled(keyless[0], one)
    assert keys_of(done) == set()
