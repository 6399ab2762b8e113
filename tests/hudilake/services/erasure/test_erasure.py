"""A row and its versions leave every byte of a table; both readers show the other rows, and nothing else is written."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hudilake import Table
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.services.cleaning import clean_slices
from hudilake.services.erasure.record import erasure_records
from hudilake.services.erasure.search import Fate, plan_erasure
from hudilake.services.erasure.traces import Quarry, plain_pages, scan
from tests.hudilake.api.tables import KEYED, Row, assert_holds, keyed, row
from tests.hudilake.lake import data_files
from tests.judges.hudi_spark import HudiSpark

ERASED = 3


def name_of(number: int, version: int) -> str:
    return f"person-{number}-of-version-{version}"


def aged(table: Table, commits: int = 6, seed: int = 0) -> dict[int, Row]:
    """A table with some commits, compactions and deletes. Returns the live rows by id."""
    drawn, live = random.Random(seed), dict[int, Row]()
    for version in range(commits):
        rows = [
            row(n, version * 100 + n, name=name_of(n, version)) for n in range(12) if drawn.random() < 0.8 or n == 3
        ]
        table.upsert(rows)
        live.update({one["id"]: one for one in rows})
        if version % 3 == 1 and (number := drawn.randrange(12)) in live and number != ERASED:
            table.delete([live.pop(number)])
        if version == 3 and table.properties["hoodie.table.type"] == "MERGE_ON_READ":
            table.compact()
    return live


def quarry(table: Table) -> Quarry:
    """All that tells of the row, by the model and not by the search."""
    keys = {str(ERASED), f"id:{ERASED}"}
    return Quarry(frozenset(keys), frozenset(name_of(ERASED, version).encode() for version in range(6)))


@pytest.mark.first(1)
@pytest.mark.parametrize("kind", [name for name in KEYED if name != "two keys"])
def test_every_byte_is_gone_and_the_other_rows_stay(tmp_path: Path, kind: str) -> None:
    table = keyed(tmp_path / "t", **KEYED[kind])
    live = aged(table)
    before = scan(table.internal.storage, quarry(table))
    assert before.finds  # the control: the scan sees what is there
    others = set(data_files(tmp_path / "t"))
    plan = table.plan_erasure([{"id": ERASED}])
    assert {holder.path for holder in plan.holders.values()} >= before.finds.keys()

    done = table.erase([{"id": ERASED}])

    assert done.is_done
    assert {held.path for held in done.record.files} >= before.finds.keys()
    assert all(held.gone_ms is not None for held in done.record.files)
    assert scan(table.internal.storage, quarry(table)).is_clean
    del live[ERASED]
    assert_holds(table, live.values())
    # Only the file groups that held it are written.
    groups = set(plan.groups)
    written = set(data_files(tmp_path / "t")) - others
    assert {Path(path).name.lstrip(".")[:36] for path in written} == {file_id[:36] for _, file_id in groups}
    assert others - set(data_files(tmp_path / "t")) <= {path for path in others if _group(path) in groups}


def _group(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name.lstrip(".").split("_")[0]


@pytest.mark.full
def test_spark_and_the_table_go_on(tmp_path: Path, hudi_spark: HudiSpark) -> None:
    table = keyed(tmp_path / "t")
    live = aged(table)
    assert table.erase([{"id": ERASED}]).is_done
    del live[ERASED]
    assert_holds(table, live.values(), hudi_spark)
    table.upsert([row(ERASED, 1, name="a new row of the key"), row(20, 1)])
    table.compact()
    live |= {20: row(20, 1), ERASED: row(ERASED, 1, name="a new row of the key")}
    assert_holds(table, live.values(), hudi_spark)


@pytest.mark.full
def test_a_deleted_row_has_left_tombstones_that_go_too(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    live = aged(table)
    table.delete([live.pop(ERASED)])
    table.delete([live.pop(9)])
    table.compact()
    assert {holder.fate for holder in table.plan_erasure([{"id": ERASED}]).holders.values()} >= {Fate.REWRITTEN}
    assert table.erase([{"id": ERASED}]).is_done
    assert scan(table.internal.storage, quarry(table)).is_clean
    # The delete of another row still holds: an older row does not bring it back.
    table.upsert([row(9, 1, name="late")])
    assert_holds(table, live.values())


def test_savepoints_are_named_and_released(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    aged(table)
    saved = table.savepoint(comment="before the audit")
    table.upsert([row(0, 10_000)])
    before = sorted(data_files(tmp_path / "t"))
    with pytest.raises(ConfigError, match="before the audit"):
        table.erase([{"id": ERASED}])
    assert sorted(data_files(tmp_path / "t")) == before
    done = table.erase([{"id": ERASED}], release_savepoints=True)
    assert done.is_done
    assert done.record.savepoints == [saved]
    assert table.savepoints() == []


def test_a_savepoint_that_does_not_hold_it_stays(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(0, 1)])
    saved = table.savepoint()
    table.upsert([row(1, 1, name="somebody whom we forget")])
    assert table.erase([{"id": 1}]).is_done
    assert [one.instant for one in table.savepoints()] == [saved]
    assert table.scan(as_of=saved).to_arrow().num_rows == 1


def test_a_time_whose_rows_went_is_refused(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    aged(table)
    past = table.history()[2]
    assert table.scan(as_of=past).to_arrow().num_rows
    assert table.erase([{"id": ERASED}]).is_done
    with pytest.raises(UnsupportedError, match="cleaned"):
        table.scan(as_of=past).to_arrow()


def test_a_value_that_others_have_too_is_told_apart(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", partition_by=())
    table.upsert([row(1, 1, name="the same name"), row(2, 1, name="the same name")])
    table.upsert([row(1, 2, name="a name alone")])
    done = table.erase([{"id": 1}])
    assert done.is_done
    assert scan(table.internal.storage, Quarry(frozenset(), frozenset([b"the same name"]))).shared == 1


def test_ranges_of_partitions_become_narrow(tmp_path: Path) -> None:
    """They only widen otherwise: the bound of a row that is gone would stay."""
    table = keyed(tmp_path / "t")
    table.upsert([row(3, 1), row(6, 1), row(999_999_999, 7_777_777, day="d0")])
    assert table.erase([{"id": 999_999_999}]).is_done
    index = table.internal.metadata_table
    assert index is not None
    ranges = index.reader.partition_ranges(["id", "updated_at"], ["day=d0", "d0"])
    (known,) = ranges.values()
    assert (known["id"].max, known["updated_at"].max) == (6, 1)


def test_what_is_not_a_table_for_it_is_refused(tmp_path: Path) -> None:
    """Its store keeps what was deleted."""
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    opened = table.internal
    external = replace(opened.config, kind=replace(opened.config.kind, index="external"))
    opened.state.config = external
    with pytest.raises(UnsupportedError, match="external index"):
        plan_erasure(opened, ["1"])  # as binlake erase --dry-run asks it


def test_nothing_to_erase_writes_nothing(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    aged(table, commits=2)
    before = sorted(data_files(tmp_path / "t"))
    done = table.erase([{"id": 77}])
    assert done.is_done
    assert done.record.files == []
    assert sorted(data_files(tmp_path / "t")) == before


def test_the_record_that_stays_names_no_key(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    aged(table, commits=2)
    table.erase([{"id": ERASED}])
    (record,) = erasure_records(table.internal.storage)
    assert record.ended_ms is not None
    assert record.keys == []
    assert record.texts == []


def test_control_a_delete_and_a_clean_are_not_enough(tmp_path: Path) -> None:
    """What people do without it: the metadata table still tells of the row."""
    table = keyed(tmp_path / "t")
    live = aged(table)
    table.delete([live[ERASED]])
    table.compact()
    groups = {(p.partition_path, p.file_id) for p in table.internal.file_slices()}
    clean_slices(table.internal, groups)
    assert scan(table.internal.storage, quarry(table)).finds


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}, {"data_page_version": "2.0"}])
@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "none"])
def test_pages_are_decompressed(options: dict[str, Any], codec: str) -> None:
    sink = pa.BufferOutputStream()
    names = [f"{'x' * 200}-{number % 7}" for number in range(1000)] + [None]
    pq.write_table(pa.table({"name": names, "n": range(1001)}), sink, compression=codec, **options)
    data = sink.getvalue().to_pybytes()
    pages = b"".join(plain_pages(data, pq.ParquetFile(pa.BufferReader(data)).metadata))
    assert all(f"x-{number}".encode() in pages for number in range(7))
    assert b"x-7" not in pages
