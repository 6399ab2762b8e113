"""A metastore in line with its lakes: rounds, what is told of single commits, renames at the source, commands."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from hudilake.errors import ConfigError, CorruptDataError
from hudilake.storage import open_storage
from hudilake.table.directory import BrokenTable
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.lease import Lease
from lakemetastore.lake.named import NamedLake
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.opening import Metastore, metastore_of
from lakemetastore.log.stores.opening import open_store
from lakemetastore.settings.service import MetastoreSettings
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.lakemetastore.lake.hudi_tables import add, made

_COLUMNS = {"id": "int", "name": "varchar(20)"}


class Served:
    """A metastore whose lake a stream writes, and one of other tables."""

    def __init__(self, path: Path) -> None:
        self.source = DdlSource()
        for name in ("t", "u"):
            self.source.create(name, _COLUMNS)
            self.source.put(name, 1, name=f"of {name}")
        self.stream = Follower(self.source, path / "lake")
        self.stream.run()
        (path / "stream.yaml").write_text(self.stream.document())
        self.other = path / "other"
        made(self.other / "web" / "Clicks", partitions=("day=d1",))
        document = {
            "store": {"uri": str(path / "store")},
            "lakes": [{"settings": "stream.yaml"}, {"uri": str(self.other)}],
        }
        self.conf = path / "metastore.yaml"
        self.conf.write_text(json.dumps(document))
        self.metastore = self.opened()

    def opened(self) -> Metastore:
        """The metastore as another process has it."""
        return metastore_of(MetastoreSettings.load(self.conf))

    def tables(self, database: str) -> list[str]:
        return self.metastore.catalog.tables.names(database)

    def run(self, command: str, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        """A command's exit code and its JSON lines."""
        done = CliRunner().invoke(app, ["metastore", command, str(self.conf), *arguments, "--json"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made_ready = Served(tmp_path)
    yield made_ready
    made_ready.metastore.close()


def test_a_round_registers_all_tables_by_the_names_of_the_source(served: Served) -> None:
    done = {report.table: report for report in served.metastore.reconciler.run_once()}
    assert sorted(done) == ["shop.t", "shop.u", "web.clicks"]
    assert [report.error for report in done.values()] == [None] * 3
    assert served.tables("shop") == ["t", "t_ro", "t_rt", "u", "u_ro", "u_rt"]
    assert not any(report.done.changed for report in served.metastore.reconciler.run_once())


def test_a_swap_at_the_source_swaps_the_hive_tables(served: Served) -> None:
    list(served.metastore.reconciler.run_once())
    places = {name: served.metastore.catalog.tables.get("shop", name).table.location for name in ("t", "u_rt")}
    served.source.rename_tables(("t", "x"), ("u", "t"), ("x", "u"))
    served.source.put("t", 2, name="of u")
    served.stream.run()
    assert [(r.table, str(r.error)) for r in served.metastore.reconciler.run_once() if r.error is not None] == []
    now = {name: served.metastore.catalog.tables.get("shop", name).table.location for name in ("u", "t_rt")}
    assert list(now.values()) == list(places.values())
    assert served.tables("shop") == ["t", "t_ro", "t_rt", "u", "u_ro", "u_rt"]
    assert served.run("check") == (0, [])


def test_a_dropped_table_gives_its_name_to_the_one_that_has_it_now(served: Served) -> None:
    list(served.metastore.reconciler.run_once())
    dropped = served.metastore.catalog.tables.get("shop", "t").table.location
    kept = served.metastore.catalog.tables.get("shop", "u").table.location
    served.source.drop_table("t")
    served.source.rename_tables(("u", "t"))
    served.source.put("t", 2, name="of u")
    served.stream.run()
    assert [(r.table, str(r.error)) for r in served.metastore.reconciler.run_once() if r.error is not None] == []
    assert served.metastore.catalog.tables.get("shop", "t").table.location == kept
    assert served.metastore.catalog.tables.get("shop", "t__dropped").table.location == dropped
    assert served.run("check") == (0, [])


def test_two_tables_of_one_name_in_lower_case_are_told(tmp_path: Path) -> None:
    for name in ("Orders", "orders"):
        made(tmp_path / "shop" / name)
    first, second = NamedLake.of_root(open_storage(str(tmp_path))).tables()
    assert isinstance(first, NamedTable)
    assert isinstance(second, BrokenTable)
    assert "another table of the lake is shop.orders" in second.error.what


def test_a_told_commit_is_taken_in_with_its_partitions(served: Served) -> None:
    metastore = served.metastore
    list(metastore.reconciler.run_once())
    table = made(served.other / "web" / "views", partitions=("day=d1",))
    instant = add(table, "day=d2")
    metastore.reconciler.completed(table.storage.uri, instant)
    assert served.metastore.catalog.tables.get("web", "views").partitions.names() == ["day=d1", "day=d2"]
    again = add(table, "day=d2")
    metastore.reconciler.completed(table.storage.uri, again)
    metastore.reconciler.completed(table.storage.uri, instant)
    at = metastore.lakes.state(table.storage.uri)
    assert [one.requested for one in at.state.timeline()][-1] == again
    with pytest.raises(ConfigError, match="no lake of the metastore"):
        metastore.reconciler.completed("file:///elsewhere/t", instant)


def test_check_finds_what_is_wrong_and_repairs_it(served: Served) -> None:
    assert [found["what"] for found in served.run("check")[1]] == ["is not registered"] * 3
    assert served.run("register")[0] == 0
    assert served.run("check") == (0, [])
    catalog = served.metastore.catalog
    catalog.tables.drop("shop", "t_ro")
    catalog.partitions.drop("web", "clicks_rt", ["day=d1"])
    add(made(served.other / "web" / "more"), "day=d1")
    shutil.rmtree(served.stream.place / "shop" / "u")
    code, found = served.run("check")
    assert code == CorruptDataError.exit_code
    assert {(one["where"], one["what"].partition(" at ")[0]) for one in found} == {
        ("shop.t_ro", "is not in the catalog"),
        ("web.clicks_rt", "lacks 1 partition, such as d1"),
        ("web.more", "is not registered"),
        ("shop.u", "there is no Hudi table"),
    }
    assert served.run("check", "--repair")[0] == 0
    assert served.tables("shop") == ["t", "t_ro", "t_rt"]


def _misplaced(catalog: Catalog) -> None:
    """Another location and input format, of a table and of a partition."""
    entry = catalog.tables.get("web", "clicks")
    away = msgspec.structs.replace(entry.table, location="file:/away")
    catalog.tables.alter("web", "clicks", away)
    part = next(iter(entry.partitions))
    text = msgspec.structs.replace(part.storage, input_format="org.apache.hadoop.mapred.TextInputFormat")
    catalog.partitions.alter("web", "clicks_rt", msgspec.structs.replace(part, location="file:/away/day=d1"))
    catalog.partitions.alter("web", "clicks_ro", msgspec.structs.replace(part, storage=text))


def test_another_location_or_format_is_found_and_repaired(served: Served) -> None:
    served.run("register")
    catalog = served.metastore.catalog
    _misplaced(catalog)
    code, found = served.run("check")
    assert code == CorruptDataError.exit_code
    partition = "has 1 partition at another place or in another format, such as d1"
    assert {(one["where"], one["what"]) for one in found} == {
        ("web.clicks", "is a table of another place: file:/away"),
        ("web.clicks_rt", partition),
        ("web.clicks_ro", partition),
    }
    assert served.run("check", "--repair")[0] == 0
    assert served.run("check") == (0, [])
    _misplaced(catalog)
    assert [round.error for round in served.metastore.reconciler.run_once()] == [None] * 3
    assert served.run("check") == (0, [])


def test_rebuild_says_what_was_wrong(served: Served) -> None:
    served.run("register")
    table = made(served.other / "web" / "late", partitions=("day=d1",))
    code, lines = served.run("rebuild", "web.late", "web.clicks")
    told = {line["table"]: line["differences"] for line in lines}
    assert (code, told["web.clicks"]) == (0, [])
    assert "uri differs" in told["web.late"]
    add(table, "day=d1")
    (line,) = served.run("rebuild", "web.late")[1]
    assert line["differences"][0].startswith("instant ")
    assert served.run("rebuild", "web.none")[0] == ConfigError.exit_code


def test_several_processes_register_at_once(served: Served) -> None:
    others = [served.opened() for _ in range(4)]
    errors: list[object] = []

    def round_of(metastore: Metastore) -> None:
        errors.extend(report.error for report in metastore.reconciler.run_once() if report.error is not None)

    threads = [threading.Thread(target=round_of, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert served.run("check") == (0, [])


def test_one_process_holds_the_lease(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    mine, theirs = Lease(store, "reconcile", 60), Lease(store, "reconcile", 60)
    assert (mine.take(), theirs.take(), mine.take()) == (True, False, True)
    mine.give_back()
    assert theirs.take()
    short = Lease(store, "other", 0)
    assert (short.take(), Lease(store, "other", 60).take()) == (True, True)
