"""The embedded HBase: what its endpoint sends is what a scan shows."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections import Counter
from pathlib import Path

import fastavro
import pytest

from binlake.decode.changes import RawRecords
from binlake.hbase.settings.families import FamilyRule
from embedded.hbase_programs import write_endpoint
from embedded.hbase_statements import Cell, Put
from hudilake import clock
from hudilake.errors import ConfigError, UnsupportedError
from tests.binlake.hbase.recordings import CellPlace
from tests.binlake.hbase.visibility import Edit, edits, edits_of, visible
from tests.binlake.hbase.workload import FAMILIES, BackgroundRun, Workload
from tests.hypothesis_profile import usually
from tests.services.hbase import LiveHBase

pytestmark = pytest.mark.hbase
_EVENT = fastavro.parse_schema(
    {
        "type": "record",
        "name": "HBaseKafkaEvent",
        "namespace": "org.apache.hadoop.hbase.kafka",
        "fields": [
            {"name": "key", "type": "bytes"},
            {"name": "timestamp", "type": "long"},
            {"name": "delete", "type": "boolean"},
            {"name": "value", "type": "bytes"},
            {"name": "qualifier", "type": "bytes"},
            {"name": "family", "type": "bytes"},
            {"name": "table", "type": "bytes"},
        ],
    }
)


@pytest.mark.full
@pytest.mark.parametrize("seed", usually([0], [0, 1, 2, 3]))
def test_replayed_changes_equal_the_scan(hbase: LiveHBase, seed: int) -> None:
    """From seed 1 on through moves and kills; a usual run has these in tests/whole/live/test_live_hbase.py."""
    table = f"live:service{seed}"
    workload = Workload(hbase.source, table, seed, binary=True)
    hbase.make_topics(table)
    workload.create()
    workload.run(150)
    hbase.source.flush(table)
    if seed:
        _misfortunes(hbase, table, workload)
    workload.run(50)
    hbase.source.major_compact(table)
    _compare(hbase, table)
    wal, events = (_values(hbase.records(table, form)) for form in ("wal", "events"))
    told = {_cell(edit) for document in wal for edit in edits_of(document)}
    assert told == {_cell_of_event(event) for event in events}
    assert max(Counter(wal).values()) > 1, "no batch came twice"


def _misfortunes(hbase: LiveHBase, table: str, workload: Workload) -> None:
    run = BackgroundRun(workload, 400)
    run.start()
    hbase.service.slow_replication(200, hbase.source.holder(table, b"o00000"))
    hbase.source.move(table, b"o00000")
    hbase.source.split(table, b"o00005")
    hbase.service.abort_region_server(hbase.source.holder(table, b"o00030"))
    time.sleep(1)
    hbase.service.kill()
    hbase.service.start()
    run.finish()


def _compare(hbase: LiveHBase, table: str) -> None:
    """Changes replayed by the reference rules equal the scan."""
    hbase.source.drain()
    scan_ts_ms = clock.now_ms()
    want = {CellPlace(*cell[:4]): cell.value for cell in hbase.source.scan(table)}
    families = {family.name.encode(): family for family in FAMILIES}
    told = [edit for part in hbase.records(table) for edit in edits(part)]
    assert visible(told, families, scan_ts_ms) == want
    raw = {(CellPlace(*cell[:4]), cell.kind, cell.value) for cell in hbase.source.scan(table, raw=True)}
    assert raw <= {(edit.place, edit.kind, edit.value) for edit in told}


def _values(records: list[RawRecords]) -> list[bytes]:
    return [value for part in records for value in part.values if value is not None]


def _cell(edit: Edit) -> tuple[CellPlace, bool, bytes]:
    """What the Avro form tells of a cell."""
    return edit.place, edit.kind != "Put", edit.value


def _cell_of_event(event: bytes) -> tuple[CellPlace, bool, bytes]:
    told = fastavro.schemaless_reader(io.BytesIO(event), _EVENT, None)
    assert isinstance(told, dict)
    place = CellPlace(told["key"], told["family"], told["qualifier"], told["timestamp"])
    return place, told["delete"], told["value"]


def test_a_scan_becomes_files_for_the_initial_load(hbase: LiveHBase, tmp_path: Path) -> None:
    table = "live:files"
    hbase.source.create_table(table, [FamilyRule("f", versions=2)])
    hbase.source.batch(table, [Put(b"r%d" % n, [Cell(b"f", b"q", b"v%d" % at, at) for at in (1, 2)]) for n in range(3)])
    assert hbase.source.write_scan(table, tmp_path / "scan.jsonl") == 3
    rows = [json.loads(line) for line in (tmp_path / "scan.jsonl").read_text().splitlines()]
    assert rows[0] == {"row": "cjA=", "cells": [["Zg==", "cQ==", 2, "djI="], ["Zg==", "cQ==", 1, "djE="]]}
    assert hbase.source.export(table, tmp_path / "part-m-00000") == 3
    assert (tmp_path / "part-m-00000").read_bytes().startswith(b"SEQ\x06")


def test_what_hbase_refuses_is_said_in_its_words(hbase: LiveHBase) -> None:
    with pytest.raises(UnsupportedError, match="TableNotFoundException: live:nowhere"):
        hbase.source.flush("live:nowhere")
    with pytest.raises(ConfigError, match="no region server has the port 1"):
        hbase.service.abort_region_server(1)


def test_the_endpoint_is_a_jar_without_the_classes_of_the_tests(tmp_path: Path) -> None:
    write_endpoint(tmp_path / "endpoint.jar")
    with zipfile.ZipFile(tmp_path / "endpoint.jar") as jar:
        names = {Path(name).stem for name in jar.namelist()}
    assert names == {"WalToKafka", "WalDocument", "CellEvent"}
