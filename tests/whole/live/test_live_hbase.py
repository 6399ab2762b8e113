"""A live HBase into a table of cells and a wide table, while all of it dies again and again: both equal the scan.

A random workload runs beside the stream. A region moves, its regions split, a region server fails, HBase is killed,
the stream dies at calls of the store, and the replication sends batches twice.
"""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.cells import CELL_KEY, VALUE
from binlake.decode.types.cell_text import text_of
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.settings import Settings
from binlake.tables.audit import audit
from embedded.hbase_source import ScannedCell
from hudilake import clock
from hudilake.services.fsck import fsck
from hudilake.storage import open_storage
from tests.binlake.hbase.recordings import CellKind, CellPlace
from tests.binlake.hbase.visibility import Edit, edits, visible
from tests.binlake.hbase.workload import FAMILIES, BackgroundRun, Workload
from tests.hypothesis_profile import usually
from tests.judges.agreement import assert_judges_agree
from tests.judges.hudi_spark import HudiSpark
from tests.services.hbase import LiveHBase, topic_of
from tests.whole.live.followed import Followed, died

pytestmark = [pytest.mark.hbase, pytest.mark.spark, pytest.mark.judge]

#: Columns of the wide table that are no maps: their place in the store.
PLACES = {
    "user_id": (b"d", b"user_id"),
    "status": (b"d", b"status"),
    "price": (b"d", b"price"),
    "qty": (b"d", b"qty"),
    "gift": (b"d", b"gift"),
    "amount": (b"d", b"amount"),
    "note": (b"d", b"note"),
    "loc": (b"s", b"loc"),
    "hits": (b"c", b"hits"),
    "sum": (b"c", b"sum"),
    "log": (b"c", b"log"),
}
TYPES = {
    "user_id": "#b long",
    "price": "#b double",
    "qty": "#b int",
    "gift": "#b boolean",
    "amount": "#b decimal(12,2)",
    "hits": "#b long",
    "sum": "#b long",
}
MAPS = ("m", "x", "k", "n", "t")


def settings(place: Path, hbase: LiveHBase, table: str) -> Settings:
    columns = {name: f"{family.decode()}:{qualifier.decode()}" for name, (family, qualifier) in PLACES.items()}
    declared = {name: where + TYPES.get(name, "") for name, where in columns.items()}
    maps = {f"in_{family}": f"{family}:#b bytes" for family in MAPS}
    families = {
        family.name: {
            "versions": family.versions,
            "ttl_seconds": None if family.ttl_ms is None else family.ttl_ms // 1000,
            "keep_deleted_cells": family.keep_deleted,
            "new_version_behavior": family.by_sequence,
        }
        for family in FAMILIES
    }
    store = {
        "source": table.replace(":", "."),
        "families": families,
        "wide": {"columns": {"id": ":key#b bytes", **declared, **maps}},
    }
    document = {
        "name": "cells",
        "lake": {"uri": str(place)},
        "kafka": {
            "bootstrap_servers": hbase.bootstrap_servers,
            "topic_pattern": topic_of(table).replace(".", r"\."),
        },
        "source": {"format": "hbase_wal"},
        "tables": {
            "defaults": {"buckets": 2, "compaction": {"mode": "inline", "after_commits": 3}},
            "cells": [store],
        },
    }
    return Settings.parse(json.dumps(document))


def newest(told: Iterable[Edit]) -> dict[tuple[CellPlace, CellKind], Edit]:
    """The last write of each cell."""
    found: dict[tuple[CellPlace, CellKind], Edit] = {}
    for edit in sorted(told, key=lambda edit: edit.order):
        found[edit.place, edit.kind] = edit
    return found


def stored_cells(told: Iterable[Edit]) -> list[dict[str, Any]]:
    """Rows of the table of cells."""
    return [
        {
            "row": _text(edit.place.row),
            "family": edit.place.family.decode(),
            "qualifier": _text(edit.place.qualifier),
            "timestamp": edit.place.timestamp_ms,
            "kind": edit.kind,
            "value": edit.value if edit.kind == "Put" else None,
            ORDER_FIELD: edit.order[0],
        }
        for edit in told
    ]


