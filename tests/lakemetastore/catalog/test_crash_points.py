"""A death, an error or a lost answer at every call to the store: names always lead to whole tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hudilake.errors import LakeError
from hudilake.storage.local import LocalStorage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.errors import CatalogError
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.stores.files import FileStore
from lakemetastore.model import Column, Database, Partition, Storage, Table
from tests.binlake.stream.dying_store import DyingStore, Fate, Killed, answers_of

POLICY = LogPolicy(background=False, snapshot_every=3, commit_timeout_s=1)
TABLE = Table("d", "t", Storage(), partition_keys=(Column("k", "string"),))
OTHER = msgspec.structs.replace(TABLE, name="u", parameters={"other": "1"})
#: What the catalog shows: the names of tables, the parameter ``other`` of each, the names of its partitions.
Shown = dict[str, tuple[str | None, tuple[str, ...]]]


def opened(path: Path, fate: Fate) -> Catalog:
    return Catalog(FileStore(DyingStore(LocalStorage(path, fsync=False), fate)), policy=POLICY)


def begun(path: Path) -> None:
    """A database with a table ``t`` of one partition."""
    catalog = opened(path, Fate())
    catalog.databases.create(Database("d"))
    catalog.tables.create(TABLE)
    catalog.partitions.add("d", "t", Partition(("1",), Storage()))


STEPS: dict[str, tuple[Callable[[Catalog], object], list[Shown]]] = {
    "create": (
        lambda c: c.tables.create(OTHER),
        [{"t": (None, ("k=1",))}, {"t": (None, ("k=1",)), "u": ("1", ())}],
    ),
    "drop": (lambda c: c.tables.drop("d", "t"), [{"t": (None, ("k=1",))}, {}]),
    "rename and alter": (
        lambda c: c.tables.alter("d", "t", OTHER),
        [{"t": (None, ("k=1",))}, {"u": (None, ("k=1",))}, {"u": ("1", ("k=1",))}],
    ),
    "add partitions": (
        lambda c: c.partitions.add_all("d", "t", [Partition((v,), Storage()) for v in "234"]),
        [{"t": (None, ("k=1",))}, {"t": (None, ("k=1", "k=2", "k=3", "k=4"))}],
    ),
    "drop the database": (lambda c: c.databases.drop("d", cascade=True), [{"t": (None, ("k=1",))}, {}]),
}


def shown(catalog: Catalog) -> Shown:
    entries = [catalog.tables.get("d", name) for name in catalog.tables.names("d")]
    return {e.table.name: (e.table.parameters.get("other"), tuple(e.partitions.names())) for e in entries}


@pytest.mark.first(4)
@pytest.mark.parametrize("step", STEPS)
def test_whatever_a_call_answers_names_lead_to_whole_tables(step: str, tmp_path: Path) -> None:
    call, allowed = STEPS[step]
    counted = Fate()
    begun(tmp_path / "counted")
    call(opened(tmp_path / "counted", counted))
    points = [(at, answer) for at, (method, _) in enumerate(counted.calls) for answer in answers_of(method)]
    for number, (at, answer) in enumerate(points):
        path, fate = tmp_path / str(number), Fate(at, answer)
        begun(path)
        done = _tried(path, fate, call)
        following = fate.after(arrives_at=0)
        catalog = opened(path, following)
        found = shown(catalog)
        assert found in (allowed[-1:] if done else allowed), (step, counted.calls[at], answer)
        assert catalog.tables.orphans() == []
        for orphan in catalog.tables.orphans(older_than_s=0):
            catalog.tables.delete_orphan(orphan, older_than_s=0)
        assert (catalog.tables.orphans(older_than_s=0), shown(catalog)) == ([], found)
        if "u" not in found and "d" in catalog.databases.names():
            catalog.tables.create(OTHER)


def _tried(path: Path, fate: Fate, call: Callable[[Catalog], object]) -> bool:
    """Whether the process was told that the call is done."""
    try:
        call(opened(path, fate))
    except CatalogError:
        raise
    except (Killed, LakeError):
        return False
    return True
