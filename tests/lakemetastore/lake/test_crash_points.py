"""A process dies at a call to the store while it registers, renames, drops or rebuilds: the next one completes it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from hudilake.errors import LakeError
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.lake.check import Check
from lakemetastore.lake.lake_tables import LakeTables
from lakemetastore.lake.named import NamedLake
from lakemetastore.lake.naming import NamedTable
from lakemetastore.lake.registration import Registration
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.files import FileStore
from tests.binlake.stream.dying_store import DyingStore, Fate, Killed
from tests.hudilake import lake
from tests.hypothesis_profile import is_nightly
from tests.lakemetastore.lake.hudi_tables import add, made
from tests.programs.crash_points.points import Point, every_point, sampled

#: Snapshots are due often, and written by the process that commits.
_POLICY: Final = LogPolicy(snapshot_every=2, background=False, turn_timeout_s=0.2, commit_timeout_s=2.0)


class World:
    """A lake of two tables, and a metastore's store that is copied for each trial."""

    def __init__(self, path: Path) -> None:
        self.path, self.lake = path, NamedLake.of_root(lake.storage_at(path / "lake"))
        for name in ("a", "b"):
            made(path / "lake" / "shop" / name, partitions=("day=d1",))

    def registration(self, root: Storage) -> Registration:
        """What a new process has."""
        store = FileStore(root)
        return Registration(Catalog(store, policy=_POLICY), LakeTables(store, _POLICY))

    def tables(self) -> list[NamedTable]:
        return [table for table in self.lake.tables() if isinstance(table, NamedTable)]

    def open(self, name: str) -> HudiTable:
        return HudiTable.open(lake.storage_at(self.path / "lake" / "shop" / name))

    def wider(self, *, first: bool) -> None:
        """A new column, and a new partition."""
        table = self.open("a")
        field = pa.field("colour", pa.string())
        columns = [field, *table.schema] if first else [*table.schema, field]
        table.commit(table.begin(), [], schema=pa.schema(columns))
        add(self.open("b"), "day=d2")

    def swapped(self) -> list[NamedTable]:
        a, b = self.tables()
        return [NamedTable(a.storage, b.database, b.name), NamedTable(b.storage, a.database, a.name)]


def _register(world: World, made_by: Registration) -> None:
    for table in world.tables():
        made_by.register(table)


def _swap(world: World, made_by: Registration) -> None:
    made_by.rename(world.swapped())
    for table in world.swapped():
        made_by.register(table)


def _rebuild(world: World, made_by: Registration) -> None:
    for table in world.tables():
        made_by.lakes.rebuild(table.storage)


def _prepared(world: World, made_by: Registration, change: Callable[[], None]) -> None:
    _register(world, made_by)
    change()


_Work = tuple[Callable[[World, Registration], None], Callable[[World, Registration], None]]
#: What is there before, and the work in which the process dies.
_WORKS: Final[Mapping[str, _Work]] = {
    "register": (lambda world, by: None, _register),
    "alter": (lambda world, by: _prepared(world, by, lambda: world.wider(first=False)), _register),
    "replace": (lambda world, by: _prepared(world, by, lambda: world.wider(first=True)), _register),
    "swap": (_register, _swap),
    "rebuild": (lambda world, by: _prepared(world, by, lambda: world.wider(first=False)), _rebuild),
}


def _wrong(world: World, root: Storage, work: str) -> list[str]:
    """What is wrong once another process has done the work, but for logs that no name leads to: those go last."""
    after = world.registration(root)
    _WORKS[work][1](world, after)
    if work == "rebuild":
        _register(world, after)
    check = Check(after, [world.lake])
    findings = [f for f in check.findings() if work != "swap" or not f.what.startswith("the catalog calls it")]
    left = [f for f in findings if not f.where.startswith("tables/")]
    for finding in findings:
        if finding.where.startswith("tables/") and finding.repair is not None:
            finding.repair()
    orphans = after.catalog.tables.orphans()
    names = after.catalog.tables.names("shop")
    strange = [] if sorted(n for n in names if "__old_" not in n and "__new_" not in n) == _NAMES else names
    return [*(f"{f.where}: {f.what}" for f in left), *orphans, *strange]


_NAMES = sorted(f"{name}{suffix}" for name in "ab" for suffix in ("", "_ro", "_rt"))


@pytest.mark.first(1)
@pytest.mark.parametrize("work", _WORKS)
def test_whatever_call_fails_the_next_process_completes_the_work(work: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    first = tmp_path / "first"
    _WORKS[work][0](world, world.registration(lake.storage_at(first)))
    first.mkdir(exist_ok=True)
    watched = Fate()
    shutil.copytree(first, tmp_path / "watched")
    _WORKS[work][1](world, world.registration(DyingStore(lake.storage_at(tmp_path / "watched"), watched)))
    points = sampled(list(every_point(watched.calls)), None if is_nightly() else 1)
    assert points
    for number, point in enumerate(points):
        place = tmp_path / f"trial{number}"
        shutil.copytree(first, place)
        assert _after(world, place, work, point) == [], str(point)
        shutil.rmtree(place)


def _after(world: World, place: Path, work: str, point: Point) -> list[str]:
    fate = Fate(point.at, point.answer)
    root = lake.storage_at(place)
    with contextlib.suppress(Killed, LakeError):
        _WORKS[work][1](world, world.registration(DyingStore(root, fate)))
    return _wrong(world, DyingStore(root, fate.after(point.arrives_at)), work)
