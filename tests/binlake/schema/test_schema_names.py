"""Tables that are renamed, swapped, or put in place by an online schema change: whose rows are whose."""

from __future__ import annotations

from pathlib import Path

from binlake.decode.changes import SourceTable
from binlake.schema.rules.ddl_effects import DatedName, DdlEvent
from binlake.schema.rules.ddl_log import DdlLog
from binlake.settings.schema_changes import SchemaChangeSettings
from tests.binlake.schema.test_schema_changes import COLUMNS, started


def test_a_renamed_table_goes_on_under_its_path(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.put("t", 1, name="before")
    source.rename_tables(("t", "u"))
    source.put("u", 2, name="after")
    source.delete("u", 3)
    follower.run(share=0.5)
    follower.run()
    follower.check("u", "t")
    follower.restart()
    source.add("u", "tier", "int", 3, "DEFAULT 3")
    source.put("u", 4, tier=5)
    follower.run()
    follower.check("u", "t")
    assert not (tmp_path / "shop" / "u").exists()
    source.create("t", COLUMNS, snapshot=False)
    source.put("t", 1, name="another")
    follower.run()
    follower.check("u", "t")
    follower.check("t", "t@@2")
    assert follower.quarantined() == []
    follower.restart()
    source.put("t", 2, name="another")
    follower.run(ddl=0)
    follower.check("t", "t@@2")


def test_tables_that_swap_names_keep_their_rows(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.create("u", COLUMNS)
    source.put("u", 50, name="u")
    source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
    source.put("t", 51, name="of u")
    source.put("u", 9, name="of t")
    follower.run()
    follower.check("u", "t")
    follower.check("t", "u")


def test_a_renamed_table_may_get_one_of_its_own_or_be_refused(tmp_path: Path) -> None:
    source, follower = started(tmp_path / "new", rename_table="new")
    source.rename_tables(("t", "u"))
    source.put("u", 2, name="after")
    follower.run()
    assert (len(follower.stored("t")), len(follower.stored("u"))) == (8, 1)
    source, follower = started(tmp_path / "refuse", rename_table="refuse")
    source.rename_tables(("t", "u"))
    source.put("u", 2, name="after")
    follower.run()
    assert follower.quarantined() == [("ddl_refused", "shop.t became shop.u")]


def test_a_table_that_only_looks_like_a_shadow_is_one_of_its_own(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.create("_audit_new", COLUMNS)
    source.put("_audit_new", 1, name="mine")
    follower.run()
    follower.check("_audit_new")


def test_debezium_names_the_new_database_alone() -> None:
    """A name without a database is then of the only other database that has such a table."""
    log, rules = DdlLog(), SchemaChangeSettings()
    log.add(DdlEvent(1 << 32 | 100, 1, "1:100", "RENAME TABLE t TO other.t", "other"))
    shop, other = SourceTable("shop", "t"), SourceTable("other", "t")
    history = log.history(lambda _: rules, [shop])
    assert history.identity(other, 1 << 32 | 101).identity == shop
    assert history.called == {shop: [DatedName(shop), DatedName(other, "1:100")]}
    several = log.history(lambda _: rules, [shop, SourceTable("third", "t")])
    assert several.identity(other, 1 << 32 | 101).identity != shop, "it could be either"
