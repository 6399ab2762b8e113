"""Statements of the source about an append table: no stored row changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower

_COLUMNS = {"id": "bigint", "name": "varchar(20)", "qty": "int"}


def started(place: Path) -> tuple[DdlSource, Follower]:
    """An append table ``t`` with four rows."""
    source = DdlSource()
    source.create("t", _COLUMNS)
    for key in range(4):
        source.put("t", key, name=f"n{key}", qty=key)
    follower = Follower(source, place, {"kind": "append"})
    follower.run()
    assert len(follower.stored("t")) == 4
    return source, follower


def test_columns_are_added_renamed_and_dropped(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.add("t", "tier", "varchar(8)", "basic", "DEFAULT 'basic'")
    source.rename("t", "qty", "amount")
    source.put("t", 4, name="x", tier="gold", amount=9)
    follower.run()
    source.drop("t", "name")
    source.put("t", 5, tier="gold", amount=10)
    follower.run()
    stored = follower.stored("t")
    assert [stored[n]["tier"] for n in range(6)] == [None] * 4 + ["gold"] * 2
    assert [stored[n]["qty"] for n in range(6)] == [0, 1, 2, 3, None, None]
    assert [stored[n]["amount"] for n in range(6)] == [None] * 4 + [9, 10]
    assert [stored[n]["name"] for n in range(6)] == ["n0", "n1", "n2", "n3", "x", None]


def test_a_wider_type_is_taken(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.modify("t", "qty", "bigint")
    source.put("t", 4, name="x", qty=1 << 40)
    follower.run()
    assert [follower.stored("t")[n]["qty"] for n in range(5)] == [0, 1, 2, 3, 1 << 40]


def test_another_type_is_refused(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.modify("t", "qty", "varchar(10)")
    source.put("t", 4, name="x", qty="many")
    event = follower.run()
    assert [(t.applied, t.quarantined) for t in event.tables] == [(0, 1)]
    assert sorted(follower.stored("t")) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "statement", ["ALTER TABLE t DROP PRIMARY KEY", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, name)"]
)
def test_a_key_of_the_source_does_not_matter(tmp_path: Path, statement: str) -> None:
    source, follower = started(tmp_path)
    source.rekey("t", statement, ("id", "name") if "ADD" in statement else ())
    source.put("t", 4, name="x", qty=4)
    follower.run()
    assert sorted(follower.stored("t")) == [0, 1, 2, 3, 4]


def test_a_dropped_table_leaves_its_rows(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.drop_table("t")
    source.create("t", _COLUMNS, snapshot=False)
    source.put("t", 10, name="again", qty=1)
    follower.run()
    assert sorted(follower.stored("t")) == [0, 1, 2, 3, 10]
