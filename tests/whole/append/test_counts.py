"""Queries that count rows: answered by the metadata table, and right with and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.query.sql import plan_sql, run_sql
from hudilake.read import TableReader
from hudilake.storage import open_storage
from tests.binlake.stream.dying_store import DyingStore, Fate
from tests.binlake.stream.test_exactly_once import row, runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, event, settings
from tests.whole.append.test_append_stream import append_settings, insert

_REGIONS = ("eu", "us", "asia")
#: SQL, and how many file slices it must still read of the append table.
QUERIES = {
    "SELECT count(*) FROM t": 0,
    "SELECT count(*) AS n, min(region), max(region) FROM t": 0,
    "SELECT region, count(*) AS n FROM t GROUP BY region ORDER BY n, region": 0,
    "SELECT count(*) FROM t WHERE region = 'eu'": 0,
    "SELECT count(*) FROM t x WHERE x.id >= 0 AND x.region <> 'eu'": 0,
    "SELECT count(*) FROM t WHERE owner = 'a' AND id IS NOT NULL": 0,
    "SELECT count(*) FROM t WHERE id < 31": 3,
    "SELECT count(*) FROM t WHERE id < 31 AND region = 'asia'": 1,
    "SELECT count(*) FROM t WHERE id % 2 = 0": 3,
    "SELECT count(id) FROM t": 3,
    "SELECT count(DISTINCT owner) FROM t": 3,
    "SELECT (SELECT count(*) FROM t WHERE id = 3) AS n": 3,
    "SELECT region FROM t WHERE id >= 0 LIMIT 200": 0,
    "SELECT count(*) FROM t WHERE false": 0,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three batches of 20 rows in three partitions: base files and log files."""
    place = tmp_path_factory.mktemp("lake")
    log, stream = TopicLog(), runner(append_settings(place, partition={"column": "region"}), open_storage(str(place)))
    for batch in range(3):
        for n in range(batch * 20, batch * 20 + 20):
            insert(log, n, _REGIONS[n % 3])
        stream.run(batch, log.end(), 0, LocalEngine(log))
    return place / "shop" / "logs"


def answer(reader: TableReader, sql: str) -> tuple[list[tuple[object, ...]], int]:
    """The rows of a query, and how many file slices it reads."""
    query = plan_sql(sql, {"t": reader})
    with run_sql(query) as result:
        rows = [tuple(r.values()) for r in result.read_all().to_pylist()]
    return rows if "ORDER" in sql else sorted(rows), len(query.plan.slices)


@pytest.mark.first(3)
@pytest.mark.parametrize("sql", QUERIES)
def test_queries_give_what_reading_gives(lake: Path, sql: str) -> None:
    rows, read = answer(TableReader.open(str(lake)), sql)
    assert rows == answer(TableReader.open(str(lake), use_index=False), sql)[0]
    assert read == QUERIES[sql]


def test_no_data_file_is_opened(lake: Path) -> None:
    fate = Fate()
    reader = TableReader.open(DyingStore(open_storage(str(lake)), fate))
    assert reader.count() == 60
    assert reader.count(condition="region = 'us' and id >= 0") == 20
    assert answer(reader, "SELECT count(*) FROM t WHERE id < 1000")[0] == [(60,)]
    opened = [path for method, path in fate.calls if method in ("read", "read_range") and "region=" in path]
    assert opened == []
    assert reader.count(condition="id < 31 and region = 'eu'") == 11  # one slice holds both
    opened = [path for method, path in fate.calls if method in ("read", "read_range") and "region=" in path]
    assert opened
    assert all(path.startswith("region=eu/") for path in opened)


def test_tables_with_keys_count_base_files_without_logs(tmp_path: Path) -> None:
    for kind, read in (("copy_on_write", 0), ("merge_on_read", 1)):
        place = tmp_path / kind
        rules = {"type": kind, "buckets": 1, "compaction": {"mode": "off"}}
        config = settings(str(place), ["logs"], tables={"defaults": rules})
        log, stream = TopicLog(), runner(config, open_storage(str(place)))
        for batch in range(2):
            for n in range(5 + batch):
                insert(log, n, op="c")
            log.add("s.shop.logs", event("logs", "d", 900 + batch, row(0)), {"id": 0})
            stream.run(batch, log.end(), 0, LocalEngine(log))
        reader = TableReader.open(str(place / "shop" / "logs"))
        whole = TableReader.open(str(place / "shop" / "logs"), use_index=False)
        assert answer(reader, "SELECT count(*) FROM t") == (answer(whole, "SELECT count(*) FROM t")[0], read)
        assert reader.count() == whole.count() > 0
