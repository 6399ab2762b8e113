"""The ledger of requests: ``python -m bench.requests [--products binlake,hudi,delta,paimon]``.

Each product makes a table of a server of its own, and commits batches of the benchmark's events. Of each later commit
the requests are counted by kind, and how many of them were in series. The medians of the commits are printed as a table
and written to ``bench/results/requests.json``, with every request of the last commit.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Protocol

from bench.events import events
from bench.requests.proxy import Request, RequestLog, depths, kinds, proxy
from bench.requests.seaweed import Seaweed
from bench.requests.store import Store

PRODUCTS = ("binlake", "hudi", "hudi-no-metadata", "delta", "paimon")
BUCKETS, LOADED, CHANGES = 2, 10_000, 2_000
_COLUMNS = ("put", "create", "get", "head", "list", "copy", "delete", "upload")
_RESULTS = Path(__file__).resolve().parents[1] / "results" / "requests.json"


class Writer(Protocol):
    """A product's writer of one table."""

    version: str

    def write(self, events: Sequence[tuple[bytes, bytes]]) -> None:
        """Commit one batch."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


@dataclass(frozen=True)
class Commit:
    """The requests of one commit: how many by kind, how many in series, and in series up to that which makes it
    visible (0 where the product does not tell which that is)."""

    kinds: dict[str, int]
    series: int
    visible: int

    @classmethod
    def of(cls, requests: Sequence[Request]) -> Commit:
        """Count requests, given by their begin."""
        chain = depths(requests)
        shown = [depth for depth, one in zip(chain, requests, strict=True) if _shows(one)]
        return cls(kinds(requests), max(chain, default=0), max(shown, default=0))


#: What makes a commit visible: the completed file of a timeline, a version of a log, a snapshot.
_VISIBLE = re.compile(
    r"(?<!metadata)/\.hoodie/timeline/\d+_\d+\.deltacommit$|/_delta_log/\d+\.json$|/snapshot/snapshot-\d+$"
)


def _shows(request: Request) -> bool:
    return request.kind in ("put", "create", "copy") and bool(_VISIBLE.search(request.path.partition("?")[0]))


def main(argv: Sequence[str] | None = None) -> None:
    """Count, print and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--products", default=",".join(PRODUCTS), help="separated by commas")
    parser.add_argument("--commits", type=int, default=5, help="counted, after one that loads the table and one more")
    parser.add_argument("--delay-ms", type=float, default=30, help="added to each request")
    given = parser.parse_args(argv)
    chosen = given.products.split(",")
    if unknown := [name for name in chosen if name not in PRODUCTS]:
        parser.error(f"no product {', '.join(unknown)}: choose from {', '.join(PRODUCTS)}")
    held = json.loads(_RESULTS.read_text()) if _RESULTS.exists() else {}
    print(f"| product | {' | '.join(_COLUMNS)} | all | in series | until visible |")
    print(f"| --- |{' ---: |' * (len(_COLUMNS) + 3)}")
    for name in chosen:
        held[name] = counted(name, given.commits, given.delay_ms / 1000)
        print(line(name, held[name]["medians"]), flush=True)
    _RESULTS.parent.mkdir(exist_ok=True)
    _RESULTS.write_text(json.dumps(held, indent=1) + "\n")


def counted(name: str, commits: int, delay_s: float) -> dict[str, object]:
    """The counts of one product: its version, the medians, each commit, and the requests of the last one."""
    with tempfile.TemporaryDirectory() as place, Seaweed(Path(place)) as server, proxy(server.port, delay_s) as seen:
        port, log = seen
        held = list(_commits(name, Store(port), log, commits))
    version, last = held[-1]
    each, chain = [Commit.of(requests) for _, requests in held], depths(last)
    return {
        "version": version,
        "medians": medians(each),
        "commits": [asdict(one) for one in each],
        "last": [f"{depth} {one.kind} {one.path}" for depth, one in zip(chain, last, strict=True)],
    }


def _commits(name: str, store: Store, log: RequestLog, commits: int) -> Iterator[tuple[str, list[Request]]]:
    feed = events(1 << 30, keys=LOADED)
    writer = open_writer(name, store)
    try:
        for size in (LOADED, CHANGES):
            writer.write(list(islice(feed, size)))
        for _ in range(commits):
            log.take()
            writer.write(list(islice(feed, CHANGES)))
            yield writer.version, log.take()
    finally:
        writer.close()


def open_writer(name: str, store: Store) -> Writer:
    """The writer of a product."""
    if name == "binlake":
        from bench.requests.ours import OurWriter

        return OurWriter(store, BUCKETS)
    from bench.requests.peers import PeerWriter

    return PeerWriter(name, store, BUCKETS)


def medians(commits: Sequence[Commit]) -> dict[str, float]:
    """The median of each count."""
    found = {kind: median([one.kinds.get(kind, 0) for one in commits]) for kind in _COLUMNS}
    found["other"] = median([sum(n for kind, n in one.kinds.items() if kind not in _COLUMNS) for one in commits])
    found["all"] = median([sum(one.kinds.values()) for one in commits])
    return found | {
        "series": median([one.series for one in commits]),
        "visible": median([one.visible for one in commits]),
    }


def line(name: str, middle: object) -> str:
    """A line of the table."""
    values = middle if isinstance(middle, dict) else {}
    shown = [f"{values[kind]:g}" for kind in (*_COLUMNS, "all", "series")]
    visible = f"{values['visible']:g}" if values["visible"] else "not told"
    return f"| {name} | {' | '.join(shown)} | {visible} |"


if __name__ == "__main__":
    main()
