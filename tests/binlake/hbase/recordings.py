"""Recorded change events of a real HBase, and its final scans; ``tests/data/hbase/README.md`` describes them."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from binlake.decode.changes import RawRecords
from binlake.hbase.settings.families import FamilyRule
from tests.binlake.decode.recordings import records
from tests.paths import DATA

HOME = DATA / "hbase"
#: Tables with recorded topics and final scans.
TABLES = ("shop:orders", "shop:quirks", "shop:counters", "shop:clicks")
#: Tables of the run with hbase-connectors' own proxy.
PROXY_TABLES = ("orders", "quirks", "counters")

Form = Literal["wal", "events"]
CellKind = Literal["Put", "Delete", "DeleteColumn", "DeleteFamily", "DeleteFamilyVersion"]


class CellPlace(NamedTuple):
    """Where a cell's value is; ``timestamp_ms`` is the cell's timestamp."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp_ms: int


class RawCell(NamedTuple):
    """A cell of a raw scan: a put or a marker."""

    place: CellPlace
    kind: CellKind
    value: bytes


class RecordedTable(NamedTuple):
    """A table's families, and when its final scan ran (milliseconds since 1970): what had expired by then."""

    name: str
    families: dict[bytes, FamilyRule]
    scan_ts_ms: int


def topic(table: str, form: Form) -> dict[int, RawRecords]:
    """Partition -> its records in the order of their offsets."""
    return _topic(HOME / "topics" / f"hbase.{table.replace(':', '.')}.{form}.jsonl.gz")


def proxy_topic(table: str) -> dict[int, RawRecords]:
    """What hbase-connectors' own Kafka proxy wrote for one of ``PROXY_TABLES``: partition -> its records."""
    return _topic(HOME / "real_proxy" / f"real.{table}.jsonl.gz")


def truth(table: str) -> dict[CellPlace, bytes]:
    """The final scan with all visible versions."""
    return {
        CellPlace(decoded(row), decoded(family), decoded(qualifier), at): decoded(value)
        for row, (family, qualifier, at, value) in _cells(table, "")
    }


def raw_truth(table: str) -> list[RawCell]:
    """The final raw scan: puts, masked ones too, and markers."""
    return [
        RawCell(CellPlace(decoded(row), decoded(family), decoded(qualifier), at), kind, decoded(value))
        for row, (family, qualifier, at, kind, value) in _cells(table, ".raw")
    ]


@lru_cache(maxsize=1)
def described() -> dict[str, RecordedTable]:
    """Table -> its families and the time of its final scan."""
    facts = json.loads((HOME / "truth" / "tables.json").read_text())
    return {
        name: RecordedTable(name, dict(_families(facts[name]["descriptor"])), facts[name]["scan_ts"]) for name in TABLES
    }


def untold(table: str, place: CellPlace) -> bool:
    """Whether no event tells what became of a cell, so that a replay cannot equal the final scan there.

    A cell's own TTL is a tag, and tags do not travel. A major compaction dropped markers and surplus versions in the
    middle of the ``quirks``. A flush drops surplus versions: of ``orders:s``, eleven behind the newest differ.
    With NEW_VERSION_BEHAVIOR HBase lets the empty qualifier survive the delete of its family.
    """
    if table == "shop:orders":
        return place.row in _FLUSHED and place.family == b"s" and place.timestamp_ms < _newest(table)[place[:3]]
    return table == "shop:quirks" and place.row in _COMPACTED


_FLUSHED = frozenset((b"o00001", b"o00026", b"o00030", b"o00034", b"o00064", b"o00212", b"o00237", b"o00241"))
_COMPACTED = frozenset(
    [b"cell_ttl.%s" % family for family in (b"v1", b"v3", b"nb", b"kd")]
    + [b"compacted_version.%s" % family for family in (b"v1", b"v3", b"kd")]
    + [b"compacted.v1", b"compacted.v3", b"many.kd", b"empty_qualifier_family.nb"]
)


def decoded(text: str) -> bytes:
    """The bytes of a base64 text."""
    return base64.b64decode(text)


@lru_cache(maxsize=4)
def _newest(table: str) -> dict[tuple[bytes, bytes, bytes], int]:
    """Column -> the timestamp of its newest visible cell."""
    newest: dict[tuple[bytes, bytes, bytes], int] = {}
    for place in truth(table):
        newest[place[:3]] = max(place.timestamp_ms, newest.get(place[:3], 0))
    return newest


@lru_cache(maxsize=16)
def _topic(path: Path) -> dict[int, RawRecords]:
    lines = list(_lines(path))
    found: dict[int, RawRecords] = {}
    for partition in sorted({line["partition"] for line in lines}):
        mine = [line for line in lines if line["partition"] == partition]
        found[partition] = records(
            [decoded(line["key"]) for line in mine],
            [decoded(line["value"]) for line in mine],
            topic=mine[0]["topic"],
            partition=partition,
            offsets=[line["offset"] for line in mine],
            timestamps=[line["timestamp"] for line in mine],
        )
    return found


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _cells(table: str, suffix: str) -> Iterator[tuple[str, list[Any]]]:
    """The row key and one cell, of each cell of a scan."""
    for row in _lines(HOME / "truth" / f"{table.replace(':', '.')}{suffix}.jsonl.gz"):
        for cell in row["cells"]:
            yield row["row"], cell


def _families(descriptor: str) -> Iterator[tuple[bytes, FamilyRule]]:
    """The families in the words of HBase's shell: ``{NAME => 'd', VERSIONS => '1', ...}``."""
    for text in descriptor.split("{NAME => ")[1:]:
        said = dict(re.findall(r"'?(\w+)'? => '([^']*)'", "NAME => " + text))
        name, ttl = said["NAME"], said["TTL"]
        rule = FamilyRule(
            name,
            versions=int(said["VERSIONS"]),
            ttl_ms=None if ttl == "FOREVER" else int(ttl.split()[0]) * 1000,
            min_versions=int(said["MIN_VERSIONS"]),
            keep_deleted=said["KEEP_DELETED_CELLS"] == "TRUE",
            by_sequence=said.get("NEW_VERSION_BEHAVIOR") == "true",
        )
        yield name.encode(), rule
