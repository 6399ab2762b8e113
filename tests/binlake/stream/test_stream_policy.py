"""What the commits of the stream's batches record beside their offsets."""

from __future__ import annotations

from pathlib import Path

from binlake.position.commit_record import CommitRecord
from binlake.source.offsets import NO_RANGES, OffsetRange, Ranges
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.binlake.cli.fed_lake import FedLake


def skipped(lake: FedLake, table: str) -> list[Ranges]:
    """The skipped offsets that each commit of a table records, the oldest commit first."""
    timeline = HudiTable.open(open_storage(f"{lake.path}/shop/{table}")).timeline
    records = [CommitRecord.from_extra(timeline.commit_metadata(instant).extra) for instant in timeline.completed()]
    return [record.notes.skipped for record in records if record is not None]


def test_a_commit_records_skipped_offsets_of_its_own_topics_once(tmp_path: Path) -> None:
    """Both tables are in each batch; only a topic of ``b`` had offsets that were gone."""
    lake = FedLake(tmp_path)
    lake.feed()
    ledger = lake.runner.ledger
    at = ledger.positions.at("s.shop.b", 0)
    gone = OffsetRange("s.shop.b", 0, at, at + 1)
    ledger.note_skipped(gone)
    lake.feed(2)
    assert skipped(lake, "b") == [NO_RANGES, Ranges([gone]), NO_RANGES]
    assert skipped(lake, "a") == [NO_RANGES] * 3