def wide_of(scan: Iterable[ScannedCell]) -> list[dict[str, Any]]:
    """The rows of the wide table by a scan: the newest version of each column."""
    newest: dict[bytes, dict[tuple[bytes, bytes], bytes]] = {}
    for cell in scan:  # a column's newest version comes first
        newest.setdefault(cell.row, {}).setdefault((cell.family, cell.qualifier), cell.value)
    return [_wide_row(row, values) for row, values in newest.items()]


def _wide_row(row: bytes, values: Mapping[tuple[bytes, bytes], bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {"id": row}
    for name, place in PLACES.items():
        found[name] = _decoded(TYPES.get(name, ""), values[place]) if place in values else None
    for family in MAPS:
        entries = {_text(column): value for (of, column), value in values.items() if of == family.encode()}
        found[f"in_{family}"] = entries or None
    return found


def _decoded(type_: str, value: bytes) -> object:
    """As ``Bytes.toLong`` and its like."""
    match type_:
        case "#b long":
            return struct.unpack(">q", value)[0]
        case "#b int":
            return struct.unpack(">i", value)[0]
        case "#b double":
            return struct.unpack(">d", value)[0]
        case "#b boolean":
            return value != b"\0"
        case "#b decimal(12,2)":
            return Decimal(int.from_bytes(value[4:], "big", signed=True)).scaleb(-int.from_bytes(value[:4], "big"))
    return value.decode()


def _text(name: bytes) -> str:
    """A row key or a qualifier as text (``tests/binlake/decode/types`` compares the form with HBase's own)."""
    [text] = text_of(pa.array([name])).to_pylist()
    return str(text)


@pytest.mark.full
@pytest.mark.parametrize("seed", usually([1], [1, 2, 3]))
def test_cells_and_wide_rows_equal_the_scan(hbase: LiveHBase, hudi_spark: HudiSpark, tmp_path: Path, seed: int) -> None:
    table, pick = f"live:orders{seed}", random.Random(seed)
    workload = Workload(hbase.source, table, seed, binary=True)
    hbase.make_topics(table)
    workload.create()
    workload.run(120)
    stream = Followed(settings(tmp_path, hbase, table))
    stream.run()
    _misfortunes(hbase, table, workload, stream, pick)
    hbase.source.drain()
    stream.run()
    scan_ts_ms, scan = clock.now_ms(), hbase.source.scan(table)
    wide = tmp_path / "live" / f"orders{seed}"
    cells = wide.with_name(f"{wide.name}_cells")
    told = newest(edit for records in hbase.records(table) for edit in edits(records))
    assert {(CellPlace(*cell[:4]), cell.kind) for cell in hbase.source.scan(table, raw=True)} <= told.keys()
    rules = {family.name.encode(): family for family in FAMILIES}
    assert visible(told.values(), rules, scan_ts_ms) == {CellPlace(*cell[:4]): cell.value for cell in scan}
    assert_judges_agree(cells, stored_cells(told.values()), spark=hudi_spark, columns=[*CELL_KEY, VALUE, ORDER_FIELD])
    columns = ["id", *PLACES, *(f"in_{family}" for family in MAPS)]
    assert_judges_agree(wide, wide_of(scan), spark=hudi_spark, columns=columns)
    assert not (tmp_path / "_quarantine").exists()
    for path in (cells, wide):
        storage = open_storage(str(path))
        assert audit(storage).errors == []
        assert [f for f in fsck(storage, grace_ms=0).findings if f.severity == "error"] == []


def _misfortunes(hbase: LiveHBase, table: str, workload: Workload, stream: Followed, pick: random.Random) -> None:
    """The workload goes on while region servers, HBase and the stream fail."""
    run = BackgroundRun(workload, 300)
    run.start()
    hbase.service.slow_replication(200, hbase.source.holder(table, b"o00000"))
    hbase.source.move(table, b"o00000")
    hbase.source.split(table, b"o00005")
    deaths = [died(stream, pick)]
    hbase.service.abort_region_server(hbase.source.holder(table, b"o00030"))
    deaths.append(died(stream, pick))
    hbase.service.kill()
    stream.run()
    hbase.service.start()
    deaths += [died(stream, pick) for _ in range(3)]
    run.finish()
    assert sum(deaths) > 1, "the stream did not die"
