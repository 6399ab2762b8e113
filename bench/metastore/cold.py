"""Time to the newest state of a log for a new process: ``python -m bench.metastore.cold``.

A log of small changes, one a version, is read from its first entry on, and then from a snapshot with 100 entries behind
it. The files of the operating system's cache are warm.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, insert
from sqlalchemy.engine import make_url

from bench.metastore.commits import FOLD, Put, Values
from bench.metastore.log_stores import Place, started_place
from hudilake.clock import monotonic_s
from hudilake.storage.local import LocalStorage
from lakemetastore.log.policy import LogPolicy
from lakemetastore.log.records import ChangeRecord, EntryRecord, frame
from lakemetastore.log.stores.sql_tables import ENTRIES, HEADS, make_tables
from lakemetastore.log.versioned import VersionedLog

KINDS = ("local", "sqlite", "lmdb", "mariadb", "postgresql")
LOG = "cold"
_TAIL = 100
_ROWS = 5000


@dataclass(frozen=True)
class Cold:
    """Seconds to the state, without and with a snapshot, and its bytes."""

    store: str
    changes: int
    without_s: float
    with_s: float
    snapshot_bytes: int


def measure(where: Place, changes: int) -> Cold:
    """Fill a log and read its state as a new process does; then again with a snapshot."""
    _fill(where, changes)
    without = _read_s(where)
    store = where.open()
    log: VersionedLog[Values, Put] = VersionedLog(store, LOG, FOLD, LogPolicy(snapshot_every=1 << 40))
    for number in range(2):
        # What the older one of two snapshots covers is forgotten.
        log.commit(lambda state, number=number: Put(f"key{number}", "changed"))  # type: ignore[misc]
        log.snapshot()
    for number in range(_TAIL):
        log.commit(lambda state, number=number: Put(f"key{number}", "changed"))  # type: ignore[misc]
    snapshot = store.snapshot(LOG)
    assert snapshot is not None
    return Cold(where.kind, changes, without, _read_s(where), len(snapshot.data))


def _text(number: int) -> str:
    """200 characters that hardly compress, as a state of paths and times."""
    return hashlib.blake2b(str(number).encode()).hexdigest() + "file:/lake/shop/orders/dt=2026-01-01/" * 2


def _entries(changes: int) -> Iterator[bytes]:
    before = b""
    for number in range(1, changes + 1):
        part = ChangeRecord(FOLD.encode(Put(f"key{number}", _text(number))))
        this = number.to_bytes(8, "big")
        yield frame(EntryRecord(this, before, b"writer", 0, (part,)))
        before = this


def _fill(where: Place, changes: int) -> None:
    """Write a log faster than by appends: what is there in the end is the same."""
    entries = enumerate(_entries(changes), start=1)
    if where.kind == "local":
        storage = LocalStorage(Path(where.uri), fsync=False)
        for version, data in entries:
            storage.create(f"{LOG}/{version:020d}.entry", data)
        return
    if where.kind == "lmdb":
        store = where.open()
        for version, data in entries:
            assert store.append(LOG, version, data)
        return
    url = make_url(where.uri.replace("mysql:", "mysql+pymysql:").replace("postgresql:", "postgresql+psycopg:"))
    engine = create_engine(url.set(password=where.options.get("password")))
    make_tables(engine)
    with engine.begin() as connection:
        rows = [{"log": LOG, "version": version, "piece": 0, "data": data} for version, data in entries]
        for first in range(0, len(rows), _ROWS):
            connection.execute(insert(ENTRIES), rows[first : first + _ROWS])
        connection.execute(insert(HEADS), {"log": LOG, "last": changes})
    engine.dispose()


def _read_s(where: Place) -> float:
    store = where.open()
    begun = monotonic_s()
    log: VersionedLog[Values, Put] = VersionedLog(store, LOG, FOLD)
    assert log.state().state.values
    took = monotonic_s() - begun
    store.close()
    return took


def main() -> None:
    """Measure and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stores", default=",".join(KINDS))
    parser.add_argument("--changes", type=int, default=100_000)
    options = parser.parse_args()
    print("| store | changes | without a snapshot (s) | with a snapshot (s) | snapshot (MB) |")
    print("| --- | --- | --- | --- | --- |")
    for kind in options.stores.split(","):
        with tempfile.TemporaryDirectory() as directory, started_place(kind, Path(directory)) as where:
            it = measure(where, options.changes)
        size = it.snapshot_bytes / 1e6
        print(f"| {kind} | {it.changes:,} | {it.without_s:.2f} | {it.with_s:.2f} | {size:.2f} |", flush=True)


if __name__ == "__main__":
    main()
