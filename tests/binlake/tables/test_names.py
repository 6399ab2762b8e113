"""A table is found by what the source calls it today; its path stays; a swap of names is one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from typer.testing import CliRunner, Result

from binlake.cli.app import app
from binlake.tables.catalog import CatalogTable, catalog_table, catalog_tables, open_reader
from binlake.tables.names import TableNames
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.storage import Storage, open_storage
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.schema.test_schema_backlog import with_rows
from tests.binlake.schema.test_schema_changes import COLUMNS
from tests.binlake.stream.dying_store import Fate

T = TypeVar("T")


def root(follower: Follower) -> Storage:
    return open_storage(str(follower.place))


def path(follower: Follower, name: str) -> str:
    return catalog_table(follower.settings(), root(follower), name).rules.path


def rows(follower: Follower, name: str) -> dict[int, dict[str, object]]:
    """The rows that the Python API finds under a name."""
    reader = open_reader(follower.settings(), name)
    found = [row for batch in reader.batches(reader.plan()) for row in batch.to_pylist()]
    return {row["id"]: {n: v for n, v in row.items() if n in COLUMNS} for row in found}


def swapped(place: Path) -> tuple[DdlSource, Follower]:
    source = DdlSource()
    with_rows(source, "t")
    source.like("n", "t")
    source.copy("n", "t")
    follower = Follower(source, place)
    follower.run()
    assert (path(follower, "shop.t"), path(follower, "shop.n")) == ("shop/t", "shop/n")
    source.rename_tables(("t", "old"), ("n", "t"))
    source.put("t", 1, name="new")
    source.put("old", 2, name="old")
    follower.run()
    return source, follower


def run(follower: Follower, *arguments: str) -> Result:
    conf = follower.place / "conf.yaml"
    conf.write_text(follower.document())
    return CliRunner().invoke(app, [one.replace("CONF", str(conf)) for one in arguments])


def test_names_follow_the_source(tmp_path: Path) -> None:
    source, follower = swapped(tmp_path)
    for name, held in source.tables.items():
        assert rows(follower, f"shop.{name}") == held.rows
    with pytest.raises(ConfigError, match=r"has no table shop\.n: it was renamed to shop\.t"):
        path(follower, "shop.n")
    found = [t for t in catalog_tables(follower.settings(), root(follower)) if isinstance(t, CatalogTable)]
    assert {t.rules.path: (t.name, str(t.source)) for t in found} == {
        "shop/n": ("shop.t", "shop.n"),
        "shop/t": ("shop.old", "shop.t"),
    }
    source.rename_tables(("t", "n"), ("old", "t"))
    follower.idle()
    assert (path(follower, "shop.t"), path(follower, "shop.n")) == ("shop/t", "shop/n")


def test_commands_find_a_table_by_its_name_of_today(tmp_path: Path) -> None:
    _, follower = swapped(tmp_path)
    told = run(follower, "query", "shop.t", "select name from t where id = 1", "--conf", "CONF", "--format", "json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout) == {"name": "new"}
    assert (
        f"at {open_storage(str(tmp_path)).sub('shop/n').uri}"
        in run(follower, "inspect", "shop.t", "--conf", "CONF").stdout
    )
    assert run(follower, "query", "shop.n", "select 1", "--conf", "CONF").exit_code != 0
    lines = run(follower, "status", "CONF", "--no-kafka", "--json").stdout.splitlines()[1:]
    tables = {one["table"]: one["path"] for one in map(json.loads, lines)}
    assert tables == {"shop.t": "shop/n", "shop.old": "shop/t"}
    shown = run(follower, "status", "CONF", "--no-kafka").stdout
    assert "shop.t is at shop/n: it was shop.n until mysql-bin.000003:" in shown


def test_a_dropped_table_is_found_until_another_has_its_name(tmp_path: Path) -> None:
    source, follower = swapped(tmp_path)
    source.drop_table("old")
    follower.idle()
    assert path(follower, "shop.old") == "shop/t"
    source.create("old", COLUMNS, snapshot=False)
    source.put("old", 1, name="another")
    follower.run()
    assert rows(follower, "shop.old") == source.tables["old"].rows


def test_lost_or_damaged_names_are_written_again(tmp_path: Path) -> None:
    source, follower = swapped(tmp_path)
    names, document = TableNames.load(root(follower), "shop"), tmp_path / ".binlake/shop/names.json"
    assert {one.path: len(one.history) for one in names.tables} == {"shop/n": 2, "shop/t": 2}
    for damage in (None, b"{", b'{"version":2,"tables":[]}'):
        if damage is None:
            document.unlink()
        else:
            document.write_bytes(damage)
            with pytest.raises(CorruptDataError, match="names of the tables cannot be read"):
                path(follower, "shop.t")
        follower.restart()
        source.put("t", 3, name="more")
        follower.run(ddl=0)  # of the statements it has only what commits record
        assert {o.path: o.now for o in TableNames.load(root(follower), "shop").tables} == {
            o.path: o.now for o in names.tables
        }


def test_a_swap_is_one_write(tmp_path: Path) -> None:
    """At every call of the store each name finds one of the two tables, and never both the same one."""
    source, follower = DdlSource(), Follower(DdlSource(), tmp_path)
    with_rows(source, "t")
    with_rows(source, "u")
    follower.source = source
    follower.run()
    seen: list[tuple[str, str]] = []

    class Watched(Fate):
        def call(self, method: str, path_: str, action: Callable[[], T], late: Callable[[], object] | None = None) -> T:
            seen.append((path(follower, "shop.t"), path(follower, "shop.u")))
            return super().call(method, path_, action, late)

    follower.fate = Watched()
    follower.restart()
    source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
    source.put("t", 1, name="new")
    follower.run()
    seen.append((path(follower, "shop.t"), path(follower, "shop.u")))
    assert list(dict.fromkeys(seen)) == [("shop/t", "shop/u"), ("shop/u", "shop/t")]
