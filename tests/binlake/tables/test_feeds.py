"""One function says which source tables feed a lake table at a position, and which lake table a source table feeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from binlake.decode.changes import SourceTable
from binlake.schema.apply.statement_history import net_renames
from binlake.schema.rules.entries import DdlEntry
from binlake.tables.feeds import Feeds
from hudilake.errors import UnsupportedError
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.schema.test_schema_backlog import with_rows
from tests.binlake.schema.test_schema_changes import COLUMNS


def shop(table: str) -> SourceTable:
    return SourceTable("shop", table)


def started(place: Path, *tables: str, routes: list[dict[str, object]] | None = None) -> tuple[DdlSource, Follower]:
    source = DdlSource()
    for table in tables:
        with_rows(source, table)
    follower = Follower(source, place, routes=routes or [])
    follower.run()
    return source, follower


def fed(follower: Follower, table: str, *seen: str, order: int | None = None) -> dict[str, str | None]:
    """First name -> name of now."""
    found = Feeds.load(follower.settings()).of(shop(table), [shop(one) for one in seen], order)
    return {one.first.table: one.now.table if one.now is not None else None for one in found}


def test_three_tables_that_turn_round_and_a_fourth_of_a_name_that_is_free(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "a", "b", "c")
    source.rename_tables(("a", "x"), ("b", "a"), ("c", "b"), ("x", "c"))
    follower.idle()
    assert [fed(follower, one) for one in "abc"] == [{"a": "c"}, {"b": "a"}, {"c": "b"}]
    source.rename_tables(("c", "z"))
    source.create("c", COLUMNS, snapshot=False)
    source.put("c", 1, name="another")
    follower.run()
    assert fed(follower, "a") == {"a": "z"}
    feeds = Feeds.load(follower.settings())
    assert {name: feeds.lake_table(shop(name)) for name in "abcz"} == {
        "a": shop("b"),
        "b": shop("c"),
        "c": shop("c@@2"),
        "z": shop("a"),
    }


def test_the_answer_is_that_of_a_position(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "a", "b")
    source.rename_tables(("a", "x"), ("b", "a"), ("x", "b"))
    source.drop_table("b")
    follower.idle()
    known = Feeds.load(follower.settings()).names.feeds or ()
    [swapped] = {called.since for feed in known for called in feed.history if called.place}
    [dropped] = {feed.gone.since for feed in known if feed.gone is not None}
    assert fed(follower, "a", order=swapped - 1) == {"a": "a"}
    assert fed(follower, "a", order=swapped) == {"a": "b"}
    assert fed(follower, "a", order=dropped) == fed(follower, "a") == {"a": None}
    feeds = Feeds.load(follower.settings())
    assert [feeds.lake_table(shop("a"), at) for at in (swapped - 1, swapped)] == [shop("a"), shop("b")]
    with pytest.raises(UnsupportedError, match="dropped at the source at mysql-bin"):
        feeds.of(shop("a"))[0].known()


def test_tables_that_go_to_one_are_known_by_their_own_names(tmp_path: Path) -> None:
    routes: list[dict[str, object]] = [{"match": r"shop\.t_\d", "to": "shop.t", "shard": {"column": "origin"}}]
    source, follower = started(tmp_path, "t_1", "t_2", "other", routes=routes)
    assert fed(follower, "t", "t_1", "t_2", "other") == {"t_1": "t_1", "t_2": "t_2"}
    source.rename_tables(("t_1", "away"))
    source.put("away", 1, name="still of t")
    source.drop_table("t_2")
    follower.run()
    assert fed(follower, "t", "away", "other") == {"t_1": "away", "t_2": None}
    feeds = Feeds.load(follower.settings())
    assert [feeds.lake_table(shop(one)) for one in ("away", "t_1", "other")] == [shop("t"), None, shop("other")]
    assert feeds.of(shop("t"), [shop("away")])[0].part is not None


def test_a_document_that_is_lost_is_not_taken_for_names_that_never_changed(tmp_path: Path) -> None:
    source, follower = started(tmp_path, "a", "b")
    source.rename_tables(("a", "x"), ("b", "a"), ("x", "b"))
    follower.idle()
    (tmp_path / ".binlake/shop/names.json").unlink()
    [mine] = Feeds.load(follower.settings()).of(shop("a"))
    assert (mine.now, mine.missing[:40]) == (None, "the names that it has at the source are ")
    follower.restart()
    source.put("a", 1, name="more")
    follower.run()
    assert fed(follower, "a") == {"a": "b"}


def test_the_parts_of_a_statement_come_to_one_name_before_and_one_after_it() -> None:
    def entry(source: str, old: str, new: str) -> DdlEntry:
        return DdlEntry(shop(source), 1, 1, "f:1", f"{old}{new}", "", (), renamed=(shop(old), shop(new)))

    entries = [entry("a", "x", "b"), entry("a", "a", "x"), entry("b", "b", "a"), entry("c", "c", "y")]
    entries.append(entry("c", "y", "c"))
    assert net_renames(entries) == [(shop("a"), shop("b")), (shop("b"), shop("a"))]
