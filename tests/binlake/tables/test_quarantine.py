"""The quarantine table holds every bad record once, whole, for any reader of Hudi."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from binlake.decode.changes import QuarantinedRecord, SourceTable
from binlake.position.record_reader import RecordKey
from binlake.source.offsets import OffsetRange, Ranges
from binlake.tables.lake import Lake
from binlake.tables.quarantine import QuarantineTable
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.stream.topic_log import services, settings
from tests.judges.agreement import assert_judges_agree, read_ourselves
from tests.judges.hudi_spark import HudiSpark

COLUMNS = ["topic", "partition", "offset", "kafka_time", "key", "value", "reason", "detail", "source_table"]
RECORDS = [
    QuarantinedRecord("s.shop.a", 0, 7, 1_700_000_000_001, b'{"id":1}', b"\x00\xff{", "malformed_json", "line 1", None),
    QuarantinedRecord("s.shop.a", 1, 7, 0, None, b"", "unknown_op", "op x", SourceTable("shöp", "a.b")),
    QuarantinedRecord("s.shop.b", 0, 2**40, 1, b"", None, "null_key", "", SourceTable("shop", "b")),
]


def rows(records: list[QuarantinedRecord]) -> list[dict[str, Any]]:
    """What readers must see of them."""
    return [
        {
            "topic": q.topic,
            "partition": q.partition,
            "offset": q.offset,
            "kafka_time": datetime.fromtimestamp(q.timestamp_ms / 1000, tz=UTC),
            "key": q.key,
            "value": q.value,
            "reason": q.reason,
            "detail": q.detail,
            "source_table": str(q.source) if q.source else None,
        }
        for q in records
    ]


def write(path: Path, *batches: list[QuarantinedRecord]) -> str:
    """Each batch by a process of its own; the table's URI."""
    config = settings(str(path), ["a"])
    for number, records in enumerate(batches):
        table = QuarantineTable(config, Lake(open_storage(str(path), {"fsync": "false"})), services())
        ranges = Ranges(OffsetRange(topic, 0, 0, 8) for topic in ("s.shop.a", "s.shop.b", "s.shop.c"))
        with ThreadPoolExecutor(1) as pool:
            table.write(records, ranges, number, pool)
    return f"{path}/_quarantine/shop"


def test_every_record_is_there_as_it_came(tmp_path: Path) -> None:
    assert_judges_agree(write(tmp_path, RECORDS), rows(RECORDS), columns=COLUMNS)


def test_a_record_quarantined_again_is_there_once(tmp_path: Path) -> None:
    uri = write(tmp_path, RECORDS[:2], RECORDS)
    assert_judges_agree(uri, rows(RECORDS), columns=COLUMNS)
    stamps = {r["quarantined_at"] for r in read_ourselves(uri).to_pylist()}
    assert all(stamp.tzinfo is not None for stamp in stamps)


def test_nothing_bad_makes_no_table(tmp_path: Path) -> None:
    write(tmp_path, [])
    assert list(tmp_path.iterdir()) == []
    uri = write(tmp_path, RECORDS[:1], [])
    assert len(list(Path(uri).glob(".hoodie/timeline/*_*.deltacommit"))) == 1


def test_the_commit_covers_the_topics_of_the_bad_records(tmp_path: Path) -> None:
    write(tmp_path, RECORDS)
    table = HudiTable.open(open_storage(str(tmp_path)).sub("_quarantine/shop"))
    covered = {"s.shop.a": {"0": [0, 8]}, "s.shop.b": {"0": [0, 8]}}
    assert json.loads(table.extra_metadata(RecordKey.OFFSETS) or "") == covered
    assert json.loads(table.extra_metadata(RecordKey.COUNTS) or "")["applied"] == len(RECORDS)


@pytest.mark.spark
@pytest.mark.judge
def test_hudi_spark_reads_it(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    uri = write(tmp_path, RECORDS[:2], RECORDS)
    assert_judges_agree(uri, rows(RECORDS), spark=hudi_spark, columns=COLUMNS)
