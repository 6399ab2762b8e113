"""What a restore of a table means for the stream that writes it: what it had delivered since is delivered again.

The restored table's commits say where it stands, but the stream's own ledger stands further on. So the table is noted
there as *behind*, from the beginning of the first batch that goes; the stream's next run catches it up, and the table
drops what it still has. To be noted before the restore: after a death in between the stream only reads more than it
need have.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pipeline.hudi.services.restore_plan import RestorePlan
from pipeline.hudi.table import HudiTable
from pipeline.settings import Settings
from pipeline.source.ranges import Positions
from pipeline.storage import open_storage
from pipeline.stream.lake import OFFSETS, STREAM
from pipeline.stream.ledger import Ledger
from pipeline.stream.places import Place


def taken_back(table: HudiTable, plan: RestorePlan) -> dict[str, Positions]:
    """By stream, where the batches begin whose commits a restore takes back. Raises CorruptDataError, StorageError."""
    starts: dict[str, Positions] = {}
    for write in plan.undone:
        extra = table.timeline.commit_metadata(write).extra if write.completed else {}
        if STREAM in extra and OFFSETS in extra:
            _put(starts.setdefault(extra[STREAM], {}), json.loads(extra[OFFSETS]))
    return starts


def note_behind(settings: Settings, place: Place, start: Positions) -> Positions | None:
    """Note in the stream's ledger that a table must be caught up from ``start``; the stream must not be running.

    Returns from where it will be; None if there is no ledger: it is then worked out from the tables.
    Raises CorruptDataError, StorageError.
    """
    state = open_storage(settings.state_uri, settings.state_options())
    ledger = Ledger.load(state, settings.name)
    if ledger is None:
        return None
    behind = _earliest(_known(start, ledger.positions), ledger.behind.get(place.source, {}))
    if behind:
        ledger.behind[place.source] = behind
        ledger.tables[place.source] = place.rules.path
        ledger.save(state)
    return behind


def is_noted(settings: Settings, place: Place, start: Positions) -> bool:
    """Whether the ledger, if there is one, still says so. Raises as ``note_behind``."""
    ledger = Ledger.load(open_storage(settings.state_uri, settings.state_options()), settings.name)
    if ledger is None:
        return True
    behind = ledger.behind.get(place.source, {})
    return _earliest(_known(start, ledger.positions), behind) == behind


def _put(starts: Positions, offsets: Mapping[str, Mapping[str, list[int]]]) -> None:
    for topic, parts in offsets.items():
        mine = starts.setdefault(topic, {})
        for partition, (first, _) in parts.items():
            mine[int(partition)] = min(first, mine.get(int(partition), first))


def _known(start: Positions, positions: Positions) -> Positions:
    """Without what lies at or beyond the stream's own position: that it has still to read anyway."""
    found = {
        topic: {p: offset for p, offset in parts.items() if offset < positions.get(topic, {}).get(p, 0)}
        for topic, parts in start.items()
    }
    return {topic: parts for topic, parts in found.items() if parts}


def _earliest(start: Positions, noted: Positions) -> Positions:
    result: Positions = {topic: dict(parts) for topic, parts in noted.items()}
    for topic, parts in start.items():
        mine = result.setdefault(topic, {})
        for partition, offset in parts.items():
            mine[partition] = min(offset, mine.get(partition, offset))
    return result
