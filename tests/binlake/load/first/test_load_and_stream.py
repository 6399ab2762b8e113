"""A first load beside a source that changes, and the stream that goes on: equal to the source, whenever it is cut."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from binlake.load.first.run import LoadOptions
from embedded.mariadb import EmbeddedMariaDB
from hudilake.storage import open_storage
from tests.binlake.load.first.changing import LIMITS, ChangingTables
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed
from tests.hypothesis_profile import scaled
from tests.selection import first

pytestmark = pytest.mark.database

KINDS: dict[str, dict[str, Any]] = {
    "merge on read": {"buckets": 2},
    "copy on write": {"buckets": 2, "type": "copy_on_write"},
    "partitions": {"buckets": 2},
    "hash ring": {"buckets": 2, "index": {"type": "consistent_bucket"}},
    "record index": {"index": {"type": "record_index"}},
    "global simple": {"index": {"type": "global_simple"}},
    "bloom": {"type": "copy_on_write", "index": {"type": "bloom"}},
}


@contextlib.contextmanager
def changing(server: EmbeddedMariaDB, place: Path, database: str, kind: str, seed: int) -> Iterator[ChangingTables]:
    """Filled tables whose lake tables are of a kind; those without a key have buckets."""
    rules = KINDS[kind] | ({"partition": {"column": "region"}} if kind == "partitions" else {})
    overrides = [{"match": f"{database}.items", **rules}]
    place.mkdir(exist_ok=True)
    tables = ChangingTables(server, place, database, {"defaults": {"buckets": 2}, "overrides": overrides}, seed)
    try:
        tables.fill(40)
        tables.change(40)
        yield tables
    finally:
        tables.close()


@pytest.mark.full
@pytest.mark.parametrize("kind", first(3, KINDS))
def test_the_stream_goes_on_from_a_load(server: EmbeddedMariaDB, tmp_path: Path, database: str, kind: str) -> None:
    with changing(server, tmp_path, database, kind, 1) as tables:
        results = tables.load(changes=6)
        assert {result.state for result in results.values()} == {"loaded"}
        tables.change(30)
        tables.sent.apply()  # all events there are: those from before the load, too
        tables.check()
        assert {result.state for result in tables.load().values()} == {"there"}
        tables.change(30)
        tables.sent.apply()
        tables.check()


@pytest.mark.full
@pytest.mark.parametrize("seed", first(2, range(scaled(200, 4))))
def test_a_load_that_dies_goes_on(server: EmbeddedMariaDB, tmp_path: Path, database: str, seed: int) -> None:
    draw = random.Random(seed)
    with changing(server, tmp_path, database, draw.choice(list(KINDS)), seed) as tables:
        config, deaths = tables.sent.settings(), 0
        for most in (150, 300, 500, 500):
            fate = Fate(draw.randrange(most), draw.choice([Answer.DONE, Answer.LOST]))
            root = DyingStore(open_storage(config.lake.uri, config.lake.storage_options()), fate)
            try:
                tables.load(changes=2, root=root)
            except Killed:
                deaths += 1
            fate.settle()
            tables.change(5)
        assert deaths
        tables.load(changes=2)
        tables.sent.apply()
        tables.check()


def test_chunks_that_were_committed_are_not_read_again(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    with changing(server, tmp_path, database, "merge on read", 3) as tables:
        count, stop = len(tables.rows["items"]), _StopAfter(2)
        begun = tables.load("items", stop=stop)["items"]
        assert begun.state == "stopped"
        assert 0 < begun.rows < count
        second = tables.load("items")["items"]
        assert (second.state, second.before) == ("loaded", begun.rows)
        assert begun.rows + second.rows == count
        tables.load()
        tables.sent.apply()
        tables.check()


class _StopAfter:
    """An event that is set once it was asked so often."""

    def __init__(self, times: int) -> None:
        self._left = times

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0


@pytest.mark.full
def test_a_server_that_grants_no_lock(server: EmbeddedMariaDB, tmp_path: Path, database: str) -> None:
    """Each session then stands at a position of its own."""
    with changing(server, tmp_path, database, "partitions", 4) as tables:
        limits = LIMITS.model_copy(update={"connections": 3})
        server.execute("REVOKE RELOAD ON *.* FROM 'verifier'@'%'")
        try:
            tables.load(changes=3, options=LoadOptions(connector_check=False, limits=limits))
        finally:
            server.execute("GRANT RELOAD ON *.* TO 'verifier'@'%'")
        tables.change(20)
        tables.sent.apply()
        tables.check()
