"""What backfills make of a table, by hudi-rs."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq
import pytest

from hudilake.errors import BadInputError, ConfigError, UnsupportedError
from tests.binlake.load.backfill.lake_with_rows import (
    BATCHES,
    LIVE,
    backfilled,
    fed,
    rows_of,
    scores,
    with_scores,
    written,
)
from tests.binlake.stream.topic_log import event
from tests.selection import first

BEHIND = {"id": 2, "owner": "late", "balance": "AfQ=", "region": "eu"}


def parquet(path: Path, rows: pa.Table) -> str:
    return written(path / "in.parquet", rows)


def parquet_glob(path: Path, rows: pa.Table) -> str:
    for at in range(0, rows.num_rows, 3):
        written(path / f"in-{at}.parquet", rows.slice(at, 3))
    return f"{path}/in-*.parquet"


def csv(path: Path, rows: pa.Table) -> str:
    pcsv.write_csv(rows, path / "in.csv")
    return str(path / "in.csv")


def csv_gz(path: Path, rows: pa.Table) -> str:
    (path / "in.csv.gz").write_bytes(gzip.compress(Path(csv(path, rows)).read_bytes()))
    return str(path / "in.csv.gz")


def csv_glob(path: Path, rows: pa.Table) -> str:
    for at in range(0, rows.num_rows, 3):
        pcsv.write_csv(rows.slice(at, 3), path / f"part-{at}.csv")
    return f"{path}/part-*.csv"


def feather(path: Path, rows: pa.Table) -> str:
    with pa.OSFile(str(path / "in.feather"), "wb") as sink, pa.ipc.new_file(sink, rows.schema) as file:
        file.write_table(rows, max_chunksize=2)
    return str(path / "in.feather")


def arrow_stream(path: Path, rows: pa.Table) -> str:
    with pa.OSFile(str(path / "in.arrow"), "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as file:
        file.write_table(rows, max_chunksize=2)
    return str(path / "in.arrow")


def query(path: Path, rows: pa.Table) -> str:
    written(path / "half.parquet", rows.set_column(1, "score", pa.array([n / 2 for n in rows["score"].to_pylist()])))
    return f"SELECT id, score * 2 AS score, label FROM '{path}/half.parquet'"


KINDS = (parquet, parquet_glob, csv, csv_gz, csv_glob, feather, arrow_stream, query)


@pytest.mark.first(2)
@pytest.mark.parametrize("made", first(4, KINDS), ids=lambda made: made.__name__)
def test_a_new_column_is_filled_from_any_input(tmp_path: Path, made: Callable[[Path, pa.Table], str]) -> None:
    lake, source = fed(tmp_path), made(tmp_path, scores())
    report = backfilled(lake, source, ("score", "label"))
    assert (report.counts.read, report.counts.changed, report.counts.missing) == (8, 4, 4)
    assert (report.portions, report.group) == (3, "backfill")
    assert rows_of(lake, "score", "label", "owner") == {n: (n * 1.5, f"l{n}", "o4") for n in LIVE}
    commits = lake.commits()
    assert backfilled(lake, source, ("score", "label")).held
    assert lake.commits() == commits


def test_the_stream_goes_on_and_keeps_the_column(tmp_path: Path) -> None:
    """In the same process, which finds the changed properties at its next commit, and in another one."""
    lake = fed(tmp_path)
    backfilled(lake, written(tmp_path / "in.parquet", scores()))
    lake.feed(1, ("a",))
    expected = {0: (0.0,), 3: (4.5,), 4: (6.0,), 5: (None,)}  # the sixth batch deletes 2 and brings 5; 1 comes again
    assert rows_of(lake, "score") == {**expected, 1: (None,)}
    lake.start()
    lake.feed(1, ("a",))
    assert {key: row for key, row in rows_of(lake, "owner", "score").items() if key in (0, 4)} == {
        0: ("o6", 0.0),
        4: ("o6", 6.0),
    }


def test_a_late_event_of_the_stream_changes_nothing(tmp_path: Path) -> None:
    """The row's own order is hidden by the backfill, and is kept as the order of the first group."""
    lake = fed(tmp_path)
    backfilled(lake, written(tmp_path / "in.parquet", scores()))
    lake.log.add("s.shop.a", event("a", "u", 1, BEHIND), {"id": 2})
    lake.runner.run(BATCHES, lake.log.end(), 0, lake.engine)
    assert rows_of(lake, "owner", "score")[2] == ("o4", 3.0)


