"""Our server for the comparison, and ``python -m tests.lakemetastore.judged.ours``: what differs from recorded answers.

Names of scripts after it choose; ``--all`` prints the allowed differences, too.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lakemetastore.catalog.catalog import Catalog
from lakemetastore.hive.server import listen
from lakemetastore.log.stores.opening import open_store
from tests.lakemetastore.hive.hive_server import HiveServer
from tests.lakemetastore.judged.beside import Difference, difference
from tests.lakemetastore.judged.calls import outcomes
from tests.lakemetastore.judged.normal import Normal
from tests.lakemetastore.judged.recorded import PLACE, Recorded, read


@dataclass(frozen=True, slots=True)
class Ours:
    """A running server of ours. ``warehouse``: its directory."""

    host: str
    port: int
    warehouse: str


@contextlib.contextmanager
def our_server(place: Path) -> Iterator[Ours]:
    """A server over files in ``place``, for the length of the block."""
    store, warehouse = open_store(str(place / "store")), f"{place}/warehouse"
    server = HiveServer(Catalog(store, warehouse=f"file:{warehouse}"), store, listener=listen("127.0.0.1", 0))
    server.start()
    try:
        yield Ours(*server.address[:2], warehouse)
    finally:
        server.stop()


def differences(ours: Ours, recorded: Sequence[Recorded]) -> list[Difference]:
    """What our server answers otherwise than a real one, allowed or not."""
    normal = Normal(ours.warehouse)
    came = outcomes(ours.host, ours.port, [one.made for one in recorded])
    pairs = zip(recorded, came, strict=True)
    found = (difference(one.made, one.came, normal.outcome(answer)) for one, answer in pairs)
    return [one for one in found if one]


def main(argv: Sequence[str]) -> None:
    """Print what differs."""
    wanted = [word for word in argv if not word.startswith("-")]
    for path in sorted(PLACE.rglob("*.jsonl.gz")):
        if wanted and path.name.partition(".")[0] not in wanted:
            continue
        with tempfile.TemporaryDirectory() as place, our_server(Path(place)) as ours:
            recorded = read(path)
            found = differences(ours, recorded)
        rules = Counter(one.allowed.name if one.allowed else "not allowed" for one in found)
        print(f"## {path.parent.name} {path.name}: of {len(recorded)} calls differ {dict(rules)}")
        for one in found:
            if not one.allowed or "--all" in argv:
                print(one)


if __name__ == "__main__":
    main(sys.argv[1:])
