"""Exported scans loaded into tables of cells: every form of file, each file once, beside the stream."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from binlake.cli.app import app
from binlake.decode.changes import RawRecords
from hudilake.errors import BadInputError, ConfigError, CorruptDataError
from tests.binlake.hbase.cells_world import CellsWorld, cells_of, store, wal_entry
from tests.binlake.hbase.recordings import CellPlace, RawCell, described, raw_truth, topic, truth, untold
from tests.binlake.hbase.scans import FORMS, as_json, load, write
from tests.binlake.hbase.visibility import Edit, edits, visible
from tests.hypothesis_profile import usually
from tests.paths import DATA

ORDERS, COUNTERS = "shop:orders", "shop:counters"


def visible_cells(table: str) -> list[RawCell]:
    return [RawCell(place, "Put", value) for place, value in truth(table).items()]


def loaded(world: CellsWorld, place: Path, table: str = ORDERS, *options: str) -> dict[str, Any]:
    """What a replay of scans says that it did."""
    done = load(world.conf, place, table, "--json", *options)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


@pytest.mark.parametrize(("form", "raw"), [(form, n % 2 == 0) for n, form in enumerate(FORMS)])
def test_every_form_gives_the_cells_of_the_scan(tmp_path: Path, form: str, raw: bool) -> None:
    world = CellsWorld(tmp_path / "w", [COUNTERS])
    cells = raw_truth(COUNTERS) if raw else visible_cells(COUNTERS)
    said = loaded(world, write(tmp_path / "scan", cells, f"a{form}", raw=raw), COUNTERS)
    assert said["taken"] == [f"a{form}"]
    assert sorted(cells_of(world.cells("counters"))) == sorted(cells)


def test_each_file_is_taken_once(tmp_path: Path) -> None:
    world, cells = CellsWorld(tmp_path / "w", [ORDERS]), raw_truth(ORDERS)
    place = write(tmp_path / "scan", cells[:50], "a.jsonl")
    (place / "_SUCCESS").write_bytes(b"")
    (place / "_temporary").mkdir()
    (place / "_temporary" / "b.jsonl").write_bytes(b"{half")
    assert loaded(world, place)["taken"] == ["a.jsonl"]
    assert loaded(world, place)["taken"] == []
    write(place / "more", cells[50:], "a.jsonl.gz")
    assert loaded(world, place, ORDERS, "--files", "other/*")["taken"] == []
    assert loaded(world, place, ORDERS, "--files", "more/*.gz")["taken"] == ["more/a.jsonl.gz"]
    assert sorted(cells_of(world.cells("orders"))) == sorted(cells)
    write(place, cells[:60], "a.jsonl")
    with pytest.raises(BadInputError, match="written again"):
        loaded(world, place)


# -- beside the stream ----------------------------------------------------------------------------------------------


def written_ms(value: bytes | None) -> int:
    return int(json.loads(value or b"")["key"]["writeTime"])


def part(records: RawRecords, chosen: Callable[[int], bool]) -> RawRecords:
    """The entries whose write time is chosen."""
    return records.select([at for at, value in enumerate(records.values) if chosen(written_ms(value))])


def raw_scan(table: str, until_ms: int) -> list[RawCell]:
    """What a raw scan has that is made at a time, of a table without flushes: of each key the last put or marker."""
    newest: dict[Any, Edit] = {}
    for records in topic(table, "wal").values():
        for edit in edits(part(records, lambda ms: ms < until_ms)):
            key = (edit.place, edit.kind)
            if key not in newest or newest[key].order <= edit.order:
                newest[key] = edit
    return [RawCell(edit.place, edit.kind, edit.value) for edit in newest.values()]


@pytest.mark.parametrize("table", usually([COUNTERS], [ORDERS, COUNTERS, "shop:clicks"]))
def test_a_scan_before_amid_and_after_the_stream(tmp_path: Path, table: str) -> None:
    """The stream begins after a third of the writes, the scan is made after two thirds."""
    times = sorted(written_ms(value) for records in topic(table, "wal").values() for value in records.values)
    begin, scanned = times[len(times) // 3], times[2 * len(times) // 3]
    place = write(tmp_path / "scan", raw_scan(table, scanned), "part-m-00000")
    half = begin + (times[-1] - begin) // 2
    halves = (range(begin, half), range(half, times[-1] + 1))
    found: list[pa.Table] = []
    for turn in range(3):
        world = CellsWorld(tmp_path / str(turn), [table])
        for number in range(2):
            if number == turn:
                loaded(world, place, table)
            for records in topic(table, "wal").values():
                mine = part(records, halves[number].__contains__)
                world.deliver(dataclasses.replace(mine, offsets=np.arange(len(mine))))
            world.feed()
        if turn == 2:
            loaded(world, place, table)
        found.append(world.cells(table.partition(":")[2]).drop_columns(["written"]))
    assert [table.equals(found[0]) for table in found] == [True] * 3
    about, want = described()[table], truth(table)
    cells = zip(cells_of(found[0]), found[0]["_binlake_order"].to_pylist(), strict=True)
    got = visible((Edit(*cell, (order, 0)) for cell, order in cells), about.families, about.scan_ts_ms)
    assert {p for p in got.keys() | want.keys() if got.get(p) != want.get(p) and not untold(table, p)} == set()


# -- what is refused ------------------------------------------------------------------------------------------------


def test_bad_records_wait_in_the_quarantine(tmp_path: Path) -> None:
    """A raw scan does not tell what a family with NEW_VERSION_BEHAVIOR shows. As any other family it is taken."""
    family = {"d": {"new_version_behavior": True}}
    world = CellsWorld(tmp_path / "w", [ORDERS])
    world.start(tables={"cells": [store(ORDERS, families=family)]})
    place = tmp_path / "scan"
    place.mkdir()
    raw = [(b"a", [(b"d", b"q", 5, "DeleteColumn", b""), (b"d", b"q", 4, "Put", b"x")])]
    bad = [b'{"row": "YQ==", "cells": [["ZA==", "cQ==", 1, "Put", "?"]]}', b"[1]", b'{"row": "", "cells": []}']
    strange = [(b"b", [(b"d:", b"q", 4, b"x")]), (b"c", [(b"d", b"q", -4, b"x")]), (b"", [(b"d", b"q", 4, b"x")])]
    kind = [(b"d", [(b"d", b"q", 4, "Maximum", b"x")])]
    good = [(b"e", [(b"d", b"q", 4, b"x")])]
    (place / "a").write_bytes(b"\n".join([*bad, as_json([*raw, *strange, *kind, *good])]))
    loaded(world, place)
    assert [cell.place.row for cell in cells_of(world.cells("orders"))] == [b"e"]
    waiting = json_lines("quarantine", "list", str(world.conf), "--json")
    assert {held["table"] for held in waiting} == {"shop.orders_cells"}
    reasons = {"unknown_message": 2, "bad_value": 3, "missing_key": 1, "unknown_op": 1}
    assert {held["reason"]: held["waiting"] for held in waiting} == reasons
    world.feed()
    world.start(tables={"cells": [store(ORDERS)]})
    json_lines("quarantine", "replay", str(world.conf), "--json")
    assert [cell.place.row for cell in cells_of(world.cells("orders"))] == [b"a", b"a", b"e"]


def json_lines(*arguments: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        ("shop:customers", [], "no entry of tables.cells"),
        (ORDERS, ["--day", "2026-11-21"], "not divided by hours"),
        ("shop:", [], "no name of a table"),
    ],
)
def test_refusals(tmp_path: Path, table: str, options: list[str], says: str) -> None:
    world = CellsWorld(tmp_path / "w", [ORDERS])
    with pytest.raises(ConfigError, match=says):
        loaded(world, tmp_path, table, *options)


# -- what HBase's own Export job wrote ------------------------------------------------------------------------------

EXPORT = DATA / "hbase" / "export"


@pytest.mark.parametrize(("folder", "scan"), [("plain", "scan.jsonl"), ("gzip", "scan.jsonl"), ("raw", "raw.jsonl")])
def test_files_of_the_export_job(tmp_path: Path, folder: str, scan: str) -> None:
    """They give the cells of the scan that was made beside them."""
    worlds = [CellsWorld(tmp_path / name, ["shop:exported"]) for name in ("files", "lines")]
    place = tmp_path / "lines_of"
    place.mkdir()
    (place / scan).write_bytes((EXPORT / scan).read_bytes())
    said = loaded(worlds[0], EXPORT / folder, "shop:exported")
    assert said["taken"] == ["part-m-00000", "part-m-00001"]
    loaded(worlds[1], place, "shop:exported")
    files, lines = (world.cells("exported").drop_columns(["written"]) for world in worlds)
    assert files.equals(lines)
    assert files.num_rows > 100


def test_a_scan_from_before_the_horizon_is_refused(tmp_path: Path) -> None:
    """A compaction has dropped a marker and what it masked; the scan of before would bring the masked cell back."""
    world = CellsWorld(tmp_path / "w", [ORDERS])
    families = {"d": {"versions": 1}}
    world.start(tables={"cells": [store(ORDERS, lateness_hours=1, families=families)], "defaults": {"buckets": 1}})
    day = 86_400_000
    cell: dict[str, Any] = {
        "row": "YQ==",
        "family": "ZA==",
        "qualifier": "cQ==",
        "value": "eA==",
        "type": "Put",
        "timeStamp": day,
    }
    gone = {**cell, "type": "DeleteColumn", "timeStamp": day + 1}
    for at, one in enumerate((cell, gone, {**cell, "row": "Yg==", "timeStamp": 9 * day})):
        world.log.add("hbase.shop.orders.wal", wal_entry([one], at + 4, written=one["timeStamp"]), None)
    world.feed()
    json_lines("compact", str(world.conf), "--now", "--json")
    assert [c.place.row for c in cells_of(world.cells("orders"))] == [b"b"]
    place = write(tmp_path / "scan", [RawCell(CellPlace(b"a", b"d", b"q", day), "Put", b"x")])
    with pytest.raises(BadInputError, match="would come back"):
        loaded(world, place, ORDERS, "--at", "1970-01-02T00:00")
    assert loaded(world, place, ORDERS, "--at", "1970-01-10T00:00")["taken"] == ["a.jsonl"]


@pytest.mark.parametrize("codec", ["DefaultCodec", "DeflateCodec", "BZip2Codec", "SnappyCodec"])
def test_blocks_that_hadoop_wrote(tmp_path: Path, codec: str) -> None:
    """Six rows of a raw scan; zlib, bzip2 and Hadoop's framing of Snappy."""
    world = CellsWorld(tmp_path / "w", [COUNTERS])
    loaded(world, DATA / "hbase" / "sequence_files", COUNTERS, "--files", codec)
    cells = raw_truth(COUNTERS)
    rows = sorted({cell.place.row for cell in cells})[:6]
    assert sorted(cells_of(world.cells("counters"))) == sorted(cell for cell in cells if cell.place.row in rows)


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:400] + b"\xff" * 9 + data[409:]])
def test_a_damaged_sequence_file_is_told(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    world, place = CellsWorld(tmp_path / "w", [COUNTERS]), tmp_path / "scan"
    place.mkdir()
    (place / "f").write_bytes(damage((DATA / "hbase" / "sequence_files" / "DefaultCodec").read_bytes()))
    with pytest.raises(CorruptDataError, match="cannot be read"):
        loaded(world, place, COUNTERS)