def test_a_column_of_the_stream_keeps_newer_values(tmp_path: Path) -> None:
    lake = fed(tmp_path)
    rows = pa.table({"id": list(range(5)), "owner": [f"b{n}" for n in range(5)]})
    behind = backfilled(lake, written(tmp_path / "in.parquet", rows), ("owner",))
    assert (behind.counts.older, behind.counts.changed, behind.group) == (4, 0, "main")
    assert rows_of(lake, "owner") == dict.fromkeys(LIVE, ("o4",))
    orders = rows_of(lake, "_binlake_order", "_binlake_order_main")
    before = {key: max(filter(None, both)) for key, both in orders.items()}
    between = backfilled(lake, str(tmp_path / "in.parquet"), ("owner",), order=before[3])
    assert (between.counts.older, between.counts.changed) == (1, 3)
    assert rows_of(lake, "owner", "region") == {n: (f"b{n}" if n < 4 else "o4", "eu") for n in LIVE}
    lake.log.add("s.shop.a", event("a", "u", 1, BEHIND), {"id": 2})  # older than the row, if newer than nothing
    lake.runner.run(BATCHES, lake.log.end(), 0, lake.engine)
    assert rows_of(lake, "owner")[2] == ("b2",)
    lake.batches += 1
    lake.feed(1, ("a",))
    assert rows_of(lake, "owner")[2] == ("o6",)


def test_a_second_backfill_of_the_same_column_replaces_the_first(tmp_path: Path) -> None:
    lake = fed(tmp_path)
    backfilled(lake, written(tmp_path / "one.parquet", scores(factor=1.5)))
    second = backfilled(lake, written(tmp_path / "two.parquet", scores(3, factor=10.0)))
    assert second.group == "backfill"
    assert rows_of(lake, "score") == {**with_scores(), 0: (0.0,), 2: (20.0,)}
    older = backfilled(lake, written(tmp_path / "three.parquet", scores(factor=2.0)), order=7)
    assert older.counts.changed == 4
    behind = backfilled(lake, written(tmp_path / "four.parquet", scores(factor=9.0)), order=6)
    assert (behind.counts.older, behind.counts.changed) == (4, 0)
    assert rows_of(lake, "score") == with_scores(factor=2.0)


def test_further_columns_get_a_group_of_their_own(tmp_path: Path) -> None:
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    assert backfilled(lake, source, order=5).group == "backfill"
    assert backfilled(lake, source, ("label",)).group == "backfill_2"
    assert rows_of(lake, "score", "label") == {n: (n * 1.5, f"l{n}") for n in LIVE}
    groups = lake.table().config.merging.groups
    assert [(g.name, g.columns) for g in groups] == [
        ("main", None),
        ("backfill", ("score",)),
        ("backfill_2", ("label",)),
    ]


def test_rows_without_a_key_in_the_table(tmp_path: Path) -> None:
    """Key 1 was deleted by the stream: only the stream brings it back."""
    lake, source = fed(tmp_path), written(tmp_path / "in.parquet", scores())
    assert backfilled(lake, source).counts.missing == 4
    report = backfilled(lake, source, insert=True)
    assert (report.counts.inserted, report.counts.missing, report.counts.changed) == (3, 1, 4)
    assert rows_of(lake, "score") == {n: (n * 1.5,) for n in (*LIVE, 5, 6, 7)}
    lake.feed(1, ("a",))  # brings 1 again, and 5, and deletes 2
    assert rows_of(lake, "score", "owner") == {
        n: (None if n == 1 else n * 1.5, "o5" if n < 6 else None) for n in (0, 1, 3, 4, 5, 6, 7)
    }


def test_conditions_repeated_keys_and_missing_keys(tmp_path: Path) -> None:
    lake = fed(tmp_path)
    ids = [0, 2, 2, None, 3, 4, 2]
    rows = pa.table({"k": ids, "score": [float(n) for n in range(7)], "kind": list("aaaabba")})
    source = written(tmp_path / "in.parquet", rows)
    counts = backfilled(lake, source, key=("k",), where="kind = 'a' AND score < 100").counts
    assert (counts.read, counts.filtered, counts.without_key, counts.changed) == (7, 2, 1, 3)
    assert counts.repeated == 1  # in one portion; the last row of 2 is in the third
    assert rows_of(lake, "score") == {0: (0.0,), 2: (6.0,), 3: (None,), 4: (None,)}


