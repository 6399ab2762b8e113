"""Hudi Spark reads append tables, adds rows to them, and the stream goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from hudilake.storage import open_storage
from tests.binlake.stream.test_exactly_once import runner
from tests.binlake.stream.topic_log import LocalEngine, TopicLog
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.selection import first
from tests.whole.append.test_append_stream import append_settings, insert

pytestmark = [pytest.mark.spark, pytest.mark.judge]
_COLUMNS = ["id", "owner", "region"]


@pytest.mark.full
@pytest.mark.parametrize(
    ("kind", "type_name"), first(1, [("merge_on_read", "MERGE_ON_READ"), ("copy_on_write", "COPY_ON_WRITE")])
)
def test_spark_adds_rows_and_the_stream_goes_on(
    hudi_spark: HudiSpark, tmp_path: Path, kind: str, type_name: str
) -> None:
    config = append_settings(tmp_path, type=kind, partition={"column": "region"})
    log, sent, place = TopicLog(), list[dict[str, object]](), tmp_path / "shop" / "logs"
    stream = runner(config, open_storage(str(tmp_path)))

    def batch(number: int) -> None:
        for n in range(number * 6, number * 6 + 6):
            region = "eu" if n % 3 else "us"
            insert(log, n, region)
            sent.append({"id": n, "owner": "a", "region": region})
        done = stream.run(number, log.end(), 0, LocalEngine(log))
        assert [t.error for t in done.tables] == [None]

    batch(0)
    batch(1)
    options = {
        "hoodie.table.name": "logs",
        "hoodie.datasource.write.operation": "insert",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.table.type": type_name,
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
        "hoodie.compact.inline": "false",
    }
    rows = [(n, "spark", None, "eu") for n in range(100, 104)]
    frame = hudi_spark.session.createDataFrame(rows, "id long, owner string, balance decimal(12,2), region string")
    frame.coalesce(1).write.format("hudi").options(**options).mode("append").save(str(place))
    sent += [{"id": n, "owner": "spark", "region": "eu"} for n in range(100, 104)]
    batch(2)
    assert_judges_agree(place, sent, spark=hudi_spark, columns=_COLUMNS)
    assert hudi_spark.frame(str(place)).where("id >= 100").count() == 4
