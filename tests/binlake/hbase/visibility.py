"""HBase's rules of what is visible, slow and plain: the reference that replays of its events are compared with."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from binlake.decode.changes import RawRecords
from binlake.hbase.settings.families import FamilyRule
from tests.binlake.hbase.recordings import CellKind, CellPlace


class Edit(NamedTuple):
    """A cell of a WAL entry. ``order`` is the entry's sequence id and the cell's place in it."""

    place: CellPlace
    kind: CellKind
    value: bytes
    order: tuple[int, int]


def edits(records: RawRecords) -> Iterator[Edit]:
    """The cells of recorded WAL entries (JSON), in the order of arrival."""
    for value in records.values:
        assert value is not None
        yield from edits_of(value)


def edits_of(document: bytes) -> Iterator[Edit]:
    """The cells of one WAL entry (JSON)."""
    entry = json.loads(document)
    for at, cell in enumerate(entry["edit"]["cells"]):
        row, family, qualifier, value = (
            base64.b64decode(cell[name]) for name in ("row", "family", "qualifier", "value")
        )
        place = CellPlace(row, family, qualifier, cell["timeStamp"])
        yield Edit(place, cell["type"], value, (entry["key"]["sequenceId"], at))


def visible(all_edits: Iterable[Edit], families: Mapping[bytes, FamilyRule], scan_ts_ms: int) -> dict[CellPlace, bytes]:
    """What a scan of all versions at ``scan_ts_ms`` has, whatever the order and the repetitions of the edits."""
    puts: dict[tuple[bytes, bytes, bytes], set[Edit]] = defaultdict(set)
    markers: dict[tuple[bytes, bytes, bytes | None], set[Edit]] = defaultdict(set)
    for edit in all_edits:
        row, family, qualifier, _ = edit.place
        if edit.kind == "Put":
            puts[row, family, qualifier].add(edit)
        else:
            markers[row, family, None if edit.kind.startswith("DeleteFamily") else qualifier].add(edit)
    found: dict[CellPlace, bytes] = {}
    for (row, family, qualifier), mine in puts.items():
        masking = markers[row, family, qualifier] | markers[row, family, None]
        rule = families[family]
        unmasked = _in_sequence(mine, masking, rule) if rule.by_sequence else _unmasked(mine, masking)
        for edit in _counted(unmasked, rule, scan_ts_ms):
            found[edit.place] = edit.value
    return found


def _unmasked(puts: Iterable[Edit], markers: Iterable[Edit]) -> dict[int, Edit]:
    """Timestamp -> the put written last, of the puts that no marker masks, whenever it was written."""
    left: dict[int, Edit] = {}
    for put in sorted(puts, key=lambda edit: edit.order):
        if not any(_masks(marker, put.place.timestamp_ms) for marker in markers):
            left[put.place.timestamp_ms] = put
    return left


def _in_sequence(puts: Iterable[Edit], markers: Iterable[Edit], rule: FamilyRule) -> dict[int, Edit]:
    """The same with NEW_VERSION_BEHAVIOR: a marker masks what its entry and earlier ones wrote.

    What is surplus when a marker comes does not come to light later (HBase's NewVersionBehaviorTracker, and measured).
    """
    left: dict[int, Edit] = {}
    for edit in sorted([*puts, *markers], key=lambda edit: (edit.order[0], edit.kind != "Put", edit.order)):
        if edit.kind == "Put":
            left[edit.place.timestamp_ms] = edit
        else:
            left = {at: put for at, put in _without_surplus(left, rule).items() if not _masks(edit, at)}
    return _without_surplus(left, rule)


def _without_surplus(versions: Mapping[int, Edit], rule: FamilyRule) -> dict[int, Edit]:
    """The newest versions; those that one entry wrote count as one."""
    entries: set[int] = set()
    left: dict[int, Edit] = {}
    for at in sorted(versions, reverse=True):
        if len(entries) == rule.versions:
            break
        entries.add(versions[at].order[0])
        left[at] = versions[at]
    return left


def _counted(versions: Mapping[int, Edit], rule: FamilyRule, scan_ts_ms: int) -> Iterator[Edit]:
    """The newest versions, as many as the family keeps; of the expired ones as many as ``min_versions`` wants."""
    oldest = 0 if rule.ttl_ms is None else scan_ts_ms - rule.ttl_ms
    for count, at in enumerate(sorted(versions, reverse=True)[: rule.versions]):
        if at >= oldest or count < rule.min_versions:
            yield versions[at]


def _masks(marker: Edit, timestamp_ms: int) -> bool:
    if marker.kind in ("DeleteColumn", "DeleteFamily"):
        return timestamp_ms <= marker.place.timestamp_ms
    return timestamp_ms == marker.place.timestamp_ms