@pytest.mark.first(6)
@pytest.mark.parametrize(
    ("columns", "more", "error", "text"),
    [
        (("nothing",), {}, ConfigError, "no column 'nothing'"),
        (("id",), {}, ConfigError, "belongs to the record key"),
        (("score", "owner"), {}, ConfigError, "several orders"),
        (("SCORE",), {}, ConfigError, "no column 'SCORE'"),
        (("Owner",), {}, ConfigError, "the table has the column 'owner'"),
        (("_binlake_x",), {}, ConfigError, "keeps for itself"),
        (("list",), {}, UnsupportedError, "which a lake table cannot hold"),
        (("score",), {"where": "random() < 1"}, ConfigError, "does not give the same answer"),
        (("score",), {"where": "1 = 1"}, ConfigError, "names no column"),
        (("score",), {"where": "score IN (SELECT 1)"}, ConfigError, "over the columns of one row"),
        (("score",), {"where": "score > length(read_text('/etc/hosts'))"}, ConfigError, "where: .* cannot be eval"),
        (("score",), {"key": ("id", "score")}, ConfigError, "the table's key has 1 column"),
        (("balance",), {}, BadInputError, "cannot hold"),
        (("score",), {"where": "CAST(owner AS INTEGER) > 1"}, BadInputError, "cannot be evaluated for 3 rows"),
    ],
)
def test_what_is_refused(tmp_path: Path, columns: tuple[str, ...], more: dict, error: type, text: str) -> None:  # type: ignore[type-arg]
    lake = fed(tmp_path)
    rows = scores().append_column("owner", pa.array(["x"] * 8)).append_column("list", pa.array([[1]] * 8))
    rows = rows.append_column("Owner", rows["owner"]).append_column("_binlake_x", rows["id"])
    rows = rows.append_column("balance", pa.array(["many"] * 8))
    before = lake.commits()
    with pytest.raises(error, match=text):
        backfilled(lake, written(tmp_path / "in.parquet", rows), columns, **more)
    assert lake.commits() == before


def test_a_row_that_names_the_key_of_another_is_refused(tmp_path: Path) -> None:
    lake = fed(tmp_path, {"key": ["owner", "id"]})
    rows = scores().append_column("owner", pa.array(["x"] * 7 + ["__empty__"]))
    before = lake.commits()
    with pytest.raises(BadInputError, match=r"other values have the same record key \(1 row\).*owner:__empty__,id:7"):
        backfilled(lake, written(tmp_path / "in.parquet", rows), portion_rows=100)
    assert lake.commits() == before
    others = backfilled(lake, f"{tmp_path}/in.parquet", where="owner <> '__empty__'")
    assert (others.counts.read, others.counts.filtered) == (8, 1)


def test_values_get_the_types_of_the_lake(tmp_path: Path) -> None:
    lake = fed(tmp_path)
    numbers = pa.array([1, 2])
    rows = pa.table({"id": pa.array(["0", "2"]), "i8": numbers.cast(pa.int8()), "u32": numbers.cast(pa.uint32())})
    rows = rows.append_column("big", numbers.cast(pa.string()).cast(pa.large_string()))
    rows = rows.append_column("dict", pa.array(["1", "2"]).dictionary_encode())
    rows = rows.append_column("at", pa.array([0, 1], pa.timestamp("ns")))
    pq.write_table(rows.slice(0, 1), tmp_path / "in.parquet")
    backfilled(lake, str(tmp_path / "in.parquet"), ("i8", "u32", "big", "dict", "at"))
    schema = lake.table().schema
    kinds = {name: schema.field(name).type for name in ("i8", "u32", "big", "dict", "at")}
    assert kinds == {
        "i8": pa.int32(),
        "u32": pa.int64(),
        "big": pa.string(),
        "dict": pa.string(),
        "at": pa.timestamp("us", tz="UTC"),
    }
    assert rows_of(lake, "i8", "u32", "big", "dict")[0] == (1, 1, "1", "1")


def test_a_partitioned_table(tmp_path: Path) -> None:
    lake = fed(tmp_path, {"partition": {"column": "region"}})
    with pytest.raises(ConfigError, match="partitioned by 'region'"):
        backfilled(lake, written(tmp_path / "in.parquet", scores()))
    rows = scores().append_column("region", pa.array(["eu"] * 4 + ["us"] * 4))
    source = written(tmp_path / "in.parquet", rows)
    with pytest.raises(UnsupportedError, match="would be there twice"):
        backfilled(lake, source, insert=True)
    report = backfilled(lake, source)
    assert (report.counts.changed, report.counts.missing) == (3, 5)
    assert rows_of(lake, "score", "region") == {n: (n * 1.5 if n < 4 else None, "eu") for n in LIVE}
