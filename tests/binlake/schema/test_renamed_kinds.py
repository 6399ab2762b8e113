"""What a lake table needs of events is asked for under every name of its source table: it is renamed, then changed."""

from __future__ import annotations

import dataclasses
import pickle
from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.options import DecodeOptions
from binlake.schema.rules.plan import DdlPlan, Name
from tests.binlake.schema.ddl_source import DdlSource, Follower

COLUMNS = {"id": "int", "n": "int"}


def renamed(place: Path, *, keyed: bool, **sections: dict[str, str]) -> tuple[DdlSource, Follower]:
    """A table of four rows that was called ``t`` and is called ``u``."""
    source = DdlSource(keyed=keyed)
    source.create("t", COLUMNS, key=("id",) if keyed else ())
    for key in range(4):
        source.put("t", key, n=key)
    follower = Follower(source, place, sections)
    follower.run()
    source.rename_tables(("t", "u"))
    return source, follower


def rows(follower: Follower) -> list[tuple[int, int]]:
    return sorted((row["id"], row["n"]) for row in follower.all_rows("t"))


@pytest.mark.parametrize("at_once", [True, False])
def test_updates_of_a_table_without_a_key(tmp_path: Path, at_once: bool) -> None:
    source, follower = renamed(tmp_path, keyed=False)
    if not at_once:
        follower.run()
    source.put("u", 1, n=10)
    source.delete("u", 2)
    follower.run()
    assert rows(follower) == [(0, 0), (1, 10), (3, 3)]
    source.rename_tables(("u", "v"))
    source.put("v", 1, n=11)
    follower.restart()
    follower.run()
    assert rows(follower) == [(0, 0), (1, 11), (3, 3)]


def test_updates_that_move_a_row_to_another_partition(tmp_path: Path) -> None:
    source, follower = renamed(tmp_path, keyed=True, partition={"column": "n"})
    source.put("u", 1, n=10)
    follower.run()
    assert rows(follower) == [(0, 0), (1, 10), (2, 2), (3, 3)]


def test_changes_of_an_append_table_are_quarantined(tmp_path: Path) -> None:
    """The kind is that of the lake table, which the settings name by the first name."""
    source = DdlSource()
    source.create("t", COLUMNS)
    source.put("t", 1, n=1)
    follower = Follower(source, tmp_path, more={"tables": {"overrides": [{"match": "shop.t", "kind": "append"}]}})
    follower.run()
    source.rename_tables(("t", "u"))
    source.put("u", 1, n=2)
    source.delete("u", 1)
    source.put("u", 3, n=3)
    follower.run()
    assert rows(follower) == [(1, 1), (3, 3)]
    assert len(follower.quarantined()) == 2


def test_without_the_names_the_former_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control."""
    monkeypatch.setattr(DdlPlan, "decoding", lambda plan, options: options)
    source, follower = renamed(tmp_path, keyed=False)
    source.put("u", 1, n=10)
    follower.run()
    assert (1, 1) in rows(follower)


def test_options_under_all_names() -> None:
    first, second, other, free = (SourceTable("shop", name) for name in ("t", "u", "o", "f"))
    plan = DdlPlan({second: [Name(5, first)], first: [Name(5, None, "gone")], other: [Name(7, free)]})
    options = DecodeOptions(before_of=frozenset({first, free}), inserts_of=frozenset({first}))
    named = pickle.loads(pickle.dumps(plan.decoding(options)))
    assert named.before_of == {first, second, free, other}
    assert [table in named.inserts_of for table in (first, second, other, free)] == [True, True, False, False]
    assert DdlPlan().decoding(options) is options
    assert plan.decoding(dataclasses.replace(options, before_of="all")).before_of == "all"
