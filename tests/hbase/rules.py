"""HBase's rules of what is visible, slow and plain: the reference that replays of its events are compared with."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from pipeline.decode.changes import RawRecords
from tests.hbase.recordings import CellKind, CellPlace, Family


class Edit(NamedTuple):
    """A cell of a WAL entry. ``order`` is the entry's sequence id and the cell's place in it."""

    place: CellPlace
    kind: CellKind
    value: bytes
    order: tuple[int, int]


class _Marker(NamedTuple):
    kind: CellKind
    timestamp_ms: int
    order: tuple[int, int]


def edits(records: RawRecords) -> Iterator[Edit]:
    """The cells of recorded WAL entries (JSON), in the order of arrival."""
    for value in records.values:
        assert value is not None
        entry = json.loads(value)
        for at, cell in enumerate(entry["edit"]["cells"]):
            row, family, qualifier, stored = (
                base64.b64decode(cell[name]) for name in ("row", "family", "qualifier", "value")
            )
            place = CellPlace(row, family, qualifier, cell["timeStamp"])
            yield Edit(place, cell["type"], stored, (entry["key"]["sequenceId"], at))


def visible(all_edits: Iterable[Edit], families: Mapping[bytes, Family], scan_ts_ms: int) -> dict[CellPlace, bytes]:
    """What a scan of all versions at ``scan_ts_ms`` has, whatever the order and the repetitions of the edits."""
    puts: dict[tuple[bytes, bytes, bytes], dict[int, Edit]] = defaultdict(dict)
    markers: dict[tuple[bytes, bytes, bytes | None], list[_Marker]] = defaultdict(list)
    for edit in all_edits:
        row, family, qualifier, at = edit.place
        if edit.kind == "Put":
            versions = puts[row, family, qualifier]
            if at not in versions or versions[at].order <= edit.order:
                versions[at] = edit
        else:
            column = None if edit.kind.startswith("DeleteFamily") else qualifier
            markers[row, family, column].append(_Marker(edit.kind, at, edit.order))
    found: dict[CellPlace, bytes] = {}
    for (row, family, qualifier), versions in puts.items():
        mine = markers[row, family, qualifier] + markers[row, family, None]
        for edit in _shown(versions, mine, families[family], scan_ts_ms):
            found[edit.place] = edit.value
    return found


def _shown(versions: Mapping[int, Edit], markers: list[_Marker], family: Family, scan_ts_ms: int) -> list[Edit]:
    """The puts of one column that a scan shows, newest first."""
    oldest = 0 if family.ttl_ms is None else scan_ts_ms - family.ttl_ms
    left = [
        versions[at]
        for at in sorted(versions, reverse=True)
        if at >= oldest and not any(_masks(marker, versions[at], family) for marker in markers)
    ]
    return left[: family.versions]


def _masks(marker: _Marker, put: Edit, family: Family) -> bool:
    """Whether a marker hides a put; with NEW_VERSION_BEHAVIOR only one that was written before the marker."""
    if family.new_version_behavior and put.order > marker.order:
        return False
    if marker.kind in ("DeleteColumn", "DeleteFamily"):
        return put.place.timestamp_ms <= marker.timestamp_ms
    return put.place.timestamp_ms == marker.timestamp_ms
