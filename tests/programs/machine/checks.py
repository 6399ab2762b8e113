"""What must hold of the lake: every reader shows the model's rows, now and as of every promised instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from binlake.tables.audit import OFFSET_KEYS, audit
from hudilake import clock
from hudilake.read import Snapshot, TableReader
from hudilake.services.fsck import Severity, fsck
from hudilake.storage import Storage
from hudilake.table.table import HudiTable
from tests.judges import hudi_rs
from tests.programs.machine.pasts import Lake, Rows
from tests.programs.machine.world import World


def check_lake(world: World) -> None:
    """All tables and the quarantine. Raises AssertionError."""
    for name, lake in world.lakes.items():
        if (world.uri(name) / ".hoodie" / "hoodie.properties").exists():
            _check_table(world, name, lake)
        else:
            assert not lake.rows(), f"{name} does not exist"
    assert _quarantined(world) == world.poisoned


def check_restored(world: World, name: str, instant: str) -> None:
    """A table that was restored shows the rows of that time."""
    found = TableReader.open(_storage(world, name)).read().read_all().to_pylist()
    _same(f"{name}, restored to {instant}", found, world.lakes[name].pasts[instant])


def _storage(world: World, name: str) -> Storage:
    return world.root().sub(f"shop/{name}")


def _check_table(world: World, name: str, lake: Lake) -> None:
    storage, uri, rows = _storage(world, name), world.uri(name), lake.rows()
    table = HudiTable.open(storage)
    last = table.timeline.last_completed()
    if last is not None:
        lake.note(last.requested_time)
    lake.forget(_promised(world, table))
    for use_index in (True, False):
        found = TableReader.open(storage, use_index=use_index).read().read_all()
        _same(f"{name} by binlake, index {use_index}", found.to_pylist(), rows)
    _same(f"{name} by hudi-rs", hudi_rs.snapshot(uri).to_pylist(), rows)
    for instant, past in lake.pasts.items():
        then = TableReader.open(storage).read(Snapshot(instant)).read_all()
        _same(f"{name} by binlake as of {instant}", then.to_pylist(), past)
        if instant not in lake.other_types:
            _same(f"{name} by hudi-rs as of {instant}", hudi_rs.as_of(uri, instant).to_pylist(), past)
    findings = [f for f in fsck(storage, OFFSET_KEYS, grace_ms=0).findings if f.severity is Severity.ERROR]
    assert findings == [], name
    assert audit(storage).errors == [], name


def _promised(world: World, table: HudiTable) -> set[str]:
    """The instants that the retention promises now; an hour less ten seconds, for the time that a test takes."""
    writes = [write.requested_time for write in table.timeline.completed()]
    if world.plan.hours:
        since = clock.format_instant(clock.now_ms() - 3_590_000)
        return {write for write in writes if write >= since} | set(writes[-1:])
    return set(writes[-3:])


def _quarantined(world: World) -> int:
    uri = world.place / "_quarantine" / "shop"
    if not uri.exists():
        return 0
    return sum(row["value"] == b"{broken" for row in hudi_rs.snapshot(uri).to_pylist())


def _same(who: str, found: Iterable[Mapping[str, Any]], wanted: Rows) -> None:
    """Compares in the columns of the wanted rows."""
    columns = list(next(iter(wanted.values()), {}))
    shown = sorted(([row.get(n) for n in columns] for row in found), key=str)
    listed = sorted(([row[n] for n in columns] for row in wanted.values()), key=str)
    assert shown == listed, who
