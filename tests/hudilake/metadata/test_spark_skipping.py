"""Hudi Spark 1.2.0 skips files by our index: never a row is lost by it, and files are spared."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from hudilake.metadata.initialise import drop
from hudilake.metadata.records.delta import AddedFile, MetadataDelta
from hudilake.table.table import HudiTable
from tests.hudilake.metadata.indexed_table import ORDER, IndexedTable, arrow_schema
from tests.hudilake.metadata.random_table import COLUMNS, CONFIG, REGIONS, random_predicate, random_table, small_table
from tests.hudilake.metadata.spark_index import SparkIndex, files_opened, files_read, frame
from tests.hypothesis_profile import is_nightly, scaled, usually
from tests.paths import GOLDEN

pytestmark = [pytest.mark.spark, pytest.mark.judge]

PREDICATES = (
    "s = 'a'",
    "s = ''",
    "s = '😀'",
    "s >= '\ufffd'",
    "s < 'a'",
    "s > 'é'",
    "s in ('abc', 'Z')",
    "s <> 'a'",
    "s is null",
    "s is not null",
    "not (s = 'a' or s = 'b')",
    "s not in ('a', 'b')",
    "s like '%b'",
    "long >= 'cc'",
    "long < 'ab'",
    "dec = 1.00",
    "dec < -5",
    "dec > 900",
    "big = 10000000000000000000000000000000000000",
    "big < -200",
    "big = 255",
    "big > 256",
    "ts > timestamp'2026-01-01 00:00:00Z'",
    "ts < timestamp'1995-01-01 00:00:00Z'",
    "day = date'2025-12-30'",
    "day < date'1950-01-01'",
    "flag",
    "not flag",
    "flag is null",
    "f = 0",
    "f > 100",
    "f < -1",
    "f >= 9.5",
    "f <= 0",
    "f <> 0",
    "f = 3.5",
    "f4 = 0",
    "f4 > 8",
    "f4 < 0.2 and f4 > 0.05",
    "i = 35",
    "i > 100",
    "i < 0",
    "i between 40 and 50",
    "id > 55",
    "id in (5, 6, 7)",
    "_hoodie_record_key = '12'",
    "_hoodie_commit_time > '2'",
    "region = 'eu' and i < 30",
    "i < 30 or s = 'abc'",
    "coalesce(i, 0) = 0",
    "i + 1 = 36",
    "bin is null",
    "bin = X'0505'",
    "s = 'a' and dec is null",
    "dec is null and f is null",
)


def _spared(spark: SparkSession, path: Path, predicates: Iterable[str]) -> int:
    """Check every predicate with skipping against Spark's own answer over a plain copy; how many files were spared."""
    asked = list(predicates)
    whole = frame(spark, path, skipping=False)
    all_rows = whole.collect()
    rows = {row["id"]: str(row) for row in all_rows}
    verdicts = spark.createDataFrame(all_rows, whole.schema).selectExpr(
        "id", *(f"({predicate}) as p{number}" for number, predicate in enumerate(asked))
    )
    answers = [{**row.asDict()} for row in verdicts.collect()]
    skipping = frame(spark, path, skipping=True)
    everything = files_read(skipping)
    spared = 0
    for number, predicate in enumerate(asked):
        found = skipping.where(predicate)
        expected = sorted(rows[answer["id"]] for answer in answers if answer[f"p{number}"])
        assert sorted(map(str, found.collect())) == expected, predicate
        spared += everything - files_opened(found)
    return spared


@pytest.mark.full
@pytest.mark.parametrize(("part", "seed"), usually([("region", 1)], [("region", 1), (None, 3)]))
def test_skipping_loses_no_row(spark: SparkSession, tmp_path: Path, part: str | None, seed: int) -> None:
    """A long history under many predicates: the rows of a plain copy of the table, and fewer files for some."""
    table = random_table(tmp_path / "t", part, seed)
    keys = [f"id = {number}" for number in range(0, 60, 10 if is_nightly() else 30)]
    some = PREDICATES[seed :: (4 if part else 1) if is_nightly() else 6]
    assert _spared(spark, table.path, [*some, *keys]) > 0


@pytest.mark.full
def test_random_predicates(spark: SparkSession, tmp_path: Path) -> None:
    """Random rows, random predicates: the same rows with and without skipping."""
    spared = 0
    for seed in range(scaled(4, least=1)):
        chance = random.Random(seed)
        table = small_table(tmp_path / str(seed), ("region", None)[seed % 2], chance)
        rows = list(table.rows().values())
        spared += _spared(spark, table.path, dict.fromkeys(random_predicate(rows, chance) for _ in range(12)))
    assert spared > 0


