"""File names, there and back."""

from __future__ import annotations

import pytest

from hudilake.format.files.names import (
    BaseFileName,
    LogFileName,
    in_partition,
    marked_file,
    marker_directory,
    marker_path,
    parse_base_name,
    parse_log_name,
)
from hudilake.format.timeline.instant import Instant, State, parse_name
from tests.paths import GOLDEN

ID = "00000001-1e5c-4e71-91ad-e0e05992985c-0"


def test_log_names() -> None:
    name = LogFileName(ID, "20261121061551344")
    assert str(name) == f".{ID}_20261121061551344.log.1_0-0-0"
    assert parse_log_name(str(name)) == name
    assert parse_log_name(f".{ID}_20261121061551344.log.7_3-2711-6757") == LogFileName(
        ID, "20261121061551344", 7, "3-2711-6757"
    )
    assert parse_log_name(f".{ID}_20261121061551344.log.1") == LogFileName(ID, "20261121061551344", 1, "")
    for other in (
        f".{ID}_1.log.1_0-0-0.cdc",
        f"{ID}_1.log.1_0-0-0",
        f".{ID}_1.log.1_0-0-0.crc",
        f".{ID}_1.archive.1_0-0-0",
    ):
        assert parse_log_name(other) is None


def test_base_names() -> None:
    name = BaseFileName(ID, "20261121061545818", "1-2687-6533")
    assert str(name) == f"{ID}_1-2687-6533_20261121061545818.parquet"
    assert parse_base_name(str(name)) == name
    hfile = "files-0000-0_0-2556-6030_00000000000000000.hfile"
    assert str(parse_base_name(hfile)) == hfile
    assert parse_base_name("notes.parquet") is None


def test_every_data_file_of_the_golden_table_is_known() -> None:
    names = [p.name for p in (GOLDEN / "tbl_hudi120").rglob("*0-*") if p.is_file()]
    assert len(names) == 42
    assert [n for n in names if str(parse_log_name(n) or parse_base_name(n)) != n] == []


def test_log_files_are_ordered_by_instant_then_version_as_a_number() -> None:
    names = [LogFileName(ID, "2", 1), LogFileName(ID, "1", 10), LogFileName(ID, "1", 9)]
    assert sorted(names, key=lambda n: n.order) == names[::-1]


def test_markers() -> None:
    path = marker_path("20240101000000000", "a=1/b=2", "f.log.1_0-0-0")
    assert path == ".hoodie/.temp/20240101000000000/a=1/b=2/f.log.1_0-0-0.marker.CREATE"
    relative = path[len(marker_directory("20240101000000000")) + 1 :]
    assert marked_file(relative) == "a=1/b=2/f.log.1_0-0-0"
    assert marker_path("1", "", "f") == ".hoodie/.temp/1/f.marker.CREATE"
    assert marked_file("MARKERS.type") is None
    assert in_partition("", "f") == "f"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("20240101000000000.deltacommit.requested", Instant("20240101000000000", "deltacommit", State.REQUESTED)),
        ("20240101000000000.deltacommit.inflight", Instant("20240101000000000", "deltacommit", State.INFLIGHT)),
        (
            "20240101000000000_20240101000000001.deltacommit",
            Instant("20240101000000000", "deltacommit", State.COMPLETED, "20240101000000001"),
        ),
        ("20240101000000000.inflight", Instant("20240101000000000", "commit", State.INFLIGHT)),
        ("20240101000000000.compaction.requested", Instant("20240101000000000", "compaction", State.REQUESTED)),
        ("20240101000000000_2.commit", Instant("20240101000000000", "commit", State.COMPLETED, "2")),
    ],
)
def test_instants(name: str, expected: Instant) -> None:
    assert parse_name(name) == expected
    assert expected.file_name == name


@pytest.mark.parametrize(
    "name",
    [
        "20240101000000000.deltacommit",
        "x.deltacommit",
        "1_2.deltacommit.inflight",
        ".1.commit.crc",
        ".keep",
        "1.deltacommit.inflight.crc",
    ],
)
def test_other_files_are_no_instants(name: str) -> None:
    assert parse_name(name) is None


def test_a_pending_compaction_and_its_commit_are_one_instant() -> None:
    pending = Instant("1", "compaction", State.INFLIGHT)
    assert pending.in_state(State.COMPLETED, "2") == Instant("1", "commit", State.COMPLETED, "2")
    assert pending.identity == pending.in_state(State.COMPLETED, "2").identity
