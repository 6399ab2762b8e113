"""Random calls from two catalogs on one store, against plain dicts; and many processes at once."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.catalog.names import partition_name
from lakemetastore.errors import CatalogError
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.opening import open_store
from lakemetastore.model import Column, Database, Partition, Storage, Table
from tests.hypothesis_profile import scaled

KEYS = (Column("dt", "string"), Column("n", "int"))
NAMES = st.sampled_from(["a", "b", "c", "A"])
VALUES = st.tuples(st.sampled_from(["x", "y/z", ""]), st.sampled_from("123"))
SIDES = st.integers(0, 1)
_stores = iter(range(1_000_000))

Rows = dict[str, tuple[tuple[str, ...], str]]


def table(name: str, comment: str = "") -> Table:
    storage = Storage(columns=(Column("a", "int"),))
    return Table("db", name, storage, partition_keys=KEYS, parameters={"comment": comment})


def rows_of(partitions: list[Partition]) -> Rows:
    return {partition_name(KEYS, p.values): (p.values, p.parameters.get("mark", "")) for p in partitions}


class CatalogMachine(RuleBasedStateMachine):
    """Two catalogs on one store, which snapshot often, and the dicts that they must equal."""

    @initialize()
    def start(self) -> None:
        policy = LogPolicy(snapshot_every=5, background=False)
        store = open_store(f"memory://catalogs/{next(_stores)}")
        self.catalogs = [Catalog(store, policy=policy) for _ in range(2)]
        self.catalogs[0].databases.create(Database("db"))
        self.tables: dict[str, tuple[str, Rows]] = {}
        for name in "ab":
            self.create(0, name)
            self.add(0, name, [("x", "1"), ("y/z", "2"), ("", "3")], False, name)

    @rule(side=SIDES, name=NAMES)
    def create(self, side: int, name: str) -> None:
        if self._done(name.lower() not in self.tables, lambda: self.catalogs[side].tables.create(table(name))):
            self.tables[name.lower()] = ("", {})

    @rule(side=SIDES, name=NAMES)
    def drop(self, side: int, name: str) -> None:
        if self._done(name.lower() in self.tables, lambda: self.catalogs[side].tables.drop("DB", name)):
            del self.tables[name.lower()]

    @rule(side=SIDES, name=NAMES, new=NAMES, comment=st.sampled_from(["", "x"]))
    def alter(self, side: int, name: str, new: str, comment: str) -> None:
        old, target = name.lower(), new.lower()
        possible = old in self.tables and (old == target or target not in self.tables)
        if self._done(possible, lambda: self.catalogs[side].tables.alter("db", name, table(new, comment))):
            self.tables[target] = (comment, self.tables.pop(old)[1])

    @rule(side=SIDES, moves=st.dictionaries(st.sampled_from("abc"), st.sampled_from("abcd"), max_size=3))
    def swap(self, side: int, moves: dict[str, str]) -> None:
        stay = self.tables.keys() - moves.keys()
        distinct = len(set(moves.values())) == len(moves)
        possible = moves.keys() <= self.tables.keys() and distinct and not stay & set(moves.values())
        pairs = {("db", old): ("db", new) for old, new in moves.items()}
        if self._done(possible, lambda: self.catalogs[side].tables.swap_names(pairs)):
            moved = {new: self.tables[old] for old, new in moves.items()}
            self.tables = {name: self.tables[name] for name in stay} | moved

    @rule(side=SIDES, name=NAMES, values=st.lists(VALUES, max_size=6), if_not_exists=st.booleans(), mark=st.text("m"))
    def add(self, side: int, name: str, values: list[tuple[str, str]], if_not_exists: bool, mark: str) -> None:
        rows = self._rows(name)
        new = [Partition(v, Storage(), parameters={"mark": mark}) for v in values]
        found = [partition_name(KEYS, v) for v in values]
        unknown = [key for key in found if key not in (rows or ())]
        possible = rows is not None and len(set(unknown)) == len(unknown)
        possible = possible and (if_not_exists or len(unknown) == len(found))
        call = self.catalogs[side].partitions.add_all
        if self._done(possible, lambda: call("db", name, new, if_not_exists=if_not_exists)) and rows is not None:
            for key, row in rows_of(new).items():
                rows.setdefault(key, row)

    @rule(side=SIDES, name=NAMES, values=st.lists(VALUES, max_size=3, unique=True), mark=st.sampled_from("pq"))
    def alter_partitions(self, side: int, name: str, values: list[tuple[str, str]], mark: str) -> None:
        rows = self._rows(name)
        new = [Partition(v, Storage(), parameters={"mark": mark}) for v in values]
        possible = rows is not None and rows_of(new).keys() <= rows.keys()
        if self._done(possible, lambda: self.catalogs[side].partitions.alter_all("db", name, new)) and rows is not None:
            rows.update(rows_of(new))

    @rule(side=SIDES, name=NAMES, old=VALUES, new=VALUES)
    def rename_partition(self, side: int, name: str, old: tuple[str, str], new: tuple[str, str]) -> None:
        rows = self._rows(name)
        old_name, new_name = partition_name(KEYS, old), partition_name(KEYS, new)
        possible = rows is not None and old_name in rows and new_name not in rows
        renamed = Partition(new, Storage(), parameters={"mark": "renamed"})
        if self._done(possible, lambda: self.catalogs[side].partitions.rename("db", name, old, renamed)):
            assert rows is not None
            del rows[old_name]
            rows.update(rows_of([renamed]))

    @rule(side=SIDES, name=NAMES, values=st.lists(VALUES, max_size=4), if_exists=st.booleans())
    def drop_partitions(self, side: int, name: str, values: list[tuple[str, str]], if_exists: bool) -> None:
        rows = self._rows(name)
        names = [partition_name(KEYS, v) for v in values]
        possible = rows is not None and (if_exists or set(names) <= rows.keys())
        call = self.catalogs[side].partitions.drop
        if self._done(possible, lambda: call("db", name, names, if_exists=if_exists)) and rows is not None:
            for key in names:
                rows.pop(key, None)

    @invariant()
    def both_equal_the_model(self) -> None:
        for catalog in getattr(self, "catalogs", ()):
            assert catalog.tables.names("db") == sorted(self.tables)
            summaries = {s.name: s.comment or "" for s in catalog.tables.summaries("db", "*")}
            assert summaries == {name: comment for name, (comment, _) in self.tables.items()}
            for name, (_, rows) in self.tables.items():
                entry = catalog.tables.get("db", name)
                assert (entry.table.name, entry.partitions.names()) == (name, sorted(rows))
                assert rows_of(list(entry.partitions)) == rows
                hit = catalog.partitions.matching(entry, "n >= 2 and dt <> 'x'")
                expected = [key for key in sorted(rows) if rows[key][0][1] >= "2" and rows[key][0][0] != "x"]
                assert entry.partitions.names(hit) == expected
                assert np.array_equal(catalog.partitions.having(entry, ["", "2"]), _with_n(rows, "2"))

    def _rows(self, name: str) -> Rows | None:
        found = self.tables.get(name.lower())
        return found and found[1]

    @staticmethod
    def _done(possible: bool, call: Callable[[], object]) -> bool:
        try:
            call()
        except CatalogError:
            assert not possible
            return False
        assert possible
        return True


def _with_n(rows: Rows, n: str) -> list[int]:
    return [i for i, key in enumerate(sorted(rows)) if rows[key][0][1] == n]


CatalogMachine.TestCase.settings = settings(max_examples=scaled(100), stateful_step_count=25, deadline=None)
TestCatalog = CatalogMachine.TestCase


def _write(path: str, writer: int, count: int) -> None:
    catalog = Catalog(open_store(path))
    for i in range(count):
        catalog.tables.create(table(f"t{writer}_{i}"))
        catalog.partitions.add_all("db", "shared", [Partition((f"w{writer}", str(i)), Storage())])


def test_processes_that_write_side_by_side_lose_nothing(tmp_path: Path) -> None:
    path, writers, count = str(tmp_path), 3, 8
    catalog = Catalog(open_store(path))
    catalog.databases.create(Database("db"))
    catalog.tables.create(table("shared"))
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(path, writer, count)) for writer in range(writers)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * writers
    made = {f"t{writer}_{i}" for writer in range(writers) for i in range(count)}
    assert catalog.tables.names("db") == sorted({"shared"} | made)
    assert len(catalog.tables.get("db", "shared").partitions) == writers * count
    assert catalog.tables.orphans(older_than_s=0) == []