def test_a_bound_too_tight_is_seen(spark: SparkSession, tmp_path: Path) -> None:
    """The control: statistics that deny one value lose its rows, so Hudi does skip by ours, and we would see it."""
    table = IndexedTable(tmp_path / "t", arrow_schema({"i": pa.int32()}), buckets=1, config=CONFIG)
    instant, results, delta = table.begin_write([{"id": n, ORDER: 1, "i": n} for n in range(10)])
    table.metadata.apply(instant, _lying(delta, "i", 8))
    table.table.commit(instant, results)
    assert _spared(spark, table.path, ["i = 8"]) == 0
    with pytest.raises(AssertionError, match="i = 9"):
        _spared(spark, table.path, ["i = 9"])


def _lying(delta: MetadataDelta, column: str, highest: int) -> MetadataDelta:
    """The delta with a maximum of a column that is not the truth."""

    def changed(file: AddedFile) -> AddedFile:
        ranges = ((r, r.column == column and r.max is not None) for r in file.ranges or ())
        return replace(file, ranges=tuple(replace(r, max=highest) if wanted else r for r, wanted in ranges))

    return MetadataDelta(tuple(map(changed, delta.added)))


@pytest.mark.full
def test_awkward_values(spark: SparkSession, tmp_path: Path) -> None:
    """A file of nulls only, one of -0.0 only, one with NaN (its column leaves the index from then on)."""
    columns = {"f": pa.float64(), "f4": pa.float32(), "s": pa.string(), "i": pa.int32(), "region": pa.string()}
    table = IndexedTable(tmp_path / "t", arrow_schema(columns), part="region", buckets=1, config=CONFIG)
    files: list[dict[str, Any]] = [{"f": -0.0, "f4": -0.0, "s": "", "i": 0}, {"f": 0.0, "f4": 0.0, "i": 1}, {}]
    for n, (region, values) in enumerate(zip(REGIONS, files, strict=True)):
        table.write([{"id": 10 * n + i, ORDER: 1, "region": region, **values} for i in range(3)])
    asked = [f"{c} {op}" for c in ("f", "f4") for op in ("= -0.0", "< 0", "> 0", "is null", "<> 0")]
    asked += usually(["f = 0", "f4 <= 0"], [f"{c} {op}" for c in ("f", "f4") for op in ("= 0", "<= 0")])
    asked += ["s is null", "s is not null", "s = ''", "i is null", "i is not null", "i <=> null", "not (i = 0)"]
    assert _spared(spark, table.path, asked) > 0
    nan = float("nan")
    table.write([{"id": 2, ORDER: 2, "region": "ap", "f": nan, "f4": 5.0}])
    assert "f" not in table.metadata.columns
    asked = [f"f {op}" for op in ("> 1", ">= 1e300", "= double('NaN')", "<> 0", "< 1", "is not null")]
    table.write([{"id": 12, ORDER: 3, "region": "eu", "f": 7.0, "f4": 1.0, "i": 7}])
    asked += ["f = 7", "f > 1 and f4 > 0", "f < 8 and i = 7", "f is null and i = 7"]
    assert _spared(spark, table.path, [*asked, "f4 > 4", "i = 0"]) > 0


@pytest.mark.full
@pytest.mark.parametrize("anew", [False, True])
def test_widened_columns(spark: SparkSession, tmp_path: Path, anew: bool) -> None:
    """Older files keep statistics of the older types, also where the index is made anew over them."""
    older = {"a": pa.int32(), "b": pa.float32(), "c": pa.decimal128(10, 2), "d": pa.int32(), "e": pa.decimal128(6, 2)}
    newer = {"a": pa.int64(), "b": pa.float64(), "c": pa.decimal128(14, 4), "d": pa.string(), "e": pa.decimal128(9, 2)}
    older["region"] = newer["region"] = pa.string()
    newer["g"] = pa.int64()
    table = IndexedTable(tmp_path / "t", arrow_schema(older), part="region", buckets=1, config=CONFIG)

    def write(turn: int, region: str, schema: pa.Schema | None = None) -> None:
        number = [5 * turn + i for i in range(5)]
        table.write(
            [
                {
                    "id": 10 * turn + n,
                    ORDER: turn,
                    "region": region,
                    "a": n,
                    "b": n + 0.5,
                    "c": Decimal(n),
                    "d": str(n) if schema else n,
                    "e": Decimal(-n),
                    **({"g": n} if schema else {}),
                }
                for n in number
            ],
            schema=schema,
        )

    write(1, "ap")
    table.compact()
    write(2, "us")
    write(3, "eu", arrow_schema(newer))
    write(4, "us", arrow_schema(newer))
    if anew:
        drop(table.storage, HudiTable.open(table.storage).config)
        table.table = HudiTable.open(table.storage)
        table.initialise()
    assert "d" not in table.metadata.columns
    columns = {"a": "{}", "b": "{}.5", "c": "{}", "d": "'{}'", "e": "-{}"}
    bounds = usually((("=", 7), ("<", 22), (">", 7)), tuple(itertools.product("=<>", (7, 22))))
    asked = [f"{name} {op} {text.format(n)}" for name, text in columns.items() for op, n in bounds]
    asked += [
        "d < '7' and a > 3",
        "d > '13' and c < 100",
        "d is null or a = 17",
        "g is null",
        "g = 17",
        "g is null and a < 13",
    ]
    assert _spared(spark, table.path, asked) > 0


