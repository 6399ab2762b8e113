"""Changes of a table as a data source of Spark 4: what Spark reads is what the table's feed gives, each change once."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import hudilake
from binlake.stream.spark.changes_source import NAME, ChangeOptions, register_changes
from binlake.stream.spark.lines import spark_line
from binlake.stream.spark.tasks import cause_of
from examples.live_totals.totals import follow
from hudilake import RetentionPolicy
from hudilake.errors import ConfigError, UnsupportedError
from tests.binlake.stream.spark.changes_kept import changes_kept, kept_by
from tests.docs.pages import blocks
from tests.hudilake.api.tables import keyed, row
from tests.hudilake.query.changes.test_feed import Change, changes_of, random_step

pytestmark = [pytest.mark.spark, pytest.mark.lines]

SPARK_4 = spark_line() != "3.5"
BOUNDED = spark_line() not in ("3.5", "4.0", "4.1")  #: whether batches can be bounded


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"since": "earliest"}, "no table is named"),
        ({"path": "/t"}, "no begin is given"),
        ({"path": "/t", "since": "earliest", "maxCommitsPerTrigger": "0"}, "maxCommitsPerTrigger is a number"),
        ({"path": "/t", "since": "earliest", "maxPartitions": "many"}, "maxPartitions is a number"),
        ({"path": "/t", "since": "earliest", "startingVersion": "1"}, "no option startingversion"),
        ({"path": "/t", "since": "earliest", "until": "now"}, "not a moment"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, str], match: str) -> None:
    with pytest.raises(ConfigError, match=match):
        ChangeOptions.of(options)


def test_options_of_the_store_go_to_it() -> None:
    read = ChangeOptions.of({"path": "s3://l/t", "SINCE": "earliest", "storage.aws_region": "eu", "columns": "id, qty"})
    assert (read.store, read.columns, read.most_partitions) == ({"aws_region": "eu"}, ("id", "qty"), 64)


if not SPARK_4:

    def test_spark_without_data_sources_in_python_is_refused(spark: SparkSession) -> None:
        with pytest.raises(UnsupportedError, match=r"since 4\.0") as refused:
            register_changes(spark)
        assert "\n" not in str(refused.value)

else:

    @pytest.fixture(scope="module")
    def session(spark: SparkSession) -> SparkSession:
        register_changes(spark)
        return spark

    def loaded(session: SparkSession, table: hudilake.Table, **options: str) -> DataFrame:
        return session.read.format(NAME).options(**{"since": "earliest", **options}).load(table.uri)

    def rows_of(frame: DataFrame) -> list[Change]:
        return [one.asDict(recursive=True) for one in frame.collect()]

    def in_order(changes: list[Change]) -> list[str]:
        return sorted(map(repr, changes))

    def begun(session: SparkSession, table: hudilake.Table, place: Path, **options: Any) -> StreamingQuery:  # noqa: ANN401
        """A query that keeps its batches below ``place``, until it has all commits."""
        frame = session.readStream.format(NAME).options(**{"since": "earliest", **options}).load(table.uri)
        return kept_by(frame, place).trigger(availableNow=True).start()

    def test_a_single_read_is_the_feed(session: SparkSession, tmp_path: Path) -> None:
        dice = random.Random(5)
        table = keyed(tmp_path / "t", buckets=3)
        for step in range(8):
            random_step(table, dice, step)
        frame = loaded(session, table)
        assert frame.columns == ["op", "commit", "completed", "before", "after"]
        changes = changes_of(table.changes(""))
        assert {change["op"] for change in changes} == {"i", "u", "d"}
        assert in_order(rows_of(frame)) == in_order(changes)
        middle = table.history()[3].completed
        parts = [loaded(session, table, until=middle), loaded(session, table, since=middle)]
        assert in_order([one for part in parts for one in rows_of(part)]) == in_order(changes)
        assert frame.rdd.getNumPartitions() > 1  # tasks read, not the driver
        assert loaded(session, table, maxPartitions="2").rdd.getNumPartitions() == 2
        assert rows_of(loaded(session, table, since=table.history()[0].completed)) == []
        table.upsert([row(1, 999, "later")])
        assert loaded(session, table, columns="id").where("op = 'i'").select("after.id").count() > 0
        assert in_order(rows_of(frame)) == in_order(changes)  # a DataFrame that has run keeps its plan
        assert in_order(rows_of(loaded(session, table))) == in_order(changes_of(table.changes("")))

    def test_every_type(session: SparkSession, tmp_path: Path) -> None:
        at = datetime(2024, 2, 29, 12, 30, 15, 123000, tzinfo=UTC)
        values = {
            "id": (pa.int64(), 7),
            "small": (pa.int32(), -3),
            "ratio": (pa.float64(), 0.5),
            "less": (pa.float32(), 1.5),
            "flag": (pa.bool_(), True),
            "raw": (pa.binary(), b"\x00\xff"),
            "name": (pa.string(), "é"),
            "day": (pa.date32(), date(2024, 2, 29)),
            "price": (pa.decimal128(12, 3), Decimal("12.345")),
            "at": (pa.timestamp("us", tz="UTC"), at),
            "local": (pa.timestamp("us"), at.replace(tzinfo=None)),
            "millis": (pa.timestamp("ms", tz="UTC"), at),
            "tags": (pa.list_(pa.string()), ["a", None]),
            "sizes": (pa.map_(pa.string(), pa.int64()), [("x", 1)]),
            "inner": (pa.struct({"a": pa.int32(), "b": pa.list_(pa.int64())}), {"a": 1, "b": [2]}),
        }
        schema = pa.schema({name: kind for name, (kind, _) in values.items()})
        table = hudilake.create_table(str(tmp_path / "t"), schema, key="id", order_by="small")
        table.upsert([{name: value for name, (_, value) in values.items()}])
        table.upsert(
            [{name: value if name == "id" else 5 if name == "small" else None for name, (_, value) in values.items()}]
        )
        frame = loaded(session, table, columns=",".join(values))
        first, second = sorted(rows_of(frame), key=lambda one: str(one["completed"]))
        expected = {name: value for name, (_, value) in values.items()} | {"sizes": {"x": 1}}
        local = {name: at.astimezone().replace(tzinfo=None) for name in ("at", "millis")}
        assert first["after"] == second["before"] == expected | local
        assert set(second["after"].values()) == {7, 5, None}

    def test_batches_begin_where_the_checkpoint_stands(session: SparkSession, tmp_path: Path) -> None:
        """Writes, compactions, clusterings of buckets and moves between runs; each change comes once, in the batch of
        its commits. Some runs die after their batch was written and before Spark knew it."""
        dice = random.Random(11)
        table = keyed(tmp_path / "t", buckets=3)
        bounds = {"maxCommitsPerTrigger": "2"} if BOUNDED else {}
        for step in range(14):
            random_step(table, dice, step)
            if step % 2:
                table.upsert([row(50, 100 + step, str(step))])
                (tmp_path / "die").touch()
                query = begun(session, table, tmp_path / "kept", **bounds)
                with pytest.raises(PySparkException, match="dies here"):
                    query.awaitTermination()
            if step % 3 == 0:
                begun(session, table, tmp_path / "kept", **bounds).awaitTermination()
        begun(session, table, tmp_path / "kept", **bounds).awaitTermination()
        batches = changes_kept(tmp_path / "kept")
        assert in_order([one for batch in batches for one in batch]) == in_order(changes_of(table.changes("")))
        commits = [{one["commit"] for one in batch} for batch in batches]
        assert sum(map(len, commits)) == len(set().union(*commits)) > 3
        if BOUNDED:
            assert max(map(len, commits)) == 2

    def test_a_stream_that_is_killed_gives_each_change_once(session: SparkSession, tmp_path: Path) -> None:
        """Another process streams and is killed at random moments while the table is written, compacted and moved
        to other buckets. Checkpoint and batches are all that the next one knows."""
        dice = random.Random(3)
        table = keyed(tmp_path / "t", buckets=3)
        table.upsert([row(number, 0) for number in range(30)])
        program = [sys.executable, "-m", "tests.binlake.stream.spark.changes_kept", table.uri, str(tmp_path / "kept")]
        written = 0
        for _ in range(3):
            child = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
            assert child.stdout is not None
            for lived, line in enumerate(child.stdout):  # a line for each batch that Spark gave
                assert line.startswith("batch")
                written += 1
                random_step(table, dice, written)
                table.upsert([row(50, 100 + written, str(written))])  # so that there is a next batch
                if lived > 0 and dice.random() < 0.5:
                    break
            child.send_signal(signal.SIGKILL)
            child.wait()
        assert written >= 6
        for _ in range(1 if BOUNDED else 2):  # before Spark 4.2 a run ends behind the batch that a death left
            begun(session, table, tmp_path / "kept").awaitTermination()
        batches = changes_kept(tmp_path / "kept")
        assert len(batches) > 3
        assert in_order([one for batch in batches for one in batch]) == in_order(changes_of(table.changes("")))

    def test_errors_are_one_line(session: SparkSession, tmp_path: Path) -> None:
        table = keyed(tmp_path / "t")
        for order in range(8):
            table.upsert([row(1, order, str(order))])
            table.compact()
        begun(session, table, tmp_path / "old").awaitTermination()
        first = table.history()[-1].completed
        for order in range(8, 14):
            table.upsert([row(1, order, str(order))])
            table.compact()
        table.clean(RetentionPolicy(commits=2))
        table.archive(2, 3)

        def refusal(start: Any) -> str:  # noqa: ANN401 - what begins a read
            with pytest.raises(PySparkException) as raised:
                start()
            return cause_of(raised.value)

        def of(**options: str) -> str:
            return refusal(lambda: loaded(session, table, **options).collect())

        assert "does not keep what was written" in of(since="earliest")
        assert "does not keep what was written" in of(since=first)
        assert "does not keep what was written" in refusal(
            lambda: begun(session, table, tmp_path / "old").awaitTermination()
        )
        assert "does not keep what was written" in refusal(
            lambda: begun(session, table, tmp_path / "new").awaitTermination()
        )
        newest = table.history()[0].completed
        assert "no columns ['nope']" in of(since=newest, columns="nope")
        assert "is a single read" in of(since=newest, maxCommitsPerTrigger="3")
        assert "a stream has no end" in refusal(
            lambda: begun(session, table, tmp_path / "x", until=newest).awaitTermination()
        )
        properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
        properties.write_text(properties.read_text().replace("hoodie.table.version=9", "hoodie.table.version=99"))
        assert "99" in of(since=newest)
        assert "no columns" not in of(since=newest)

    def test_a_stream_whose_columns_are_gone_ends(session: SparkSession, tmp_path: Path) -> None:
        table = keyed(tmp_path / "t")
        table.upsert([row(1, 1)])
        frame = session.readStream.format(NAME).option("since", "earliest").load(table.uri)
        table.evolve(table.schema.remove(table.schema.get_field_index("name")))
        with pytest.raises(PySparkException, match="not those of the table now"):
            kept_by(frame, tmp_path / "kept").trigger(availableNow=True).start().awaitTermination()
        begun(session, table, tmp_path / "kept").awaitTermination()
        [batch] = changes_kept(tmp_path / "kept")
        assert [sorted(one["after"]) for one in batch] == [["day", "id"]]

    if not BOUNDED:

        def test_a_bound_that_spark_cannot_keep_is_refused(session: SparkSession, tmp_path: Path) -> None:
            table = keyed(tmp_path / "t")
            with pytest.raises(PySparkException) as raised:
                begun(session, table, tmp_path / "kept", maxCommitsPerTrigger="2").awaitTermination()
            assert "only since Spark 4.2" in cause_of(raised.value)

    def test_the_page_runs(session: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        schema = pa.schema({"id": pa.int64(), "status": pa.string(), "qty": pa.int64()})
        table = hudilake.create_table(str(tmp_path / "orders"), schema, key="id", order_by="qty")
        table.upsert([{"id": number, "status": "new", "qty": number} for number in range(3)])
        table.upsert([{"id": 1, "status": "paid", "qty": 9}])
        [block] = [one for one in blocks("python") if one.mark == "spark4"]
        text = block.text.replace("/data/lake/shop", str(tmp_path)).replace("/data", str(tmp_path))
        exec(compile(text, str(block), "exec"), {"spark": session})
        *batches, count = capsys.readouterr().out.splitlines()
        assert count == "1"
        assert "op='u', count=1" in batches[0]
        assert "op='i', count=3" in batches[0]

    def test_sums_follow_a_table(session: SparkSession, tmp_path: Path) -> None:
        """The example: rows that come, change and go, and a batch that Spark gives again."""
        schema = pa.schema({"id": pa.int64(), "status": pa.string(), "qty": pa.int64()})
        table = hudilake.create_table(str(tmp_path / "t"), schema, key="id", order_by="qty", buckets=2)
        place = tmp_path / "totals.sqlite"

        def totals() -> list[tuple[str, int, int]]:
            follow(session, table.uri, "status", "qty", str(place))
            with closing(sqlite3.connect(place)) as database:
                return sorted(database.execute("select * from totals"))

        table.upsert([{"id": number, "status": "new", "qty": number} for number in range(5)])
        assert totals() == [("new", 5, 10)]
        table.upsert([{"id": 4, "status": "paid", "qty": 14}, {"id": 3, "status": "new", "qty": 13}])
        table.delete([{"id": 1}])
        assert totals() == [("new", 3, 15), ("paid", 1, 14)]
        last = max((tmp_path / "totals.sqlite.checkpoint/commits").glob("[0-9]*"), key=lambda path: int(path.name))
        for path in (last, last.with_name(f".{last.name}.crc")):
            path.unlink(missing_ok=True)
        assert totals() == [("new", 3, 15), ("paid", 1, 14)]
        table.delete(where="status = 'paid'")
        assert totals() == [("new", 3, 15)]
