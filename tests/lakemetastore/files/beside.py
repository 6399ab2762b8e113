"""Sequences of random statements on our server, beside what a real metastore did.

``python -m tests.lakemetastore.files.beside SEEDS COUNT`` starts Hive Metastore 3.1.3, runs that many sequences of so
many statements on both and prints what differs; with ``--record`` it keeps what the real one did.
"""

from __future__ import annotations

import contextlib
import gzip
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from embedded.hive_client import hive_client
from embedded.hms import EmbeddedHiveMetastore
from hudilake.storage import open_storage
from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.server import listen
from lakemetastore.hive.table_files import TableFiles
from lakemetastore.log.stores.opening import open_store
from tests.lakemetastore.files.statements import Side, Statements, Step
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.judged.allowed import FAULTS
from tests.paths import DATA

RECORDED = DATA / "hms" / "files-3.1.3.jsonl.gz"
#: Words of our refusals where a real metastore deletes or moves what another one has, too.
_MEANT = "they belong to"


@dataclass(frozen=True)
class Compared:
    """How many statements were the same, and the first that was not; ``meant``: it was refused for another's sake."""

    same: int
    difference: str | None = None
    meant: bool = False


@contextlib.contextmanager
def our_side(place: Path, mark: str) -> Iterator[Side]:
    """Our server over a new store and warehouse in a directory."""
    store = open_store(f"memory://files{place}")
    warehouse = f"file:{place}/warehouse"
    files = TableFiles(open_storage, delete=True, roots=(warehouse,), locations=(f"file:{place}/out",))
    server = HiveServer(Catalog(store, warehouse=warehouse), store, listener=listen("127.0.0.1", 0), files=files)
    server.start()
    try:
        with hive_client(*server.address[:2]) as client:
            yield Side(client, place, mark)
    finally:
        server.stop(drain_seconds=1.0)
        store.close()


def compared(wanted: Sequence[Step], place: Path, seed: int, count: int) -> Compared:
    """Our server beside the steps of a real metastore, up to the first difference."""
    with our_side(place, mark_of(seed)) as ours:
        for done, statement in enumerate(Statements(seed, mark_of(seed)).make(count)):
            found, real = ours.step(statement), wanted[done]
            assert found.statement == real.statement, "the recorded statements are others"
            if _MEANT in (found.text or "") and real.error is None:
                return Compared(done, str(statement), meant=True)
            if not _same(found, real):
                return Compared(done, _shown(found, real))
    return Compared(len(wanted))


def mark_of(seed: int) -> str:
    """What is in all names of a sequence."""
    return f"s{seed}x"


def steps(metastore: EmbeddedHiveMetastore, seed: int, count: int) -> list[Step]:
    """What a real metastore does."""
    with hive_client(metastore.host, metastore.port) as client:
        side = Side(client, metastore.warehouse.parent, mark_of(seed))
        return [side.step(statement) for statement in Statements(seed, mark_of(seed)).make(count)]


def recorded() -> dict[int, list[Step]]:
    """The kept sequences of a real metastore by their seeds."""
    with gzip.open(RECORDED, "rb") as lines:
        return dict(msgspec.json.decode(one, type=tuple[int, list[Step]]) for one in lines)


def _same(found: Step, real: Step) -> bool:
    errors = found.error == real.error or (found.error is not None and FAULTS.search(real.text or "") is not None)
    return errors and (found.tree, found.locations) == (real.tree, real.locations)


def _shown(found: Step, real: Step) -> str:
    lines = [found.statement, f"  HMS {real.error} {real.text}", f"  ours {found.error} {found.text}"]
    lines += [f"  only HMS: {one}" for one in sorted({*real.tree} - {*found.tree})]
    lines += [f"  only ours: {one}" for one in sorted({*found.tree} - {*real.tree})]
    names = sorted(found.locations.keys() | real.locations.keys())
    pairs = ((name, real.locations.get(name), found.locations.get(name)) for name in names)
    return "\n".join([*lines, *(f"  {name}: HMS {one}, ours {other}" for name, one, other in pairs if one != other)])


def main(argv: Sequence[str]) -> None:
    """Compare, and record if told so."""
    numbers = [int(word) for word in argv if word.isdigit()]
    seeds, count = range(1, numbers[0] + 1), numbers[1]
    kept: list[tuple[int, list[Step]]] = []
    with tempfile.TemporaryDirectory(prefix="hms-") as place, EmbeddedHiveMetastore(Path(place), "3.1.3") as metastore:
        for seed in seeds:
            kept.append((seed, steps(metastore, seed, count)))
    if "--record" in argv:
        lines = b"".join(msgspec.json.encode(one) + b"\n" for one in kept)
        RECORDED.write_bytes(gzip.compress(lines, mtime=0))
    total = 0
    for seed, wanted in kept:
        with tempfile.TemporaryDirectory() as place:
            found = compared(wanted, Path(place), seed, count)
        total += found.same
        if found.difference:
            print(f"## seed {seed} after {found.same} {'(meant)' if found.meant else ''}\n{found.difference}")
    print(f"{total} statements were the same")


if __name__ == "__main__":
    main(sys.argv[1:])