@pytest.mark.full
def test_files_read(spark: SparkSession, tmp_path: Path) -> None:
    """Each file group holds a range of its own; the index leads to the one that is asked for."""
    table = IndexedTable(tmp_path / "t", arrow_schema(COLUMNS), part="region", config=CONFIG)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for turn in range(3):
        for n, region in enumerate(REGIONS):
            rows = [
                {
                    "id": 100 * n + i,
                    ORDER: turn,
                    "region": region,
                    "s": f"{region}{i:02}",
                    "dec": Decimal(n) + Decimal(i) / 100,
                    "ts": start + timedelta(days=n),
                    "day": date(2026, 1, 1 + n),
                    "i": n,
                    "f": n + i / 10,
                    "flag": n == 1,
                    "long": region * 200,
                    "big": Decimal(10) ** (10 * n),
                }
                for i in range(10)
            ]
            table.write(rows)
    everything = files_read(frame(spark, table.path, skipping=True))
    assert everything == 6
    wanted = {
        "id = 105": 2,
        "i = 1": 2,
        "i >= 1": 4,
        "s = 'eu05'": 2,
        "dec = 1.05": 2,
        "dec < 0.50": 2,
        "ts = timestamp'2026-01-02 00:00:00Z'": 2,
        "day > date'2026-01-02'": 2,
        "s = 'none'": 0,
        "f between 1 and 1.9": 2,
        "flag": 6,  # Hudi makes no condition of a bare column
        f"long = '{'eu' * 200}'": 2,
        "big > 10000000000": 2,
        "big <= 10000000000": 4,
        "bin is not null": 6,  # not indexed
        "_hoodie_record_key = '105'": 4,  # as text it lies between "0" and "9"
    }
    counts = {q: files_read(frame(spark, table.path, skipping=True).where(q)) for q in wanted}
    assert {q: count for q, count in counts.items() if count > wanted[q]} == {}
    for metadata in (True, False):
        assert files_read(frame(spark, table.path, skipping=False, metadata=metadata).where("i = 1")) == everything


@pytest.mark.full
def test_rows_in_log_files_only(spark: SparkSession, tmp_path: Path) -> None:
    """Hudi drops a file slice whose base file's filter denies the key: filters of slices with log files deny none."""
    table = IndexedTable(tmp_path / "t", arrow_schema({"i": pa.int32()}), config=CONFIG)
    table.write([{"id": n, ORDER: 1, "i": 1} for n in range(10)])
    table.compact()
    base = max((n for _, n in table.listed() if n.startswith("00000000")), key=lambda n: n.split("_")[2])
    assert not all(SparkIndex(spark, table.path).members(("", base), ["1000"]))
    table.write([{"id": n, ORDER: 2, "i": 2} for n in range(1000, 1020)])
    assert all(SparkIndex(spark, table.path).members(("", base), ["1000"]))
    for n in (0, 1000, 1019):
        assert frame(spark, table.path, skipping=True).where(f"id = {n}").count() == 1


@pytest.mark.full
def test_hudi_loses_rows_of_its_own_table(spark: SparkSession, tmp_path: Path) -> None:
    """Two faults of Hudi 1.2.0's reader, on the table that Hudi itself wrote: what no writer can be blamed for.

    ``like 'n1%'`` asks for a minimum at or below ``n1``; a key that is only in a log file is denied by the base file's
    filter. The second is why our filters are opened; the first has no cure here but exact minima given up.
    """
    path = tmp_path / "golden"
    shutil.copytree(GOLDEN / "tbl_hudi120", path)
    for predicate in ("name like 'n1%'", "id = 50"):
        without = frame(spark, path, skipping=False).where(predicate).count()
        assert frame(spark, path, skipping=True).where(predicate).count() < without
